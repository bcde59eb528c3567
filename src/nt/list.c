// SPDX-License-Identifier: MIT
/*
 * Lists that several threads change: under the caller's spin lock, or sequenced ones.
 *
 * The spin lock of an ExInterlocked... call is taken at whatever level the caller has, as Windows
 * does it with interrupts off. A sequenced list is changed under the lock of its address's bucket
 * (wait.h): the header has no room for a lock, and an entry may be popped and freed by another
 * thread at any moment, so the next one must not be read without one.
 */
#include "base/red.h"
#include "nt/nt.h"
#include "nt/wait.h"

/* Takes the lock at DISPATCH_LEVEL or above, without a word about the level. */
static KIRQL enter(PKSPIN_LOCK lock)
{
    KIRQL old = KeGetCurrentIrql();

    if (old < DISPATCH_LEVEL)
        nt_irql_set(DISPATCH_LEVEL);
    if (!RED("nt-interlocked-unlocked"))
        KeAcquireSpinLockAtDpcLevel(lock);
    return old;
}

static void leave(PKSPIN_LOCK lock, KIRQL old)
{
    if (!RED("nt-interlocked-unlocked"))
        KeReleaseSpinLockFromDpcLevel(lock);
    nt_irql_set(old);
}

PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock)
{
    KIRQL old = enter(Lock);
    PLIST_ENTRY first = ListHead->Flink;

    InsertHeadList(ListHead, ListEntry);
    leave(Lock, old);
    return first == ListHead ? NULL : first;
}

PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock)
{
    KIRQL old = enter(Lock);
    PLIST_ENTRY last = ListHead->Blink;

    InsertTailList(ListHead, ListEntry);
    leave(Lock, old);
    return last == ListHead ? NULL : last;
}

PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    KIRQL old = enter(Lock);
    PLIST_ENTRY entry = IsListEmpty(ListHead) ? NULL : RemoveHeadList(ListHead);

    leave(Lock, old);
    return entry;
}

PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead,
                                              PSINGLE_LIST_ENTRY ListEntry, PKSPIN_LOCK Lock)
{
    KIRQL old = enter(Lock);
    PSINGLE_LIST_ENTRY first = ListHead->Next;

    PushEntryList(ListHead, ListEntry);
    leave(Lock, old);
    return first;
}

PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock)
{
    KIRQL old = enter(Lock);
    PSINGLE_LIST_ENTRY entry = PopEntryList(ListHead);

    leave(Lock, old);
    return entry;
}

/* ---- sequenced lists: Alignment is the first entry, Region the depth ------------------------- */

PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry)
{
    struct nt_bucket *b = nt_wait_lock(ListHead);
    PSLIST_ENTRY first = (PSLIST_ENTRY)ListHead->Alignment;

    ListEntry->Next = first;
    ListHead->Alignment = (ULONG_PTR)ListEntry;
    ListHead->Region++;
    nt_wait_unlock(b);
    return first;
}

PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead)
{
    struct nt_bucket *b = nt_wait_lock(ListHead);
    PSLIST_ENTRY first = (PSLIST_ENTRY)ListHead->Alignment;

    if (first) {
        ListHead->Alignment = (ULONG_PTR)first->Next;
        ListHead->Region--;
    }
    nt_wait_unlock(b);
    return first;
}

PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead)
{
    struct nt_bucket *b = nt_wait_lock(ListHead);
    PSLIST_ENTRY first = (PSLIST_ENTRY)ListHead->Alignment;

    ListHead->Alignment = 0;
    ListHead->Region = 0;
    nt_wait_unlock(b);
    return first;
}

USHORT ExQueryDepthSList(PSLIST_HEADER ListHead)
{
    struct nt_bucket *b = nt_wait_lock(ListHead);
    USHORT depth = (USHORT)ListHead->Region;

    nt_wait_unlock(b);
    return depth;
}
