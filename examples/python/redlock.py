# SPDX-License-Identifier: MIT
"""redlock for Python, by ctypes: what <redlock/redlock.h> declares, as two classes.

    import redlock

    with redlock.Client("host1:6379,host2:6379,host3:6379") as client:
        with client.acquire("report", wait=10) as lease:
            write_report(token=lease.token)

The shared library is found as the system finds libraries (LD_LIBRARY_PATH, ldconfig), or where
REDLOCK_LIBRARY says. BUILD_SHARED_LIBS=ON builds it: see docs/c.md.
"""

import ctypes
import json
import os
import select
import threading

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
        ("ordering", ctypes.c_int),
        ("without_quarantine", ctypes.c_int),
        ("without_warnings", ctypes.c_int),
        ("lease_ms", ctypes.c_int64),
        ("max_lease_ms", ctypes.c_int64),
        ("node_timeout_ms", ctypes.c_int64),
        ("connect_timeout_ms", ctypes.c_int64),
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
_stop_create = _declare("redlock_stop_create", ctypes.c_int, ctypes.POINTER(_pointer))
_stop_request = _declare("redlock_stop_request", None, _pointer)
_stop_destroy = _declare("redlock_stop_destroy", None, _pointer)
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


class _CallStop:
    """redlock_stop: of one call."""

    def __init__(self):
        self.handle = _pointer()
        _check(_stop_create(ctypes.byref(self.handle)))

    def request(self):
        _stop_request(self.handle)

    def __del__(self):
        _stop_destroy(self.handle)


class Stop:
    """Ends the calls of acquire() that have it, with the error "cancelled", and those that get it
    later at once. request() may be called on any thread, and in a handler of signal.signal()."""

    def __init__(self):
        self.requested = False
        self._calls = set()

    def request(self):
        self.requested = True
        for call in list(self._calls):
            call.request()

    def _begin(self, call):
        # Added first: request() may come in between, on another thread.
        self._calls.add(call)
        if self.requested:
            call.request()

    def _end(self, call):
        self._calls.discard(call)


class _Acquisition:
    """A call of redlock_acquire, and its result."""

    def __init__(self, *arguments):
        self._arguments = arguments
        self._lease = None
        self._error = None
        self._abandoned = False

    def run(self):
        handle = _pointer()
        try:
            _check(_acquire(*self._arguments, ctypes.byref(handle)))
            self._lease = Lease(handle)
        except Exception as error:
            self._error = error
        if self._abandoned:
            self._lease = None

    def run_interruptibly(self, call):
        """On a thread of its own, as Python handles no signal while a function of C runs. What a
        handler raises ends the call, and leaves nothing locked."""
        thread = threading.Thread(target=self.run)
        try:
            thread.start()
            thread.join()
        except BaseException:
            self._abandoned = True
            call.request()
            if thread.is_alive():
                thread.join()
            self._lease = None
            raise

    def result(self):
        if self._error is not None:
            raise self._error
        return self._lease


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

    def acquire(self, name, wait=0, lease=0, deadline=0, renewal=None, stop=None):
        """Seconds, `wait=None` for ever. `renewal` is whether the lease is renewed until it is
        released; None: if no `lease` is given. `stop` is a Stop. Other Python threads run
        meanwhile, and Ctrl-C ends a call that waits, with KeyboardInterrupt."""
        call = _CallStop()
        options = _AcquireOptions(
            size=ctypes.sizeof(_AcquireOptions),
            lease_ms=_milliseconds(lease),
            renewal={None: 0, True: 1, False: 2}[renewal],
            wait_ms=_milliseconds(wait),
            deadline_ms=_milliseconds(deadline),
            stop=call.handle,
        )
        acquisition = _Acquisition(self._handle, name.encode(), ctypes.byref(options))
        if stop is not None:
            stop._begin(call)
        try:
            # Only the main thread handles signals.
            if wait != 0 and threading.current_thread() is threading.main_thread():
                acquisition.run_interruptibly(call)
            else:
                acquisition.run()
        finally:
            if stop is not None:
                stop._end(call)
        return acquisition.result()

    def close(self):
        handle, self._handle = self._handle, None
        _client_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
