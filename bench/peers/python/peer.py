# SPDX-License-Identifier: MIT
"""Pottery's Redlock, and redis-py's Lock on one node, as peers.

peer.py WAY LEASE_MS HOST:PORT...
"""

import importlib.metadata
import json
import logging
import os
import platform
import sys
import threading
import time

import redis


class Pottery:
    """As its documentation shows: redis-py clients as they are, and a Redlock for each lock. A call
    that waits tries again after a random pause of at most 200 ms."""

    packages = ("pottery", "redis")

    def __init__(self, lease, nodes):
        self.lease = lease
        self.masters = {redis.Redis.from_url(f"redis://{node}") for node in nodes}

    def lock(self, name):
        from pottery import Redlock

        return Redlock(key=name, masters=self.masters, auto_release_time=self.lease)


class RedisPy:
    """One node, and no quorum. A call that waits tries again every 100 ms."""

    packages = ("redis",)

    def __init__(self, lease, nodes):
        self.lease = lease
        self.node = redis.Redis.from_url(f"redis://{nodes[0]}")

    def lock(self, name):
        return self.node.lock(name, timeout=self.lease)


def micros(start):
    return round((time.monotonic() - start) * 1e6)


class Calls:
    def __init__(self):
        self.acquired = []
        self.released = []
        self.in_time = 0
        self.failed = 0
        self.overlaps = 0
        self.error = ""

    def note(self, error):
        self.failed += 1
        self.error = self.error or f"{type(error).__name__}: {error}"

    def call(self, peer, end, section, name, guard):
        """One caller's calls until the end. Two that hold one lock meet at the guard's file."""
        start = time.monotonic()
        while time.monotonic() < end:
            lock = peer.lock(name)
            try:
                if not lock.acquire():
                    raise RuntimeError("not acquired")
            except Exception as error:
                self.note(error)
                continue
            self.acquired.append(micros(start))
            self.in_time += time.monotonic() < end
            alone = True
            if guard != "-":
                try:
                    os.close(os.open(guard, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    alone = False
                    self.overlaps += 1
            if section > 0:
                time.sleep(section)
            if guard != "-" and alone:
                os.unlink(guard)
            start = time.monotonic()
            try:
                lock.release()
                self.released.append(micros(start))
            except Exception as error:
                self.note(error)
            start = time.monotonic()


def run(peer, length, callers, section, name, guard):
    """run MS CALLERS SECTION_MS NAME GUARD"""
    end = time.monotonic() + int(length) / 1000
    calls = [Calls() for _ in range(int(callers))]
    threads = []
    for i, one in enumerate(calls):
        own = name + str(i) if name.endswith("-") else name
        arguments = (peer, end, int(section) / 1000, own, guard)
        threads.append(threading.Thread(target=one.call, args=arguments, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "acquire_us": [time for one in calls for time in one.acquired],
        "release_us": [time for one in calls for time in one.released],
        "grants": [one.in_time for one in calls],
        "failed": sum(one.failed for one in calls),
        "overlaps": sum(one.overlaps for one in calls),
        "error": next((one.error for one in calls if one.error), ""),
    }


def outcome(word, call):
    start = time.monotonic()
    try:
        done = call() is not False
        return {word: done, "us": micros(start)}
    except Exception as error:
        return {word: False, "us": micros(start), "error": f"{type(error).__name__}: {error}"}


def say(what):
    print(json.dumps(what), flush=True)


def main():
    logging.disable(logging.CRITICAL)
    way = {"pottery": Pottery, "redis-py": RedisPy}[sys.argv[1]]
    peer = way(int(sys.argv[2]) / 1000, sys.argv[3:])
    versions = [f"{name} {importlib.metadata.version(name)}" for name in way.packages]
    say({"version": ", ".join([*versions, f"Python {platform.python_version()}"])})
    held = None
    for line in sys.stdin:
        order, *rest = line.split()
        if order == "run":
            say(run(peer, *rest))
        elif order == "hold":
            held = peer.lock(rest[0])
            say(outcome("held", held.acquire))
        elif order == "release":
            say(outcome("released", held.release))
    os._exit(0)  # a call that never returns keeps no process


main()
