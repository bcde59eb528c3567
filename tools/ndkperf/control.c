// SPDX-License-Identifier: MIT
/* See control.h. A receive is always posted when the peer may speak: it is posted again before what
 * came is answered. */
#include "control.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/tool_args.h"

bool control_open(struct control *control, NDK_ADAPTER *adapter, NDK_CONNECTOR *connector)
{
    memset(control, 0, sizeof(*control));
    return link_open(&control->link, adapter, connector, 4, 4) &&
           tool_memory_create(control->link.pd, 2 * PLAN_TEXT_MAX, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                              &control->memory) &&
           link_receive(&control->link, &control->memory, PLAN_TEXT_MAX, PLAN_TEXT_MAX);
}

void control_close(struct control *control)
{
    link_end(&control->link, false);
    tool_memory_close(&control->memory);
    link_close(&control->link);
}

bool control_say(struct control *control, const char *format, ...)
{
    char *line = (char *)control->memory.data;
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, PLAN_TEXT_MAX, format, ap);
    va_end(ap);
    return link_send(&control->link, &control->memory, 0, (ULONG)strlen(line) + 1) &&
           link_wait(&control->link, LINK_SEND) == LINK_GOOD;
}

enum link_result control_hear(struct control *control, char line[PLAN_TEXT_MAX], bool idle)
{
    struct link *link = &control->link;
    enum link_result result =
        idle ? link_wait_idle(link, LINK_RECEIVE) : link_wait(link, LINK_RECEIVE);
    ULONG length = link->octets;

    if (result != LINK_GOOD)
        return result;
    memcpy(line, control->memory.data + PLAN_TEXT_MAX, PLAN_TEXT_MAX);
    line[length > 0 && length <= PLAN_TEXT_MAX ? length - 1 : 0] = '\0';
    return link_receive(link, &control->memory, PLAN_TEXT_MAX, PLAN_TEXT_MAX) ? LINK_GOOD
                                                                              : LINK_FAILED;
}

bool control_lost(struct control *control)
{
    return atomic_load(&control->link.disconnected);
}
