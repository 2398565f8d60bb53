"""The second wall: limits and Landlock, set from inside the sandbox before the shell.

    python -I -S wall.py JSON COMMAND...

The JSON has `read` (folders and files that may be read), `run` (programs that may be
run), `use` (devices that may be written) and the limits `cpu`, `memory`, `processes`.
Then every other read, every write, every program, every TCP connection is refused by
the kernel for this process and all that follow it, and no file can grow. Where the
kernel has no Landlock, or `landlock` is false, the limits hold alone.
Standard library alone; it imports nothing of ours, since it runs where nothing else is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import stat
import sys
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
EXECUTE, WRITE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
IOCTL = 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE | READ_FILE | TRUNCATE | IOCTL
# Rights the kernel knows by its Landlock version: 13 at first, then one more each.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


class Ruleset(ctypes.Structure):
    _fields_ = [
        ("fs", ctypes.c_uint64),
        ("net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class LandlockPathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def call(number: int, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def version() -> int:
    """The kernel's version of Landlock; 0 = none."""
    if sys.platform != "linux":
        return 0
    with contextlib.suppress(OSError):
        return call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return 0


def restrict(read: list[str], run: list[str], use: list[str]) -> bool:
    """Refuse everything but this; False where the kernel cannot."""
    known = version()
    if known < 1:
        return False
    handled = (1 << _RIGHTS.get(known, 16)) - 1
    rules = Ruleset(handled, 3 if known >= 4 else 0, 3 if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    fd = call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path in read:
        allow(fd, path, (READ_FILE | READ_DIR) & handled)
    for path in run:
        allow(fd, path, (READ_FILE | EXECUTE) & handled)
    for path in use:
        allow(fd, path, (READ_FILE | WRITE | TRUNCATE) & handled)
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    call(_RESTRICT, ctypes.c_int(fd), ctypes.c_uint32(0))
    os.close(fd)
    return True


def allow(rules: int, path: str, access: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _FILE_RIGHTS
        rule = LandlockPathBeneath(access, fd)
        call(_ADD, ctypes.c_int(rules), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
        os.close(fd)


def limit(kind: int, most: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (most, most))


def main() -> None:
    asked: dict[str, Any] = json.loads(sys.argv[1])
    command = sys.argv[2:]
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_NOFILE, 256)
    limit(resource.RLIMIT_CPU, asked["cpu"])
    limit(resource.RLIMIT_NPROC, asked["processes"])
    try:
        if asked["landlock"]:
            restrict(asked["read"], asked["run"], asked["use"])
    except OSError as error:
        os.write(2, f"the second wall could not be set: {error}\n".encode())
        os._exit(126)
    limit(resource.RLIMIT_AS, asked["memory"])
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
