// SPDX-License-Identifier: MIT
/*
 * async.h - what the topics about ways of answering share (topic_async.c, topic_async_connect.c).
 *
 * An operation is prepared in the usual way, then started in the way under test, then followed by
 * what lets it end, in the usual way again.
 */
#ifndef KIT_ASYNC_H
#define KIT_ASYNC_H

#include "kit.h"

struct scene {
    struct kit *k;
    struct kit_base base;
    struct kit_object *object;
    struct kit_pair pair;
    struct kit_endpoint *endpoint;
    struct kit_srq *srq;
    struct kit_listener *listener;
    struct kit_memory *memory;
    struct kit_call *other;
    SOCKADDR_INET address;
    ULONGLONG lam[32]; /* aligned as a mapping is */
    ULONG lam_size, fbo;
};

struct operation {
    BOOLEAN (*prepare)(struct scene *s);
    struct kit_call *(*start)(struct scene *s);
    BOOLEAN (*follow)(struct scene *s, struct kit_call *call); /* or NULL */
    NTSTATUS status;
    NDK_OBJECT_TYPE type; /* of creates and closes */
};

enum way { INLINE, LATER, BEFORE, CHANCE, FAILING, FAILING_INLINE };

/* The door's word for it. */
extern const char *const async_modes[];

/* The case: k->test->row is the operation, k->test->arg the way. */
kit_function async_answered;

/* ---- rows ----------------------------------------------------------------------------------- */

#define ONE(id_, what_, how_, function_, way_, operation_, needs_, ...)                            \
    KIT_CASE(id_, function_ what_ how_, "lifetime 3", function_, async_answered, .arg = way_,      \
             .row = &(const struct operation)operation_, .needs = (needs_) | KIT_NEEDS_ANSWER,     \
             __VA_ARGS__)
#define OF(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The id is a text and one digit: 0 inline, 1 later, 2 before, 3 by chance, 4 and 5 no resources.
 */
#define WAYS(id_, what_, function_, operation_, needs_, ...)                                       \
    ONE(id_ "0", what_, ", inline where it can", function_, INLINE, OF operation_, needs_,         \
        __VA_ARGS__),                                                                              \
        ONE(id_ "1", what_, ", later", function_, LATER, OF operation_, needs_, __VA_ARGS__),      \
        ONE(id_ "2", what_, ", before it returns", function_, BEFORE, OF operation_, needs_,       \
            __VA_ARGS__),                                                                          \
        ONE(id_ "3", what_, ", by chance", function_, CHANCE, OF operation_, needs_, __VA_ARGS__)
#define WAYS_AND_FAILING(id_, what_, function_, operation_, needs_, ...)                           \
    WAYS(id_, what_, function_, operation_, needs_, __VA_ARGS__),                                  \
        ONE(id_ "4", what_, ", no resources, later", function_, FAILING, OF operation_,            \
            (needs_) | KIT_NEEDS_FAIL, __VA_ARGS__),                                               \
        ONE(id_ "5", what_, ", no resources, inline", function_, FAILING_INLINE, OF operation_,    \
            (needs_) | KIT_NEEDS_FAIL, __VA_ARGS__)

#define CALL(id_, function_, prepare_, start_, follow_, needs_, ...)                               \
    WAYS_AND_FAILING(id_, "", function_,                                                           \
                     (prepare_, start_, follow_, STATUS_SUCCESS, NdkObjectTypeCq), needs_,         \
                     __VA_ARGS__)
#define FAILS(id_, function_, prepare_, start_, status_, type_, needs_)                            \
    WAYS(id_, ": " #status_, function_, (prepare_, start_, NULL, status_, NdkObjectType##type_),   \
         needs_)

#endif /* KIT_ASYNC_H */
