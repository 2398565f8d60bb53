"""Become another program that the kernel kills when this one's parent ends.

    bound_child.py PARENT PROGRAM [WORD…]

An agent program must not outlive the work it was started for, also where that was killed.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, *line: str) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            sys.exit(1)
    os.execv(line[0], line)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
