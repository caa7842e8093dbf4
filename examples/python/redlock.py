# SPDX-License-Identifier: MIT
"""redlock for Python, by ctypes: what <redlock/redlock.h> declares, as two classes.

    import redlock

    with redlock.Client("host1:6379,host2:6379,host3:6379") as client:
        with client.acquire("report", wait=10) as lease:
            write_report(token=lease.token)

The shared library is found as the system finds libraries (LD_LIBRARY_PATH, ldconfig), or where
REDLOCK_LIBRARY says.
"""

import ctypes
import json
import os
import select

_library = ctypes.CDLL(os.environ.get("REDLOCK_LIBRARY", "libredlock.so.0.1"))

_OK = 0
_FOREVER = -1


class _ClientOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("nodes", ctypes.c_char_p),
        ("password_file", ctypes.c_char_p),
        ("tls_ca", ctypes.c_char_p),
        ("tls_certificate", ctypes.c_char_p),
        ("tls_key", ctypes.c_char_p),
        ("tls_name", ctypes.c_char_p),
        ("client_name", ctypes.c_char_p),
        ("label", ctypes.c_char_p),
        ("lease_ms", ctypes.c_int64),
        ("max_lease_ms", ctypes.c_int64),
        ("node_timeout_ms", ctypes.c_int64),
        ("connect_timeout_ms", ctypes.c_int64),
        ("ordering", ctypes.c_int),
        ("without_quarantine", ctypes.c_int),
        ("without_warnings", ctypes.c_int),
    ]


class _AcquireOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("lease_ms", ctypes.c_int64),
        ("renewal", ctypes.c_int),
        ("wait_ms", ctypes.c_int64),
        ("deadline_ms", ctypes.c_int64),
        ("ordering", ctypes.c_int),
        ("min_validity_ms", ctypes.c_int64),
        ("max_hold_ms", ctypes.c_int64),
        ("stop", ctypes.c_void_p),
    ]


def _declare(name, result, *arguments):
    function = getattr(_library, name)
    function.restype = result
    function.argtypes = arguments
    return function


_pointer = ctypes.c_void_p
_status_name = _declare("redlock_status_name", ctypes.c_char_p, ctypes.c_int)
_last_error_json = _declare("redlock_last_error_json", ctypes.c_char_p)
_client_create = _declare(
    "redlock_client_create", ctypes.c_int, ctypes.POINTER(_ClientOptions), ctypes.POINTER(_pointer)
)
_client_destroy = _declare("redlock_client_destroy", None, _pointer)
_acquire = _declare(
    "redlock_acquire",
    ctypes.c_int,
    _pointer,
    ctypes.c_char_p,
    ctypes.POINTER(_AcquireOptions),
    ctypes.POINTER(_pointer),
)
_token = _declare("redlock_lease_token", ctypes.c_uint64, _pointer)
_valid = _declare("redlock_lease_valid", ctypes.c_int, _pointer)
_remaining = _declare("redlock_lease_remaining_ms", ctypes.c_int64, _pointer)
_lost_fd = _declare("redlock_lease_lost_fd", ctypes.c_int, _pointer)
_extend = _declare("redlock_lease_extend", ctypes.c_int, _pointer, ctypes.c_int64)
_release = _declare(
    "redlock_lease_release", ctypes.c_int, _pointer, ctypes.POINTER(ctypes.c_int)
)
_lease_destroy = _declare("redlock_lease_destroy", None, _pointer)


class Error(Exception):
    """`code` is "contended", "no_quorum" and so on; `votes` has what each node did."""

    def __init__(self, description):
        super().__init__(description["message"])
        self.code = description["code"]
        self.votes = description["votes"]


def _check(status):
    # The error is this thread's: ctypes calls on the thread that it is called on.
    if status != _OK:
        raise Error(json.loads(_last_error_json()))


def _milliseconds(seconds):
    return _FOREVER if seconds is None else int(seconds * 1000)


class Lease:
    """The lock, held; a context manager, which gives it back."""

    def __init__(self, handle):
        self._handle = handle

    @property
    def token(self):
        """Give it to the resource, which must refuse a smaller one than it has seen."""
        return _token(self._handle)

    @property
    def valid(self):
        return bool(_valid(self._handle))

    @property
    def remaining(self):
        """Seconds."""
        return _remaining(self._handle) / 1000

    def fileno(self):
        """For select and asyncio: readable once the lease can no longer be trusted."""
        return _lost_fd(self._handle)

    @property
    def lost(self):
        return bool(select.select([self], [], [], 0)[0])

    def extend(self, seconds):
        _check(_extend(self._handle, _milliseconds(seconds)))

    def release(self):
        """True if it was ours until now, False if it was lost before, None if too few nodes
        answered."""
        found = ctypes.c_int(0)
        try:
            _check(_release(self._handle, ctypes.byref(found)))
        finally:
            self._destroy()
        return {0: True, 1: False}.get(found.value)

    def _destroy(self):
        handle, self._handle = self._handle, None
        _lease_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._handle:
            self.release()

    def __del__(self):
        self._destroy()


class Client:
    """One set of nodes: one per program. Without nodes, those of REDLOCK_NODES.

    Options are the fields of redlock_client_options in redlock.h, such as lease_ms=10000.
    """

    def __init__(self, nodes=None, **options):
        known = _ClientOptions(size=ctypes.sizeof(_ClientOptions))
        if nodes is not None:
            known.nodes = nodes.encode()
        for name, value in options.items():
            setattr(known, name, value.encode() if isinstance(value, str) else value)
        self._handle = _pointer()
        _check(_client_create(ctypes.byref(known), ctypes.byref(self._handle)))

    def acquire(self, name, wait=0, lease=0, deadline=0):
        """Seconds, `wait=None` for ever. Other Python threads run meanwhile."""
        options = _AcquireOptions(
            size=ctypes.sizeof(_AcquireOptions),
            lease_ms=_milliseconds(lease),
            wait_ms=_milliseconds(wait),
            deadline_ms=_milliseconds(deadline),
        )
        handle = _pointer()
        _check(_acquire(self._handle, name.encode(), ctypes.byref(options), ctypes.byref(handle)))
        return Lease(handle)

    def close(self):
        handle, self._handle = self._handle, None
        _client_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
