// SPDX-License-Identifier: MIT
/*
 * Memory regions: registered (NdkRegisterMr) and fast-registered (initialized, then filled by a
 * work request of a QP). Two token slots an MR: local and remote. The page list is built from MDLs
 * (host page numbers) or from adapter pages (host addresses).
 *
 * Rights: the local slot grants LOCAL_READ always, LOCAL_WRITE as flagged, and READ_SINK with
 * LOCAL_WRITE if the sink flag was given or the adapter does not require it. The remote slot grants
 * REMOTE_READ and REMOTE_WRITE as flagged; with neither it is valid all the same and grants
 * nothing, so that a peer's access is refused for the missing right.
 *
 * Tokens: a registration renews both keys. Of an FRMR the local token stays, the remote one is
 * renewed by each fast-register, when it is posted.
 *
 * A close while registered deregisters; it pends until accesses have ended. So a slot is valid only
 * while its MR has its handle reference: whoever holds a slot (mem_hold) may reference the MR.
 *
 * Windows (mw.h) see the pages of a registration. From the post of a bind to the end of the window
 * the registration stays: it cannot be deregistered. A close ends the MR's own tokens at once; each
 * window keeps a reference, and with it the pages, until it ends by itself.
 *
 * Locks: mr->lock guards the registration state; slots guard their contents (mem.h). Under it only
 * other leaf locks are taken (the deferred queue of a request that completes).
 */
#ifndef SOFTNDK_PROVIDER_MR_H
#define SOFTNDK_PROVIDER_MR_H

#include "provider/mem.h"
#include "provider/object.h"
#include "provider/pd.h"

enum mr_state {
    MR_IDLE,         /* created or deregistered; an FRMR before its initialization */
    MR_READY,        /* FRMR: initialized, not filled */
    MR_REGISTERED,   /* normal MR: registered. FRMR: filled and valid */
    MR_DEREGISTERING /* retired, the last access has not ended */
};

struct mr {
    struct object object;
    struct pd *pd;
    bool fast; /* FastRegister of NdkCreateMr */
    os_mutex lock;
    enum mr_state state;
    struct mem_slot *local, *remote;
    uint32_t local_token;
    struct mem_tokens remote_tokens; /* of an FRMR one for each fast-register */
    uint64_t *pages;                 /* owned; an FRMR's has page_capacity entries */
    uint32_t page_capacity;
    bool remote_access;      /* FRMR: RemoteAccess of the initialization */
    bool closing;            /* nothing is published any more */
    unsigned fast_posted;    /* FRMR: fast-registers being posted, or not executed yet */
    unsigned windows;        /* binds posted and windows bound */
    struct request *pending; /* the deregistration that waits for accesses to end */
    /* an invalidation that waits: called on whatever thread ends the last access */
    void (*invalidated)(void *context);
    void *invalidated_context;
    atomic_uint draining;
};

/* A fast-register between its post and its execution by the QP's transmit owner. */
struct mr_fast {
    struct mr *mr; /* referenced */
    uint32_t remote_token, token_before;
    uint32_t local_rights, remote_rights;
    uint32_t fbo, page_count;
    uint64_t address, length;
    uint64_t pages[];
};

static inline struct mr *mr_from(NDK_MR *ndk)
{
    return (struct mr *)(void *)ndk;
}

extern const NDK_MR_DISPATCH mr_dispatch;
/* PD slot NdkCreateMr. */
NTSTATUS mr_create(NDK_PD *pd, BOOLEAN fast_register, NDK_FN_CREATE_COMPLETION completion,
                   PVOID context, NDK_MR **out);

/*
 * Checks the parameters of NdkFastRegister and announces the next remote token. On success *out is
 * to be executed or discarded, exactly once. ACCESS_VIOLATION (remote rights without RemoteAccess,
 * or pages that are not there; pages found before are not asked for again), INVALID_PARAMETER,
 * INSUFFICIENT_RESOURCES, INVALID_DEVICE_STATE (not an initialized FRMR). The failure's reason is
 * left at qp. Does not ask fail_check(): the QP's slot has.
 */
NTSTATUS mr_fast_prepare(struct object *qp, struct pd *pd, NDK_MR *mr, ULONG pages,
                         const NDK_LOGICAL_ADDRESS *array, ULONG fbo, SIZE_T length, PVOID base,
                         ULONG flags, struct mr_fast **out);
/* In posting order, by the transmit owner: fills and publishes. SUCCESS or
 * INVALID_DEVICE_REQUEST (still valid: it was not invalidated first; or the MR was closed). Frees
 * fast. */
NTSTATUS mr_fast_execute(struct mr_fast *fast);
/* Not to be executed: the post was refused after all, or flushed. If its remote token is still the
 * last one announced, NdkGetRemoteTokenFromMr answers the one before it again. */
void mr_fast_discard(struct mr_fast *fast);

/*
 * The invalidate function of the class (object.h), for fast-registered MRs, over any QP.
 * INVALID_DEVICE_REQUEST: was not valid, is no FRMR, or token is no longer one of its two.
 */
NTSTATUS mr_invalidate(struct object *object, const void *qp, uint32_t token,
                       void (*done)(void *context), void *context);

/*
 * One window more, from the post of its bind on: the region that is registered, which stays as it
 * is until mr_window_end(). NULL: not registered, closed, or an FRMR.
 */
const struct mem_region *mr_window_begin(struct mr *mr);
/* The bind's turn has come: false, the MR was closed meanwhile. */
bool mr_window_allowed(struct mr *mr);
void mr_window_end(struct mr *mr);

/* Adapter slots NdkBuildLAM and NdkReleaseLAM (lam.c). */
NTSTATUS lam_build(NDK_ADAPTER *adapter, MDL *mdl, SIZE_T length,
                   NDK_FN_REQUEST_COMPLETION completion, PVOID context,
                   NDK_LOGICAL_ADDRESS_MAPPING *lam, ULONG *lam_size, ULONG *fbo);
VOID lam_release(NDK_ADAPTER *adapter, NDK_LOGICAL_ADDRESS_MAPPING *lam);

#endif
