// SPDX-License-Identifier: MIT
/*
 * kit.h - the manual for authors of conformance cases.
 *
 * A topic is one file, topic_NAME.c, that includes this header, or one that is made of it
 * (kit_steps.h, kit_work.h), and nothing else (freestanding headers aside): its functions, a table
 * of cases, and one line
 *
 *     KIT_TOPIC(cq, "completion queues");
 *
 * which is listed in kit_topics.def. A case is one row:
 *
 *     KIT_CASE("CQ-004", "an arm is good for one notification", "lifetime 5.2", "NdkArmCq", run)
 *     KIT_CASE_TWO("DATA-001", "a Send fills the receive", "NDKPI 12.2", "NdkSend", server, client,
 *                  .version = {1, 2}, .arg = 7)
 *
 * run (or each of server and client) is a function VOID f(struct kit *k). It opens what it needs
 * and returns. Everything it made through this header is closed and freed for it afterwards, in
 * whatever state it returned: a case has no cleaning-up code. A check that fails notes the reason
 * and returns:
 *
 *     static VOID run(struct kit *k)
 *     {
 *         struct kit_adapter *adapter;
 *         struct kit_cq *cq;
 *
 *         TRY(kit_adapter_open(k, &adapter));
 *         TRY(kit_cq_new(adapter, 16, &cq));
 *         CHECK_EQUAL(k, "results of a new CQ", kit_cq_poll(cq, NULL, 0), 0);
 *     }
 *
 * One function can serve many rows: k->test->arg tells it which. Every wait has the case's time
 * limit behind it and a name; a case never sleeps for a result and never measures time.
 *
 * Two ends. A case with a server and a client half runs as two threads of one process, or with
 * --peer in two processes; the halves share no memory and speak through kit_tell() and kit_hear().
 * kit_end_open() and kit_end_connect() give each half a connected end. If all that the server has
 * to do is obey, use kit_obey as the server half and the kit_order_...() calls in the client. Where
 * one function must hold both ends, use KIT_CASE with .needs = KIT_NEEDS_LOOPBACK and
 * kit_pair_open().
 *
 * Always watched, in every case, without a line of the author (a breach fails the case):
 *  - calls: no completion after an inline answer, none twice, none missing; the out pointer is left
 *    alone on the asynchronous path; level of the thread the same after as before;
 *  - callbacks: at <= DISPATCH_LEVEL; CQ notifications never overlap and are not more than the
 * arms; a disconnect event at most once;
 *  - objects: header, version, every slot of the table there; NdkReserved zero at birth and left
 *    alone until the close;
 *  - closing, C1 to C9: only SUCCESS or PENDING; not done while a request, a callback or a
 * successor is left, a successor's close completion that runs included; nothing after it was done;
 *  - requests: each posted one completes exactly once and in the order of its queue, none of a
 *    failed post, none for a silent success; kind, contexts and lengths are right;
 *  - the provider's own findings, where the door tells them; memory and MDLs given back.
 *
 * Names: kit_... returns BOOLEAN unless said otherwise, FALSE having noted a failure already, so
 * that TRY() suffices. Calls that may pend come as a pair: kit_x_start() returns the struct
 * kit_call and kit_answer() its final status.
 */
#ifndef KIT_H
#define KIT_H

#include <ndkpi.h>

#include "kit_case.h"
#include "kit_door.h"
#include "kit_os.h"

struct kit_call;
struct kit_request;

/* ---- one running case (or half of one) ------------------------------------------------------ */

struct kit_config {
    SOCKADDR_INET local; /* port 0 */
    ULONG local_length;
    const char *options; /* for the door, or NULL */
    NDK_VERSION version; /* what to open; {0, 0}: the highest there is */
    const char *answer;  /* for the door's answer between cases, or NULL */
    ULONG limit_ms;      /* of one case */
    ULONG late_ms;       /* before a served half starts */
    BOOLEAN slow;        /* run what waits for the provider's timers */
};

struct kit {
    const struct kit_case *test;
    const struct kit_config *config;
    enum kit_role role;
    NDK_ADAPTER_INFO info; /* of the adapter this half opened last */
    struct kit_inside *in; /* the kit's own */
};

/* ---- checks --------------------------------------------------------------------------------- */

struct kit_here {
    const char *file;
    int line;
};
#define KIT_HERE ((struct kit_here){__FILE__, __LINE__})

/* A step that notes its own failure. In functions that return BOOLEAN: TRY_OR_FALSE. */
#define TRY(step)                                                                                  \
    do {                                                                                           \
        if (!(step))                                                                               \
            return;                                                                                \
    } while (0)
#define TRY_OR_FALSE(step)                                                                         \
    do {                                                                                           \
        if (!(step))                                                                               \
            return FALSE;                                                                          \
    } while (0)

/* A condition, with a sentence for when it does not hold. */
#define CHECK(k, condition, ...) TRY((condition) ? TRUE : kit_fail((k), KIT_HERE, __VA_ARGS__))
/* "what: have 3, need 4" */
#define CHECK_EQUAL(k, what, have, need)                                                           \
    TRY(kit_equal((k), KIT_HERE, (what), (LONGLONG)(have), (LONGLONG)(need)))
/* "what: have STATUS_X, need STATUS_Y" */
#define CHECK_STATUS(k, what, have, need) TRY(kit_status((k), KIT_HERE, (what), (have), (need)))
#define CHECK_BYTES(k, what, have, need, length)                                                   \
    TRY(kit_bytes((k), KIT_HERE, (what), (have), (need), (length)))

/* The same as functions, for helpers. kit_fail returns FALSE always. */
#ifdef _MSC_VER
#define KIT_PRINTF(text, first)
#else
#define KIT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#endif
BOOLEAN kit_fail(struct kit *k, struct kit_here here, const char *format, ...) KIT_PRINTF(3, 4);
BOOLEAN kit_equal(struct kit *k, struct kit_here here, const char *what, LONGLONG have,
                  LONGLONG need);
BOOLEAN kit_status(struct kit *k, struct kit_here here, const char *what, NTSTATUS have,
                   NTSTATUS need);
BOOLEAN kit_bytes(struct kit *k, struct kit_here here, const char *what, const VOID *have,
                  const VOID *need, SIZE_T length);
/* One of a list that ends with STATUS_PENDING: where the documents allow more than one. */
BOOLEAN kit_status_among(struct kit *k, struct kit_here here, const char *what, NTSTATUS have,
                         const NTSTATUS *need);
/* The case cannot be decided here; returns FALSE. Then return: TRY(kit_skip(k, "...")). */
BOOLEAN kit_skip(struct kit *k, const char *format, ...) KIT_PRINTF(2, 3);
/* A breach of a rule, noted without ending the case; also from callbacks, at any time. */
VOID kit_breach(struct kit *k, const char *rule, const char *format, ...) KIT_PRINTF(3, 4);

/* "STATUS_SUCCESS", or the number. */
const char *kit_status_name(NTSTATUS status);
/* snprintf. */
VOID kit_print_to(char *out, SIZE_T size, const char *format, ...) KIT_PRINTF(3, 4);

/* ---- waiting -------------------------------------------------------------------------------- */

/* Waits for the event, or fails with "waited N s for: what" when the case's time is over. */
BOOLEAN kit_wait(struct kit *k, PKEVENT event, const char *what);
/* Looks at a number that another thread changes until it is at least that. */
BOOLEAN kit_wait_number(struct kit *k, volatile LONG *number, LONG least, const char *what);
/* Gives what must not come a moment (50 ms) in which to come. Proves nothing, misses little. */
VOID kit_settle(struct kit *k);
/* Milliseconds left for this case. */
ULONG kit_time_left(struct kit *k);
/* Memory that is freed after the case and after its adapter; <= DISPATCH_LEVEL. NULL: noted. */
PVOID kit_alloc(struct kit *k, SIZE_T bytes);

/* From now on every object that is born gets a Dispatch that nobody may call through
 * (KIT_NEEDS_DIRECT). */
VOID kit_hide_dispatch(struct kit *k);

/* ---- calls that may pend -------------------------------------------------------------------- */

typedef VOID kit_then_function(struct kit_call *call, PVOID context);

struct kit_call {
    struct kit *k;
    const char *name;         /* "NdkConnect" */
    struct kit_object *owner; /* whose request it is; of a create, the parent */
    NTSTATUS returned;        /* by the function */
    NTSTATUS status;          /* final; STATUS_PENDING until known */
    union {
        PVOID any;
        NDK_CQ *cq;
        NDK_PD *pd;
        NDK_MR *mr;
        NDK_MW *mw;
        NDK_SRQ *srq;
        NDK_QP *qp;
        NDK_CONNECTOR *connector;
        NDK_LISTENER *listener;
        NDK_SHARED_ENDPOINT *endpoint;
    } out;                     /* of a create: its out parameter */
    KEVENT done;               /* set when the completion has run */
    volatile LONG completions; /* how often it ran */
    volatile LONG inside;      /* it runs now */
    volatile LONG answered;    /* the function has returned */
    BOOLEAN within;            /* the completion ran before the function returned */
    KIRQL irql;                /* of the completion */
    KIRQL before;              /* of the caller */
    enum { KIT_REQUEST, KIT_CREATE, KIT_CLOSE } kind;
    struct kit_object *object; /* of a create: the record, made beforehand */
    /* The author's and the kit's own: called inside the completion, before done is set. */
    kit_then_function *then;
    PVOID then_context;
    kit_then_function *record;
    PVOID record_context;
    struct kit_call *next;
};

/*
 * The uniform way of calling what may pend:
 *
 *     call = kit_call_new(k, &connector->object, "NdkX");        (NULL: noted)
 *     kit_call_returned(call, c->Dispatch->NdkX(c, ..., kit_request_done, call));
 *     status = kit_answer(call);
 *
 * The functions below do this already; an author needs it for calls with odd arguments.
 */
struct kit_call *kit_call_new(struct kit *k, struct kit_object *owner, const char *name);
VOID kit_call_returned(struct kit_call *call, NTSTATUS returned);
VOID kit_request_done(PVOID call, NTSTATUS status);
VOID kit_create_done(PVOID call, NTSTATUS status, NDK_OBJECT_HEADER *object);
VOID kit_close_done(PVOID call);

/* The next call that this case makes, whatever starts it, runs then(call, context) inside its
 * completion if it pends. Not while callbacks of the case make calls too. */
VOID kit_next_then(struct kit *k, kit_then_function *then, PVOID context);

/* The final status, waiting for it. KIT_NO_ANSWER after a failure that is noted already (a NULL
 * call, time over). */
NTSTATUS kit_answer(struct kit_call *call);
#define KIT_NO_ANSWER ((NTSTATUS)0xE0000001)
/* It has answered before the case's time is over but for a second; if not, nothing is noted. */
BOOLEAN kit_answers_in_time(struct kit_call *call);
/* kit_answer() that must give this status. */
BOOLEAN kit_answer_is(struct kit_call *call, NTSTATUS need);
/* Says what the case is calling, so that a hang has a name. NULL: nothing. */
VOID kit_doing(struct kit *k, const char *function);

/* Until the case's function has returned: how calls answer, as the door reads it
 * (KIT_NEEDS_ANSWER); the next call of that function fails with that status (KIT_NEEDS_FAIL). Both
 * act on the whole process: not in a case of two halves. */
BOOLEAN kit_answer_mode(struct kit *k, const char *mode);
BOOLEAN kit_make_fail(struct kit *k, const char *function, NTSTATUS status);

/* A request that the peer could not do completes with exactly the status of NDKPI 17. Otherwise
 * it may have completed with success before the peer looked at it: iWARP promises no more. */
BOOLEAN kit_exact(struct kit *k);

/* ---- objects -------------------------------------------------------------------------------- */

#define KIT_ANTECEDENTS 5

enum kit_life { KIT_UNBORN, KIT_OPEN, KIT_CLOSING, KIT_CLOSED };

/*
 * Head of every record. Records live until after their adapter is closed. Behind it each record has
 * ndk, the object, and table, its functions as they were at birth: calls go through table, since a
 * case may have put something else into Dispatch, as the layer above a provider may.
 */
struct kit_object {
    struct kit *k;
    NDK_OBJECT_TYPE type;
    ULONG number;              /* "cq #2" */
    NDK_OBJECT_HEADER *header; /* the NDK object, NULL before it is there */
    volatile LONG life;        /* enum kit_life */
    volatile LONG running;     /* event callbacks of it that run now */
    struct kit_call *close;    /* once it was called */
    BOOLEAN close_inline;      /* close answered SUCCESS */
    PVOID mark;                /* what the kit wrote into NdkReserved */
    struct kit_object *antecedents[KIT_ANTECEDENTS];
    struct kit_object *next; /* older ones */
};

struct kit_adapter {
    struct kit_object object;
    NDK_ADAPTER *ndk;
    const NDK_ADAPTER_DISPATCH *table;
    NDK_ADAPTER_INFO info;
};
struct kit_pd {
    struct kit_object object;
    NDK_PD *ndk;
    const NDK_PD_DISPATCH *table;
    struct kit_adapter *adapter;
};
struct kit_mr {
    struct kit_object object;
    NDK_MR *ndk;
    const NDK_MR_DISPATCH *table;
    BOOLEAN registered;
};
struct kit_mw {
    struct kit_object object;
    NDK_MW *ndk;
    const NDK_MW_DISPATCH *table;
};
struct kit_endpoint {
    struct kit_object object;
    NDK_SHARED_ENDPOINT *ndk;
    const NDK_SHARED_ENDPOINT_DISPATCH *table;
};

struct kit_cq {
    struct kit_object object;
    NDK_CQ *ndk;
    const NDK_CQ_DISPATCH *table;
    KEVENT event;           /* set (synchronization) at the end of each notification */
    volatile LONG arms;     /* calls of NdkArmCq through the kit */
    volatile LONG notified; /* notifications that have begun */
    volatile LONG returned; /* ... and come to their end */
    NTSTATUS status;        /* of the last notification */
    volatile LONG dead;     /* a notification said so */
    /* Called inside the notification, before the event is set; may be NULL. Set before arming; its
     * context outlives the case's function, so from kit_alloc(). */
    VOID (*in_callback)(struct kit_cq *cq, NTSTATUS status);
    PVOID context;
};

struct kit_srq {
    struct kit_object object;
    NDK_SRQ *ndk;
    const NDK_SRQ_DISPATCH *table;
    KEVENT event; /* set (synchronization) by each notification */
    volatile LONG notified;
    NTSTATUS status;
    volatile LONG dead;
};

struct kit_qp {
    struct kit_object object;
    NDK_QP *ndk;
    const NDK_QP_DISPATCH *table;
    struct kit_cq *receive, *initiator;
    struct kit_srq *srq;                    /* or NULL */
    struct kit_request *first[2], *last[2]; /* open requests: 0 initiator, 1 receive */
};

struct kit_connector {
    struct kit_object object;
    NDK_CONNECTOR *ndk;
    const NDK_CONNECTOR_DISPATCH *table;
    struct kit_connector *next_incoming;
    struct kit_endpoint *over; /* what it connects over, or NULL */
    KEVENT event;              /* set (notification) by the disconnect event */
    volatile LONG disconnects;
    ULONG reason; /* of it, with the Ex calls */
    /* Called inside the disconnect event, before its event is set; may be NULL. See
     * kit_on_disconnect(). */
    VOID (*in_callback)(struct kit_connector *connector);
    PVOID context;
};

struct kit_listener {
    struct kit_object object;
    NDK_LISTENER *ndk;
    const NDK_LISTENER_DISPATCH *table;
    KEVENT event;                       /* set (synchronization) by each connect event */
    volatile LONG events;               /* connect events so far */
    struct kit_connector *first, *last; /* not taken yet */
    /* Called inside the connect event; the connector is not queued then. May be NULL. See
     * kit_on_connect(). */
    VOID (*in_callback)(struct kit_listener *listener, struct kit_connector *connector);
    PVOID context;
};

/* Opens an adapter at the local address, with the version the user or the case asked for, and reads
 * its info into (*out)->info and k->info. */
BOOLEAN kit_adapter_open(struct kit *k, struct kit_adapter **out);
/* The same with that version; any status. why gets the door's sentence. KIT_NO_ANSWER: noted. */
NTSTATUS kit_adapter_try(struct kit *k, NDK_VERSION version, struct kit_adapter **out, char *why,
                         SIZE_T why_size);
/* The version {major, minor} of an open object is at least that. */
BOOLEAN kit_has_version(const struct kit_adapter *adapter, USHORT major, USHORT minor);

/*
 * Creates. kit_x_new() must succeed. kit_x_start() gives the call, whose answer may be any status;
 * *out is the record, which is of use once the answer was STATUS_SUCCESS. NULL: noted.
 */
BOOLEAN kit_pd_new(struct kit_adapter *adapter, struct kit_pd **out);
BOOLEAN kit_cq_new(struct kit_adapter *adapter, ULONG depth, struct kit_cq **out);
BOOLEAN kit_connector_new(struct kit_adapter *adapter, struct kit_connector **out);
BOOLEAN kit_listener_new(struct kit_adapter *adapter, struct kit_listener **out);
BOOLEAN kit_mr_new(struct kit_pd *pd, BOOLEAN fast, struct kit_mr **out);
BOOLEAN kit_mw_new(struct kit_pd *pd, struct kit_mw **out);
struct kit_call *kit_pd_start(struct kit_adapter *adapter, struct kit_pd **out);
struct kit_call *kit_cq_start(struct kit_adapter *adapter, ULONG depth, struct kit_cq **out);
struct kit_call *kit_cq_start_affine(struct kit_adapter *adapter, ULONG depth,
                                     GROUP_AFFINITY *affinity, struct kit_cq **out);
struct kit_call *kit_connector_start(struct kit_adapter *adapter, struct kit_connector **out);
struct kit_call *kit_listener_start(struct kit_adapter *adapter, struct kit_listener **out);
struct kit_call *kit_endpoint_start(struct kit_adapter *adapter, const SOCKADDR_INET *address,
                                    struct kit_endpoint **out);
struct kit_call *kit_mr_start(struct kit_pd *pd, BOOLEAN fast, struct kit_mr **out);
struct kit_call *kit_mw_start(struct kit_pd *pd, struct kit_mw **out);
struct kit_call *kit_srq_start(struct kit_pd *pd, ULONG depth, ULONG sge, ULONG threshold,
                               struct kit_srq **out);

struct kit_call *kit_modify_srq_start(struct kit_srq *srq, ULONG depth, ULONG threshold);

struct kit_qp_sizes {
    ULONG receive_depth, initiator_depth, receive_sge, initiator_sge, inline_size;
};
/* sizes NULL: modest ones that every adapter has (see kit_qp_modest). srq NULL: none. */
BOOLEAN kit_qp_new(struct kit_pd *pd, struct kit_cq *receive, struct kit_cq *initiator,
                   const struct kit_qp_sizes *sizes, struct kit_qp **out);
struct kit_call *kit_qp_start(struct kit_pd *pd, struct kit_cq *receive, struct kit_cq *initiator,
                              struct kit_srq *srq, const struct kit_qp_sizes *sizes,
                              struct kit_qp **out);
struct kit_qp_sizes kit_qp_modest(const struct kit_adapter *adapter);

/* An object of any type but an adapter, and what it hangs on; PD and CQ only where needed. */
struct kit_base {
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_cq *cq;
};
BOOLEAN kit_base_open(struct kit *k, NDK_OBJECT_TYPE type, struct kit_base *base);
struct kit_call *kit_any_start(struct kit_base *base, NDK_OBJECT_TYPE type,
                               struct kit_object **out);

/* Closes any object but an adapter; the record stays. kit_close() waits for the end. */
struct kit_call *kit_close_start(struct kit_object *object);
/* With kit_next_then. */
struct kit_call *kit_close_then(struct kit_object *object, kit_then_function *then, PVOID context);
BOOLEAN kit_close(struct kit_object *object);
/* Closes the adapter: blocks until everything that descends from it is closed and has returned. */
BOOLEAN kit_adapter_close(struct kit_adapter *adapter);
/* Declares an antecedent that a call established; kit_drop takes it back. */
VOID kit_follow(struct kit_object *object, struct kit_object *antecedent);
VOID kit_drop(struct kit_object *object, struct kit_object *antecedent);
/* "cq #2" */
VOID kit_object_name(const struct kit_object *object, char *text, SIZE_T size);

/* ---- completion queues ---------------------------------------------------------------------- */

/* A result, whichever function gave it. */
struct kit_result {
    NTSTATUS status;
    ULONG bytes;
    struct kit_request *request;
    struct kit_qp *qp;
    BOOLEAN ex; /* the fields below are known */
    NDK_OPERATION_TYPE type;
    ULONG provider_error;
    ULONG_PTR output; /* TypeSpecificCompletionOutput */
};

/* Up to n results (at most 64 are taken), checked against what was posted; returns how many. The
 * Ex function from 1.2 on, the plain one before and with kit_cq_poll_plain. The author serializes
 * these and kit_cq_arm for one CQ. */
ULONG kit_cq_poll(struct kit_cq *cq, struct kit_result *results, ULONG n);
ULONG kit_cq_poll_plain(struct kit_cq *cq, struct kit_result *results, ULONG n);
VOID kit_cq_arm(struct kit_cq *cq, ULONG type);
/* The next result, arming ANY and waiting for it. */
BOOLEAN kit_cq_next(struct kit_cq *cq, struct kit_result *result);
/* The next result, waiting for it by polling alone: arms are left as they are. */
BOOLEAN kit_cq_poll_next(struct kit_cq *cq, struct kit_result *result);
/* The next result of the request's CQ must be that of this request, with this status. result may be
 * NULL. */
BOOLEAN kit_expect(struct kit_request *request, NTSTATUS status, struct kit_result *result);
/* Waits until n notifications have come to their end. */
BOOLEAN kit_cq_wait_notified(struct kit_cq *cq, LONG n);
/* Has no result. */
BOOLEAN kit_cq_is_empty(struct kit_cq *cq);
/* So many notifications have begun, a moment given to more of them. */
BOOLEAN kit_cq_notified_is(struct kit_cq *cq, LONG need);
struct kit_call *kit_resize_start(struct kit_cq *cq, ULONG depth);
NTSTATUS kit_moderate(struct kit_cq *cq, ULONG interval_us, ULONG count);

/* ---- memory --------------------------------------------------------------------------------- */

struct kit_memory {
    UCHAR *data; /* page-aligned */
    SIZE_T size;
    PMDL mdl;
    struct kit_mr *mr; /* NULL: not registered */
    UINT32 local, remote;
    struct kit_memory *next;
};

/* Memory with its MDL, registered with these NDK_MR_FLAG_... */
BOOLEAN kit_memory_new(struct kit_pd *pd, SIZE_T size, ULONG flags, struct kit_memory **out);
/* The same, not registered: for LAMs, fast registers, and registrations that are the test. */
BOOLEAN kit_memory_bare(struct kit *k, SIZE_T size, struct kit_memory **out);
/* A descriptor of bytes that the case has from kit_memory_bare() or kit_memory_new(): a part of
 * them, to register or to chain (Next). Freed after the case. */
BOOLEAN kit_mdl_new(struct kit *k, PUCHAR data, ULONG length, PMDL *out);
struct kit_call *kit_register_start(struct kit_mr *mr, PMDL mdl, SIZE_T length, ULONG flags);
struct kit_call *kit_deregister_start(struct kit_mr *mr);
struct kit_call *kit_fast_start(struct kit_mr *mr, ULONG pages, BOOLEAN remote);
NDK_SGE kit_sge(const struct kit_memory *memory, SIZE_T offset, ULONG length);
/* What a case puts into memory and looks for: depends on seed and position. */
VOID kit_fill(UCHAR *data, SIZE_T length, ULONG seed);
BOOLEAN kit_filled(struct kit *k, const char *what, const UCHAR *data, SIZE_T length, ULONG seed);

struct kit_lam {
    struct kit_adapter *adapter;
    NDK_LOGICAL_ADDRESS_MAPPING *ndk; /* NULL: released */
    ULONG size, fbo;
    struct kit_lam *next;
};
/* The pages of length bytes of the MDL chain. kit_lam_release() need not be called. */
BOOLEAN kit_lam_new(struct kit_adapter *adapter, PMDL mdl, SIZE_T length, struct kit_lam **out);
VOID kit_lam_release(struct kit_lam *lam);

/* ---- work requests -------------------------------------------------------------------------- */

struct kit_request {
    struct kit_qp *qp;
    struct kit_srq *srq; /* of a receive posted there */
    NDK_OPERATION_TYPE type;
    ULONG flags, length;
    BOOLEAN receive, invalidates;
    NTSTATUS posted; /* what the post returned */
    enum { KIT_POSTED, KIT_NOT_POSTED, KIT_COMPLETED, KIT_SILENT } state; /* SILENT: passed by */
    NTSTATUS status;                                                      /* of the completion */
    struct kit_request *next, *all;
};

/*
 * Posts. They return the request, whatever the function returned (request->posted): for a failure
 * no completion may come. NULL: no memory, noted. Where a post must succeed:
 * TRY(kit_ok(r = kit_send(...))).
 */
struct kit_request *kit_send(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, ULONG flags);
struct kit_request *kit_receive(struct kit_qp *qp, const NDK_SGE *sges, ULONG count);
struct kit_request *kit_srq_receive(struct kit_srq *srq, const NDK_SGE *sges, ULONG count);
struct kit_request *kit_read(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, UINT64 address,
                             UINT32 token, ULONG flags);
struct kit_request *kit_write(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, UINT64 address,
                              UINT32 token, ULONG flags);
struct kit_request *kit_send_and_invalidate(struct kit_qp *qp, const NDK_SGE *sges, ULONG count,
                                            ULONG flags, UINT32 token);
struct kit_request *kit_bind(struct kit_qp *qp, struct kit_mr *mr, struct kit_mw *mw, PVOID address,
                             SIZE_T length, ULONG flags);
struct kit_request *kit_fast_register(struct kit_qp *qp, struct kit_mr *mr,
                                      const struct kit_lam *lam, SIZE_T length, PVOID base,
                                      ULONG flags);
struct kit_request *kit_invalidate(struct kit_qp *qp, struct kit_object *mr_or_mw, ULONG flags);
/* The post succeeded. */
BOOLEAN kit_ok(struct kit_request *request);
/* The post returned this status. */
BOOLEAN kit_posted(struct kit_request *request, NTSTATUS need);
VOID kit_flush(struct kit_qp *qp);

/* ---- connecting ----------------------------------------------------------------------------- */

struct kit_connect_options {
    ULONG inbound_reads, outbound_reads;
    const VOID *data;
    ULONG data_length;
};

/* Listens on the local address, an ephemeral port; *address receives it. */
BOOLEAN kit_listen(struct kit_listener *listener, SOCKADDR_INET *address);
struct kit_call *kit_listen_start(struct kit_listener *listener, const SOCKADDR_INET *address);
/* Sets in_callback and context; at any time before the event. */
VOID kit_on_connect(struct kit_listener *listener,
                    VOID (*in_callback)(struct kit_listener *, struct kit_connector *),
                    PVOID context);
/* The next connector that came in. */
BOOLEAN kit_incoming(struct kit_listener *listener, struct kit_connector **out);
/* From the local address, port 0, to there. options NULL: 1 read each way, no data. */
struct kit_call *kit_connect_start(struct kit_connector *connector, struct kit_qp *qp,
                                   const SOCKADDR_INET *to,
                                   const struct kit_connect_options *options);
/* From an address of the author's. */
struct kit_call *kit_connect_from(struct kit_connector *connector, struct kit_qp *qp,
                                  const SOCKADDR_INET *from, const SOCKADDR_INET *to,
                                  const struct kit_connect_options *options);
struct kit_call *kit_connect_endpoint(struct kit_connector *connector, struct kit_qp *qp,
                                      struct kit_endpoint *endpoint, const SOCKADDR_INET *to,
                                      const struct kit_connect_options *options);
/* The Ex variants from 2.1 on, else the plain ones. */
struct kit_call *kit_complete_start(struct kit_connector *connector);
struct kit_call *kit_accept_start(struct kit_connector *connector, struct kit_qp *qp,
                                  const struct kit_connect_options *options);
struct kit_call *kit_complete_plain(struct kit_connector *connector);
struct kit_call *kit_accept_plain(struct kit_connector *connector, struct kit_qp *qp,
                                  const struct kit_connect_options *options);
/* Sets in_callback and context; at any time before the event. */
VOID kit_on_disconnect(struct kit_connector *connector,
                       VOID (*in_callback)(struct kit_connector *connector), PVOID context);
NTSTATUS kit_reject(struct kit_connector *connector, const VOID *data, ULONG length);
struct kit_call *kit_disconnect_start(struct kit_connector *connector);
ULONG kit_address_length(const SOCKADDR_INET *address);
USHORT kit_port(const SOCKADDR_INET *address); /* host byte order */
VOID kit_set_port(SOCKADDR_INET *address, USHORT port);

/* ---- ends and pairs ------------------------------------------------------------------------- */

/* All that a connection needs at one side. */
struct kit_end {
    struct kit *k;
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_cq *receive, *initiator; /* two CQs */
    struct kit_qp *qp;
    struct kit_connector *connector; /* after kit_end_connect */
    struct kit_listener *listener;   /* the server's */
};

struct kit_end_options {
    struct kit_qp_sizes sizes;          /* all zero: modest */
    ULONG cq_depth;                     /* of each CQ; 0: enough for the queue */
    struct kit_connect_options connect; /* read limits 0 and 0: 1 and 1 */
    BOOLEAN no_reads;                   /* ... really 0 and 0 */
};

/* Opens adapter, PD, CQs and QP, not connected yet: the moment to post receives. options NULL: all
 * zero. */
BOOLEAN kit_end_open(struct kit *k, const struct kit_end_options *options, struct kit_end *end);
/* Connects it with the end of the other half. Both halves call it. */
BOOLEAN kit_end_connect(struct kit_end *end, const struct kit_end_options *options);
/* Two connected ends in one function (KIT_NEEDS_LOOPBACK); each has an adapter of its own. */
struct kit_pair {
    struct kit_end a, b; /* a is active */
};
BOOLEAN kit_pair_open(struct kit *k, const struct kit_end_options *options, struct kit_pair *pair);
/* The two ends not connected: b listens at *address, a has a connector. */
BOOLEAN kit_pair_apart(struct kit *k, struct kit_pair *pair, SOCKADDR_INET *address);
BOOLEAN kit_pair_connect(struct kit_pair *pair, const struct kit_end_options *options);

/* The initiator request fails, or the end's connection ends: what a refused remote access looks
 * like, depending on whether a provider's completions wait for the peer. Takes other results. */
BOOLEAN kit_ends_badly(struct kit_end *end, struct kit_request *request);

/* ---- the other half ------------------------------------------------------------------------- */

#define KIT_TELL_MAX 256 /* bytes */

/* Sends the other half a step with up to KIT_TELL_MAX bytes. Not more than 16 unanswered. */
BOOLEAN kit_tell(struct kit *k, const char *step, const VOID *data, ULONG length);
/* The next step of the other half must be this one, with exactly that many bytes. */
BOOLEAN kit_hear(struct kit *k, const char *step, PVOID data, ULONG length);
/* Both halves are here. */
BOOLEAN kit_meet(struct kit *k, const char *step);

/*
 * The obedient server: kit_obey as the server half opens an end, connects, and then does what the
 * client's kit_order_...() say until the client has returned. Each order returns when the server
 * has done it (posted it). The client has opened and connected its own end with kit_end_open() and
 * kit_end_connect(). If the case's .row is set, it is the struct kit_end_options of the server's
 * end.
 */
kit_function kit_obey;
/* Sends that many messages of this length, filled with seed, seed + 1, ...; flags of NdkSend. */
BOOLEAN kit_order_send(struct kit *k, ULONG count, ULONG length, ULONG flags, ULONG seed);
/* Posts that many receives of this length. */
BOOLEAN kit_order_receive(struct kit *k, ULONG count, ULONG length);
/* The server's next count receives have completed with success and hold seed, seed + 1, ... */
BOOLEAN kit_order_received(struct kit *k, ULONG count, ULONG length, ULONG seed);
/* The server's sends so far have completed with success. */
BOOLEAN kit_order_sent(struct kit *k);
/* Registers memory filled with seed; the client gets what it needs to read and write it. */
BOOLEAN kit_order_expose(struct kit *k, ULONG length, ULONG mr_flags, ULONG seed, UINT64 *address,
                         UINT32 *token);
/* The exposed memory holds seed now, from offset on. */
BOOLEAN kit_order_holds(struct kit *k, ULONG offset, ULONG length, ULONG seed);
/* NdkDisconnect; returns when it was called, not when it is done. */
BOOLEAN kit_order_disconnect(struct kit *k);
/* Closes the connector: abortive. */
BOOLEAN kit_order_close(struct kit *k);
/* The disconnect event has come at the server. */
BOOLEAN kit_order_disconnected(struct kit *k);

#endif /* KIT_H */
