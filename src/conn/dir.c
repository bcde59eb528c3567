// SPDX-License-Identifier: MIT
/*
 * The direction word. One atomic word decides who works on a direction; see docs/async-contract.md
 * and docs/models/direction.pml, which checks exactly this code's steps.
 *
 * Invariants: work() and end() of a direction never run on two threads at once; nothing that was
 * published before a kick is left behind; ownership is given up only when no MORE came meanwhile.
 */
#include "base/red.h"
#include "conn/conn_internal.h"

/* Helpings one thread takes before it hands the direction to the home shard. */
#define DIR_BUDGET 8

_Thread_local bool conn_polls;

/* A consumer's thread that polls leaves octets where they are, for its next poll or for the shard:
 * a new edge tells of them. Only then may the direction be given up although more is there, and
 * only if that is all: a MORE may stand for something that has no edge. */
static bool dir_leave(struct conn_dir *dir)
{
    unsigned expected = DIR_BUSY;

    if (!RED("dir-left-without-edge"))
        os_poll_rearm(dir->conn->fd); /* open as long as the direction is BUSY */
    return atomic_compare_exchange_strong(&dir->word, &expected, 0);
}

/*
 * Enough for one turn, and there is more. While a thread of the consumer polls for the connection
 * it goes on with its next poll: a shard that kept the direction would be a second thread at the
 * same work, for as long as the stream lasts. Asked for first, then given up, and only if nobody
 * has kicked meanwhile: the poll may have come already.
 */
static bool dir_leave_to_poller(struct conn_dir *dir)
{
    struct conn *conn = dir->conn;
    unsigned expected = DIR_BUSY;

    if (!conn->group || !engine_group_leased(conn->group) || RED("dir-kept-from-poller"))
        return false;
    if (dir == &conn->tx.dir && !RED("dir-left-untold"))
        atomic_store(&conn->tx_left, true);
    return engine_group_ask(conn->group, &conn->watch) &&
           atomic_compare_exchange_strong(&dir->word, &expected, 0);
}

static void dir_run(struct conn_dir *dir, int budget)
{
    struct conn *conn = dir->conn;

    for (;;) {
        unsigned word = atomic_fetch_and(&dir->word, ~DIR_MORE);
        bool more;

        if (word & DIR_END) {
            dir->end(conn);
            atomic_store(&dir->word, RED("dir_dead_forgotten") ? 0 : DIR_DEAD);
            conn_direction_dead(conn, dir == &conn->rx.dir ? 1u : 2u);
            return;
        }
        more = dir->work(conn);
        if (!more) {
            unsigned expected = DIR_BUSY;

            if (RED("dir_plain_flag")) { /* breach: forgets a MORE that came just now */
                atomic_store(&dir->word, 0);
                return;
            }
            if (atomic_compare_exchange_strong(&dir->word, &expected, 0))
                return;
        }
        if (more && conn_polls && dir == &conn->rx.dir && dir_leave(dir))
            return;
        if (more && dir->yields && !conn_polls)
            budget = 0;
        dir->yields = false;
        if (more && dir_leave_to_poller(dir))
            return;
        if (--budget <= 0 && !RED("dir_budget_ignored")) {
            conn_ref(conn);
            engine_run(atomic_load(&conn->home), &dir->later);
            return;
        }
    }
}

/* The home shard takes over a direction that is still BUSY. */
static void dir_later(struct engine_work *work)
{
    struct conn_dir *dir =
        (struct conn_dir *)(void *)((char *)work - offsetof(struct conn_dir, later));
    struct conn *conn = dir->conn;

    dir_run(dir, DIR_BUDGET);
    conn_unref(conn);
}

bool conn_kick(struct conn_dir *dir, unsigned bits)
{
    unsigned word = atomic_load(&dir->word);

    do {
        if (word & DIR_DEAD)
            return false;
    } while (!atomic_compare_exchange_weak(&dir->word, &word, word | DIR_BUSY | DIR_MORE | bits));
    if (!(word & DIR_BUSY))
        dir_run(dir, DIR_BUDGET);
    return true;
}

void conn_dir_init(struct conn_dir *dir, struct conn *conn, bool (*work)(struct conn *),
                   void (*end)(struct conn *))
{
    atomic_init(&dir->word, 0);
    dir->later.run = dir_later;
    dir->conn = conn;
    dir->work = work;
    dir->end = end;
}
