# SPDX-License-Identifier: MIT
"""What ends a wait in Python: Ctrl-C, a Stop of another thread or of a signal's handler.

    REDLOCK_NODES=... python_waits.py COMMAND

COMMAND is redlock. Prints "done" if each ended its wait and left nothing locked; c.sh runs it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import redlock


def waiters(name):
    """How many wait for it, as the nodes say."""
    said = subprocess.run(
        [sys.argv[1], "waiters", name, "-o", "json"], stdout=subprocess.PIPE, check=False
    ).stdout
    return len(json.loads(said)["waiting"]) if said else -1


def once_it_waits(name, act):
    """Does it on a thread of its own, once this program waits for the lock."""

    def watch():
        while waiters(name) < 1:
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def outcome(client, name, act, **options):
    thread = once_it_waits(name, act)
    try:
        client.acquire(name, wait=None, **options)
        return "acquired"
    except KeyboardInterrupt:
        return "interrupted"
    except redlock.Error as error:
        return error.code
    finally:
        thread.join()


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"python_waits.py: {what}: {found!r}, not {wanted!r}")


def main():
    # It is ignored where a shell without job control has started this in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    name = "python-waits"
    with redlock.Client() as holder, redlock.Client() as client:
        held = holder.acquire(name, wait=10, lease=60, renewal=True)

        def interrupt():
            os.kill(os.getpid(), signal.SIGINT)

        expect("Ctrl-C", outcome(client, name, interrupt), "interrupted")
        while waiters(name) != 0:
            time.sleep(0.05)

        stop = redlock.Stop()
        expect("Ctrl-C beside a Stop", outcome(client, name, interrupt, stop=stop), "interrupted")
        expect("a Stop that nobody requested", stop.requested, False)
        expect("a Stop", outcome(client, name, stop.request, stop=stop), "cancelled")
        try:
            client.acquire("python-late", stop=stop)
            sys.exit("python_waits.py: a Stop that was requested before ended nothing")
        except redlock.Error as error:
            expect("a late call", error.code, "cancelled")

        term = redlock.Stop()
        signal.signal(signal.SIGTERM, lambda *_: term.request())
        kill = outcome(client, name, lambda: os.kill(os.getpid(), signal.SIGTERM), stop=term)
        expect("SIGTERM with a handler", kill, "cancelled")

        expect("whose it is", held.release(), True)
        with client.acquire(name, wait=10) as lease:
            expect("afterwards", lease.valid, True)
        with client.acquire(name, wait=10, lease=1, renewal=False) as lease:
            while not lease.lost:
                time.sleep(0.01)
    print("done")


if __name__ == "__main__":
    main()
