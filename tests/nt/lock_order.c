// SPDX-License-Identifier: MIT
/*
 * lock_order.c - spin locks as ThreadSanitizer sees them through a library that was built without
 * it: "right" takes two locks in one order and counts under one of them, "order" takes them in both
 * orders, "race" counts under different locks. The sanitizer ends the last two with a status of its
 * own.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <wdm.h>

static KSPIN_LOCK first, second;
static long count;

static void *count_up(void *lock)
{
    KIRQL old;

    for (int i = 0; i < 1000; i++) {
        KeAcquireSpinLock((PKSPIN_LOCK)lock, &old);
        count++;
        KeReleaseSpinLock((PKSPIN_LOCK)lock, old);
    }
    return NULL;
}

static void take_both(PKSPIN_LOCK a, PKSPIN_LOCK b)
{
    KIRQL old;

    KeAcquireSpinLock(a, &old);
    KeAcquireSpinLockAtDpcLevel(b);
    KeReleaseSpinLockFromDpcLevel(b);
    KeReleaseSpinLock(a, old);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "right";
    pthread_t threads[2];

    take_both(&first, &second);
    if (strcmp(what, "order") == 0)
        take_both(&second, &first);
    else
        take_both(&first, &second);
    pthread_create(&threads[0], NULL, count_up, &first);
    pthread_create(&threads[1], NULL, count_up, strcmp(what, "race") == 0 ? &second : &first);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
