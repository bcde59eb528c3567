// SPDX-License-Identifier: MIT
/*
 * kit_os.h for Linux, and the program's entry. The only file of the kit that includes headers of
 * the C library.
 */
#include "kit_os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kit_run.h"

ULONGLONG kit_os_ms(VOID)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (ULONGLONG)now.tv_sec * 1000u + (ULONGLONG)now.tv_nsec / 1000000u;
}

VOID kit_os_sleep_ms(ULONG ms)
{
    struct timespec span = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&span, NULL);
}

/* A sleep does here what spinning does in a kernel: it holds the provider's thread up. */
VOID kit_os_stall_ms(ULONG ms)
{
    kit_os_sleep_ms(ms);
}

PVOID kit_os_alloc(SIZE_T bytes)
{
    return calloc(1, bytes ? bytes : 1);
}

VOID kit_os_free(PVOID memory)
{
    free(memory);
}

PVOID kit_os_pages(SIZE_T bytes)
{
    SIZE_T room = ROUND_TO_PAGES(bytes ? bytes : 1);
    PVOID pages = aligned_alloc(PAGE_SIZE, room);

    if (pages)
        memset(pages, 0, room);
    return pages;
}

VOID kit_os_free_pages(PVOID pages)
{
    free(pages);
}

VOID kit_os_format(char *out, SIZE_T size, const char *format, va_list arguments)
{
    vsnprintf(out, size, format, arguments);
}

static atomic_bool print_failed;

VOID kit_os_print(const char *text)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) != 0)
        atomic_store(&print_failed, true);
}

BOOLEAN kit_os_printed(VOID)
{
    return (BOOLEAN)!atomic_load(&print_failed);
}

VOID kit_os_complain(const char *text)
{
    fputs(text, stderr);
}

struct kit_os_file *kit_os_create(const char *path)
{
    return (struct kit_os_file *)fopen(path, "w");
}

VOID kit_os_write(struct kit_os_file *file, const char *text)
{
    fputs(text, (FILE *)file);
}

BOOLEAN kit_os_finish(struct kit_os_file *file)
{
    int failed = ferror((FILE *)file);

    return (BOOLEAN)(fclose((FILE *)file) == 0 && !failed);
}

C_ASSERT(sizeof(pthread_mutex_t) <= sizeof(struct kit_os_lock));

VOID kit_os_lock_init(struct kit_os_lock *lock)
{
    pthread_mutex_init((pthread_mutex_t *)(void *)lock->storage, NULL);
}

VOID kit_os_lock(struct kit_os_lock *lock)
{
    pthread_mutex_lock((pthread_mutex_t *)(void *)lock->storage);
}

VOID kit_os_unlock(struct kit_os_lock *lock)
{
    pthread_mutex_unlock((pthread_mutex_t *)(void *)lock->storage);
}

struct start {
    VOID (*function)(PVOID);
    PVOID context;
};

static void *thread_main(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    start.function(start.context);
    return NULL;
}

BOOLEAN kit_os_thread(VOID (*function)(PVOID), PVOID context)
{
    struct start *start = malloc(sizeof *start);
    pthread_attr_t attributes;
    pthread_t thread;
    int failed = 1;

    if (start && pthread_attr_init(&attributes) == 0) {
        start->function = function;
        start->context = context;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        failed = pthread_create(&thread, &attributes, thread_main, start);
        pthread_attr_destroy(&attributes);
    }
    if (failed)
        free(start);
    return (BOOLEAN)!failed;
}

VOID kit_os_exit(int status)
{
    fflush(NULL);
    _exit(status);
}

int main(int argc, char **argv)
{
    return kit_main(argc, (const char *const *)argv);
}
