// SPDX-License-Identifier: MIT
/*
 * wsk.h - the registration part of Winsock Kernel: the door to the NDK extension (wskndk.h).
 *
 * No sockets: the socket slots of the provider table exist for the layout and are NULL.
 * All functions here run at PASSIVE_LEVEL unless said otherwise.
 */
#ifndef SOFTNDK_WSK_H
#define SOFTNDK_WSK_H

#include "ifdef.h"
#include "ip2string.h"
#include "ntddk.h"
#include "ws2def.h"
#include "ws2ipdef.h"

SOFTNDK_BEGIN_C

#define WSKAPI NTAPI

#define MAKE_WSK_VERSION(Mj, Mn) ((USHORT)((Mj) << 8) | (USHORT)((Mn)&0xff))
#define WSK_MAJOR_VERSION(V)     ((UCHAR)((V) >> 8))
#define WSK_MINOR_VERSION(V)     ((UCHAR)(V))

/* Milliseconds to wait for the provider in WskCaptureProviderNPI. */
#define WSK_NO_WAIT       0
#define WSK_INFINITE_WAIT 0xffffffff

/* Opaque; identifies the client to the provider. */
typedef struct _WSK_CLIENT WSK_CLIENT, *PWSK_CLIENT;

/* Tells a client about changes of the provider; may be NULL in the table. */
typedef NTSTATUS(WSKAPI *PFN_WSK_CLIENT_EVENT)(PVOID ClientContext, ULONG EventType,
                                               PVOID Information, SIZE_T InformationLength);

/* What the client offers. Version by MAKE_WSK_VERSION, Reserved 0. Stays valid until
 * WskDeregister has returned. */
typedef struct _WSK_CLIENT_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    PFN_WSK_CLIENT_EVENT WskClientEvent;
} WSK_CLIENT_DISPATCH, *PWSK_CLIENT_DISPATCH;

typedef struct _WSK_CLIENT_NPI {
    PVOID ClientContext;
    CONST WSK_CLIENT_DISPATCH *Dispatch;
} WSK_CLIENT_NPI, *PWSK_CLIENT_NPI;

/* Asks the provider something by control code. Without an Irp the call is synchronous. Sizes are
 * bytes; the output buffer receives a copy. IRQL <= DISPATCH_LEVEL. */
typedef NTSTATUS(WSKAPI *PFN_WSK_CONTROL_CLIENT)(PWSK_CLIENT Client, ULONG ControlCode,
                                                 SIZE_T InputSize, PVOID InputBuffer,
                                                 SIZE_T OutputSize, PVOID OutputBuffer,
                                                 SIZE_T *OutputSizeReturned, PIRP Irp);

/* What the provider offers. */
typedef struct _WSK_PROVIDER_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    PVOID WskSocket;
    PVOID WskSocketConnect;
    PFN_WSK_CONTROL_CLIENT WskControlClient;
    PVOID WskGetAddressInfo;
    PVOID WskFreeAddressInfo;
    PVOID WskGetNameInfo;
} WSK_PROVIDER_DISPATCH, *PWSK_PROVIDER_DISPATCH;

typedef struct _WSK_PROVIDER_NPI {
    PWSK_CLIENT Client;
    CONST WSK_PROVIDER_DISPATCH *Dispatch;
} WSK_PROVIDER_NPI, *PWSK_PROVIDER_NPI;

/* Memory of the registration, the client's to keep and the provider's to use. */
typedef struct _WSK_REGISTRATION {
    ULONGLONG ReservedRegistrationState;
    PVOID ReservedRegistrationContext;
    KSPIN_LOCK ReservedRegistrationLock;
} WSK_REGISTRATION, *PWSK_REGISTRATION;

NTSTATUS WSKAPI WskRegister(PWSK_CLIENT_NPI WskClientNpi, PWSK_REGISTRATION WskRegistration);
VOID WSKAPI WskDeregister(PWSK_REGISTRATION WskRegistration);
NTSTATUS WSKAPI WskCaptureProviderNPI(PWSK_REGISTRATION WskRegistration, ULONG WaitTimeout,
                                      PWSK_PROVIDER_NPI WskProviderNpi);
VOID WSKAPI WskReleaseProviderNPI(PWSK_REGISTRATION WskRegistration);

SOFTNDK_END_C

#endif /* SOFTNDK_WSK_H */
