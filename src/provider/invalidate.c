// SPDX-License-Identifier: MIT
/* See invalidate.h. */
#include "provider/invalidate.h"

#include "base/red.h"

struct object *invalidate_find(struct mem_table *table, uint32_t token, const void *domain,
                               const void *qp, enum mem_invalidator by)
{
    const struct mem_region *region;
    struct object *found = NULL;
    struct access hold;

    if (!mem_hold(table, token, &hold))
        return NULL;
    region = hold.region;
    if (region->domain == domain && (region->invalidates & by) != 0 &&
        (!region->bound_to || region->bound_to == qp || RED("mw-invalidated-over-any-qp")))
        found = region->owner;
    /* The owner is alive while the slot is held, see mem_hold(). */
    if (found)
        object_ref(found);
    mem_end(&hold);
    return found;
}
