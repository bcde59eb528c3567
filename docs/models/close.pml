/* SPDX-License-Identifier: MIT
 *
 * References and close: a completion queue (the antecedent), a queue pair that
 * uses it (the successor), and the adapter, whose close blocks.
 *
 * Processes: the wire, which completes a pending request of the QP and raises
 * an event of the CQ; one or two workers that run the deferred callbacks in any
 * order; the consumer's thread; and the thread that closes the adapter. Who
 * closes which object, in which order, and whether under a lock, is left open.
 */

#define CQ	0
#define QP	1

#define SUCCESS	1	/* what a close returned; 0 while it has not */
#define PENDING	2

/* Items of the deferred queue, a set of bits; also the places from which the
 * consumer may close something. */
#define CLOSE_CQ  1	/* (1 << CQ): close completions */
#define CLOSE_QP  2	/* (1 << QP) */
#define REQUEST	  4	/* completion of the QP's request */
#define EVENT	  8	/* the CQ's event callback */
#define THREAD	 16	/* a place only: the consumer's thread */

/* The objects. The CQ: its handle and the QP. The QP: its handle, the pending
 * request and the wire. The adapter: its handle and two children. */
byte ref[2];
bool pended[2];
bool freed[2];
bool claimed;		/* somebody completes the request */
bool always;		/* mode in which every close pends */
byte adapter = 3;
bool adapter_freed;
bool asleep;		/* the adapter's closer waits on its condition variable */

byte dq;
bool plock;		/* the process's lock over the adapters' counts */
bool locking;		/* the consumer holds a lock of its own around every close, */
bool lock;		/* this one, and takes it in every callback */

byte who[2];		/* from where the consumer closes each object */

/* For the assertions only. */
byte result[2];
byte called[2], returned[2];	/* close completions */
bool request_over, event_over;	/* those callbacks have returned */
byte in_callback;		/* callbacks that run now */

#define take(l)		atomic { !l -> l = true }
#define give(l)		l = false
#define touch(o)	assert(!freed[o])

inline defer(item)
{
	atomic { assert((dq & item) == 0); dq = dq | item }
}

inline unref_adapter()
{
	take(plock);
	assert(!adapter_freed);
	adapter--;
	if
	:: adapter == 0 -> asleep = false	/* signal */
	:: adapter > 0
	fi;
	give(plock)
#ifdef BUG_LOCK_IN_ADAPTER
	; assert(!adapter_freed)	/* the tail of the unlock touches the lock */
#endif
}

/* What must be true before a close may complete, inline or by callback. */
inline all_over(o)
{
	assert(ref[o] == 0);
	if
	:: o == QP -> assert(request_over)
	:: o == CQ ->
		assert(event_over);
		/* the successor: its completion has returned, or none was due */
		assert(returned[QP] || (freed[QP] && !called[QP]))
	fi
}

inline completion_starts(o)
{
	touch(o);
	all_over(o);
	assert(called[o] == 0);
	called[o]++;
	in_callback++
}

/* The antecedents are read out, the memory goes, and then the references drop,
 * the adapter's as the last. */
inline destroy(o)
{
#ifndef BUG_FREE_LAST
	atomic { touch(o); freed[o] = true };
#endif
	if
#ifdef BUG_DROP_BEFORE_CALLBACK
	:: o == QP && !called[QP] -> drop(CQ)
	:: o == CQ || called[QP]
#else
	:: o == QP -> drop(CQ)
	:: o == CQ
#endif
	fi;
	unref_adapter()
#ifdef BUG_FREE_LAST
	; atomic { touch(o); freed[o] = true }
#endif
}

inline drop(o)		/* any reference but the handle */
{
	atomic { touch(o); assert(ref[o] > 0); ref[o]--; last = (ref[o] == 0) };
	if
	:: last ->
		last = false;
		assert(pended[o]);	/* the handle is gone: a close is waiting */
#ifdef BUG_CALL_INLINE
		atomic { completion_starts(o) };
		if
		:: locking -> take(lock); give(lock)
		:: !locking
		fi;
		atomic { returned[o]++; in_callback--; freed[o] = true };
		unref_adapter()
#else
		defer(1 << o)
#endif
	:: !last
	fi
}

inline claim_request()	/* by the wire or by a close, whoever comes first */
{
	atomic { touch(QP); mine = !claimed; claimed = true };
	if
	:: mine -> mine = false; defer(REQUEST)
	:: !mine
	fi
}

inline close(o)
{
	touch(o);
	if
	:: o == QP -> claim_request()
	:: o == CQ
	fi;
#ifndef BUG_PENDED_LATE
	atomic { touch(o); pended[o] = true };
#endif
	atomic { touch(o); ref[o]--; gone = (ref[o] == 0) };
#ifdef BUG_TOUCH_AFTER_DROP
	touch(o);
#endif
#ifdef BUG_PENDED_LATE
	pended[o] = true;
#endif
	if
	:: gone && !always -> atomic { gone = false; all_over(o) };
		destroy(o);
		result[o] = SUCCESS
	:: gone && always -> gone = false;
		defer(1 << o);
		result[o] = PENDING
	:: !gone -> result[o] = PENDING
	fi
}

/* The consumer's code at one of the places: perhaps under its lock, close
 * what is to be closed here, in either order. */
inline consumer(place)
{
	if
	:: locking -> take(lock)
	:: !locking
	fi;
	todo = (who[CQ] == place -> 1 : 0) + (who[QP] == place -> 2 : 0);
	do
	:: todo > 0 ->
		if
		:: todo & 1 -> c = CQ
		:: todo & 2 -> c = QP
		fi;
		todo = todo & ~(1 << c);
		close(c);
		if	/* no completion will come in which to close the CQ */
		:: c == QP && result[QP] == SUCCESS && who[CQ] == CLOSE_QP ->
			todo = 1
		:: else
		fi;
		c = 0
	:: todo == 0 -> break
	od;
	if
	:: locking -> give(lock)
	:: !locking
	fi
}

proctype worker()
{
	byte it, o, c, todo;
	bool last, mine, gone;

end_idle:
	if
	:: atomic { dq & REQUEST -> dq = dq & ~REQUEST; it = REQUEST; o = QP;
		touch(QP); assert(!called[QP]); in_callback++ }
	:: atomic { dq & EVENT -> dq = dq & ~EVENT; it = EVENT; o = CQ;
		touch(CQ); assert(!called[CQ]); in_callback++ }
	:: atomic { dq & CLOSE_QP -> dq = dq & ~CLOSE_QP; it = CLOSE_QP; o = QP }
	:: atomic { dq & CLOSE_CQ -> dq = dq & ~CLOSE_CQ; it = CLOSE_CQ; o = CQ }
	fi;
#ifdef BUG_DROP_BEFORE_CALLBACK
	if
	:: it == CLOSE_QP -> drop(CQ)
	:: else
	fi;
#endif
#ifdef BUG_REQUEST_DROPS_EARLY
	if
	:: it == REQUEST -> drop(QP)
	:: else
	fi;
#endif
	if
	:: it == CLOSE_QP || it == CLOSE_CQ -> atomic { completion_starts(o) }
	:: it == REQUEST || it == EVENT
	fi;

	consumer(it);

	atomic {
		in_callback--;
		if
		:: it == REQUEST -> request_over = true
		:: it == EVENT -> event_over = true
		:: it == CLOSE_QP || it == CLOSE_CQ -> returned[o]++
		fi
	};
	if
#ifdef BUG_REQUEST_DROPS_EARLY
	:: it == REQUEST
	:: it == EVENT -> drop(o)
#else
	:: it == REQUEST || it == EVENT -> drop(o)
#endif
	:: it == CLOSE_QP || it == CLOSE_CQ -> destroy(o)
	fi;
	it = 0; o = 0;
	goto end_idle
}

proctype wire()
{
	byte todo = 3;
	bool last, mine;

	do
	:: todo & 1 -> todo = todo - 1;
		/* by the QP, which the wire holds, the CQ cannot go */
		atomic { touch(QP); touch(CQ); ref[CQ]++ };
		defer(EVENT)
	:: todo & 2 -> todo = todo - 2;
		claim_request()
	:: todo == 0 -> break
	od;
	drop(QP)
}

proctype thread()
{
	byte c, todo;
	bool last, mine, gone;

	consumer(THREAD)
}

proctype close_adapter()
{
	take(plock);
	adapter--;
	do
	:: adapter > 0 ->
		atomic { asleep = true; plock = false };	/* waits ... */
		!asleep;
		take(plock)
	:: adapter == 0 -> break
	od;
	give(plock);
	atomic {
		/* The consumer may unload now. */
		assert(dq == 0 && in_callback == 0);
		assert(freed[CQ] && freed[QP]);
		adapter_freed = true
	}
}

proctype checker()
{
	byte i;

	timeout;	/* nothing can move any more */
	assert(adapter_freed);
	for (i : CQ .. QP) {
		assert(result[i] != 0);
		assert(called[i] == (result[i] == PENDING));
		assert(returned[i] == called[i]);
	}
}

init {
	atomic {
		ref[CQ] = 2;
		ref[QP] = 3;
		if
		:: who[QP] = THREAD
		:: who[QP] = REQUEST
		:: who[QP] = EVENT
		fi;
		if
		:: who[CQ] = THREAD
		:: who[CQ] = REQUEST
		:: who[CQ] = EVENT
		:: who[CQ] = CLOSE_QP
		fi;
#ifndef SMALL
		if
		:: locking = true
		:: true
		fi;
		if
		:: always = true
		:: true
		fi;
		if
		:: run worker()
		:: true			/* with one, callbacks wait for each other */
		fi;
#endif
		run worker();
		run wire();
		run thread();
		run close_adapter();
		run checker()
	}
}
