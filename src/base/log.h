// SPDX-License-Identifier: MIT
/*
 * One-line diagnostics for every floor. A line has the form
 *   softndk: error: qp #7: CreateQp: ReceiveQueueDepth too large (have 5000, need <= 4096), rule
 * NDKPI 8.4 Levels: SOFTNDK_LOG=error|info|debug (default error), SOFTNDK_LOG_FILE=path (default
 * stderr). Any thread; a line is written with one write call, so lines of two threads never mix.
 */
#ifndef SOFTNDK_BASE_LOG_H
#define SOFTNDK_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_ERROR = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

extern int log_threshold; /* read by log_on(); set once at first use or by log_set_level() */
void log_init(void);
void log_set_level(enum log_level level);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_vwrite(enum log_level level, const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));

static inline bool log_on(enum log_level level)
{
    if (__builtin_expect(__atomic_load_n(&log_threshold, __ATOMIC_RELAXED) == 0, 0))
        log_init();
    return (int)level <= __atomic_load_n(&log_threshold, __ATOMIC_RELAXED);
}

#define log_error(...) (log_on(LOG_ERROR) ? log_write(LOG_ERROR, __VA_ARGS__) : (void)0)
#define log_info(...)  (log_on(LOG_INFO) ? log_write(LOG_INFO, __VA_ARGS__) : (void)0)
#define log_debug(...) (log_on(LOG_DEBUG) ? log_write(LOG_DEBUG, __VA_ARGS__) : (void)0)

#endif
