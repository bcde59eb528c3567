/* SPDX-License-Identifier: MIT
 *
 * A shared receive queue: posts, connections that wait for one, grants, and
 * connections that end at any moment.
 *
 * Processes: one that posts, a home shard for each connection (its messages,
 * its timer and the resume work run there), and one that ends connection 0 or
 * not. Who kicks a receive direction that is idle owns it, as in direction.pml.
 * The checker looks at every state in which all rest.
 */

#ifndef CONNS
#define CONNS	2
#endif
#ifndef POSTS
#define POSTS	3
#endif
#ifndef MESSAGES
#define MESSAGES 2	/* of each connection */
#endif
#define EXPIRIES 1	/* times a hold runs out, of whichever connection */

/* srq.h. What is done under the lock touches nothing else, so a section is one
 * atomic step. */
byte queued, granted;
mtype = { ELSEWHERE, WAITING, GRANTED };
mtype state[CONNS] = ELSEWHERE;
chan list = [CONNS] of { byte };

/* The receive direction, and what its owner keeps. */
bool busy[CONNS], more[CONNS], end[CONNS], dead[CONNS];
bool holding[CONNS];
bool expired[CONNS];
byte msgs[CONNS];	/* arrived, not received */

bool resume_queued[CONNS], on_run_list[CONNS];

/* Budgets, and what the checker wants. */
byte to_come[CONNS] = MESSAGES;
byte expiries = EXPIRIES;
byte posts = POSTS;
byte taken;

#define NOBODY	255

#define consistent()	(granted <= queued && (len(list) == 0 || granted == queued))

/* Lock held. wake: whom to tell of it behind the section. */
inline grant()
{
	if
	:: list ? wake -> state[wake] = GRANTED; granted++
	:: empty(list) -> wake = NOBODY
	fi
}

inline resume()		/* conn_resume(wake) */
{
	if
	:: wake == NOBODY
	:: wake != NOBODY ->
		if
		:: atomic { !resume_queued[wake] ->
			resume_queued[wake] = true; on_run_list[wake] = true }
		:: atomic { resume_queued[wake] -> skip }
		fi;
		wake = NOBODY
	fi
}

/* srq_take(); got tells whether there was one */
inline take(i, wait)
{
	atomic {
		if
#ifdef BUG_GRANT_STOLEN
		:: queued > 0 ->
#else
		:: state[i] == GRANTED || queued > granted ->
#endif
			got = true;
			queued--;
			taken++;
			if
			:: state[i] == GRANTED -> state[i] = ELSEWHERE; granted--
			:: state[i] != GRANTED
			fi
		:: else ->
			got = false;
#ifdef BUG_TWO_SECTIONS
		fi
	};
	atomic {
		if
		:: got
		:: !got ->
#endif
			if
			:: wait && state[i] == ELSEWHERE -> state[i] = WAITING; list ! i
			:: !wait && state[i] == WAITING ->
				list ?? eval(i);
				state[i] = ELSEWHERE
			:: else
			fi
		fi;
		assert(consistent())
	}
}

inline leave(i)		/* srq_leave() */
{
	atomic {
		if
		:: state[i] == WAITING -> list ?? eval(i); state[i] = ELSEWHERE
		:: state[i] == GRANTED ->
			state[i] = ELSEWHERE;
			granted--;
#ifdef BUG_KEEPS_GRANT
			skip
#else
			grant()
#endif
		:: state[i] == ELSEWHERE
		fi
	};
	resume()
}

inline terminate(i)	/* by the owner: only leaves word */
{
	atomic { end[i] = true; more[i] = true }
}

inline one_message(i)	/* rx.c: send_in(), hold_back() */
{
	take(i, false);
	if
	:: got -> msgs[i]--
	:: !got ->
		take(i, true);
		if
		:: got -> msgs[i]--
		:: !got -> holding[i] = true
		fi
	fi
}

inline held(i)		/* rx.c: hold_over() */
{
	if
	:: atomic { expired[i] -> expired[i] = false };
#ifdef BUG_GIVES_UP_FIRST
		atomic {
			if
			:: state[i] == WAITING -> list ?? eval(i)
			:: state[i] != WAITING
			fi;
			state[i] = ELSEWHERE
		};
#endif
		take(i, false);
		holding[i] = false;
		if
		:: got -> msgs[i]--
		:: !got -> terminate(i)
		fi
	:: atomic { !expired[i] -> skip };
		take(i, true);
		if
		:: got -> holding[i] = false; msgs[i]--
		:: !got
		fi
	fi
}

inline work(i)
{
	if
	:: holding[i] -> held(i)
	:: !holding[i]
	fi;
	do
	:: msgs[i] > 0 && !holding[i] && !end[i] -> one_message(i)
	:: else -> break
	od
}

inline own(i)
{
	do
	:: atomic { more[i] = false; ending = end[i] };
		if
		:: ending ->
#ifndef BUG_STAYS_LISTED
			if
			:: holding[i] -> leave(i); holding[i] = false
			:: !holding[i]
			fi;
#endif
			atomic { dead[i] = true; busy[i] = false };
			break
		:: !ending ->
			work(i);
			if
			:: atomic { !more[i] -> busy[i] = false }; break
			:: atomic { more[i] -> skip }
			fi
		fi
	od;
	ending = false;
	got = false
}

inline kick(i, e)
{
	if
	:: atomic { dead[i] -> skip }
	:: atomic { !dead[i] && busy[i] -> more[i] = true; end[i] = end[i] || e }
	:: atomic { !dead[i] && !busy[i] -> busy[i] = true; end[i] = end[i] || e };
		own(i)
	fi
}

proctype home(byte me)
{
	byte wake = NOBODY;
	bool got, ending;

end_idle:
	do
	:: atomic { to_come[me] > 0 -> to_come[me]--; msgs[me]++ };
		kick(me, false)
	:: atomic { on_run_list[me] -> on_run_list[me] = false };
#ifdef BUG_RESUME_LATE
		kick(me, false);
		resume_queued[me] = false
#else
		resume_queued[me] = false;
		kick(me, false)
#endif
	:: atomic { holding[me] && expiries > 0 -> expiries--; expired[me] = true };
		kick(me, false)
	od
}

active proctype poster()
{
	byte wake = NOBODY;

	do
	:: posts > 0 ->
		atomic {
			queued++;
			grant();
			assert(consistent());
			posts--
		};
		resume()
	:: posts == 0 -> break
	od
}

active proctype closer()
{
	byte wake = NOBODY, me = 0;
	bool got, ending;

	if
	:: kick(me, true)
	:: true
	fi
}

active proctype checker()
{
	byte i;

	timeout;	/* nothing can move any more */
	assert(posts == 0 && granted == 0);
	assert(queued + taken == POSTS);
	for (i : 0 .. CONNS - 1) {
		assert(!busy[i] && !on_run_list[i]);
		assert(dead[i] || !end[i]);
		assert(!dead[i] || state[i] == ELSEWHERE);
		/* Who lives and has a message has no receive beside it. */
		assert(dead[i] || msgs[i] == 0 || queued == 0);
		assert(dead[i] || holding[i] == (msgs[i] > 0));
		assert(holding[i] == (state[i] == WAITING))
	}
}

init {
	byte i;

	atomic {
		for (i : 0 .. CONNS - 1) {
			run home(i)
		}
	}
}
