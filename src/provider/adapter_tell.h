// SPDX-License-Identifier: MIT
/*
 * What this process has open, as lines of JSON for ndkstat and other programs; the format is in
 * docs/ndkstat.md. From adapter_snapshot.h and adapter_counters.h.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_TELL_H
#define SOFTNDK_PROVIDER_ADAPTER_TELL_H

#include "stat/text.h"

#define ADAPTER_TELL_FORMAT 1

/* Appends all of it. Any thread that is no consumer's; takes adapters' locks, holds none. */
void adapter_tell(struct stat_text *text);

#endif
