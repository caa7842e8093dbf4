/* SPDX-License-Identifier: MIT */
/* redlock for C, and for every language that can call C (docs/c.md has Python's ctypes). This
 * interface is part of the same library; a C program that links the static library is linked by a
 * C++ compiler.
 *
 * Objects that this library makes are destroyed by this library: every pointer that a function
 * gives out through its last parameter belongs to the caller, who passes it to the matching
 * ..._destroy, once. A `const char *` that a function returns belongs to the object that the
 * function was called with, and must not be freed. Texts are UTF-8 and end with a NUL. Times are
 * milliseconds. No function throws or ends the program; each may be called from any thread, unless
 * it says otherwise. Without memory a function answers REDLOCK_OUT_OF_MEMORY, or the client has
 * ended as a whole: then every function of it and of its leases answers REDLOCK_CLOSED, and every
 * lease is lost (REDLOCK_LOSS_CLOSED).
 *
 *     redlock_client *client = NULL;
 *     redlock_lease *lease = NULL;
 *     redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
 *     options.wait_ms = 10000;
 *     if (redlock_client_create(NULL, &client) != REDLOCK_OK ||
 *         redlock_acquire(client, "report", &options, &lease) != REDLOCK_OK) {
 *       fprintf(stderr, "%s\n", redlock_last_error());
 *     }
 *     ... work; give redlock_lease_token(lease) to the resource ...
 *     redlock_lease_destroy(lease);
 *     redlock_client_destroy(client);
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <redlock/export.hpp> /* macros alone */

#ifdef __cplusplus
extern "C" {
#endif

/* What a function answers. The numbers stay as they are; new ones may follow. */
typedef enum redlock_status {
  REDLOCK_OK = 0,
  REDLOCK_CONTENDED = 1,        /* another owner holds the lock on a quorum of nodes */
  REDLOCK_NO_QUORUM = 2,        /* too few nodes could vote in time */
  REDLOCK_TOO_LATE = 3,         /* granted, but with less validity left than was asked for */
  REDLOCK_TIMED_OUT = 4,        /* the waiting time or the deadline ended first */
  REDLOCK_LOST = 5,             /* the lease is over, or can no longer be trusted */
  REDLOCK_CANCELLED = 6,        /* redlock_stop_request was called */
  REDLOCK_INVALID_ARGUMENT = 7, /* redlock_last_error() says which argument, and what to do */
  REDLOCK_CLOSED = 8,           /* the client has ended or could not start, or this is the child of
                                   a fork */
  REDLOCK_WOULD_DEADLOCK = 9,   /* called on one of the client's own threads */
  REDLOCK_OUT_OF_MEMORY = 100   /* this program got no memory, descriptor or thread */
} redlock_status;

/* "contended", "no_quorum" ...; never NULL. */
REDLOCK_EXPORT const char* redlock_status_name(redlock_status status);

/* The library's version, as 0.1.0. */
REDLOCK_EXPORT const char* redlock_version(void);

/* Why the last failed call on this thread failed: a sentence for people, empty if no call has
 * failed. As with errno, success changes nothing. Valid until the next failure on this thread. */
REDLOCK_EXPORT const char* redlock_last_error(void);
/* The same for programs, as a JSON object (empty if there was no failure):
 *     {"status": 2, "code": "no_quorum", "message": "...", "votes": [{"vote": "unavailable",
 *      "node": "redis://10.0.0.1:6379", "cause": "timed_out", "detail": "..."}, ...]}
 * `votes` has every node if nodes were asked, in the order of the configuration. No passwords. */
REDLOCK_EXPORT const char* redlock_last_error_json(void);

/* For every duration that may have no end. */
#define REDLOCK_FOREVER ((int64_t)-1)

/* Which waiter receives the lock next. */
typedef enum redlock_ordering {
  REDLOCK_ORDERING_DEFAULT = 0, /* the client's; a client's: REDLOCK_FIFO */
  REDLOCK_FIFO = 1,             /* the waiter that began to wait first */
  REDLOCK_BARGING = 2           /* the caller that asks first after a release */
} redlock_ordering;

/* Options begin with their size. Later versions add fields at the end, and the library's ABI name
 * (its soname) stays as it is:
 *   - a program compiled with an older header, whose struct is smaller, goes on working: what it
 *     does not have has its default;
 *   - one compiled with a newer header than that of the library works as long as what the library
 *     does not know is zero. Otherwise the call is REDLOCK_INVALID_ARGUMENT: nothing that is asked
 *     for is ignored.
 * Structs without a size, which the library fills, keep their fields. */

/* How a client finds its nodes and behaves. A field that is zero or NULL has its default. Begin
 * with REDLOCK_CLIENT_OPTIONS_INIT, which sets `size`. */
typedef struct redlock_client_options {
  size_t size; /* of this struct */
  /* All nodes of the set: "host1:6379,host2:6379,..." or URIs; see parse_nodes in options.hpp.
   * NULL: nodes, longest lease, password file, TLS and quarantine are those of REDLOCK_NODES or
   * REDLOCK_NODES_FILE, REDLOCK_MAX_LEASE, REDLOCK_PASSWORD_FILE, REDLOCK_TLS_CA and so on, and
   * REDLOCK_QUARANTINE, as the command `redlock` reads them, where no field here sets them; and
   * REDLOCK_TRACE, for which there is no field, names the file of a trace. */
  const char* nodes;
  const char* password_file; /* read anew for each connection: password_from_file in options.hpp */
  /* The files of TLS are read again when they have changed; see TlsOptions in options.hpp. */
  const char* tls_ca;          /* trusted authorities, file or directory (default: the system's) */
  const char* tls_certificate; /* presented to nodes that ask for one: a PEM file */
  const char* tls_key;         /* its key, a PEM file */
  const char* tls_name;        /* the name in the nodes' certificates (default: their hosts) */
  const char* client_name;     /* for CLIENT LIST on the nodes */
  const char* label;           /* this program's name, for people who ask who holds a lock */
  redlock_ordering ordering;   /* unless a call says otherwise */
  int without_quarantine;      /* 1: for tests alone; see Quarantine in options.hpp */
  int without_warnings;        /* 1: nothing on stderr; see warn_on_stderr in options.hpp */
  int64_t lease_ms;            /* default 30000 */
  int64_t max_lease_ms;        /* default 0: that of the set; no lease may be longer */
  int64_t node_timeout_ms;     /* default 250 */
  int64_t connect_timeout_ms;  /* default 1000 */
} redlock_client_options;
/* All defaults. */
#define REDLOCK_CLIENT_OPTIONS_INIT                                                 \
  {                                                                                 \
    sizeof(redlock_client_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
        REDLOCK_ORDERING_DEFAULT, 0, 0, 0, 0, 0, 0                                  \
  }

/* One set of nodes, the connections to them and a thread that serves them: one per program is
 * enough for any number of threads and names. */
typedef struct redlock_client redlock_client;

/* Checks the options (NULL: all defaults) and begins to connect, without waiting for a node.
 * Without nodes it reads the environment: no other thread may change that meanwhile. */
REDLOCK_EXPORT redlock_status redlock_client_create(const redlock_client_options* options,
                                                    redlock_client** client);

/* What became of the leases that a client still had when it ended. */
typedef struct redlock_close_report {
  uint64_t released;     /* a quorum confirmed that the lock is free */
  uint64_t already_gone; /* a quorum said that it was not this client's any more */
  uint64_t unconfirmed;  /* unknown; free when the lease has ended by itself */
} redlock_close_report;

/* Ends all calls under way with REDLOCK_CLOSED, gives all leases back and waits until that is
 * confirmed, at most `at_most_ms` (REDLOCK_FOREVER: until nodes fall silent). `report` may be NULL.
 * The client, and leases of it, answer REDLOCK_CLOSED afterwards and are still to be destroyed. */
REDLOCK_EXPORT redlock_status redlock_client_close(redlock_client* client, int64_t at_most_ms,
                                                   redlock_close_report* report);
/* Closes the client, if that was not done, and destroys it. NULL does nothing. No other call may
 * use the client now or later; its leases may be destroyed before or after. */
REDLOCK_EXPORT void redlock_client_destroy(redlock_client* client);

/* Ends a call that waits, from another thread (not from a signal handler). A stop may be given to
 * many calls, and be destroyed while they are under way, which requests nothing. */
typedef struct redlock_stop redlock_stop;
/* Makes a stop that is not requested. */
REDLOCK_EXPORT redlock_status redlock_stop_create(redlock_stop** stop);
/* All calls that have this stop end with REDLOCK_CANCELLED, and calls that get it later fail at
 * once. */
REDLOCK_EXPORT void redlock_stop_request(redlock_stop* stop);
/* Destroys the stop. NULL does nothing. */
REDLOCK_EXPORT void redlock_stop_destroy(redlock_stop* stop);

/* Whether a lease is renewed until it is given back. */
typedef enum redlock_renewal {
  REDLOCK_RENEW_WHEN_NO_LEASE_GIVEN = 0, /* yes, unless lease_ms is set */
  REDLOCK_RENEW_ALWAYS = 1,
  REDLOCK_RENEW_NEVER = 2
} redlock_renewal;

/* One acquisition. Begin with REDLOCK_ACQUIRE_OPTIONS_INIT; the defaults try once and hold,
 * renewed, until given back. */
typedef struct redlock_acquire_options {
  size_t size;               /* of this struct */
  int64_t lease_ms;          /* 0: the client's lease */
  redlock_renewal renewal;   /* whether the lease is renewed */
  int64_t wait_ms;           /* how long to keep trying (locked, no quorum); REDLOCK_FOREVER */
  int64_t deadline_ms;       /* the call ends this long from now, whatever else is set; 0: none */
  redlock_ordering ordering; /* replaces the client's */
  int64_t min_validity_ms; /* a grant with no more than this left is given back; 0: the client's */
  int64_t max_hold_ms;     /* renewal ends this long after the grant; 0: never */
  redlock_stop* stop;      /* may be NULL */
} redlock_acquire_options;
/* All defaults. */
#define REDLOCK_ACQUIRE_OPTIONS_INIT                                             \
  {                                                                              \
    sizeof(redlock_acquire_options), 0, REDLOCK_RENEW_WHEN_NO_LEASE_GIVEN, 0, 0, \
        REDLOCK_ORDERING_DEFAULT, 0, 0, NULL                                     \
  }

/* The lock, held. Its functions may be called from any thread, but extend, confirm, release and
 * destroy not beside another call on the same lease. */
typedef struct redlock_lease redlock_lease;

/* Takes the lock for this name (1 to 512 bytes without `{` and `}`), or says why not. Blocks for as
 * long as the options allow. On failure *lease is NULL. */
REDLOCK_EXPORT redlock_status redlock_acquire(redlock_client* client, const char* name,
                                              const redlock_acquire_options* options,
                                              redlock_lease** lease);

/* The fencing token: larger than every token returned for this name before this acquisition began,
 * as long as nodes keep their data and none lies. The resource that the lock protects must refuse a
 * token that is smaller than the largest it has seen. 0 once the lease is given back. */
REDLOCK_EXPORT uint64_t redlock_lease_token(const redlock_lease* lease);
/* The name of the lock. */
REDLOCK_EXPORT const char* redlock_lease_name(const redlock_lease* lease);
/* 32 hexadecimal digits: the field of the lock's hash on the nodes. */
REDLOCK_EXPORT const char* redlock_lease_owner(const redlock_lease* lease);
/* 1 while the lock is ours by the local clock, read now; otherwise 0. */
REDLOCK_EXPORT int redlock_lease_valid(const redlock_lease* lease);
/* What is left of the validity, rounded down; 0 if the lease is over or was given back. */
REDLOCK_EXPORT int64_t redlock_lease_remaining_ms(const redlock_lease* lease);

/* A descriptor for poll() and the like: it becomes readable, and stays so, when the lock is still
 * ours but can no longer be trusted to stay so; stop the protected work then. Do not read from it
 * or close it; it is closed with the lease. -1 if the system gives no descriptor
 * (redlock_last_error). The first call makes the descriptor, and must not run beside another first
 * call on the same lease. */
REDLOCK_EXPORT int redlock_lease_lost_fd(redlock_lease* lease);

/* Why a lease can no longer be trusted. */
typedef enum redlock_loss {
  REDLOCK_NOT_LOST = 0,
  REDLOCK_LOSS_EXPIRED = 1, /* its validity is ending, and the lease was not to be renewed */
  REDLOCK_LOSS_TAKEN = 2,   /* too few nodes still have the lock for this owner */
  REDLOCK_LOSS_NODES_UNAVAILABLE = 3, /* too few nodes confirmed a renewal in time */
  REDLOCK_LOSS_CLOSED = 4,            /* its client ended */
  REDLOCK_LOSS_FORCED = 5 /* another program released the lock, by force or by its grant */
} redlock_loss;
/* REDLOCK_NOT_LOST until the lease is lost. */
REDLOCK_EXPORT redlock_loss redlock_lease_loss(const redlock_lease* lease);

/* Makes the lock last `lease_ms` from now on a quorum of nodes, and never shorter than it does
 * already. REDLOCK_LOST: the lock is no longer ours. Other failures change nothing. */
REDLOCK_EXPORT redlock_status redlock_lease_extend(redlock_lease* lease, int64_t lease_ms);
/* Asks the nodes whether the lock is ours now, without making it last longer. */
REDLOCK_EXPORT redlock_status redlock_lease_confirm(redlock_lease* lease);

/* What a release found. */
typedef enum redlock_released {
  REDLOCK_RELEASED = 0,     /* a quorum of nodes had the lock for this owner; now it is free */
  REDLOCK_ALREADY_GONE = 1, /* too few nodes still had the lock: it was lost before */
  REDLOCK_UNKNOWN = 2       /* too few nodes answered; the lock ends with the lease at the latest */
} redlock_released;
/* Gives the lock back and waits until a quorum of nodes has confirmed that. `found` may be NULL.
 * Whatever the answer is, the lease holds nothing afterwards, and must still be destroyed. */
REDLOCK_EXPORT redlock_status redlock_lease_release(redlock_lease* lease, redlock_released* found);
/* Gives the lock back, if that was not done, without waiting, and destroys the lease. NULL does
 * nothing. */
REDLOCK_EXPORT void redlock_lease_destroy(redlock_lease* lease);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
