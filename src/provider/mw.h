// SPDX-License-Identifier: MIT
/*
 * Memory windows: a token for part of a registered MR, bound and invalidated by work requests. A
 * window owns one remote token slot, which is valid while it is bound.
 *
 * A bind has three steps, like a fast-register: prepared when it is posted (checks, the token that
 * it will have), executed in posting order by the transmit owner, or discarded. The MR is counted
 * from the post on (mr_window_begin), so that what was checked is what is bound.
 *
 * A window is bound over one QP, and only that QP's connection reaches or invalidates it. It ends
 * by NdkInvalidate or the peer's Send with Invalidate over that QP, by its own close, or with the
 * connection, since nobody could invalidate it any more then. Whoever ends it waits for accesses in
 * progress; the MR is released before he is told. Only a close keeps its reference on the MR until
 * the close completion has returned.
 *
 * Locks: mw->lock guards the state; under it the MR's lock, the list lock of the QP and the slot's
 * are taken (leaves). The list of a QP is walked with its own lock alone.
 */
#ifndef SOFTNDK_PROVIDER_MW_H
#define SOFTNDK_PROVIDER_MW_H

#include "provider/mem.h"
#include "provider/mr.h"
#include "provider/object.h"
#include "provider/pd.h"

enum mw_state {
    MW_UNBOUND,
    MW_BOUND,
    MW_ENDING /* retired, the last access has not ended */
};

struct mw;

/* The windows that are bound over a QP; part of it. */
struct mw_list {
    const void *qp; /* what mem_begin() compares */
    os_mutex lock;
    struct mw *first;
};

struct mw {
    struct object object;
    struct pd *pd;
    os_mutex lock;
    enum mw_state state;
    bool closing; /* nothing is bound any more */
    struct mem_slot *slot;
    struct mem_tokens tokens;
    struct mr *mr;               /* while bound or ending: referenced, and counted as a window */
    struct mw_list *over;        /* while bound */
    struct mw *next, **previous; /* in it; its lock */
    /* an invalidation that waits: called on whatever thread ends the last access */
    void (*invalidated)(void *context);
    void *invalidated_context;
};

/* A bind between its post and its execution by the QP's transmit owner. */
struct mw_bind {
    struct mw *mw; /* referenced */
    struct mr *mr; /* referenced, and counted as a window */
    struct mw_list *over;
    const struct mem_region *whole; /* what the MR has registered */
    uint32_t token, token_before;
    uint32_t rights;
    uint64_t address, length;
};

static inline struct mw *mw_from(NDK_MW *ndk)
{
    return (struct mw *)(void *)ndk;
}

extern const NDK_MW_DISPATCH mw_dispatch;
/* PD slot NdkCreateMw. */
NTSTATUS mw_create(NDK_PD *pd, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_MW **out);

void mw_list_init(struct mw_list *list, const void *qp);
void mw_list_destroy(struct mw_list *list);
/* The connection is over: all windows of the list end. An access of another connection that is just
 * being refused may delay one; all others have ended when this returns. */
void mw_list_end(struct mw_list *list);

/*
 * Checks the parameters of NdkBind (but for its general flags) and announces the token. On success
 * *out is to be executed or discarded, exactly once. ACCESS_VIOLATION (remote write without local
 * write), INVALID_PARAMETER, INVALID_DEVICE_REQUEST (the MR is not registered, or an FRMR),
 * INSUFFICIENT_RESOURCES. The failure's reason is left at qp. Does not ask fail_check().
 */
NTSTATUS mw_bind_prepare(struct object *qp, struct pd *pd, struct mw_list *over, NDK_MR *mr,
                         NDK_MW *mw, PVOID address, SIZE_T length, ULONG flags,
                         struct mw_bind **out);
/* In posting order: fills and publishes. SUCCESS or INVALID_DEVICE_REQUEST (bound already, or still
 * ending; or the window or the MR was closed). Frees bind. */
NTSTATUS mw_bind_execute(struct mw_bind *bind);
/* Not to be executed: the post was refused after all, or flushed. */
void mw_bind_discard(struct mw_bind *bind);

#endif
