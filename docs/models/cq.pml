/* SPDX-License-Identifier: MIT
 *
 * One completion queue: put, arm, notification, poll and resize.
 *
 * Processes: two shards, which put entries and run the deferred notification,
 * a consumer thread that polls and arms outside the callback, and another that
 * resizes. The callback polls to empty and arms, or only wakes the thread. The
 * checker looks at every state in which all rest.
 *
 * A resize puts another ring behind the newest one. Depths are left out: what
 * matters is in which ring an entry is put, looked for and polled, and when a
 * ring is freed.
 *
 * MODERATED: a satisfied arm may be held until its timer or a further entry
 * fires it. When that is does not matter, only that it comes.
 */

#if defined(BUG_HOLD_WITHOUT_TIMER) || defined(BUG_HOLD_FORGOTTEN) || \
	defined(BUG_LATE_TIMER_TRUSTED)
#define MODERATED
#endif

#ifndef PUTS
#define PUTS	3	/* entries in all, from either shard, of any kind */
#endif
#ifndef ROUNDS
#define ROUNDS	2	/* times the thread polls and arms unasked */
#endif
#ifndef RESIZES
#define RESIZES	1
#endif

/* Arm types by strength. The kind of an entry is the weakest arm it satisfies:
 * an error satisfies all three, an ordinary success only ANY. */
#define NONE	  0
#define ERRORS	  1
#define SOLICITED 2
#define ANY	  3
#define HELD	  4	/* an arm that is satisfied, but not told of yet */

#define hits(t, k)	((t) != NONE && (t) >= (k))

byte kind[PUTS];	/* of the entries; indexes never wrap here */
byte w, r, seen;
byte start[RESIZES + 1];	/* of the rings */
bool linked[RESIZES + 1];	/* is there a next ring? */
byte newest;		/* where puts go */
byte oldest;		/* the poller's */
byte armed = NONE;
bool running, due;
bool lock;		/* the CQ's leaf lock */
bool calls;		/* the consumer's own lock around poll and arm */
bool note[2];		/* the deferred item, on one of the shards */
bool signal;		/* the callback woke the thread */
bool timer;		/* of what is held */

/* For the assertions only. */
byte left = PUTS;	/* entries not put yet */
byte wanted = NONE;	/* what the consumer has asked for since the last fire */
byte notes;		/* running callbacks */
bool owed;		/* fired, and no notification was called since */
byte credit;		/* armings without their notification; two may share one */
byte place[PUTS];		/* in which ring an entry was put */
bool freed[RESIZES + 1];

#define take(l)		atomic { !l -> l = true }
#define give(l)		l = false

inline defer(s)
{
	atomic { assert(!note[s]); note[s] = true }
}

inline fire(s)		/* under the lock */
{
#ifdef BUG_KEEP_ARM
	atomic { wanted = NONE; owed = true };
#else
	atomic { armed = NONE; wanted = NONE; owed = true; timer = false };
#endif
	if
#ifdef BUG_NO_DUE
	:: defer(s)
#else
	:: running -> due = true
	:: !running -> running = true; defer(s)
#endif
	fi
}

inline satisfied(s)	/* under the lock */
{
#ifdef MODERATED
	if
	:: fire(s)		/* enough are there, it is an error, time is up */
	:: armed != HELD ->
		atomic { armed = HELD; owed = true };
#ifndef BUG_HOLD_WITHOUT_TIMER
		timer = true
#endif
	:: armed == HELD	/* waits on */
	fi
#else
	fire(s)
#endif
}

inline put(s, k)
{
	take(lock);
	assert(!freed[newest]);
	kind[w] = k;
	place[w] = newest;
	w++;			/* the poller, who takes no lock, sees it from here */
	if
	:: hits(armed, k) -> satisfied(s)
	:: !hits(armed, k)
	fi;
	give(lock)
}

/* The stronger of two arms. The values of the interface are not in the order
 * of strength (ERRORS 0, ANY 1, SOLICITED 2), so their maximum is wrong. */
#ifdef BUG_MAX_OF_VALUES
#define stronger(a, t)	((a) == NONE -> (t) : \
	((a) == SOLICITED || (t) == SOLICITED -> SOLICITED : \
	((a) > (t) -> (a) : (t))))
#else
#define stronger(a, t)	((a) > (t) -> (a) : (t))
#endif

inline look()		/* is there an entry that satisfies the arm already? */
{
	atomic {
		i = (r > seen -> r : seen);
		found = false;
		q = oldest;
		do
		:: i < w ->
			do
			:: linked[q] && start[q + 1] <= i -> q++
			:: else -> break
			od;
			assert(place[i] == q && !freed[q]);
			if
			:: hits(t, kind[i]) -> found = true; break
			:: !hits(t, kind[i]) -> i++
			fi
		:: i >= w -> break
		od;
		i = 0;
		q = 0
	}
}

inline arm(s)
{
	if
	:: t = ERRORS
	:: t = SOLICITED
	:: t = ANY
	fi;
#ifdef BUG_LOOK_BEFORE_LOCK
	look();
#endif
	take(lock);
	atomic {
		if
		:: wanted == NONE -> credit++
		:: wanted != NONE
		fi;
		wanted = (wanted > t -> wanted : t);
#ifdef BUG_HOLD_FORGOTTEN
		armed = (armed == HELD -> t : stronger(armed, t));
#else
		armed = stronger(armed, t);
#endif
		t = armed
	};
#ifdef BUG_ARM_NOT_LOOKING
	skip;
#else
#ifndef BUG_LOOK_BEFORE_LOCK
	if
	:: t != HELD -> look()
	:: t == HELD	/* the entry may be polled by now */
	fi;
#endif
	if
	:: found -> found = false; satisfied(s)
	:: !found
	fi;
#endif
	t = NONE;
	give(lock)
}

/* One call: what the write index shows, ring by ring. The link is looked at
 * after the index: who sees an entry of the next ring sees the link too. */
inline poll()
{
	take(calls);
#ifdef BUG_LINK_FIRST
	found = linked[oldest];
	i = w;
#else
	i = w;
	found = linked[oldest];
#endif
	do
	:: r == i -> break
	:: r < i && found && start[oldest + 1] == r ->
		atomic { assert(!freed[oldest]); freed[oldest] = true };
		oldest++;
		found = linked[oldest]
	:: r < i && !(found && start[oldest + 1] == r) ->
		atomic { assert(place[r] == oldest && !freed[oldest]); r++ }
	od;
	atomic { drained = (r == w); i = 0; found = false };
	give(calls)
}

inline poll_to_empty()	/* other calls may come between two polls */
{
	do
	:: poll();
		if
		:: drained -> break
		:: !drained
		fi
	od;
	drained = false
}

inline callback(s)
{
	if
	:: signal = true	/* leaves all to the thread */
	:: poll_to_empty();
		if
		:: take(calls); arm(s); give(calls)
		:: true		/* does not want to hear again */
		fi
	fi
}

proctype shard(bit me)
{
	byte t, i, q;
	bool found, drained;

end_idle:
	do
	:: atomic { left > 0 -> left-- };
		if
		:: put(me, ERRORS)
		:: put(me, SOLICITED)
		:: put(me, ANY)
		fi
#ifdef MODERATED
	:: atomic { me == 0 && timer -> timer = false };
		/* It may have been held anew meanwhile, with another timer. */
		take(lock);
		if
#ifdef BUG_LATE_TIMER_TRUSTED
		:: fire(me)
#else
		:: armed == HELD -> fire(me)
		:: armed == HELD && timer
		:: armed != HELD
#endif
		fi;
		give(lock)
#endif
	:: atomic { note[me] -> note[me] = false };
#ifndef BUG_SEEN_AFTER
		take(lock);
		seen = w;
		give(lock);
#endif
		atomic {
			notes++;
			assert(notes == 1);	/* never two at a time */
			assert(credit > 0);	/* one arm, one notification */
			credit--;
			owed = false
		};
		callback(me);
		notes--;
		take(lock);
#ifdef BUG_SEEN_AFTER
		seen = w;
#endif
		if
#ifndef BUG_DUE_FORGOTTEN
		:: due -> due = false; defer(me)
		:: !due -> running = false
#else
		:: atomic { running = false; due = false }
#endif
		fi;
		give(lock)
	od
}

active proctype thread()
{
	byte t, i, q, n = ROUNDS;
	bool found, drained;

end_idle:
	if
	:: atomic { n > 0 -> n-- }
	:: atomic { signal -> signal = false }
	fi;
	poll_to_empty();
	take(calls);
	arm(0);			/* a foreign thread defers to the CQ's shard */
	give(calls);
	goto end_idle
}

active proctype resizer()
{
	byte n = RESIZES;

end_idle:
	atomic { n > 0 -> n-- };
	take(lock);
#ifdef BUG_START_AT_READ
	start[newest + 1] = r;
#else
	start[newest + 1] = w;
#endif
#ifdef BUG_RESIZER_FREES
	atomic {	/* nothing is queued, but the poller is still there */
		if
		:: r == w -> freed[newest] = true
		:: r != w
		fi
	};
#endif
#ifdef BUG_LINK_LATE
	newest++;
	give(lock);
	linked[newest - 1] = true;
#else
	linked[newest] = true;
	newest++;
	give(lock);
#endif
	goto end_idle
}

active proctype checker()
{
	byte i;

	timeout;	/* nothing can move any more */
	assert(!running && !due && !note[0] && !note[1] && !signal && armed != HELD);
	assert(left == 0);
	assert(!owed);
	/* An arm that is still out has no entry that would satisfy it. */
	for (i : r .. w - 1) {
		assert(!hits(wanted, kind[i]))
	}
}

init {
	atomic { run shard(0); run shard(1) }
}
