// SPDX-License-Identifier: MIT
/* See log.h. The level and the file are read from the environment once, by whoever logs first. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/red.h"

int log_threshold;
static int log_fd = STDERR_FILENO;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static void log_read_environment(void)
{
    const char *level = getenv("SOFTNDK_LOG");
    const char *file = getenv("SOFTNDK_LOG_FILE");
    int threshold = LOG_ERROR;

    if (level) {
        if (strcmp(level, "debug") == 0)
            threshold = LOG_DEBUG;
        else if (strcmp(level, "info") == 0)
            threshold = LOG_INFO;
        else if (strcmp(level, "none") == 0)
            threshold = -1;
        else if (strcmp(level, "error") != 0)
            dprintf(STDERR_FILENO,
                    "softndk: error: SOFTNDK_LOG: unknown level (have \"%s\", need none, error, "
                    "info or debug)\n",
                    level);
    }
    if (file) {
        int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        if (fd >= 0)
            log_fd = fd;
        else
            dprintf(STDERR_FILENO, "softndk: error: SOFTNDK_LOG_FILE: cannot open \"%s\"\n", file);
    }
    __atomic_store_n(&log_threshold, threshold, __ATOMIC_RELAXED);
}

void log_init(void)
{
    pthread_once(&log_once, log_read_environment);
}

void log_set_level(enum log_level level)
{
    log_init();
    __atomic_store_n(&log_threshold, (int)level, __ATOMIC_RELAXED);
}

void log_vwrite(enum log_level level, const char *format, va_list ap)
{
    static const char *const names[] = {"?", "error", "info", "debug"};
    char line[1024];
    int n;
    int m;
    size_t len;

    log_init(); /* another thread may have read the environment: its log_fd is ours from here on */
    n = snprintf(line, sizeof line, "softndk: %s: ", names[level]);
    m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
    len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    if (!RED("base-log-no-newline"))
        line[len++] = '\n';
    /* A diagnostic that cannot be written has nowhere to be reported. */
    if (write(log_fd, line, len) < 0)
        return;
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    log_vwrite(level, format, ap);
    va_end(ap);
}
