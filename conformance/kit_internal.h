// SPDX-License-Identifier: MIT
/*
 * kit_internal.h - what the files of the kit share and topics do not see.
 *
 * Locks: kit_inside.lock is a leaf; it is never held over a call of the provider. Callbacks of the
 * provider run on its threads at DISPATCH_LEVEL; they take that lock, set events and allocate, no
 * more. Records (objects, calls, requests) are only added while a case runs, so that a callback
 * that comes when it must not still finds its context: they are freed long after (kit_life_free).
 */
#ifndef KIT_INTERNAL_H
#define KIT_INTERNAL_H

#include "kit.h"

#define KIT_LINE 512

struct kit_block {
    struct kit_block *next;
    ULONGLONG align; /* what follows is aligned for anything */
};

struct kit_inside {
    struct kit_os_lock lock;
    /* under the lock */
    BOOLEAN failed, second_hand, skipped;
    char text[KIT_LINE];   /* the failure, or why it was skipped */
    char breach[KIT_LINE]; /* the first breach of a rule */
    LONG breaches;
    struct kit_object *objects; /* newest first */
    struct kit_call *calls;
    struct kit_request *requests;
    struct kit_memory *memories;
    struct kit_lam *lams;
    struct kit_block *blocks;
    ULONG numbers[NdkObjectTypeMax];
    /* any thread */
    volatile LONG aborted; /* the other half has failed: stop waiting */
    volatile LONG ended;   /* cleaned: nothing may come any more */
    /* the thread of the case */
    ULONGLONG deadline;
    BOOLEAN cleaning;
    BOOLEAN abandoned; /* something did not end: its memory stays */
    BOOLEAN mode_set, fail_set;
    kit_then_function *next_then;
    PVOID next_context;
    BOOLEAN hide_dispatch;
    const char *doing; /* under the lock */
    struct kit_channel *channel;
    struct kit *older; /* in the graveyard */
};

/* ---- kit_life.c ---- */

/* NULL: no memory. */
struct kit *kit_life_new(const struct kit_case *test, const struct kit_config *config,
                         enum kit_role role, struct kit_channel *channel);
/* Closes and frees what the case left. */
VOID kit_life_clean(struct kit *k);
/* Into the graveyard, where records wait for callbacks that must not come. */
VOID kit_life_bury(struct kit *k);
/* Breaches that came after their case had ended; the text of the newest. */
LONG kit_life_late(char *text, SIZE_T size);
/* A failure that follows from the other half's: the verdict of this half does not count. */
VOID kit_second_hand(struct kit *k, const char *text);

/* ---- kit_object.c ---- */

/* A record, linked; NULL: noted. */
PVOID kit_object_record(struct kit *k, NDK_OBJECT_TYPE type, SIZE_T size);
/* The newest record; those behind it stay as they are. */
struct kit_object *kit_objects(struct kit *k);
/* The NDK object is there: checks it and fills the record's ndk. Any IRQL <= DISPATCH_LEVEL. */
VOID kit_object_born(struct kit_object *object, NDK_OBJECT_HEADER *header);
/* Nobody has called through a Dispatch that kit_hide_dispatch() put there. */
BOOLEAN kit_dispatch_untouched(struct kit *k);
/* A close was answered or is being completed: what may not be left at that moment. */
VOID kit_object_closing(struct kit_object *object);
/* Begin and end of an event callback of the object. */
VOID kit_event_enter(struct kit_object *object, const char *callback);
VOID kit_event_leave(struct kit_object *object);

/* ---- kit_call.c ---- */

/* The call has returned PENDING and its completion did not run yet, or runs now. */
BOOLEAN kit_call_open(const struct kit_call *call);

/* ---- kit_channel.c ---- */

struct kit_message {
    struct kit_message *next;
    char step[32];
    ULONG length;
    UCHAR data[KIT_TELL_MAX];
};

struct kit_channel {
    struct kit_os_lock lock;
    struct kit_message *first, *last; /* heard, not read */
    KEVENT event;
    /* Sends; FALSE: the other half is gone. */
    BOOLEAN (*send)(struct kit_channel *channel, const struct kit_message *message);
    struct kit_channel *other; /* in this process, or */
    PVOID peer;                /* in another one */
};
VOID kit_channel_init(struct kit_channel *channel);
VOID kit_channel_empty(struct kit_channel *channel);
/* Puts a copy into the channel's box; <= DISPATCH_LEVEL. */
BOOLEAN kit_channel_deliver(struct kit_channel *channel, const struct kit_message *message);
VOID kit_channel_join(struct kit_channel *a, struct kit_channel *b);
/* The next message, whatever it is; the caller frees it. NULL: noted. */
struct kit_message *kit_hear_any(struct kit *k, const char *awaited);

/* ---- kit_obey.c ---- */

/* The client's half is over: lets an obedient server end. */
VOID kit_obey_end(struct kit *k);

/* ---- kit_answers.c ---- */

enum kit_how { KIT_INLINE, KIT_ASYNC, KIT_COMPLETION };
/* Does nothing unless --answers asked for it. */
VOID kit_answered(const char *name, NTSTATUS status, enum kit_how how);
VOID kit_answered_in_words(const char *what, NTSTATUS status);

/* ---- kit_text.c ---- */

SIZE_T kit_length(const char *text);
BOOLEAN kit_same(const char *a, const char *b);
BOOLEAN kit_starts(const char *text, const char *with);
/* * and ? stand for any text and any character; letters match in either case. */
BOOLEAN kit_glob(const char *pattern, const char *text);
/* A decimal number; FALSE for anything else. */
BOOLEAN kit_number(const char *text, ULONG *out);
const char *kit_type_name(NDK_OBJECT_TYPE type); /* "cq" */

#endif /* KIT_INTERNAL_H */
