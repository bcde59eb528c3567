// SPDX-License-Identifier: MIT
/*
 * For tests of statuses: the completion mode a test runs in and whether an answer came the way that
 * mode demands, calls that fail on request, and addresses whose ports are nobody else's.
 */
#ifndef SOFTNDK_TESTS_MODES_H
#define SOFTNDK_TESTS_MODES_H

#include "ends.h"

/* never, always, early or random:SEED; set with mode_set(). */
extern const char *mode;
void mode_set(const char *text);
/* The answer of a call whose outcome was known at once: inline in mode never, through the callback,
 * once, in the modes always and early. */
NTSTATUS mode_answer(struct wait *w, NTSTATUS returned);
/* The same for a create that is to fail: it gives no object and leaves its out parameter alone. */
NTSTATUS mode_refusal(struct wait *w, NTSTATUS returned);
/* The next call of that name fails with status (SOFTNDK_FAIL). */
void fail_next(const char *call, NTSTATUS status);
/* The nth allocation of the object core from now on gives nothing (SOFTNDK_FAIL=memory:n). */
void no_memory_for(unsigned nth);
/* The reason kept at an object speaks of part. */
void expect_reason(const NDK_OBJECT_HEADER *object, const char *part);

/* An address of loopback's for this test run alone, and another: what stands at their ports, no
 * other program has put there. */
const char *own_address(void);
const char *other_address(void);
SOCKADDR_INET inet_address(const char *text, unsigned port);
unsigned inet_port(const SOCKADDR_INET *address);

/* Runs the table `tests` in all four modes; the program's exit status. */
#define RUN_IN_MODES(tests)                                                                        \
    (__extension__({                                                                               \
        static const char *const modes_[] = {"never", "always", "early", "random:77"};             \
        int failed_ = 0;                                                                           \
        for (size_t i_ = 0; i_ < sizeof modes_ / sizeof modes_[0] && !failed_; i_++) {             \
            mode_set(modes_[i_]);                                                                  \
            failed_ += cmocka_run_group_tests_name(mode, tests, NULL, NULL);                       \
        }                                                                                          \
        failed_;                                                                                   \
    }))

#endif
