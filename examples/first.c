// SPDX-License-Identifier: MIT
/*
 * first.c - a first NDK consumer: opens an adapter, asks what it can do, and registers memory. On
 * Windows all but the first and the last call would be the same.
 */
#include <softndk.h>
#include <stdio.h>
#include <stdlib.h>

static VOID notified(PVOID context, NTSTATUS status) { (void)context, (void)status; }
static VOID created(PVOID to, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    *(NDK_OBJECT_HEADER **)to = status == STATUS_SUCCESS ? object : NULL;
}
