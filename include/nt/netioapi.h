// SPDX-License-Identifier: MIT
/*
 * netioapi.h - the types of the IP helper. Interfaces are named as in ifdef.h.
 */
#ifndef SOFTNDK_NETIOAPI_H
#define SOFTNDK_NETIOAPI_H

#include "ifdef.h"
#include "ntstatus.h"
#include "ws2ipdef.h"

/* What IP helper functions return; in kernel mode a status, not a Win32 error. */
typedef NTSTATUS NETIO_STATUS;
#define NETIO_SUCCESS(x) ((x) == STATUS_SUCCESS)
#define NETIOAPI_API     NETIO_STATUS NTAPI

#endif /* SOFTNDK_NETIOAPI_H */
