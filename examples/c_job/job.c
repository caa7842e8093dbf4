/* SPDX-License-Identifier: MIT */
/* A job in C11 that runs on one machine at a time: it takes a lock, works in steps, stops as soon
 * as the lock can no longer be trusted, and shows the fencing token that a resource would check.
 *
 *     cc -std=c11 job.c -o job $(pkg-config --cflags --libs redlock)
 *     REDLOCK_NODES=host1:6379,host2:6379,host3:6379 ./job nightly-report 5
 *
 * Exit status: 0 done, 64 usage, 75 somebody else has the lock, 1 anything else. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <redlock/redlock.h>

static int complain(const char* what) {
  fprintf(stderr, "job: %s: %s\n", what, redlock_last_error());
  return 1;
}

/* 1 as soon as the lease is lost, 0 if it is not within so many milliseconds. */
static int lost_within(redlock_lease* lease, int milliseconds) {
  struct pollfd lost = {.fd = redlock_lease_lost_fd(lease), .events = POLLIN};
  return poll(&lost, 1, milliseconds) > 0;
}

static int work(redlock_lease* lease, long steps) {
  printf("working under token %" PRIu64 "\n", redlock_lease_token(lease));
  for (long step = 1; step <= steps; ++step) {
    if (lost_within(lease, 20)) {
      fprintf(stderr, "job: stopped before step %ld: the lock is lost (%d), %" PRId64 " ms left\n",
              step, (int)redlock_lease_loss(lease), redlock_lease_remaining_ms(lease));
      return 1;
    }
    printf("step %ld of %ld\n", step, steps);
  }
  return 0;
}

static int run(redlock_client* client, const char* name, long steps) {
  redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.wait_ms = 1000;
  redlock_lease* lease = NULL;
  const redlock_status status = redlock_acquire(client, name, &options, &lease);
  if (status == REDLOCK_CONTENDED || status == REDLOCK_TIMED_OUT) {
    complain("another machine does it");
    return 75;
  }
  if (status != REDLOCK_OK) return complain("cannot take the lock");

  int failed = work(lease, steps);
  redlock_released found = REDLOCK_UNKNOWN;
  if (redlock_lease_release(lease, &found) != REDLOCK_OK) failed = complain("release");
  if (!failed && found == REDLOCK_RELEASED) puts("released");
  redlock_lease_destroy(lease);
  return failed;
}

int main(int argc, char** argv) {
  char* end = NULL;
  const long steps = argc == 3 ? strtol(argv[2], &end, 10) : 0;
  if (steps < 1 || *end != '\0') {
    fprintf(stderr, "usage: job NAME STEPS\nREDLOCK_NODES names the nodes.\n");
    return 64;
  }
  redlock_client* client = NULL;
  if (redlock_client_create(NULL, &client) != REDLOCK_OK) return complain("cannot start");
  const int status = run(client, argv[1], steps);
  redlock_client_destroy(client);
  return status;
}
