// SPDX-License-Identifier: MIT
/* See kit_steps.h. */
#include "kit_steps.h"

const char *const kit_step_names[KIT_STEPS] = {
    [KIT_STEP_NEW] = "new",
    [KIT_STEP_ASKED] = "asked",
    [KIT_STEP_ACCEPTED] = "accepted",
    [KIT_STEP_CONNECTED] = "connected",
};

BOOLEAN kit_steps_ask(struct kit_steps *s, const struct kit_connect_options *options)
{
    s->connect = kit_connect_start(s->a.connector, s->a.qp, &s->address, options);
    TRY_OR_FALSE(s->connect != NULL);
    return kit_incoming(s->b.listener, &s->b.connector);
}

BOOLEAN kit_steps_accept(struct kit_steps *s, const struct kit_connect_options *options)
{
    s->accept = kit_accept_start(s->b.connector, s->b.qp, options);
    TRY_OR_FALSE(s->accept != NULL);
    return kit_answer_is(s->connect, STATUS_SUCCESS);
}

BOOLEAN kit_steps_complete(struct kit_steps *s)
{
    s->complete = kit_complete_start(s->a.connector);
    TRY_OR_FALSE(kit_answer_is(s->complete, STATUS_SUCCESS));
    return kit_answer_is(s->accept, STATUS_SUCCESS);
}

BOOLEAN kit_steps_to(struct kit *k, enum kit_step step, const struct kit_connect_options *options,
                     struct kit_steps *s)
{
    RtlZeroMemory(s, sizeof *s);
    TRY_OR_FALSE(kit_end_open(k, NULL, &s->b));
    TRY_OR_FALSE(kit_end_open(k, NULL, &s->a));
    TRY_OR_FALSE(kit_listener_new(s->b.adapter, &s->b.listener));
    TRY_OR_FALSE(kit_listen(s->b.listener, &s->address));
    TRY_OR_FALSE(kit_connector_new(s->a.adapter, &s->a.connector));
    if (step >= KIT_STEP_ASKED)
        TRY_OR_FALSE(kit_steps_ask(s, options));
    if (step >= KIT_STEP_ACCEPTED)
        TRY_OR_FALSE(kit_steps_accept(s, options));
    if (step >= KIT_STEP_CONNECTED)
        TRY_OR_FALSE(kit_steps_complete(s));
    return TRUE;
}

BOOLEAN kit_steps_receives(struct kit_end *end, struct kit_request **list, ULONG n)
{
    for (ULONG i = 0; i < n; i++) {
        list[i] = kit_receive(end->qp, NULL, 0);
        TRY_OR_FALSE(kit_ok(list[i]));
    }
    return TRUE;
}

BOOLEAN kit_steps_disconnected(struct kit_end *end)
{
    return kit_wait(end->k, &end->connector->event, "the disconnect event");
}
