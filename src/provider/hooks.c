// SPDX-License-Identifier: MIT
/*
 * The completion mode and the nth-call failures: see hooks.h. Called by every provider function.
 * Without a failure asked for, fail_check() is one relaxed load.
 *
 * Locks: rule_lock (leaf) guards the rules. The mode and its draw counter are atomics: a draw is a
 * hash of the seed and the number of the draw, so that a run with one thread repeats itself.
 */
#include "provider/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/log.h"
#include "base/red.h"
#include "os/os.h"

#define RULES_MAX   64
#define CALL_MEMORY CALL_COUNT /* the pseudo call */
#define MODE_RANDOM (PEND_EARLY + 1)

struct rule {
    unsigned call; /* enum call or CALL_MEMORY */
    NTSTATUS status;
    unsigned left; /* calls until it fires; 0: fired */
    bool repeat;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int mode; /* enum pend_mode or MODE_RANDOM */
static atomic_ullong seed, draws;
static os_mutex rule_lock = OS_MUTEX_INITIALIZER;
static struct rule rules[RULES_MAX];
static unsigned rule_count;
atomic_uint hooks_armed = HOOKS_UNREAD; /* read without the lock */

static const char *const call_names[] = {
#define CALL(id, name) name,
#include "provider/calls.def"
#undef CALL
};

const char *call_name(enum call call)
{
    return (unsigned)call < CALL_COUNT ? call_names[call] : "?";
}

/* ---- completion mode ---- */

static bool mode_parse(const char *text)
{
    static const char *const names[] = {"never", "always", "early"};
    unsigned long long number;
    char *end;

    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            atomic_store(&mode, i);
            return true;
        }
    if (strncmp(text, "random:", 7) != 0 || text[7] < '0' || text[7] > '9')
        return false;
    errno = 0;
    number = strtoull(text + 7, &end, 0);
    if (errno || *end)
        return false;
    atomic_store(&seed, number);
    atomic_store(&draws, 0);
    atomic_store(&mode, MODE_RANDOM);
    return true;
}

/* ---- failures ---- */

static bool rule_call(const char *name, size_t length, unsigned *call)
{
    if (length == 6 && memcmp(name, "memory", 6) == 0) {
        *call = CALL_MEMORY;
        return true;
    }
    for (unsigned i = 0; i < CALL_COUNT; i++)
        if (strlen(call_names[i]) == length && memcmp(call_names[i], name, length) == 0) {
            *call = i;
            return i != CALL_CLOSE;
        }
    return false;
}

static bool rule_status(const char *text, NTSTATUS *status)
{
    unsigned long long number;
    char *end;

    if (text[0] >= '0' && text[0] <= '9') {
        errno = 0;
        number = strtoull(text, &end, 0);
        if (errno || *end || number > UINT32_MAX)
            return false;
        *status = (NTSTATUS)(uint32_t)number;
    } else if (!softndk_status_by_name(text, status)) {
        return false;
    }
    /* A success would come without its object, and PENDING without its callback. */
    return !NT_SUCCESS(*status) || RED("object-fail-takes-success");
}

/* One "call:n:status[:repeat]", terminated, cut up in place. */
static bool rule_parse(char *text, struct rule *rule)
{
    char *parts[4] = {text};
    unsigned count = 1;
    unsigned long n;
    char *end;

    for (char *p = text; *p; p++)
        if (*p == ':') {
            if (count == 4)
                return false;
            *p = '\0';
            parts[count++] = p + 1;
        }
    if (count < 2 || !rule_call(parts[0], strlen(parts[0]), &rule->call))
        return false;
    errno = 0;
    n = strtoul(parts[1], &end, 10);
    if (parts[1][0] < '0' || parts[1][0] > '9' || *end || errno || n < 1 || n > 1000000000)
        return false;
    rule->left = (unsigned)n;
    rule->repeat = count > 2 && strcmp(parts[count - 1], "repeat") == 0;
    count -= rule->repeat;
    rule->status = STATUS_INSUFFICIENT_RESOURCES;
    if (rule->call == CALL_MEMORY)
        return count == 2;
    return count == 3 && rule_status(parts[2], &rule->status);
}

static bool rules_parse(const char *text)
{
    struct rule parsed[RULES_MAX];
    unsigned count = 0;

    while (text && *text) {
        char one[160];
        size_t length = strcspn(text, ",");

        if (length >= sizeof one || count == RULES_MAX)
            return false;
        memcpy(one, text, length);
        one[length] = '\0';
        if (!rule_parse(one, &parsed[count++]))
            return false;
        text += length;
        if (*text == ',' && !*++text)
            return false;
    }
    os_mutex_lock(&rule_lock);
    memcpy(rules, parsed, count * sizeof parsed[0]);
    rule_count = count;
    atomic_store(&hooks_armed, count);
    os_mutex_unlock(&rule_lock);
    return true;
}

static NTSTATUS rules_count(unsigned call)
{
    NTSTATUS status = STATUS_SUCCESS;

    os_mutex_lock(&rule_lock);
    for (unsigned i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];

        if (rule->call != call || rule->left == 0 || --rule->left > 0)
            continue;
        if (rule->repeat)
            rule->left = 1;
        if (status == STATUS_SUCCESS)
            status = rule->status;
    }
    os_mutex_unlock(&rule_lock);
    return status;
}

/* ---- the doors ---- */

static char environment_error[200];

static void read_environment(void)
{
    const char *pend = getenv("SOFTNDK_PEND");
    const char *fail = getenv("SOFTNDK_FAIL");

    if (pend && *pend && !mode_parse(pend))
        snprintf(environment_error, sizeof environment_error,
                 "SOFTNDK_PEND: have \"%.80s\", need never, always, early or random:SEED", pend);
    else if (fail && !rules_parse(fail))
        snprintf(environment_error, sizeof environment_error,
                 "SOFTNDK_FAIL: have \"%.80s\", need call:n:status[:repeat][,...]", fail);
    if (environment_error[0])
        log_error("%s", environment_error);
    /* Last, so that a thread which finds 0 has missed none. */
    if (atomic_load(&hooks_armed) == HOOKS_UNREAD)
        atomic_store(&hooks_armed, 0);
}

const char *hooks_environment_error(void)
{
    pthread_once(&once, read_environment);
    return environment_error[0] ? environment_error : NULL;
}

enum pend_mode pend_choose(void)
{
    uint64_t x;
    int present;

    pthread_once(&once, read_environment);
    present = atomic_load_explicit(&mode, memory_order_relaxed);
    if (present != MODE_RANDOM)
        return (enum pend_mode)present;
    x = atomic_load_explicit(&seed, memory_order_relaxed);
    if (!RED("object-random-stuck"))
        x += (atomic_fetch_add_explicit(&draws, 1, memory_order_relaxed) + 1) *
             UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return (enum pend_mode)(x % 3);
}

bool pend_set(const char *text)
{
    pthread_once(&once, read_environment);
    return text && mode_parse(text);
}

NTSTATUS fail_count(enum call call)
{
    pthread_once(&once, read_environment);
    return rules_count(call);
}

bool fail_set(const char *text)
{
    pthread_once(&once, read_environment);
    return rules_parse(text);
}

void *hooks_alloc(size_t size)
{
    pthread_once(&once, read_environment);
    if (atomic_load_explicit(&hooks_armed, memory_order_relaxed) &&
        rules_count(CALL_MEMORY) != STATUS_SUCCESS)
        return NULL;
    return calloc(1, size);
}
