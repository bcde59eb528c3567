// SPDX-License-Identifier: MIT
/* See async.h. */
#include "async.h"

const char *const async_modes[] = {"never", "always", "early", "random:1", "always", "never"};

VOID async_answered(struct kit *k)
{
    const struct operation *operation = k->test->row;
    enum way way = (enum way)k->test->arg;
    BOOLEAN failing = (BOOLEAN)(way == FAILING || way == FAILING_INLINE);
    NTSTATUS need = failing ? STATUS_INSUFFICIENT_RESOURCES : operation->status;
    struct scene *s = kit_alloc(k, sizeof *s);
    struct kit_call *call;

    TRY(s != NULL);
    s->k = k;
    TRY(operation->prepare(s));
    if (failing)
        TRY(kit_make_fail(k, k->test->function, need));
    TRY(kit_answer_mode(k, async_modes[way]));
    call = operation->start(s);
    TRY(call != NULL);
    TRY(kit_answer_mode(k, NULL));
    if (way == LATER || way == BEFORE || way == FAILING)
        CHECK_STATUS(k, "the return value of a call that is to answer through its completion",
                     call->returned, STATUS_PENDING);
    if (way == FAILING_INLINE)
        CHECK_STATUS(k, "the return value of a call that is to answer inline", call->returned,
                     need);
    if (operation->follow && need == STATUS_SUCCESS)
        TRY(operation->follow(s, call));
    TRY(kit_answer_is(call, need));
}
