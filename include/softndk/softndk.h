// SPDX-License-Identifier: MIT
/*
 * softndk.h - the direct door to the library: open an adapter without Winsock Kernel, ask what a
 * status or a reason means, steer the library in tests.
 *
 * A consumer that comes through WSK or NDIS as on Windows needs nothing of this. A test program
 * needs softndk_open_adapter() and softndk_close_adapter(); everything else goes through the
 * dispatch tables of <ndkpi.h>.
 *
 * Threads: every function may be called from any thread. IRQL: PASSIVE_LEVEL for open, close, list
 * and route; <= DISPATCH_LEVEL for the rest. Texts are UTF-8, terminated, and cut off at the size
 * given. Functions that return a size_t return what the whole text needs without its terminator, as
 * snprintf does.
 *
 * Environment, read once a process unless said otherwise:
 *   SOFTNDK_CONFIG    the configuration's file: interfaces, addresses, options, registry values;
 *                     docs/configuration.md, softndk_config_describe()
 *   SOFTNDK_INTERFACES  INDEX=ADDRESS[=HOST][,...]: interfaces without a file
 *   SOFTNDK_PEERS     ADDRESS=HOST[,...]: addresses of peers without a file
 *   SOFTNDK_OPTIONS   key=value[,key=value...]; read at each open; softndk_options_describe()
 *   SOFTNDK_PROFILE   a profile's name; read at each open; softndk_profiles_describe()
 *   SOFTNDK_PROFILE_DIR  the directory of the profiles, instead of those of the installation
 *   SOFTNDK_TIMEOUTS  off: every timer off, for a debugger; read at each open
 *   SOFTNDK_PEND      see softndk_set_pend()
 *   SOFTNDK_FAIL      see softndk_set_fail()
 *   SOFTNDK_LOG       none, error (default), info, debug;  SOFTNDK_LOG_FILE: a path, else stderr
 *   SOFTNDK_REGISTRY  the file that the registry comes from and goes to; none: it is not kept
 *   SOFTNDK_FILES     the folder that drivers' files are in (ZwCreateFile);
 *                     default: softndk-files-<user> in TMPDIR
 *   SOFTNDK_FINDINGS  report (default), or abort: stop at the first finding
 *   SOFTNDK_STACKS    frames of the call stacks in softndk_report(), 1 to 32; 8. Set, it has the
 *                     stacks of NDK objects recorded, too, at some microseconds a create
 *   SOFTNDK_WSK_TELL_S  a WSK release or deregistration that waits so many seconds tells for what,
 *                     and again each time as long; 5, 0: never
 *   SOFTNDK_WSK_LATE_MS  WSK's provider comes so late, for WskCaptureProviderNPI to wait for; 0
 *   SOFTNDK_STAT      0: this process is not shown by ndkstat; or the directory, by its whole path,
 *                     that its socket is in; default: see docs/ndkstat.md; read at the first open
 *   SOFTNDK_TOLERANT  1: an adapter close inside a callback leaks instead of aborting
 */
#ifndef SOFTNDK_SOFTNDK_H
#define SOFTNDK_SOFTNDK_H

#include <ndkpi.h>
#include <ws2ipdef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; softndk_version_string() answers that of the library. */
#define SOFTNDK_VERSION "0.1.0"
const char *softndk_version_string(void);

/* ---- adapters ------------------------------------------------------------------------------- */

/*
 * Opens an adapter on one interface of this host.
 *
 * selector  which interface: its name or alias ("lo", "Ethernet 2"), one of its addresses
 *           ("127.0.0.1", "fe80::1%eth0"; a loopback interface owns all of 127.0.0.0/8), or its
 *           index ("12", "if12"), also one that only a provider of yours serves. A name wins over
 * an index of the same text. NULL or "": the first interface of softndk_adapter_list() that is up.
 * One that is down can be opened when it is named. options   "key=value[,key=value...]", on top of
 * SOFTNDK_OPTIONS; NULL: none. The adapter keeps a copy. "ndkpi=1.2" caps the version offered.
 * "profile=NAME" begins with the values of that profile instead of the defaults; it wins over
 * SOFTNDK_PROFILE. version   {major, lowest minor that will do}. The adapter runs the highest minor
 * of that major that it has and reports it in every object header and in NDK_ADAPTER_INFO: {1,0}
 * runs 1.2, {2,0} runs 2.1. out       the adapter, to be closed with softndk_close_adapter().
 * Untouched on failure.
 *
 * An interface may be opened many times; each open is a world of its own. The first open of the
 * process starts the library's threads, the last close ends them.
 * IRQL PASSIVE_LEVEL. Statuses:
 *   STATUS_SUCCESS
 *   STATUS_INVALID_PARAMETER       a bad option, profile or configuration, or out is NULL
 *   STATUS_NOT_FOUND               no such interface
 *   0xC0010004                     NDIS_STATUS_BAD_VERSION: that version is not offered
 *   0xC0010011                     NDIS_STATUS_ADAPTER_NOT_READY: NDK is disabled on the interface
 *   STATUS_INSUFFICIENT_RESOURCES  memory, threads, descriptors
 * Every failure leaves a sentence for softndk_open_error().
 */
NTSTATUS softndk_open_adapter(const char *selector, const char *options, NDK_VERSION version,
                              NDK_ADAPTER **out);

/* Why the last open (list, route, config) of this thread failed; empty after a success. */
size_t softndk_open_error(char *text, size_t size);

/*
 * Closes an adapter. Blocks until every object that descends from it is closed and every callback
 * has returned; after that the consumer may unload. A close that has waited for 5 s logs what it
 * waits for. Not inside any callback of the library: there it could only wait for itself, so it
 * prints a line and aborts. IRQL PASSIVE_LEVEL. NULL does nothing.
 */
void softndk_close_adapter(NDK_ADAPTER *adapter);

#define SOFTNDK_NAME_MAX      64
#define SOFTNDK_ADDRESS_MAX   80 /* an address as text, with brackets, scope and port */
#define SOFTNDK_ADDRESSES_MAX 16

/* One interface that can be opened. */
struct softndk_adapter {
    char name[SOFTNDK_NAME_MAX]; /* a selector */
    ULONG index;                 /* the configured interface index, or the host's */
    ULONG mtu;                   /* octets */
    BOOLEAN up, loopback;
    ULONG address_count;
    char addresses[SOFTNDK_ADDRESSES_MAX][SOFTNDK_ADDRESS_MAX]; /* each one a selector too */
    char host[SOFTNDK_NAME_MAX]; /* the host's interface below; empty: it is not here */
    char host_addresses[SOFTNDK_ADDRESSES_MAX][SOFTNDK_ADDRESS_MAX]; /* the host's, in that order */
};

/*
 * Lists the interfaces: those of the configuration, then the host's own, each by index. Fills at
 * most max entries (list may be NULL when max is 0); *count: how many there are. STATUS_SUCCESS,
 * STATUS_INVALID_PARAMETER (no count, or a bad configuration), STATUS_INSUFFICIENT_RESOURCES. IRQL
 * PASSIVE_LEVEL.
 */
NTSTATUS softndk_adapter_list(struct softndk_adapter *list, ULONG max, ULONG *count);

/*
 * Which adapter to open to reach a peer: asks the host's routes.
 * peer      an address as text; a port is ignored
 * selector  receives the interface name, for softndk_open_adapter(); SOFTNDK_NAME_MAX suffices
 * source    receives the local address (text, no port) that the host would use; may be NULL
 * STATUS_SUCCESS, STATUS_INVALID_PARAMETER (not an address, or a bad configuration),
 * STATUS_NETWORK_UNREACHABLE (no route), STATUS_NOT_FOUND (no interface has that address),
 * STATUS_BUFFER_TOO_SMALL. IRQL PASSIVE_LEVEL.
 */
NTSTATUS softndk_adapter_for_route(const char *peer, char *selector, size_t selector_size,
                                   char *source, size_t source_size);

/* ---- interfaces at run time ----------------------------------------------------------------- */

/* docs/registry.md. All of this at IRQL PASSIVE_LEVEL; failures leave a sentence for
 * softndk_open_error(). index: of an interface, struct softndk_adapter. */

struct softndk_interface_state {
    BOOLEAN enabled; /* opens are let through */
    BOOLEAN allowed; /* FALSE: the configuration says *NetworkDirect = 0, it cannot be enabled */
    ULONG opens;     /* adapters that are open on it, through any door */
};

/* STATUS_SUCCESS, STATUS_NOT_SUPPORTED (no NDK adapter has this index), STATUS_INVALID_PARAMETER
 * (out is NULL, or a bad configuration), STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS softndk_interface_state(ULONG index, struct softndk_interface_state *out);

/*
 * Enables or disables NDK on an interface while consumers run, by OID_NDK_SET_STATE to its
 * provider. When it returns, opens are let through, or answered with NDIS_STATUS_ADAPTER_NOT_READY
 * (0xC0010011). A disable does not wait for what is open: adapters and their connections work on
 * until their consumers close them. Statuses of softndk_interface_state(), and
 * NDIS_STATUS_ADAPTER_NOT_READY (*NetworkDirect is 0), STATUS_IO_TIMEOUT (the provider has sent no
 * event for 10 s), or what else a provider of yours answers.
 */
NTSTATUS softndk_interface_enable(ULONG index);
NTSTATUS softndk_interface_disable(ULONG index);

/*
 * Issues an OID request of <ntddndis.h> to the provider of an interface: OID_NDK_STATISTICS,
 * OID_NDK_CONNECTIONS, OID_NDK_LOCAL_ENDPOINTS; OID_NDK_SET_STATE. bytes (may be NULL): octets
 * written, or read; with NDIS_STATUS_BUFFER_TOO_SHORT (0xC0010016) and NDIS_STATUS_INVALID_LENGTH
 * (0xC0010014) those that are needed; else 0. The buffer is aligned as the structure needs it; NULL
 * with length 0 asks for the size. The provider's status, STATUS_NOT_SUPPORTED (an OID that it does
 * not know; or no NDK adapter has this index), STATUS_INVALID_PARAMETER,
 * STATUS_INSUFFICIENT_RESOURCES.
 */
NTSTATUS softndk_oid_query(ULONG index, ULONG oid, void *buffer, ULONG length, ULONG *bytes);
NTSTATUS softndk_oid_set(ULONG index, ULONG oid, void *buffer, ULONG length, ULONG *bytes);

/*
 * What PnP does under Windows: brings up an instance of a miniport driver that has registered
 * (NdisMRegisterMiniportDriver) for an interface index, which no other provider may serve yet, and
 * takes it away. The index need not be that of an interface. softndk_provider_stop() waits until
 * the instance's adapters are closed; NULL does nothing.
 * STATUS_SUCCESS, STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_COLLISION (the index is served),
 * STATUS_INSUFFICIENT_RESOURCES, or what InitializeHandlerEx answers.
 */
NTSTATUS softndk_provider_start(PVOID driver, ULONG index, PVOID *instance);
void softndk_provider_stop(PVOID instance);

/* ---- addresses ------------------------------------------------------------------------------ */

/*
 * Text to address, for NdkConnect and NdkListen. Accepts "1.2.3.4", "1.2.3.4:80", "::1",
 * "[::1]:80", "fe80::1%eth0"; no port is port 0. Numbers only, no host names.
 * length receives 16 (IPv4) or 28 (IPv6). STATUS_SUCCESS or STATUS_INVALID_PARAMETER.
 */
NTSTATUS softndk_address_from_text(const char *text, SOCKADDR_INET *out, ULONG *length);

/* Address to text, with its port unless that is 0. SOFTNDK_ADDRESS_MAX suffices. An address that
 * cannot be read gives "?". Returns the length of the whole text. */
size_t softndk_address_to_text(const SOCKADDR *address, ULONG length, char *text, size_t size);

/* ---- statuses and reasons ------------------------------------------------------------------- */

/* "STATUS_IO_TIMEOUT"; NULL for a value without a name here. */
const char *softndk_status_name(NTSTATUS status);
/* What it means in NDK, in one sentence. Never NULL. */
const char *softndk_status_text(NTSTATUS status);

/*
 * The last failure at an object, in one line: "cq #7: NdkCreateQp: what is wrong (have X, need Y)".
 * A failed create leaves its reason at the parent. The object must not be closed yet. Nothing
 * failed so far: an empty text, 0.
 */
size_t softndk_reason(const NDK_OBJECT_HEADER *object, char *text, size_t size);

/*
 * In words: ProviderDisconnectReason of a disconnect event, or ProviderErrorCode of a work
 * completion. 0 gives "no reason given".
 */
size_t softndk_reason_text(ULONG code, char *text, size_t size);

/* ---- connections ----------------------------------------------------------------------------- */

/* What a connection's stream is like, which both ends have a say in. */
struct softndk_stream {
    ULONG fpdu_payload; /* octets of ULPDU (headers of DDP and RDMAP included) that this end puts
                           into one FPDU at most; follows the segment size of TCP */
    BOOLEAN crc;        /* both ends send a CRC and check it */
    UCHAR mpa_revision; /* 1 or 2 */
};

/*
 * Tells of the connection that a queue pair has. STATUS_SUCCESS; STATUS_INVALID_PARAMETER: qp or
 * out is NULL, or qp is no queue pair; STATUS_CONNECTION_INVALID: it has none, not yet or not any
 * more (*out is then left alone). Answers inline. Any thread; the queue pair must not be closed
 * meanwhile. IRQL up to DISPATCH_LEVEL.
 */
NTSTATUS softndk_stream(const NDK_QP *qp, struct softndk_stream *out);

/* ---- what a run leaves behind --------------------------------------------------------------- */

/*
 * Misuses of NDK and of kernel services found so far in this process (waiting at DISPATCH_LEVEL,
 * freeing an MDL whose pages are locked, ...): each one is also a line "finding: ..." of the log.
 */
ULONG softndk_finding_count(void);

/*
 * Tells, a line a call, the findings of this process and what its consumers made and have not given
 * back: pool by tag, MDLs, work items, lookaside lists, resources, timers that are set, threads
 * that run, open handles; each with how many, how much, and the call stack that made the first of
 * them; adapters, NDK objects and logical address mappings, with theirs if SOFTNDK_STACKS is set;
 * spin locks that are held. Call it when the consumer has unloaded. line may be NULL; text ends
 * with the call. Returns the number of findings and things left: 0 is a clean run. What was told is
 * not said again at the end of the process, which otherwise logs what is left. IRQL PASSIVE_LEVEL.
 */
size_t softndk_report(void (*line)(void *context, const char *text), void *context);

/*
 * What a process has going on, for a program that runs drivers (softndk-run) and wants to know when
 * they are done. Any thread, any level.
 */
struct softndk_activity {
    ULONG adapters;   /* open, or closing */
    ULONG work_items; /* queued, or running */
    ULONG threads;    /* system threads that run */
    ULONGLONG turns;  /* rises whenever an adapter is opened or a work item is queued */
};
void softndk_activity(struct softndk_activity *out);

/* ---- the simulated kernel's surroundings ----------------------------------------------------- */

/*
 * Sets a registry value, for a driver to find: key is a whole path ("\\Registry\\Machine\\...",
 * "HKEY_LOCAL_MACHINE\\..."), made with all that leads to it; name the value's, "" for the default
 * one; value in the notation of .reg files (docs/nt-surface.md), a number (REG_DWORD) or any other
 * text (REG_SZ). UTF-8. The file SOFTNDK_REGISTRY follows, if there is one.
 * STATUS_SUCCESS, STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES. IRQL PASSIVE_LEVEL.
 */
NTSTATUS softndk_registry_set(const char *key, const char *name, const char *value);

/* Tells the registry, line by line, in that notation. line must not call the registry. */
void softndk_registry_tell(void (*line)(void *context, const char *text), void *context);

/* ---- steering, for tests -------------------------------------------------------------------- */

/*
 * How calls answer that may complete inline or later, in the whole process:
 *   "never"        inline whenever the outcome is known (the default)
 *   "always"       through the callback, always
 *   "early"        through the callback, which runs on another thread before the call returns
 *                  STATUS_PENDING (for 50 ms the call waits for it)
 *   "random:SEED"  one of the three for each call, drawn from the seed
 * STATUS_SUCCESS or STATUS_INVALID_PARAMETER (nothing changed).
 */
NTSTATUS softndk_set_pend(const char *mode);

/*
 * Makes calls fail: "call:n:status[:repeat][,...]", for instance
 * "NdkCreateCq:1:STATUS_INSUFFICIENT_RESOURCES". The nth call from now on (1 is the next) fails
 * with that status, with repeat every later one too. status: a name or a number, an error or
 * warning. The call "memory" takes no status: the nth allocation of an object or request fails.
 * Replaces earlier settings; NULL or "" ends them. STATUS_SUCCESS or STATUS_INVALID_PARAMETER
 * (nothing changed).
 */
NTSTATUS softndk_set_fail(const char *rules);

/* The value that an option has at an open adapter, wherever it came from, as the table below writes
 * it: a number or a word. No such option, or an adapter that is not the library's: an empty text.
 */
size_t softndk_adapter_option(const NDK_ADAPTER *adapter, const char *name, char *text,
                              size_t size);

/* The options as a table, one a line: name, default, range, unit, meaning. */
size_t softndk_options_describe(char *text, size_t size);

/* The configuration in force, a line each with the place that says it ("FILE:LINE"). 0: it is
 * wrong, softndk_open_error() says how. */
size_t softndk_config_describe(char *text, size_t size);

/* The profiles that can be chosen, two lines each: name and what it is; its file. */
size_t softndk_profiles_describe(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_SOFTNDK_H */
