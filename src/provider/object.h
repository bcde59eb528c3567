// SPDX-License-Identifier: MIT
/*
 * The object core: identity, references, asynchronous requests, close. One mechanism for all ten
 * object types; the rules C1-C11 of closing follow from it:
 *
 *  - An object is born with one reference, the consumer's handle. Each successor, each pending
 *    request (a pending create counts at the parent), each running event callback and each piece of
 *    internal work (a live connection) holds one more.
 *  - A reference that covers a callback falls only after that callback has returned.
 *  - Close starts the cancelling (class->cancel), then drops the handle. If that was the last
 *    reference the close is done inline (SUCCESS); otherwise it returns PENDING, and whoever drops
 *    the last reference defers the close completion. Resources (ports, tokens, queues) are given
 *    back before the close completion runs (class->release); the references on the antecedents are
 *    dropped after it has returned. Nobody touches an object after a drop that was not the last.
 *  - No consumer callback runs inside a consumer's call: all are items of a shard's deferred queue,
 *    run at simulated DISPATCH_LEVEL.
 *
 * Adapter: its count and its condition variable are under a lock of the process (adapter.c), so the
 * last holder touches nothing of it afterwards.
 *
 * Locks: none held when any function of this header is called except where said; the list of live
 * objects and the reason strings are under the adapter's table lock (leaf).
 */
#ifndef SOFTNDK_PROVIDER_OBJECT_H
#define SOFTNDK_PROVIDER_OBJECT_H

#include <ndkpi.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "provider/hooks.h"

struct adapter;
struct early;
struct object;
struct origin;
struct strand;

struct object_class {
    NDK_OBJECT_TYPE type;
    const char *name; /* "cq", "qp": as reasons spell it */
    size_t size;      /* of the whole structure that starts with struct object */
    /* Close was called: refuse new work, start flushing and cancelling. May be NULL. */
    void (*cancel)(struct object *object);
    /* No reference is left: give back what the object owns. May be NULL. Any thread. */
    void (*release)(struct object *object);
    /*
     * Objects that a token names for the peer until they are invalidated (FRMR, window), else NULL:
     * ends what is registered or bound now, for a request over qp. token: only if that is what it
     * names, so that a token which was looked up cannot end a later registration; 0: whatever it
     * is. STATUS_SUCCESS: invalid now. STATUS_PENDING: invalid for new accesses, done(context)
     * follows when the last one has ended, on the thread that ends it: any, with no lock of this
     * room held; it may be before this returns. INVALID_DEVICE_REQUEST: there is nothing to
     * invalidate, or not over this qp. The caller holds a reference; the object keeps one of its
     * own until done has returned.
     */
    NTSTATUS(*invalidate)
    (struct object *object, const void *qp, uint32_t token, void (*done)(void *context),
     void *context);
};

#define OBJECT_ANTECEDENTS 5

struct object {
    NDK_OBJECT_HEADER header; /* the public face: an NDK_CQ and so on starts here */
    const void *dispatch;     /* written before the object is shown, never read again */
    const struct object_class *class;
    struct adapter *adapter;
    struct engine_shard *home; /* where its callbacks run unless a better shard is at hand */
    uint32_t id;               /* unique in the process; what reasons call "#7" */
    atomic_uint references;
    atomic_bool closed; /* close was called */
    bool pended;        /* the close returned PENDING; written before the handle is dropped */
    unsigned antecedent_count;
    struct object *antecedents[OBJECT_ANTECEDENTS];
    NDK_FN_CLOSE_COMPLETION close_fn;
    void *close_context;
    struct engine_item close_item;
    struct early *early;   /* mode early: the close that waits for its completion, or NULL */
    struct strand *strand; /* from object_strand(), or NULL */
    struct object *live_next, *live_previous; /* adapter's table */
    char *reason;                             /* last failure, or NULL; table lock */
    bool reason_lost;                         /* the last one: there was no memory for it */
    struct origin *origin;                    /* who made it, or NULL: not recorded */
};

_Static_assert(offsetof(struct object, dispatch) == offsetof(NDK_CQ, Dispatch), "public face");

/*
 * A new object with the handle reference; holds a reference on parent. NULL: no memory. The caller
 * fills its own part before it shows the object. dispatch: the table of the newest version; what an
 * older one lacks is taken out of it (versions.h). Not for adapters.
 */
struct object *object_new(const struct object_class *class, struct object *parent,
                          const void *dispatch);
/* Makes other an antecedent: a reference that falls after this object's close completion returned.
 * Only while the object cannot be closed concurrently, or, by one thread, once it is closed and a
 * reference is held. */
void object_follow(struct object *object, struct object *other);
void object_ref(struct object *object);
void object_unref(struct object *object);
/* A reference on an object that somebody else may be ending: false if none was left. The caller
 * sees to it that the structure is there (a list that release takes it out of). Not for adapters.
 */
bool object_ref_living(struct object *object);
/* The next "#7": object_new() takes one, an adapter takes its own. */
uint32_t object_next_id(void);
/* An object that no consumer ever saw: drops the handle without a close. */
void object_discard(struct object *object);
/*
 * The close slot of every table. In mode early a close that dropped the last reference waits for
 * its completion; one that did not waits only when the class has a cancel function and no item of
 * this thread is running (the completion may then come from another shard meanwhile).
 */
NTSTATUS object_close(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_COMPLETION completion, PVOID context);
NTSTATUS object_query_extension(NDK_OBJECT_HEADER *header, GUID *id, NDK_VERSION version,
                                NDK_EXTENSION_INTERFACE *out);

/*
 * Leaves the one-line reason "object #id: call: ..." at the object and logs it; returns status, so
 * that a failure is one line: return object_fail(o, CALL_X, STATUS_Y, "..."). Log level: error for
 * what is the provider's own trouble (INSUFFICIENT_RESOURCES, INTERNAL_ERROR), info for the rest,
 * which the consumer learns from its status anyway. May be called under any lock but the table's.
 */
NTSTATUS object_fail(struct object *object, enum call call, NTSTATUS status, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* The same for what goes wrong outside a call: "object #id: text", level info. */
void object_note(struct object *object, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Copies the reason; false and an empty text when there is none. */
bool object_reason(struct object *object, char *text, size_t size);
/*
 * fail_check() with the reason left at object: STATUS_SUCCESS, or the status that SOFTNDK_FAIL
 * wants of this call. The first line of every function that can fail.
 */
static inline NTSTATUS object_injected(struct object *object, enum call call)
{
    NTSTATUS status = fail_check(call);

    return __builtin_expect(status == STATUS_SUCCESS, 1)
               ? status
               : object_fail(object, call, status, "fails on request (0x%08X), SOFTNDK_FAIL",
                             (unsigned)status);
}

/* ---- asynchronous requests ------------------------------------------------------------------ */

struct request;

/*
 * A request that will pend; holds a reference on owner until its callback has returned. NULL: no
 * memory. Exactly one of request_complete() or request_drop() follows.
 */
struct request *request_new(struct object *owner, enum call call,
                            NDK_FN_REQUEST_COMPLETION completion, PVOID context);
/* Defers the callback, once. Any thread, any lock of the provider. */
void request_complete(struct request *request, NTSTATUS status);
/* The call failed inline after all: no callback. */
void request_drop(struct request *request);

/*
 * Mode early, for the two functions below and for closes: the callback goes to a shard other than
 * the caller's, and the call waits at most 50 ms for its return. It holds nothing meanwhile and
 * touches neither owner nor result afterwards. Callers hold no lock. Without memory for the
 * asynchronous path, and without a completion function, the answer is given inline.
 *
 * Answers a call whose outcome is known now, inline or through the callback as the completion mode
 * says. The return value is the consumer's.
 */
NTSTATUS request_answer(struct object *owner, enum call call, NDK_FN_REQUEST_COMPLETION completion,
                        PVOID context, NTSTATUS status);
/* The same for creates: result is the new object (handle reference given to the consumer), NULL on
 * failure. *out is written only for an inline success. */
NTSTATUS create_answer(struct object *parent, enum call call, NDK_FN_CREATE_COMPLETION completion,
                       PVOID context, NTSTATUS status, struct object *result, void **out);

/* ---- callbacks ------------------------------------------------------------------------------ */

/*
 * A strand runs deferred items one after the other, in the order they were pushed, whichever shard
 * each one runs on; one item a turn, so that what an item leaves to be done after it is done before
 * the next one. Connectors have one, so that their callbacks keep the order of their events.
 *
 * While anything is queued or running the strand holds a reference on its owner, since an item may
 * drop the last reference of that object. A strand without an owner (strand_init alone) must be
 * kept alive until its last item has returned to the strand; only tests want that.
 */
struct strand {
    os_mutex lock; /* leaf */
    struct engine_item *first, **last;
    bool scheduled;
    struct engine_item runner;
    struct engine_shard *shard;
    struct object *owner; /* or NULL */
};

void strand_init(struct strand *strand, struct engine_shard *shard);
void strand_destroy(struct strand *strand);
void strand_push(struct strand *strand, struct engine_item *item);
/* The same; where says on which shard the item runs if nothing is queued before it. */
void strand_push_at(struct strand *strand, struct engine_item *item, struct engine_shard *where);
/* The strand whose item this thread is running, or NULL. */
struct strand *strand_running(void);
/*
 * The strand of this object, made with the first call: requests of the object go through it from
 * then on, and so may events (strand_push). The core frees it with the object. NULL: no memory.
 * First call before the object is shown; object->home must be set.
 */
struct strand *object_strand(struct object *object);

/* Raises this thread's IRQL to DISPATCH_LEVEL around a consumer callback and restores it. A
 * consumer that returns at another level is reported. */
KIRQL callback_enter(void);
void callback_leave(KIRQL before);
/*
 * engine_defer() for an item that may drop the last reference of object: a thread that is no shard
 * still touches the shard after the push, when the item may have run, the adapter may be closed and
 * the engine stopped. So such a thread holds the adapter meanwhile.
 */
void object_defer(struct object *object, struct engine_shard *where, struct engine_item *item);
/* The shard on which a callback that is due now should run: this one, else home. */
struct engine_shard *callback_shard(struct engine_shard *home);

#endif
