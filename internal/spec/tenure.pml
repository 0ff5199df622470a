/*
 * The rules of an election, for readers and for Spin. docs/protocol.md defines the rules that
 * comments cite (L1 to L12, H2). `go run ./internal/spec` checks this file, and that each of its
 * mutants fails: a mutant is the same file with one macro defined, such as NO_MARGIN.
 *
 * Time passes in ticks. Until the calm, a step of a member, a request and an answer take any time:
 * so each pause of a process, each delay and each cut of the network is included. Messages are
 * lost, one at a time is late, processes crash and start again, an operator asks for a hand-over
 * or deletes the record. After the calm, all steps of one tick happen before the next.
 *
 * Not modeled: versions that recur, pushes, the order of claims after a release, nominations,
 * damaged records, different leases. The exploration and the simulation have these.
 */

#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef TERMS
#define TERMS   2       /* claims before the calm */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef DELETES
#define DELETES 1
#endif
#ifndef ORDERS
#define ORDERS  1       /* requests to hand over */
#endif
#ifndef LATE
#define LATE    1       /* writes that may be late at the same time: 0 or 1 */
#endif

#define LEASE   4       /* ticks */
#define SKEW    1       /* in any time, a clock errs by at most this */
#ifdef NO_MARGIN
#define MARGIN  0
#else
#define MARGIN  (2 * SKEW)                                                              /* L3 */
#endif
#define BUDGET  (LEASE - MARGIN)
#ifdef WAIT_SHORT
#define WAIT    (LEASE - 1)
#else
#define WAIT    LEASE                                                                   /* L2 */
#endif
#define SOON    (LEASE + 2 * SKEW + 1)  /* ticks of the calm within which a member leads */

mtype:kind  = { ABSENT, VACANT, HELD, RELEASED };
mtype:phase = { CANDIDATE, LEADING, ENDED, RELEASING };
mtype:op    = { NONE, READ, WRITE };

/* by and life name the holder's incarnation (L12). left is how long the holder may rely on this
 * write, by its own clock, since before the send (L1). A holder knows left of its own writes. */
typedef Record { mtype:kind kind; byte by; byte life; byte term; byte left; bool request }

/* A request, or its answer. Versions are not numbered: fits says that the version which a write
 * expects, or an answer shows, is still in the cell. The stamp is that of L2: known says that the
 * member waits for this stamp already, kept that it is still in the cell. */
typedef Message { mtype:op op; bool answered; bool applied; bool fits; bool known; bool kept; Record r }

typedef Member {
	bool alive; byte life; mtype:phase phase;
	byte term;      /* the last term that it led */
	byte left;      /* until its deadline */
	bool working;   /* the work of its term runs */
	bool asked;     /* a hand-over was requested */
	bool certain;   /* no outcome is unknown (L7) */
	bool fits;      /* of a leader: the cell has the version that it saw last */
	byte wait;      /* until the stamp that it saw last is waited out (L2) */
	bool same;      /* the cell has this stamp */
	bool ahead;     /* its clock, compared with true time */
	bool due        /* in the calm: it has something to do at this tick */
}

Record  cell;                   /* the store */
Message net[MEMBERS];           /* one operation of each member is in flight (L7) */
Message late;                   /* a write that its member has given up, and that may arrive */
Member  m[MEMBERS];
bool    calm;
byte    crashes, deletes, orders, vacancy, highest;
hidden byte j, pace;
#ifdef FROM_SEND
byte    sent[MEMBERS];
#endif

/* The rules. Each is set where it may break. */
bool P1 = true;         /* never do two members act */
bool P2 = true;         /* terms grow */
bool P3 = true;         /* nothing is released before the work has stopped */
bool P4 = true;         /* a lease that has ended is not revived */
bool P5 = true;         /* in the calm, a member leads within SOON ticks */

#define acts(i) (m[i].working && m[i].left > 0)                                         /* L6 */
#if MEMBERS == 2
#define two     (acts(0) && acts(1))
#define led     (acts(0) || acts(1))
#define some    (m[0].alive || m[1].alive)
#define waits   (rests(0) && rests(1))
#else
#define two     (acts(0) && acts(1) || acts(0) && acts(2) || acts(1) && acts(2))
#define led     (acts(0) || acts(1) || acts(2))
#define some    (m[0].alive || m[1].alive || m[2].alive)
#define waits   (rests(0) && rests(1) && rests(2))
#endif
#define rests(i)        (!m[i].alive || net[i].op == NONE && !m[i].due)
#define got             net[me].r
#define mine(i)         (got.kind == HELD && got.by == i && got.life == m[i].life)
#define may(i)          (m[i].alive && net[i].op == NONE && (!calm || m[i].due))

#ifdef LIVENESS
ltl progress { <> [] led }      /* under weak fairness: in the end one member leads for good */
#endif

inline copy(to, from) {
	to.kind = from.kind; to.by = from.by; to.life = from.life;
	to.term = from.term; to.left = from.left; to.request = from.request
}

inline fill(to, what, who, its, left_) {
	to.kind = what; to.by = who; to.life = m[who].life; to.term = its; to.left = left_; to.request = false
}

inline drop(msg) {
	fill(msg.r, ABSENT, 0, 0, 0); msg.r.life = 0;
	msg.op = NONE; msg.answered = false; msg.applied = false; msg.fits = false; msg.known = false; msg.kept = false
}

/* The cell gets another version. A request copies the stamp (H2). */
inline replaced(stamp) {
	for (j : 0 .. MEMBERS - 1) {
		m[j].fits = false; net[j].fits = false;
		if :: stamp -> m[j].same = false; m[j].wait = 0; net[j].known = false; net[j].kept = false :: else fi
	}
#ifndef NO_CAS
	drop(late)      /* it can never be applied */
#endif
}

/* The store carries out the request of a member. */
inline serve(me) {
	if
	:: net[me].op == READ ->
		copy(got, cell);
		if :: !mine(me) -> got.left = 0 :: else fi;
		net[me].fits = true; net[me].kept = true; net[me].known = m[me].same
#ifdef NO_CAS
	:: net[me].op == WRITE ->
#else
	:: net[me].op == WRITE && net[me].fits ->
#endif
		replaced(true); copy(cell, got);
		net[me].fits = true; net[me].kept = true; net[me].applied = true
	:: else
	fi;
	net[me].answered = true
}

inline send(me, what) {
	net[me].op = what; net[me].answered = false; net[me].applied = false
}

inline lose(me) {                                                               /* L4, L6 */
	m[me].phase = ENDED; m[me].left = 0; m[me].fits = false; m[me].asked = false; m[me].certain = false
}

inline campaign(me) {
	m[me].phase = CANDIDATE; m[me].working = false; m[me].left = 0; m[me].fits = false;
	m[me].asked = false; m[me].certain = false; m[me].wait = 0; m[me].same = false
}

inline lead(me) {
	m[me].phase = LEADING; m[me].term = got.term; m[me].left = got.left; m[me].working = true;
	m[me].fits = net[me].fits; m[me].certain = true; m[me].wait = 0; m[me].same = false;
	m[me].due = false;
	P1 = !two; assert(P1);
	drop(net[me])
}

inline win(me) {
	P2 = got.term > highest; assert(P2);
	highest = got.term;
	lead(me)
}

/* A leader knows that its write is in the cell. */
inline confirm(me) {
	P4 = m[me].left > 0; assert(P4);
#ifdef FROM_ANSWER
	got.left = BUDGET;
#endif
	m[me].left = got.left;                                                          /* L1 */
	m[me].fits = net[me].fits; m[me].certain = true; m[me].due = false;
	P1 = !two; assert(P1)
}

/* A candidate has read the cell. */
inline decide(me) {
	if
	:: mine(me) && got.term > m[me].term && got.left > 0 -> win(me)                 /* L7 */
#ifdef ADOPTS
	:: got.kind == HELD && got.by == me && !mine(me) -> got.left = BUDGET; lead(me)
#endif
	:: else ->
#ifdef TIMER_BY_READ
		net[me].known = net[me].known && m[me].wait == 0;
#endif
		if
		:: !net[me].known && net[me].kept -> m[me].same = true; m[me].wait = WAIT;      /* L2 */
#ifdef FROM_SEND
			m[me].wait = sent[me]
#endif
		:: else
		fi;
		if
#ifdef ABSENCE_CLAIMED
		:: false
#else
		:: got.kind == ABSENT && got.term > 0 ->                                /* L11 */
			fill(got, VACANT, me, got.term, 0); send(me, WRITE)
#endif
		:: else ->
			if
			:: (got.term < TERMS || calm) && (got.kind == ABSENT || got.kind == RELEASED ||
			   mine(me) || net[me].known && m[me].wait == 0) ->             /* L2, L4 */
#ifdef TERM_KEPT
				fill(got, HELD, me, got.term, BUDGET);
#else
				fill(got, HELD, me, got.term + 1, BUDGET);              /* L10 */
#endif
				send(me, WRITE)
			:: else -> m[me].due = false; drop(net[me])
			fi
		fi
	fi
}

/* A member takes the answer to its operation. */
inline take(me) {
	if
	:: m[me].phase == CANDIDATE && net[me].op == READ -> decide(me)
	:: m[me].phase == CANDIDATE && net[me].applied && got.kind == VACANT ->
		m[me].same = net[me].kept; m[me].wait = (m[me].same -> WAIT : 0); m[me].due = false; drop(net[me])
	:: m[me].phase == CANDIDATE && net[me].applied && mine(me) && got.left > 0 -> win(me)
	:: m[me].phase == LEADING && net[me].op == WRITE && net[me].applied -> confirm(me); drop(net[me])
#ifdef CONFLICT_COUNTED
	:: m[me].phase == LEADING && net[me].op == WRITE && !net[me].applied -> confirm(me); drop(net[me])
#endif
	:: m[me].phase == LEADING && net[me].op == READ && mine(me) && got.term == m[me].term ->
		m[me].asked = m[me].asked || got.request;                               /* H2 */
		confirm(me); drop(net[me])                                              /* L7 */
	:: m[me].phase == LEADING && net[me].op == READ && !(mine(me) && got.term == m[me].term) ->
		lose(me); drop(net[me])                                                 /* L7 */
	:: m[me].phase == RELEASING && net[me].op == READ && mine(me) ->
		m[me].fits = net[me].fits; m[me].certain = true; drop(net[me])
	:: m[me].phase == RELEASING && (net[me].op == READ && !mine(me) || net[me].applied && got.kind == RELEASED) ->
		campaign(me); drop(net[me])
	:: else -> m[me].certain = false; drop(net[me])     /* a conflict, or the answer comes too late */
	fi
}

/* A member gives up its operation. A write may be applied nevertheless, now or later. */
inline giveUp(me) {
	m[me].certain = false;
#ifdef UNKNOWN_COUNTED
	if :: m[me].phase == LEADING && net[me].op == WRITE -> m[me].left = got.left :: else fi;
#endif
	if
	:: net[me].op == WRITE && !net[me].answered && LATE && late.op == NONE ->
		late.op = WRITE; late.fits = net[me].fits; copy(late.r, got)
	:: true
	fi;
	drop(net[me])
}

proctype member(byte me) {
	do
#ifdef FROM_SEND
	:: atomic { may(me) && m[me].phase == CANDIDATE -> send(me, READ); sent[me] = WAIT }
#else
	:: atomic { may(me) && m[me].phase == CANDIDATE -> send(me, READ); serve(me) }
#endif
	:: atomic { may(me) && (m[me].phase == LEADING || m[me].phase == RELEASING) && !m[me].certain -> send(me, READ); serve(me) }
	:: atomic { may(me) && m[me].phase == LEADING && m[me].certain && !m[me].asked && (calm || m[me].left < BUDGET) ->
		fill(got, HELD, me, m[me].term, BUDGET); net[me].fits = m[me].fits; send(me, WRITE) }
	:: atomic { may(me) && m[me].phase == RELEASING && m[me].certain ->
		P3 = !m[me].working; assert(P3);
		fill(got, RELEASED, me, m[me].term, 0); net[me].fits = m[me].fits; send(me, WRITE) }
	:: atomic { m[me].alive && m[me].phase == LEADING && net[me].op == NONE && (!calm || m[me].asked) ->
#ifndef RELEASE_EARLY
		m[me].working = false; m[me].left = 0;                                  /* L9 */
#endif
		m[me].phase = RELEASING; m[me].asked = false }
	:: atomic { m[me].alive && m[me].phase == ENDED && net[me].op == NONE -> campaign(me) }
	:: atomic { m[me].alive && m[me].phase == RELEASING && net[me].op == NONE && !calm -> campaign(me) }
	:: atomic { m[me].alive && net[me].answered -> take(me) }
	:: atomic { m[me].alive && net[me].op != NONE && !calm -> giveUp(me) }
	:: atomic { m[me].alive && !calm && crashes < CRASHES -> crashes++;
		if :: net[me].op != NONE -> giveUp(me) :: else fi;
		campaign(me); m[me].alive = false; m[me].term = 0; m[me].life++;
		if :: late.r.by == me -> late.r.left = 0 :: else fi;
		if :: cell.by == me -> cell.left = 0 :: else fi }
	:: atomic { !m[me].alive && !calm -> m[me].alive = true }
	od
}

active proctype store() {
	do
	:: atomic { net[0].op != NONE && !net[0].answered -> serve(0) }
	:: atomic { net[1].op != NONE && !net[1].answered -> serve(1) }
#if MEMBERS > 2
	:: atomic { net[2].op != NONE && !net[2].answered -> serve(2) }
#endif
#ifdef NO_CAS
	:: atomic { late.op == WRITE -> copy(cell, late.r); replaced(true); drop(late) }
#else
	:: atomic { late.op == WRITE && late.fits -> copy(cell, late.r); replaced(true) }
#endif
	od
}

active proctype operator() {
	do
	:: atomic { !calm && orders < ORDERS && cell.kind == HELD && !cell.request -> orders++; cell.request = true; replaced(false) }
	:: atomic { !calm && deletes < DELETES && cell.kind != ABSENT -> deletes++;
		cell.kind = ABSENT; cell.by = 0; cell.life = 0; cell.left = 0; cell.request = false; replaced(true) }
	od
}

inline age(timer) { timer = (timer > pace -> timer - pace : 0) }

/* A tick of true time. The clock of a member counts one, or two, or none (L5). */
active proctype time() {
	byte i;
	do
	:: atomic { !calm || waits ->
		for (i : 0 .. MEMBERS - 1) {
			if
			:: m[i].alive -> pace = 1
			:: m[i].alive && !m[i].ahead && !calm -> pace = 2; m[i].ahead = true
			:: m[i].alive && m[i].ahead && !calm -> pace = 0; m[i].ahead = false
			:: !m[i].alive -> pace = 0
			fi;
			age(m[i].wait); age(net[i].r.left);
#ifndef NO_DEADLINE
			age(m[i].left);
#endif
#ifdef FROM_SEND
			age(sent[i]);
#endif
			if :: cell.by == i -> age(cell.left) :: else fi;
			if :: late.r.by == i -> age(late.r.left) :: else fi;
#ifndef NO_LATCH
			if :: m[i].phase == LEADING && m[i].left == 0 -> lose(i) :: else fi;
#endif
			m[i].due = calm && m[i].alive
		}
		i = 0;
		if :: calm && !led -> vacancy++ :: else -> vacancy = 0 fi;
		P5 = vacancy <= SOON; assert(P5)
	}
	od
}

active proctype weather() {
	byte i;
	atomic { some -> calm = true; drop(late);
		for (i : 0 .. MEMBERS - 1) { m[i].due = m[i].alive }
		i = 0 }
}

init {
	byte i;
	atomic {
		for (i : 0 .. MEMBERS - 1) {
			m[i].phase = CANDIDATE; m[i].alive = true; cell.kind = ABSENT;
			drop(net[i]); run member(i)
		}
		drop(late); i = 0
	}
}
