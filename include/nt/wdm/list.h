// SPDX-License-Identifier: MIT
/*
 * wdm/list.h - linked lists, plain and interlocked. A part of wdm.h; include that.
 *
 * As on Windows, a list whose links do not fit together stops the machine: bug check 0x139.
 */
#ifndef SOFTNDK_WDM_LIST_H
#define SOFTNDK_WDM_LIST_H

#include "lock.h"

SOFTNDK_BEGIN_C

/* Ends the process with bug check KERNEL_SECURITY_CHECK_FAILURE and that code. */
DECLSPEC_NORETURN VOID RtlFailFast(ULONG Code);
#define FAST_FAIL_CORRUPT_LIST_ENTRY 3

/* ---- doubly linked ---- */

SOFTNDK_INLINE VOID InitializeListHead(PLIST_ENTRY ListHead)
{
    ListHead->Flink = ListHead->Blink = ListHead;
}

SOFTNDK_INLINE BOOLEAN IsListEmpty(const LIST_ENTRY *ListHead)
{
    return (BOOLEAN)(ListHead->Flink == ListHead);
}

/* Unlinks Entry; TRUE when its list is empty afterwards. */
SOFTNDK_INLINE BOOLEAN RemoveEntryList(PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = Entry->Flink;
    PLIST_ENTRY prev = Entry->Blink;

    if (next->Blink != Entry || prev->Flink != Entry)
        RtlFailFast(FAST_FAIL_CORRUPT_LIST_ENTRY);
    prev->Flink = next;
    next->Blink = prev;
    return (BOOLEAN)(next == prev);
}

SOFTNDK_INLINE VOID InsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = ListHead->Flink;

    if (next->Blink != ListHead)
        RtlFailFast(FAST_FAIL_CORRUPT_LIST_ENTRY);
    Entry->Flink = next;
    Entry->Blink = ListHead;
    next->Blink = Entry;
    ListHead->Flink = Entry;
}

SOFTNDK_INLINE VOID InsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    PLIST_ENTRY prev = ListHead->Blink;

    if (prev->Flink != ListHead)
        RtlFailFast(FAST_FAIL_CORRUPT_LIST_ENTRY);
    Entry->Flink = ListHead;
    Entry->Blink = prev;
    prev->Flink = Entry;
    ListHead->Blink = Entry;
}

/* Both return the head itself when the list is empty, as Windows does. */
SOFTNDK_INLINE PLIST_ENTRY RemoveHeadList(PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Flink;

    (void)RemoveEntryList(entry);
    return entry;
}

SOFTNDK_INLINE PLIST_ENTRY RemoveTailList(PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Blink;

    (void)RemoveEntryList(entry);
    return entry;
}

/* Puts the ring of ListToAppend, which has no head of its own, behind ListHead's last entry. */
SOFTNDK_INLINE VOID AppendTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListToAppend)
{
    PLIST_ENTRY end = ListHead->Blink;

    if (end->Flink != ListHead)
        RtlFailFast(FAST_FAIL_CORRUPT_LIST_ENTRY);
    ListHead->Blink->Flink = ListToAppend;
    ListHead->Blink = ListToAppend->Blink;
    ListToAppend->Blink->Flink = ListHead;
    ListToAppend->Blink = end;
}

/* ---- singly linked ---- */

SOFTNDK_INLINE VOID PushEntryList(PSINGLE_LIST_ENTRY ListHead, PSINGLE_LIST_ENTRY Entry)
{
    Entry->Next = ListHead->Next;
    ListHead->Next = Entry;
}

/* NULL when the list is empty. */
SOFTNDK_INLINE PSINGLE_LIST_ENTRY PopEntryList(PSINGLE_LIST_ENTRY ListHead)
{
    PSINGLE_LIST_ENTRY first = ListHead->Next;

    if (first)
        ListHead->Next = first->Next;
    return first;
}

/* ---- interlocked: under a spin lock that is for these calls alone ---- */

/* Insert: the former first (last) entry, NULL when the list was empty. Remove and pop: NULL when it
 * is. Any IRQL; between these calls nobody holds the lock, so taking it oneself must be with a
 * level of the caller's choice for all of them. */
PLIST_ENTRY ExInterlockedInsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock);
PLIST_ENTRY ExInterlockedInsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY ListEntry,
                                        PKSPIN_LOCK Lock);
PLIST_ENTRY ExInterlockedRemoveHeadList(PLIST_ENTRY ListHead, PKSPIN_LOCK Lock);
PSINGLE_LIST_ENTRY ExInterlockedPushEntryList(PSINGLE_LIST_ENTRY ListHead,
                                              PSINGLE_LIST_ENTRY ListEntry, PKSPIN_LOCK Lock);
PSINGLE_LIST_ENTRY ExInterlockedPopEntryList(PSINGLE_LIST_ENTRY ListHead, PKSPIN_LOCK Lock);

/* ---- sequenced lists: atomic without a lock of the caller's ---- */

typedef struct DECLSPEC_ALIGN(2 * __SIZEOF_POINTER__) _SLIST_ENTRY {
    struct _SLIST_ENTRY *Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

/* The first entry, and how many there are. */
typedef union DECLSPEC_ALIGN(2 * __SIZEOF_POINTER__) _SLIST_HEADER {
    __extension__ struct {
        ULONG_PTR Alignment;
        ULONG_PTR Region;
    };
} SLIST_HEADER, *PSLIST_HEADER;

SOFTNDK_INLINE VOID InitializeSListHead(PSLIST_HEADER SListHead)
{
    SListHead->Alignment = 0;
    SListHead->Region = 0;
}
#define ExInitializeSListHead InitializeSListHead

/* Push: the former first entry. Pop: the first entry, NULL when there is none. Flush: all of them,
 * linked. IRQL <= DISPATCH_LEVEL. */
PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry);
PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead);
PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead);
#define ExInterlockedPushEntrySList(ListHead, ListEntry, Lock)                                     \
    ((void)(Lock), InterlockedPushEntrySList(ListHead, ListEntry))
#define ExInterlockedPopEntrySList(ListHead, Lock)                                                 \
    ((void)(Lock), InterlockedPopEntrySList(ListHead))
#define ExInterlockedFlushSList InterlockedFlushSList
USHORT ExQueryDepthSList(PSLIST_HEADER ListHead);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_LIST_H */
