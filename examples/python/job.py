# SPDX-License-Identifier: MIT
"""A job in Python that runs on one machine at a time.

    REDLOCK_NODES=host1:6379,host2:6379,host3:6379 python3 job.py nightly-report 5
"""

import sys
import time

import redlock


def work(lease, steps):
    print(f"working under token {lease.token}")
    for step in range(1, steps + 1):
        if lease.lost:
            sys.exit(f"job.py: stopped before step {step}: the lock is lost")
        print(f"step {step} of {steps}")
        time.sleep(0.02)


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: job.py NAME STEPS")
    with redlock.Client() as client:
        try:
            lease = client.acquire(sys.argv[1], wait=1)
        except redlock.Error as error:
            if error.code in ("contended", "timed_out"):
                print(f"job.py: another machine does it: {error}", file=sys.stderr)
                sys.exit(75)
            sys.exit(f"job.py: {error}")
        with lease:
            work(lease, int(sys.argv[2]))
            if lease.release():
                print("released")


if __name__ == "__main__":
    main()
