// SPDX-License-Identifier: MIT
/* See adapter_snapshot.h. */
#include "provider/adapter_snapshot.h"

#include <stdlib.h>

#include "base/red.h"
#include "provider/adapter.h"

void adapter_row_set(struct adapter *adapter, struct adapter_row *row, enum adapter_row_kind kind,
                     const struct os_addr *local, const struct os_addr *remote)
{
    os_mutex_lock(&adapter->table_lock);
    row->kind = kind;
    row->local = *local;
    row->remote = remote ? *remote : (struct os_addr){0};
    if (!row->link) {
        row->link = adapter->rows_last;
        *adapter->rows_last = row;
        adapter->rows_last = &row->next;
    }
    os_mutex_unlock(&adapter->table_lock);
}

void adapter_row_clear(struct adapter *adapter, struct adapter_row *row)
{
    os_mutex_lock(&adapter->table_lock);
    if (row->link) {
        *row->link = row->next;
        if (row->next)
            row->next->link = row->link;
        else
            adapter->rows_last = row->link;
        row->link = NULL;
        row->next = NULL;
    }
    os_mutex_unlock(&adapter->table_lock);
}

size_t adapter_snapshot(struct adapter *adapter, struct adapter_endpoint *out, size_t room)
{
    size_t count = 0;

    os_mutex_lock(&adapter->table_lock);
    for (const struct adapter_row *row = adapter->rows; row; row = row->next, count++)
        if (count < room)
            out[count] = (struct adapter_endpoint){.kind = row->kind,
                                                   .interface = adapter->interface.index,
                                                   .adapter = adapter->object.id,
                                                   .local = row->local,
                                                   .remote = row->remote};
    os_mutex_unlock(&adapter->table_lock);
    return count;
}

ssize_t adapter_snapshot_add(struct adapter *adapter, struct adapter_endpoint **list, size_t count)
{
    size_t room = 0, there;

    /* Again with more room while rows come faster than room is made. */
    while ((there = adapter_snapshot(adapter, *list ? *list + count : NULL, room)) > room) {
        struct adapter_endpoint *more;

        room = there + there / 8 + 16;
        more = realloc(*list, (count + room) * sizeof *more);
        if (!more)
            return -ENOMEM;
        *list = more;
    }
    return (ssize_t)(count + there);
}

/* ---- all adapters --------------------------------------------------------------------------- */

struct all {
    uint32_t index;
    struct adapter_endpoint *list;
    size_t count;
    bool no_memory;
};

static void add_adapter(struct adapter *adapter, void *context)
{
    struct all *all = context;
    ssize_t count;

    if (all->no_memory || (all->index && adapter->interface.index != all->index))
        return;
    count = adapter_snapshot_add(adapter, &all->list, all->count);
    if (count < 0)
        all->no_memory = true;
    else
        all->count = (size_t)count;
}

/* Adapters come in the order of their opening; that stays within an interface. */
static int by_interface(const void *left, const void *right)
{
    const struct adapter_endpoint *a = left, *b = right;

    if (a->interface != b->interface)
        return a->interface < b->interface ? -1 : 1;
    if (a->adapter != b->adapter)
        return a->adapter < b->adapter ? -1 : 1;
    return (int)a->kind - (int)b->kind;
}

ssize_t adapter_snapshot_all(uint32_t index, struct adapter_endpoint **out)
{
    struct all all = {.index = index};

    adapter_walk(add_adapter, &all);
    if (all.no_memory) {
        free(all.list);
        *out = NULL;
        return -ENOMEM;
    }
    if (all.count && !RED("adapter-snapshot-unsorted"))
        qsort(all.list, all.count, sizeof *all.list, by_interface);
    *out = all.list;
    return (ssize_t)all.count;
}
