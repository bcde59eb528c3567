// SPDX-License-Identifier: MIT
/*
 * The walker: threads that make random legal calls on shared objects of two adapters, and what must
 * hold whatever they draw. spin_test.c draws; objects.c creates and closes; post.c posts, work.c
 * polls and compares; connect.c connects; window.c binds; queue.c resizes and moderates; account.c
 * ends a round; watch.c remembers, watches and dies.
 *
 * What is legal is kept by two rules. A call on an object is made between object_use() and
 * object_unuse(); object_doom() forbids further uses, and whoever gives back the last one closes.
 * So no call begins on an object whose close was called, and anything else may run beside anything.
 * What NDKPI leaves to the consumer has a lock of its own: posts of one queue, polls and arms of
 * one CQ. Structures stay until the end of their round, so that a late callback finds one that is
 * closed and says so.
 *
 * Locks, outermost first: turn (posts of a queue, or polls of a CQ) - world - object - queue; links
 * and the round's lists are leaves. None but turn is held over a call.
 */
#ifndef SOFTNDK_TESTS_SPIN_H
#define SOFTNDK_TESTS_SPIN_H

#include <pthread.h>
#include <sys/queue.h>

#include "ends.h"

#define SLICES   32u /* of a region; each belongs to one request at a time, the first to nobody */
#define SLICE    8192u
#define POOL     12u /* objects of a kind that live at once in a world */
#define LINKS    4096u
#define MESSAGES 4096u /* of one direction of a link, numbered */
#define PRIVATE  64u

/* ---- watch.c -------------------------------------------------------------------------------- */

extern unsigned spin_seed;
void spin_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            spin_die("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                         \
    } while (0)

/* Into this thread's ring: what is called, on which object, with which number. */
struct object;
void note(const char *what, const struct object *object, unsigned number);
extern unsigned patience_s; /* for whatever is waited for: SOFTNDK_SPIN_PATIENCE_S, 60 */
/* A random number below, of this thread's stream. */
unsigned draw(unsigned below);
void draw_seed(unsigned seed);
/* This thread is watched: it must note something every patience_s seconds. */
void watch_me(bool on);
void watch_begin(void);
void watch_end(void);

/* ---- objects.c ------------------------------------------------------------------------------ */

enum kind { CQ, PD, MR, SRQ, QP, CONNECTOR, LISTENER, ENDPOINT, MW, KINDS };
enum state { CREATING, OPEN, CLOSING, CLOSED, FAILED };
/* Beside its state: what the consumer may do with a region, a window, a queue pair, a connector, a
 * listener; a CQ that is BUSY is being resized or moderated. */
enum step { IDLE, BUSY, READY, DECIDE, DEAD };

struct request {
    TAILQ_ENTRY(request) link;
    struct request *next; /* of all of the round */
    struct queue_of *queue;
    NDK_OPERATION_TYPE type;
    bool silent, failed;
    atomic_uint completions;
    struct object *mr, *remote_mr; /* whose slices are claimed, or whose registration it is */
    struct object *window;         /* that it binds, invalidates, or tries in vain */
    bool stale;                    /* the last: the window's token is over */
    atomic_uint token;      /* of a bind: as shown when its post had returned; 0: not known */
    unsigned moves, before; /* of a bind: how often the region had been moved; the token */
    unsigned slices, remote_slices, length, seed;
    struct buffer *buffer;   /* that is to stay */
    struct request *written; /* of a Read: the Write whose octets it reads back; NULL: slice 0 */
    struct link *at;         /* of a Send: its number there */
    unsigned end, number;
};

/* Requests that were posted and are not completed, in order: of a QP's queue, or of an SRQ. */
struct queue_of {
    struct object *owner, *cq;
    pthread_mutex_t turn, lock;
    TAILQ_HEAD(, request) list;
    bool lossy; /* its CQ was closed first */
    bool reaped;
    struct queue_of *next; /* of its CQ */
};

struct buffer { /* of a region */
    NDK_ADAPTER *adapter;
    uint8_t *data;
    PMDL mdl;
    NDK_LOGICAL_ADDRESS_MAPPING *map;
    ULONG map_size, fbo;
    bool mapped;
    atomic_uint references;
};

struct object {
    struct world *world;
    struct object *next; /* of all of the round */
    enum kind kind;
    unsigned number;
    pthread_mutex_t lock; /* the next five, and step */
    enum state state;
    unsigned uses;
    bool doomed;
    NDK_OBJECT_HEADER *header;
    NDK_FN_CLOSE_OBJECT close;
    enum step step;
    atomic_uint callbacks;           /* of its own, or of a successor's close, that are running */
    atomic_bool in_callback;         /* of those that must not overlap */
    struct object *pd, *cq[2], *srq; /* antecedents; cq: receive, initiator */
    struct queue_of queues[2];       /* receive, initiator; of an SRQ the first */

    /* CQ */
    pthread_mutex_t turn;
    atomic_uint depth; /* how many requests may be outstanding: while a resize runs, the smaller */
    bool by_callback;  /* is polled by its notification only */
    atomic_uint outstanding, arms, notified;
    struct queue_of *attached; /* under lock */
    /* MR */
    bool fast;
    struct buffer *buffer;
    atomic_uint claimed; /* slices */
    UINT32 local, remote;
    atomic_uint windows; /* that are bound to it, or may still be */
    atomic_uint binds;   /* that were begun */
    atomic_uint moves;   /* deregistrations that were begun */
    /* MW, under lock; remote is its token. The region and the queue pair of the last bind. */
    struct object *region, *over;
    bool counted; /* in the region's windows */
    unsigned first, slices;
    UINT64 at_octet; /* where the first begins */
    bool readable, writable;
    bool taken, sent;  /* a peer's Send ends it; that was posted */
    unsigned takes;    /* how often */
    bool deregistered; /* its region, although it was bound as far as anybody knows */
    /* QP, connector */
    struct link *at;
    unsigned end;
    struct object *qp;
    atomic_uint disconnects;
    atomic_bool ended; /* its connection is over, with all that depended on it */
    /* listener */
    SOCKADDR_INET address;
    ULONG address_length;
    /* endpoint */
    SOCKADDR_INET destination;
};

struct link { /* a connection: what its ends know of each other */
    unsigned number, seed;
    struct object *qps[2]; /* client, server; under links_lock */
    atomic_uint sent[2], last[2];
    atomic_bool blind[2];                /* a message of this end came that could not be read */
    atomic_uchar arrived[2][MESSAGES];   /* by sending end */
    atomic_uchar succeeded[2][MESSAGES]; /* what a signalled completion said */
};

struct world { /* an adapter */
    NDK_ADAPTER *adapter;
    unsigned number;
    bool placed;
    pthread_mutex_t lock;
    struct object *live[KINDS][POOL];
};

struct call { /* that may pend */
    struct call *next;
    const char *name;
    struct object *object;
    void (*then)(struct call *call, NTSTATUS status);
    void *out; /* of a create */
    struct buffer *buffer;
    struct object *other;
    unsigned depth; /* of a resize */
    unsigned binds; /* of a deregistration: begun before */
    bool unbound;   /* no window was bound to the region */
    atomic_uint answers;
    atomic_bool pended;
};

struct round {
    struct world worlds[2];
    pthread_mutex_t lock; /* the lists */
    struct object *objects;
    struct request *requests;
    struct call *calls;
    unsigned numbers;
    bool capped; /* by staging_cap: connections may end for want of room */
    atomic_bool ending;
    pthread_mutex_t links_lock;
    struct link *links[LINKS];
    unsigned link_count;
};
extern struct round now;

extern atomic_uint count_calls, count_connections, count_requests, count_checked, count_objects;
extern atomic_uint count_grown, count_shrunk, count_bound, count_unbound, count_taken, count_vain,
    count_through;

bool object_use(struct object *object);
void object_unuse(struct object *object);
void object_doom(struct object *object);
enum state object_state(struct object *object);
/* If it is in step from (or in any), it is in step to now. */
bool object_step(struct object *object, enum step from, enum step to);
/* Around a callback that the end of the object's close must wait for. */
void running_enter(struct object *object);
void running_leave(struct object *object);
/* An open object of a kind, used; NULL: none. of: whose pd it must have, or NULL. */
struct object *object_pick(struct world *world, enum kind kind, const struct object *of);
/* The same, in a step that is changed. */
struct object *object_claim(struct world *world, enum kind kind, enum step from, enum step to);
/* A structure with a place in its world; NULL when that is full, or without one. */
struct object *object_make(struct world *world, enum kind kind, bool anyway, bool *has_place);
void object_opened(struct object *object, NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close);

struct call *call_begin(const char *name, struct object *object,
                        void (*then)(struct call *, NTSTATUS));
VOID call_created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *header);
VOID call_answered(PVOID context, NTSTATUS status);
void call_end(struct call *call, NTSTATUS returned);

bool create_something(struct world *world, enum kind kind);
/* A region's next step; a listener's: it listens, later it pauses or goes on. */
bool region_move(struct object *mr);
bool listener_move(struct object *listener);
void buffer_put(struct buffer *buffer);

/* ---- account.c ------------------------------------------------------------------------------ */

/* Closes what is left and holds the round to account. */
void round_end(void);

/* ---- work.c --------------------------------------------------------------------------------- */

VOID cq_notified(PVOID context, NTSTATUS status);
void cq_poll(struct object *cq, int arm);
/* The last poll, before the close. */
void cq_last(struct object *cq);
void queue_attach(struct queue_of *queue, struct object *owner, struct object *cq);
void request_release(struct request *request);

/* ---- post.c --------------------------------------------------------------------------------- */

bool post_a_receive(struct object *owner);
bool post_a_request(struct object *qp);
bool post_a_registration(struct object *qp);
/* A bind, or the end of one. */
bool post_a_bind(struct object *qp);

/* ---- window.c ------------------------------------------------------------------------------- */

/* Windows: bound by requests of a queue pair to some slices of a registered region, reached by the
 * peer of that queue pair, ended by a request, by the peer's Send, or with the connection. */

/* What a transfer may reach: slices of a region, by a token. */
struct target {
    struct object *mr; /* used */
    UINT32 token;
    unsigned first, slices;
    bool readable, writable;
};

/* A window that peer's peer reaches; false: none. */
bool window_target(struct object *peer, struct target *out);
/* One that is taken from the peer by a Send with its token; used; NULL: none. *take is for
 * window_sent(), which says whether that was posted. */
struct object *window_take(struct object *peer, UINT32 *token, unsigned *take);
void window_sent(struct object *window, unsigned take, bool posted);
/* It arrived here. */
void window_lost(struct world *world, UINT32 token);
/* One whose token was good once; used, and held until window_tried(). NULL: none. */
struct object *window_stale(struct object *peer, UINT32 *token);
void window_tried(struct object *window);
/* One that is bound to this region and is held until window_judge(); NULL: none. */
struct object *window_hold(struct object *mr);
void window_judge(struct object *window, bool deregistered);
/* A request for a window has completed; is known to have succeeded in silence; is over with its
 * queue pair. */
void window_completed(struct request *request, NTSTATUS status);
void window_passed(struct request *request);
void window_left(struct request *request);
/* It is closed. */
void window_gone(struct object *window);

/* ---- queue.c -------------------------------------------------------------------------------- */

bool queue_resize(struct object *cq);
bool queue_moderate(struct object *cq);

/* ---- connect.c ------------------------------------------------------------------------------ */

VOID connect_event(PVOID context, NDK_CONNECTOR *connector);
bool connect_begin(struct world *world);
bool connect_decide(struct object *connector);
bool connect_disconnect(struct object *connector);
bool connect_ask(struct object *connector);

#endif
