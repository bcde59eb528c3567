/* SPDX-License-Identifier: MIT
 *
 * The direction word: one owner at a time for each half of a connection, the
 * hand-over to the home shard, what is left to a thread that polls, the shard's
 * sleep, and the end of a connection.
 *
 * Processes: the home shard, a poster of sends, a poster of receives that also
 * polls, a closer (it may stay away) and the world (data arrives, the socket
 * gets room or breaks). The checker looks at every state in which all rest.
 */

/* A thread that polls, to which a turn may leave what is more: -DLEAVING, an
 * instance of its own, since it takes many states more. */
#if defined(BUG_LEAVE_STORES) || defined(BUG_LEAVE_LOOKS_FIRST)
#define LEAVING
#endif

#ifndef BUDGET
#define BUDGET	1	/* repetitions before a direction is passed on */
#endif

#define BUSY	1
#define MORE	2
#define END	4
#define DEAD	8

#define TX	0
#define RX	1

#define CALLBACK 1	/* items of the deferred queue, a set of bits */
#define FINAL	 2	/* both are DEAD: flush the queues, close the descriptor */

#define HOME	0	/* process number of the home shard */

byte word[2];		/* the two direction words */
byte alive = 2;		/* directions that are not DEAD yet */
byte tw, tr;		/* send queue: pushed, done with */
byte rw, rr;		/* receive queue: pushed, done with */
byte data;		/* messages that arrived and met no receive yet */
bool held;		/* the receive side holds the connection back */

#ifdef LEAVING
byte asked;		/* directions that were left to the next poll (bits) */
bool leased = true;	/* the receiver polls for the connection */
bool left_one;		/* a turn that did not do all happens once */
bool sweep;		/* run list: the lease went back, somebody may have asked */
#else
#define sweep	false
#endif

byte dq, rl;		/* home shard: deferred queue, run list (sets of bits) */
bool awake = true;	/* home shard: the flag that spares wake-ups */
bool evfd;		/* home shard: its event descriptor was written */
bool in_ready;		/* poll set: data came */
bool want_out;		/* poll set: one-shot interest in room */
bool no_room = true;	/* the socket's send buffer has no room */
bool broken;		/* the socket reports an error */
bool fd_open = true;

bool lock;		/* the connection's lock */
bool flushed;		/* the end has begun to flush the queues; later posts flush */

/* For the assertions only. */
byte owners[2];		/* processes inside own() */
bool in_call[2];	/* a system call of this direction is running */
bool ending;		/* somebody has asked for the end */
bool unflushed;		/* a post made in a callback still waits for its kick */

#define room		(want_out && (!no_room || broken))

/* ---- the shard's queues and its sleep ---- */

inline wake()
{
	if
	:: _pid == HOME
	:: _pid != HOME ->
		atomic { old = awake; awake = true };
		if
		:: !old -> evfd = true
		:: old -> old = false
		fi
	fi
}

inline defer(item)
{
	atomic { assert((dq & item) == 0); dq = dq | item };
	wake()
}

inline pass_on(d)	/* still BUSY, to the home shard's run list */
{
	atomic {
		assert((rl & (1 << d)) == 0);
		assert(word[d] & BUSY);
		owners[d]--;
#ifdef BUG_PASS_ON_IDLE
		word[d] = word[d] & ~BUSY;
#endif
		rl = rl | (1 << d)
	};
	wake()
}

/* ---- the work of a direction ---- */

inline enter(d)		/* inside an atomic: never two owners */
{
	assert(owners[d] == 0);
	owners[d]++
}

#define call_begins(d)	assert(fd_open); assert(owners[d] == 1 && !in_call[d]); in_call[d] = true

inline flush(d)		/* every request still queued ends CANCELLED */
{
	atomic {
		assert(!in_call[d]);	/* not under a running call */
		if
		:: d == TX -> tr = tw
		:: d == RX -> rr = rw; held = false
		fi
	}
}

/* A post behind the end: nobody owns a DEAD direction, the lock keeps order. */
inline late_flush()
{
	atomic { !lock -> lock = true };
	flush(TX); flush(RX);
	lock = false
}

inline transmit()
{
	if
	:: atomic { tw != tr -> n = tw; call_begins(TX) };
		atomic {
			in_call[TX] = false;
			if
			:: broken -> b = 2
			:: !broken && no_room -> b = 1
			:: !broken && !no_room -> assert(tr < n); tr = n
			fi;
			n = 0
		};
		if
		:: atomic { b == 1 -> want_out = true; b = 0 }
		:: atomic { b == 2 -> word[TX] = word[TX] | END; ending = true };
			/* A failure puts END on both. This word is BUSY, so the
			 * END is seen here. The other direction, if it was idle,
			 * goes to the run list: own() need not call itself. */
			atomic {
				b = word[RX] & (BUSY | DEAD);
				word[RX] = (b == DEAD -> DEAD : word[RX] | BUSY | MORE | END);
				if
				:: !b -> enter(RX)
				:: b
				fi
			};
			if
			:: !b -> pass_on(RX)
			:: b -> b = 0
			fi
		:: b == 0
		fi
	:: tw == tr
	fi
}

inline receive()
{
	atomic { held = false; call_begins(RX) };
	in_call[RX] = false;
	do
	:: atomic { data > 0 && rr < rw ->
			data--; rr++;
			b = dq & CALLBACK; dq = dq | CALLBACK };
		if
		:: !b -> wake()
		:: b -> b = 0
		fi
	:: data > 0 && rr == rw -> held = true;
#ifdef BUG_HOLD_NOT_LOOKING
		break
#else
		if	/* look again, and only then leave */
		:: rr == rw -> break
		:: rr < rw -> held = false
		fi
#endif
	:: data == 0 -> break
	od
}

/* ---- what is left to a poll ---- */

/* More is known to be there than a turn is for. First the asking, then the
 * word; and only if nobody has kicked, since the poll may have come already. */
#define leave_to_poll(d)						\
	asked = asked | (1 << d);					\
	if								\
	:: STILL_LEASED ->						\
		if							\
		:: atomic { GIVES_UP(d) -> word[d] = 0; owners[d]--; break } \
		:: !(GIVES_UP(d)) -> pass_on(d); break			\
		fi							\
	:: !(STILL_LEASED) -> pass_on(d); break				\
	fi

#ifdef BUG_LEAVE_LOOKS_FIRST
#define STILL_LEASED	true	/* it was, before the asking */
#else
#define STILL_LEASED	leased
#endif
#ifdef BUG_LEAVE_STORES
#define GIVES_UP(d)	true
#else
#define GIVES_UP(d)	(word[d] == BUSY)
#endif

/* ---- the word ---- */

inline own(d)
{
	do
	::
		atomic { v = word[d] & END; word[d] = word[d] & ~MORE };
		if
		:: v ->
#ifdef BUG_OWNER_FLUSHES
			flush(d);
#endif
			atomic { word[d] = DEAD; owners[d]-- };
#ifdef BUG_TWO_LAST
			v = !(word[TX] & word[RX] & DEAD);
#else
			atomic { alive--; v = alive };
#endif
			if
			:: v == 0 -> defer(FINAL)
			:: v != 0
			fi;
			break
		:: !v ->
			if
			:: d == TX -> transmit()
			:: d == RX -> receive()
#ifdef LEAVING	/* a long turn: nothing of it is done yet */
			:: atomic { leased && !left_one -> left_one = true; part = true }
#endif
			fi
		fi;
		if
#ifdef LEAVING
		:: part ->
			part = false;
			leave_to_poll(d)
#endif
#ifdef BUG_PLAIN_FLAG
		:: !part && word[d] == BUSY ->	/* looks, then stores */
			atomic { word[d] = 0; owners[d]--; break }
#else
		:: atomic { !part && word[d] == BUSY -> word[d] = 0; owners[d]--; break }
#endif
		:: !part && word[d] != BUSY ->	/* MORE, or END */
			if
			:: passes == BUDGET -> pass_on(d); break
			:: atomic { passes < BUDGET -> passes++ }
			fi
		fi
	od;
	atomic { v = 0; passes = 0; part = false }
}

/* A kick is leave_word() and, if that made us the owner, own(). The two are
 * apart so that each process contains own() once. A DEAD direction is refused:
 * the requests are flushed by the end, or, when that is past, by the poster. */
inline leave_word(d, bits)
{
	atomic {
		mine = !(word[d] & (BUSY | DEAD));
		if
		:: word[d] & DEAD -> dead = true
		:: !(word[d] & DEAD) -> word[d] = word[d] | BUSY | MORE | bits
		fi;
		if
		:: mine -> enter(d)
		:: !mine
		fi
	}
}

inline flush_if_dead()
{
	if
#ifndef BUG_NO_LATE_FLUSH
	:: dead && flushed -> dead = false; late_flush()
	:: dead && !flushed -> dead = false
#else
	:: dead -> dead = false
#endif
	:: !dead
	fi
}

inline own_if_mine(d)
{
	if
	:: atomic { mine -> mine = false }; own(d)
	:: !mine
	fi
}

#define LOCALS	byte v, n, b, passes; bool mine, dead, old, part

/* ---- the processes ---- */

active proctype home()
{
	LOCALS;
	byte step, snap;
	bit d;

sleep:
#ifdef BUG_SLEEP_LOOKS_FIRST
	if
	:: dq || rl || sweep -> awake = false
	:: !(dq || rl || sweep) -> awake = false;
#else
	awake = false;
	if
	:: dq || rl || sweep
	:: !(dq || rl || sweep) ->
#endif
end_wait:	evfd || in_ready || room
	fi;
	atomic {		/* what the poll set returns */
		snap = (room -> 1 << TX : 0) + (in_ready -> 1 << RX : 0);
		want_out = (room -> false : want_out);
		in_ready = false
	};
	awake = true;
	evfd = false;

	do
	:: atomic { mine -> mine = false }; own(d); d = 0
	:: atomic { !mine && step == 0 && snap ->	/* what is ready */
			d = (snap & (1 << TX) -> TX : RX);
			snap = snap & ~(1 << d) };
		atomic { leave_word(d, 0); dead = false }
	:: atomic { !mine && step == 1 && snap ->	/* the run list, once */
			d = (snap & (1 << TX) -> TX : RX);
			snap = snap & ~(1 << d);
			rl = rl & ~(1 << d);
			enter(d);
			mine = true }
#ifdef LEAVING
	:: atomic { !mine && step == 1 && sweep && asked ->	/* the lease is back */
			d = (asked & (1 << TX) -> TX : RX);
			asked = asked & ~(1 << d) };
		atomic { leave_word(d, 0); dead = false }
	:: atomic { !mine && step == 1 && sweep && !asked -> sweep = false }
#endif
	:: atomic { !mine && step == 2 && snap & CALLBACK ->
			snap = snap & ~CALLBACK;
			dq = dq & ~CALLBACK;
			/* the consumer's callback posts a send ... */
			tw++; d = TX; unflushed = true };
			/* ... and has returned */
#ifndef BUG_FORGET_CALLBACK_POSTS
		atomic { unflushed = false; leave_word(TX, 0) };
		flush_if_dead()
#endif
	:: atomic { !mine && step == 2 && snap == FINAL ->
			snap = 0;
			dq = dq & ~FINAL };
		atomic { !lock -> lock = true };
		/* First the flag, then the queues: who posts now sees it, or is seen. */
#ifdef BUG_OWNER_FLUSHES
		flushed = true;
#else
#ifdef BUG_FLAG_LAST
		flush(TX); flush(RX);
		flushed = true;
#else
		flushed = true;
		flush(TX); flush(RX);
#endif
#endif
		lock = false;
		atomic {
			assert(fd_open);
			assert(word[TX] & word[RX] & DEAD);
			assert(!in_call[TX] && !in_call[RX]);
			fd_open = false; want_out = false; in_ready = false }
	:: atomic { !mine && snap == 0 && step == 0 -> snap = rl; step = 1 }
	:: atomic { !mine && snap == 0 && step == 1 && !sweep -> snap = dq; step = 2 }
	:: atomic { !mine && snap == 0 && step == 2 -> step = 0; goto sleep }
	od
}

active proctype poster()
{
	LOCALS;

	tw++;
	leave_word(TX, 0);
	flush_if_dead();
	own_if_mine(TX)
}

active proctype receiver()
{
	LOCALS;
	bit d = RX;

	atomic { leave_word(RX, 0); dead = false };	/* an empty poll of the CQ */
again:
	own_if_mine(d);
	if
	:: atomic { rw == 0 -> rw++ };
		if
		:: flushed -> dead = true; flush_if_dead()
		:: !flushed
		fi;
		if
		:: held -> atomic { d = RX; leave_word(RX, 0); dead = false }; goto again
		:: !held
		fi
	:: rw > 0
	fi;
#ifdef LEAVING
	if
	:: atomic { asked -> d = (asked & (1 << TX) -> TX : RX);	/* a poll */
			asked = asked & ~(1 << d) };
		atomic { leave_word(d, 0); dead = false };
		goto again
	:: true		/* polls no more */
	fi;
	leased = false;
	if
	:: asked -> sweep = true; wake()
	:: !asked
	fi
#else
	d = RX
#endif
}

active proctype closer()
{
	LOCALS;
	bit d;

	if
	:: true		/* nobody closes */
#ifndef NO_CLOSE
	:: ending = true;
#ifdef BUG_FLUSH_WHILE_BUSY
		flush(TX); flush(RX);
#endif
		do
		:: atomic { leave_word(d, END); dead = false };
			own_if_mine(d);
			if
			:: d == TX -> d = RX
			:: d == RX -> break
			fi
		od;
#ifdef BUG_CLOSE_BY_CLOSER
		atomic { fd_open = false; assert(!in_call[TX] && !in_call[RX]) }
#endif
#endif
	fi
}

active proctype world()
{
	atomic {
		data++;
		if
		:: fd_open -> in_ready = true
		:: !fd_open
		fi
	};
	if
	:: no_room = false
#ifndef NO_FAILURE
	:: broken = true
#endif
	fi
}

active proctype checker()
{
	timeout;	/* nothing can move any more */
	assert(tr == tw);
	assert(!unflushed);
	assert(dq == 0 && rl == 0 && !sweep);
	if
	:: ending ->
		assert(rr == rw);
		assert(!fd_open);
		assert(word[TX] == DEAD && word[RX] == DEAD)
	:: !ending ->
		assert(!(data > 0 && rr < rw));
		assert(fd_open);
		assert(word[TX] == 0 && word[RX] == 0)
	fi
}
