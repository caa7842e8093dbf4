/* SPDX-License-Identifier: MIT
 * The token protocol: three nodes, clients that make attempts, leases that end at any moment,
 * attempts that fail at any moment, answers that come late, other names on the same fence. Checked
 * by check.sh. No clock is in it, because tokens rest on none.
 *
 * -DNO_SETTLING     a quorum's largest grant is returned at once
 * -DHELD_SETTLES    every node that still holds counts towards the token
 * -DNO_OWNER_CHECK  settling raises the fence whoever has the lock
 * -DCLIENTS, -DATTEMPTS (of each), -DBUMPS (by others) set how much is looked at
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef BUMPS
#define BUMPS 1
#endif
#define NODES 3
#define QUORUM 2
#define somebody_else 255

byte owner[NODES];      /* which attempt has the lock there; 0: free */
byte fence[NODES];
byte last_attempt;
byte largest_returned;
bool returned[32];
byte bumps;

#define count(what) (what[0] + what[1] + what[2])

/* acquire, as the script does it: what an owner was granted is its own, and new. */
inline run_acquire(n) {
  atomic {
    !asked[n];
    asked[n] = 1;
    if
    :: owner[n] == 0 -> fence[n]++; owner[n] = me; granted[n] = fence[n]
    :: else
    fi
  }
}

inline hear_grant(n) {
  atomic {
    granted[n] != 0 && !answered[n];
    answered[n] = 1;
    if
    :: token != 0 && granted[n] == token -> settled[n] = 1
    :: else
    fi
  }
}

/* At the vote that decides: the largest grant that was answered. */
inline decide() {
  d_step {
    token == 0 && count(answered) >= QUORUM;
    n = 0;
    do
    :: n < NODES && answered[n] && granted[n] > token -> token = granted[n]; n++
    :: n < NODES && !(answered[n] && granted[n] > token) -> n++
    :: n == NODES -> break
    od;
    n = 0;
    do
    :: n < NODES ->
#ifdef NO_SETTLING
       settled[n] = answered[n];
#else
       settled[n] = (answered[n] && granted[n] == token);
#endif
       n++
    :: n == NODES -> break
    od;
    n = 0
  }
}

#ifdef HELD_SETTLES
#define may_settle(n) true
#else
#define may_settle(n) (granted[n] < token)
#endif

#ifdef NO_OWNER_CHECK
#define still_mine(n) true
#else
#define still_mine(n) (owner[n] == me)
#endif

/* hold, with the token. */
inline run_settle(n) {
  atomic {
    token != 0 && answered[n] && !settled[n] && may_settle(n) && still_mine(n);
    if
    :: fence[n] < token -> fence[n] = token
    :: else
    fi;
    settled[n] = 1
  }
}

inline return_token() {
  atomic {
    token != 0 && count(settled) >= QUORUM;
    assert(!returned[token]);        /* unique */
    assert(token > returned_before); /* rising */
    returned[token] = 1;
    if
    :: token > largest_returned -> largest_returned = token
    :: else
    fi
  }
}

proctype Client() {
  byte me, token, returned_before, attempts, n;
  byte granted[NODES];
  bool asked[NODES], answered[NODES], settled[NODES];

next_attempt:
  atomic {
    attempts < ATTEMPTS;
    attempts++;
    last_attempt++;
    me = last_attempt;
    token = 0;
    returned_before = largest_returned;
    n = 0;
    do
    :: n < NODES -> granted[n] = 0; asked[n] = 0; answered[n] = 0; settled[n] = 0; n++
    :: n == NODES -> break
    od;
    n = 0
  }
  do
  :: run_acquire(0) :: run_acquire(1) :: run_acquire(2)
  :: hear_grant(0) :: hear_grant(1) :: hear_grant(2)
  :: decide()
  :: run_settle(0) :: run_settle(1) :: run_settle(2)
  :: return_token(); goto next_attempt
  :: goto next_attempt /* it fails, for whatever reason; what it left stays until it expires */
  od
}

/* Leases end, by release, expiry or a wrong clock; other names and late messages raise fences. */
inline end_lease(n) {
  atomic { owner[n] != 0 -> owner[n] = 0 }
}

inline raise_fence(n) {
  atomic { bumps < BUMPS -> bumps++; fence[n]++ }
}

inline grant_to_somebody_else(n) {
  atomic { bumps < BUMPS && owner[n] == 0 -> bumps++; fence[n]++; owner[n] = somebody_else }
}

proctype World() {
  do
  :: end_lease(0) :: end_lease(1) :: end_lease(2)
  :: raise_fence(0) :: raise_fence(1) :: raise_fence(2)
  :: grant_to_somebody_else(0) :: grant_to_somebody_else(1) :: grant_to_somebody_else(2)
  od
}

init {
  byte i;
  atomic {
    run World();
    do
    :: i < CLIENTS -> run Client(); i++
    :: else -> break
    od
  }
}
