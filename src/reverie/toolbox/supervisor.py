"""A program of its own that runs one command and outlives nothing it started.

    python -I -S keeper.py LIFELINE tree|leaf FOLDER|fd:NUMBER COMMAND...

The command gets a session and process group of its own. When it ends, when LIFELINE (a
pipe's descriptor) is closed, or on SIGTERM, everything it started is killed, also what
made itself a daemon: on Linux with `tree` this process is the reaper of its descendants,
so an orphan comes to it and is found. The lifeline closes with the process that holds it,
so the same holds after a kill -9 there. Without a reaper (macOS) only the group is killed.
It cannot hold a command that kills this process first. Standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

_SUBREAPER = 36
_ROUNDS = 5_000


def become_reaper() -> bool:
    """Ask that orphaned descendants come to this process."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        return prctl(_SUBREAPER, 1, 0, 0, 0) == 0
    return False


def processes() -> list[tuple[int, int, int]]:
    """All processes: id, parent, group."""
    found: list[tuple[int, int, int]] = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    with open(f"/proc/{name}/stat", "rb") as file:
                        fields = file.read().rpartition(b")")[2].split()
                    found.append((int(name), int(fields[1]), int(fields[2])))
    return found


def descendants() -> list[tuple[int, int]]:
    """Every process below this one: id and group."""
    known = processes()
    below = {os.getpid()}
    out: dict[int, int] = {}
    grown = True
    while grown:
        grown = False
        for pid, parent, group in known:
            if parent in below and pid not in below:
                below.add(pid)
                out[pid] = group
                grown = True
    return list(out.items())


def end_all(main: int) -> None:
    """Kill the command's group, then whatever else is left below, until nothing is."""
    with contextlib.suppress(OSError):
        os.killpg(main, signal.SIGKILL)
    own = os.getpgrp()
    for _ in range(_ROUNDS):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid, group in descendants():
            with contextlib.suppress(OSError):
                if group not in (own, 0):
                    os.killpg(group, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def start(command: list[str], folder: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if folder.startswith("fd:"):
            os.fchdir(int(folder[3:]))
        else:
            os.chdir(folder)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} could not be run: {os.strerror(error.errno or 0)}\n".encode())
    os._exit(127)


def status(main: int) -> int | None:
    """The command's exit status; None while it runs. It stays to be reaped where that can be,
    so that its group's number is not given to another meanwhile."""
    if hasattr(os, "waitid"):
        found = os.waitid(os.P_PID, main, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        killed = found.si_code != os.CLD_EXITED
        return 128 + found.si_status if killed else found.si_status
    pid, raw = os.waitpid(main, os.WNOHANG)
    if not pid:
        return None
    code = os.waitstatus_to_exitcode(raw)
    return 128 - code if code < 0 else code


def wait(main: int, lifeline: int, wake: int, ended: list[int]) -> int | None:
    """The command's exit status once it is over; None where it has to be ended."""
    while True:
        found = status(main)
        if found is not None or ended:
            return found
        ready, _, _ = select.select([lifeline, wake], [], [])
        if lifeline in ready:
            return None
        os.read(wake, 512)


def main() -> None:
    lifeline, tree, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    os.set_inheritable(lifeline, False)
    if tree == "tree":
        become_reaper()
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    ended: list[int] = []

    def note(number: int, frame: object) -> None:
        del frame
        if number == signal.SIGTERM:
            ended.append(number)

    signal.signal(signal.SIGCHLD, note)
    signal.signal(signal.SIGTERM, note)
    pid = start(command, folder)
    code = wait(pid, lifeline, wake, ended)
    end_all(pid)
    os._exit(137 if code is None else code)


if __name__ == "__main__":
    main()
