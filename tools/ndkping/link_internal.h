// SPDX-License-Identifier: MIT
/*
 * What link.c and link_data.c share.
 */
#ifndef SOFTNDK_NDKPING_LINK_INTERNAL_H
#define SOFTNDK_NDKPING_LINK_INTERNAL_H

#include "link.h"

/* The CQ's notification; the context is the link. */
VOID link_notified(PVOID context, NTSTATUS cq_status);

/* A relative time-out for KeWaitForSingleObject. */
LARGE_INTEGER link_timeout(unsigned milliseconds);

#endif
