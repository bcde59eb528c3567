// SPDX-License-Identifier: MIT
/* kit_case.h - a case, a topic and their tables; a part of kit.h, which explains them. */
#ifndef KIT_CASE_H
#define KIT_CASE_H

#include <ndkpi.h>

struct kit;

/* ---- cases ---------------------------------------------------------------------------------- */

typedef VOID kit_function(struct kit *k);

/* What a case cannot do without; it is skipped, with a reason, where that is not there. */
#define KIT_NEEDS_LOOPBACK 0x01  /* both ends at one adapter address, in this function */
#define KIT_NEEDS_DIRECT   0x02  /* the kit may play the layer above the provider */
#define KIT_NEEDS_ANSWER   0x04  /* the door can choose how calls answer (kit_door.answer) */
#define KIT_NEEDS_FAIL     0x08  /* the door can make calls fail (kit_door.fail) */
#define KIT_NEEDS_SRQ      0x10  /* MaxSrqDepth is not 0 */
#define KIT_NEEDS_MW       0x20  /* MaxWindowSize is not 0 */
#define KIT_NEEDS_ENDPOINT 0x40  /* shared endpoints can be created */
#define KIT_NEEDS_READ     0x80  /* read limits are not 0 */
#define KIT_NEEDS_PATIENCE 0x100 /* waits for a timer of the provider: only with --slow */

struct kit_case {
    const char *id;                /* "CQ-012": the topic's letters, a number; never reused */
    const char *title;             /* what must be so, in a few words */
    const char *reference;         /* where it is written: "NDKPI 7.2", "lifetime 5.2" */
    const char *function;          /* the function under test, as NDKPI spells it */
    kit_function *run;             /* one function, or */
    kit_function *server, *client; /* two halves */
    ULONG needs;                   /* KIT_NEEDS_... */
    ULONG adapter_flags;           /* NDK_ADAPTER_FLAG_... that must be set */
    ULONG adapter_flags_clear;     /* ... that must be clear */
    NDK_VERSION version;           /* lowest NDKPI version, {0, 0}: any */
    LONG_PTR arg;                  /* the row's own number */
    const VOID *row;               /* or the row's own structure */
};

#define KIT_CASE(id_, title_, reference_, function_, run_, ...)                                    \
    {                                                                                              \
        .id = id_, .title = title_, .reference = reference_, .function = function_, .run = run_,   \
        __VA_ARGS__                                                                                \
    }
#define KIT_CASE_TWO(id_, title_, reference_, function_, server_, client_, ...)                    \
    {                                                                                              \
        .id = id_, .title = title_, .reference = reference_, .function = function_,                \
        .server = server_, .client = client_, __VA_ARGS__                                          \
    }

struct kit_topic {
    const char *name, *about;
    const struct kit_case *cases;
    ULONG count;
};

/* Behind the table, which is named `cases`. */
#define KIT_TOPIC(name_, about_)                                                                   \
    const struct kit_topic kit_topic_##name_;                                                      \
    const struct kit_topic kit_topic_##name_ = {#name_, about_, cases, RTL_NUMBER_OF(cases)}

enum kit_role { KIT_ALONE, KIT_SERVER, KIT_CLIENT };

#endif /* KIT_CASE_H */
