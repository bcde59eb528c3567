// SPDX-License-Identifier: MIT
/*
 * Fault hooks: a short table of armed faults, each counting the calls of its operation down. The
 * lock is a leaf; it is taken only while something is armed (or before the environment was read).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "os/linux/backend.h"

#define FAULT_MAX 32

struct fault {
    bool armed, repeat;
    enum os_fault_op op;
    unsigned left; /* calls up to and including the one that fails; 0: it has begun to fail */
    int err;
};

static const char *const op_names[OS_FAULT_OPS] = {
    [OS_FAULT_SOCKET] = "socket",     [OS_FAULT_BIND] = "bind",
    [OS_FAULT_CONNECT] = "connect",   [OS_FAULT_CONNECT_RESULT] = "connect_result",
    [OS_FAULT_LISTEN] = "listen",     [OS_FAULT_ACCEPT] = "accept",
    [OS_FAULT_SEND] = "send",         [OS_FAULT_RECV] = "recv",
    [OS_FAULT_SHUTDOWN] = "shutdown", [OS_FAULT_POLL_ADD] = "poll_add",
    [OS_FAULT_THREAD] = "thread",
};

static const struct {
    const char *name;
    int err;
} err_names[] = {
    {"EPERM", EPERM},
    {"EINTR", EINTR},
    {"EIO", EIO},
    {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM},
    {"EACCES", EACCES},
    {"EFAULT", EFAULT},
    {"EINVAL", EINVAL},
    {"ENFILE", ENFILE},
    {"EMFILE", EMFILE},
    {"ENOSPC", ENOSPC},
    {"EPIPE", EPIPE},
    {"EADDRINUSE", EADDRINUSE},
    {"EADDRNOTAVAIL", EADDRNOTAVAIL},
    {"EAFNOSUPPORT", EAFNOSUPPORT},
    {"ENETDOWN", ENETDOWN},
    {"ENETUNREACH", ENETUNREACH},
    {"ECONNABORTED", ECONNABORTED},
    {"ECONNRESET", ECONNRESET},
    {"ENOBUFS", ENOBUFS},
    {"ENOTCONN", ENOTCONN},
    {"ETIMEDOUT", ETIMEDOUT},
    {"ECONNREFUSED", ECONNREFUSED},
    {"EHOSTUNREACH", EHOSTUNREACH},
    {"EINPROGRESS", EINPROGRESS},
    {"SHORT", OS_FAULT_SHORT},
};

atomic_int os_fault_state = -1;

static os_mutex fault_lock = OS_MUTEX_INITIALIZER;
static struct fault faults[FAULT_MAX];

static int fault_arm(const char *name, unsigned nth, int err, bool repeat)
{
    enum os_fault_op op = 0;

    while (op < OS_FAULT_OPS && strcmp(op_names[op], name) != 0)
        op++;
    if (op == OS_FAULT_OPS || nth == 0 || err <= 0)
        return -EINVAL;
    if (err == OS_FAULT_SHORT && op != OS_FAULT_SEND)
        return -EINVAL;
    for (unsigned i = 0; i < FAULT_MAX; i++) {
        if (!faults[i].armed) {
            faults[i] =
                (struct fault){.armed = true, .repeat = repeat, .op = op, .left = nth, .err = err};
            atomic_store_explicit(&os_fault_state, 1, memory_order_relaxed);
            return 0;
        }
    }
    return -ENOSPC;
}

static int fault_err_number(const char *text)
{
    char *end;
    long value;

    for (size_t i = 0; i < sizeof err_names / sizeof *err_names; i++)
        if (strcmp(err_names[i].name, text) == 0)
            return err_names[i].err;
    value = strtol(text, &end, 10);
    return *text != '\0' && *end == '\0' && value > 0 && value < 4096 ? (int)value : 0;
}

/* One "op:n:ERRNO[:repeat]". */
static void fault_arm_text(const char *entry)
{
    char op[16], err[24], repeat[8] = "";
    unsigned nth = 0;
    int used = 0;
    int fields = sscanf(entry, "%15[^:]:%u:%23[^:]%n:%7s%n", op, &nth, err, &used, repeat, &used);
    bool ok = fields >= 3 && entry[used] == '\0' && (fields == 3 || strcmp(repeat, "repeat") == 0);

    if (!ok || fault_arm(op, nth, fault_err_number(err), fields == 4) < 0)
        log_error("os: SOFTNDK_OS_FAIL: bad entry (have \"%s\", need op:n:ERRNO[:repeat])", entry);
}

/* Under the lock. */
static void fault_read_environment(void)
{
    const char *text = getenv("SOFTNDK_OS_FAIL");

    if (atomic_load_explicit(&os_fault_state, memory_order_relaxed) != -1)
        return;
    atomic_store_explicit(&os_fault_state, 0, memory_order_relaxed);
    while (text && *text != '\0') {
        size_t len = strcspn(text, ",");
        char entry[64];

        if (len > 0 && len < sizeof entry) {
            memcpy(entry, text, len);
            entry[len] = '\0';
            fault_arm_text(entry);
        } else if (len > 0) {
            log_error("os: SOFTNDK_OS_FAIL: entry too long (have %zu octets, need < %zu)", len,
                      sizeof entry);
        }
        text += len;
        text += *text == ',';
    }
}

int os_fault_count_call(enum os_fault_op op)
{
    bool any = false;
    int err = 0;

    os_mutex_lock(&fault_lock);
    fault_read_environment();
    for (unsigned i = 0; i < FAULT_MAX; i++) {
        struct fault *f = &faults[i];

        if (f->armed && f->op == op) {
            if (f->left > 0)
                f->left--;
            if (f->left == 0 || RED("os-fault-nth-ignored")) {
                err = f->err;
                f->armed = f->repeat;
            }
        }
        any |= f->armed;
    }
    if (!any)
        atomic_store_explicit(&os_fault_state, 0, memory_order_relaxed);
    os_mutex_unlock(&fault_lock);
    return err;
}

int os_fault_set(const char *op, unsigned nth, int err, bool repeat)
{
    int rc;

    os_mutex_lock(&fault_lock);
    fault_read_environment();
    rc = fault_arm(op, nth, err, repeat);
    os_mutex_unlock(&fault_lock);
    return rc;
}

void os_fault_clear(void)
{
    os_mutex_lock(&fault_lock);
    memset(faults, 0, sizeof faults);
    atomic_store_explicit(&os_fault_state, 0, memory_order_relaxed);
    os_mutex_unlock(&fault_lock);
}
