/* SPDX-License-Identifier: MIT
 *
 * One completion queue: put, arm, notification and poll.
 *
 * Processes: two shards, which put entries and run the deferred notification,
 * and a consumer thread that polls and arms outside the callback. The callback
 * polls to empty and arms, or only wakes the thread. The checker looks at every
 * state in which all rest.
 */

#ifndef PUTS
#define PUTS	3	/* entries in all, from either shard, of any kind */
#endif
#ifndef ROUNDS
#define ROUNDS	2	/* times the thread polls and arms unasked */
#endif

/* Arm types by strength. The kind of an entry is the weakest arm it satisfies:
 * an error satisfies all three, an ordinary success only ANY. */
#define NONE	  0
#define ERRORS	  1
#define SOLICITED 2
#define ANY	  3

#define hits(t, k)	((t) != NONE && (t) >= (k))

byte ring[PUTS];	/* kinds of the entries; indexes never wrap here */
byte w, r, seen;
byte armed = NONE;
bool running, due;
bool lock;		/* the CQ's leaf lock */
bool calls;		/* the consumer's own lock around poll and arm */
bool note[2];		/* the deferred item, on one of the shards */
bool signal;		/* the callback woke the thread */

/* For the assertions only. */
byte left = PUTS;	/* entries not put yet */
byte wanted = NONE;	/* what the consumer has asked for since the last fire */
byte notes;		/* running callbacks */
bool owed;		/* fired, and no notification was called since */
byte credit;		/* armings without their notification; two may share one */

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
	atomic { armed = NONE; wanted = NONE; owed = true };
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

inline put(s, k)
{
	take(lock);
	ring[w] = k;
	w++;			/* the poller, who takes no lock, sees it from here */
	if
	:: hits(armed, k) -> fire(s)
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
		do
		:: i < w && hits(t, ring[i]) -> found = true; break
		:: i < w && !hits(t, ring[i]) -> i++
		:: i >= w -> break
		od;
		i = 0
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
		armed = stronger(armed, t);
		t = armed
	};
#ifdef BUG_ARM_NOT_LOOKING
	skip;
#else
#ifndef BUG_LOOK_BEFORE_LOCK
	look();
#endif
	if
	:: found -> found = false; fire(s)
	:: !found
	fi;
#endif
	t = NONE;
	give(lock)
}

inline poll_to_empty()	/* one call an entry; other calls may come between */
{
	do
	:: atomic { !calls && r < w -> r++ }
	:: atomic { !calls && r == w -> break }
	od
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
	byte t, i;
	bool found;

end_idle:
	do
	:: atomic { left > 0 -> left-- };
		if
		:: put(me, ERRORS)
		:: put(me, SOLICITED)
		:: put(me, ANY)
		fi
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
	byte t, i, n = ROUNDS;
	bool found;

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

active proctype checker()
{
	byte i;

	timeout;	/* nothing can move any more */
	assert(!running && !due && !note[0] && !note[1] && !signal);
	assert(left == 0);
	assert(!owed);
	/* An arm that is still out has no entry that would satisfy it. */
	for (i : r .. w - 1) {
		assert(!hits(wanted, ring[i]))
	}
}

init {
	atomic { run shard(0); run shard(1) }
}
