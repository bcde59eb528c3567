// SPDX-License-Identifier: MIT
/*
 * Two ends in one function (KIT_NEEDS_LOOPBACK), brought as far on the way to a connection as a
 * case wants: for cases about what a call or an end does at that point. a is active.
 */
#ifndef KIT_STEPS_H
#define KIT_STEPS_H

#include "kit.h"

enum kit_step {
    KIT_STEP_NEW,       /* both ends and a listener; a has a connector that nothing was done with */
    KIT_STEP_ASKED,     /* a's NdkConnect pends, b has the incoming connector */
    KIT_STEP_ACCEPTED,  /* b's NdkAccept pends, a's NdkConnect has succeeded */
    KIT_STEP_CONNECTED, /* all calls have succeeded */
    KIT_STEPS
};

struct kit_steps {
    struct kit_end a, b;
    SOCKADDR_INET address; /* b listens here */
    struct kit_call *connect, *accept, *complete;
};

extern const char *const kit_step_names[KIT_STEPS];
/* Opens both ends and goes that far. options: for both; NULL: one read each way, no data. */
BOOLEAN kit_steps_to(struct kit *k, enum kit_step step, const struct kit_connect_options *options,
                     struct kit_steps *s);
/* Goes one step further. */
BOOLEAN kit_steps_ask(struct kit_steps *s, const struct kit_connect_options *options);
BOOLEAN kit_steps_accept(struct kit_steps *s, const struct kit_connect_options *options);
BOOLEAN kit_steps_complete(struct kit_steps *s);
/* Posts n receives without memory at an end; they get into list. */
BOOLEAN kit_steps_receives(struct kit_end *end, struct kit_request **list, ULONG n);
/* The disconnect event of an end's connector has come. */
BOOLEAN kit_steps_disconnected(struct kit_end *end);

#endif
