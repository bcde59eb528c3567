// SPDX-License-Identifier: MIT
/*
 * ntddk.h - the name under which drivers include the kernel services; all of them are in wdm.h.
 */
#ifndef SOFTNDK_NTDDK_H
#define SOFTNDK_NTDDK_H

#include "wdm.h"

#endif /* SOFTNDK_NTDDK_H */
