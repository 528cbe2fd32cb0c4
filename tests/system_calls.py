"""Supervise the system calls that groundkit's threads make in a child: let them fail, be cut short, or wait.

The child asks the kernel to notify this process of every such call before it is made (seccomp(2), user notification;
Linux 5.6 or newer), so that nothing of the package is replaced for the test.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirPolicy, adapt_beir_dataset

# The numbers on x86-64 and on aarch64.
_NUMBERS: Final = {
    "read": (0, 63),
    "write": (1, 64),
    "fstat": (5, 80),
    "pread64": (17, 67),
    "flock": (73, 32),
    "fsync": (74, 82),
    "fchmod": (91, 52),
    "fchown": (93, 55),
    "fstatfs": (138, 44),
    "getdents64": (217, 61),
    "openat": (257, 56),
    "mkdirat": (258, 34),
    "newfstatat": (262, 79),
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "syncfs": (306, 267),
    "renameat2": (316, 276),
    "statx": (332, 291),
}
_ARCHITECTURE: Final = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
_SECCOMP: Final = (317, 277)
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_NAMES: Final = {} if _ARCHITECTURE is None else {both[_ARCHITECTURE]: name for name, both in _NUMBERS.items()}
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Call(NamedTuple):
    """A system call that is about to be made; `arguments` are the raw ones."""

    number: int
    name: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Fault:
    """What happens to a call: it fails with an error, or it reads or writes one byte only."""

    error: int = 0
    short: bool = False


Act = Callable[[Call], Fault | None]


@dataclass
class Outcome:
    """How a run ended: what it raised, if it did, and the calls that it made; `None` where the child was killed."""

    error: str | None
    calls: list[Call] = field(default_factory=list)
    killed: bool = False


def _install_filter() -> int:
    """Let every listed call of this thread, and of those it starts, wait for a supervisor. Returns its end."""
    load, equal, give = 0x20, 0x15, 0x06
    numbers = list(_NAMES)
    steps = [(load, 0, 0, 0)]
    steps += [(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(give, 0, 0, 0x7FFF_0000), (give, 0, 0, 0x7FC0_0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    program = Program(len(steps), ctypes.addressof(code))
    no_new_privileges, set_filter, new_listener = 38, 1, 1 << 3
    assert _ARCHITECTURE is not None
    if _libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    listener = _libc.syscall(_SECCOMP[_ARCHITECTURE], set_filter, new_listener, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(listener)


def _serve(channel: socket.socket) -> None:
    """Be the child: adapt what the supervisor asks for, one dataset after the other."""
    # Whatever is loaded or started on first use is there before calls are supervised.
    pl.DataFrame({"a": [1, 2]}).lazy().group_by("a").len().collect()
    socket.send_fds(channel, [b"ready"], [_install_filter()])
    while request := channel.recv(1 << 16):
        source, output, options = json.loads(request)
        policy = BeirPolicy(**options.pop("policy", {}))
        try:
            adapt_beir_dataset(source, output, policy=policy, **options)
        except EvalError as error:
            channel.send(json.dumps(str(error)).encode())
        else:
            channel.send(b"null")


class Child:
    """A process whose calls are supervised."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: socket.socket, listener: int) -> None:
        """Take a process that has sent its listener."""
        self._process, self._channel, self._listener = process, channel, listener

    def kill(self) -> None:
        """Kill the child, which cannot notice."""
        self._process.send_signal(signal.SIGKILL)

    def adapt(self, source: Path, output: Path, act: Act = lambda _call: None, **options: Any) -> Outcome:
        """Adapt a dataset in the child; `act` says what becomes of each call of groundkit's own threads."""
        self._channel.send(json.dumps([str(source), str(output), options]).encode())
        calls: list[Call] = []
        waiting = select.poll()
        waiting.register(self._listener, select.POLLIN)
        waiting.register(self._channel, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if ready.get(self._listener, 0) & select.POLLIN:
                self._answer(act, calls)
            elif self._channel.fileno() in ready:
                answer = self._channel.recv(1 << 20)
                if not answer:
                    return Outcome(None, calls, killed=True)
                return Outcome(json.loads(answer), calls)

    def _answer(self, act: Act, calls: list[Call]) -> None:
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, buffer, True)  # noqa: FBT003 - positional only
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:
                return  # its thread was killed
            raise
        identifier, thread, _flags, number, _architecture, _pointer, *arguments = _NOTIFICATION.unpack(buffer)
        fault = None
        if _is_ours(thread):
            calls.append(Call(len(calls), _NAMES[number], tuple(arguments)))
            fault = act(calls[-1])
        result, failure, flags = 0, 0, 0
        if fault is None:
            flags = _CONTINUE
        elif fault.short:
            result = self._transfer_one_byte(calls[-1])
        else:
            failure = -fault.error
        try:
            fcntl.ioctl(self._listener, _SEND, _RESPONSE.pack(identifier, result, failure, flags))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _transfer_one_byte(self, call: Call) -> int:
        pid = self._process.pid
        process = _libc.syscall(_PIDFD_OPEN, pid, 0)
        file = _libc.syscall(_PIDFD_GETFD, process, call.arguments[0], 0)
        if file < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        try:
            # The duplicate shares the position of the child's own.
            with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
                memory.seek(call.arguments[1])
                if call.name == "write":
                    return os.write(file, memory.read(1))
                content = os.pread(file, 1, call.arguments[3]) if call.name == "pread64" else os.read(file, 1)
                memory.write(content)
                return len(content)
        finally:
            os.close(file)
            os.close(process)


def _is_ours(thread: int) -> bool:
    try:
        return Path(f"/proc/{thread}/comm").read_text(encoding="utf-8") == "groundkit\n"
    except OSError:
        return False


@contextmanager
def child() -> Iterator[Child]:
    """Start a child with one thread for each piece of work, so that its calls come in one order."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(theirs.fileno())]
    environment = os.environ | {"RAYON_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    with subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment) as process:
        theirs.close()
        try:
            message, descriptors, _flags, _address = socket.recv_fds(ours, 16, 1)
            if message != b"ready":
                raise RuntimeError("the child did not start")
            yield Child(process, ours, descriptors[0])
            os.close(descriptors[0])
        finally:
            ours.close()
            process.kill()


def can_supervise() -> bool:
    """Whether this machine lets a process supervise a child."""
    if sys.platform != "linux" or _ARCHITECTURE is None:
        return False
    try:
        with child():
            return True
    except (OSError, RuntimeError):
        return False


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _serve(end)
