"""What a command line may start, read laxly: for rules that forbid.

It sees through assignments, `!` and the words of shell grammar, programs that run another
(`env`, `sudo`, `xargs`, `find -exec` …), a shell's `-c`, folders before a name, quotes and
backslashes within it, subshells and substitutions. It errs towards finding too many.

It cannot see what only a shell knows: variables (`$X`), patterns (`/bin/r?`), aliases and
functions made elsewhere, text decoded or downloaded before it is run, and programs that do the
same under another name or from within a language (`python -c`). A rule is no wall.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

_DEEPEST = 4
_MOST = 5_000
_BREAKS = re.compile(r"[;&|\n\r(){}`<>]|\$\(")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_GRAMMAR = frozenset(
    ("!", "if", "then", "elif", "else", "while", "until", "do", "case", "in", "coproc", "function")
)
_RUNNERS = frozenset(
    (
        *("builtin", "busybox", "chroot", "chrt", "command", "doas", "env", "exec", "find"),
        *("flock", "ionice", "nice", "nohup", "parallel", "pkexec", "runuser", "script"),
        *("setpriv", "setsid", "stdbuf", "strace", "su", "sudo", "taskset", "time", "timeout"),
        *("toybox", "trap", "unbuffer", "unshare", "watch", "xargs"),
    )
)
_SHELLS = frozenset(("ash", "bash", "dash", "eval", "fish", "ksh", "sh", "su", "trap", "zsh"))


def starts(line: str) -> set[tuple[str, ...]]:
    """The words of every command that a line may start."""
    found: set[tuple[str, ...]] = set()
    for words in _commands(line.replace("\\\n", ""), 0):
        found.add(words)
        if len(found) >= _MOST:
            break
    return found


def _commands(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    pieces = [line, *_BREAKS.split(line)]
    for piece in pieces:
        for words in _readings(piece):
            yield from _unwrapped(words, depth)


def _readings(piece: str) -> Iterator[tuple[str, ...]]:
    """A piece as words: as a shell reads it, and with every quote left out."""
    plain = re.sub(r"\$(?=['\"])", "", piece)
    try:
        yield tuple(shlex.split(plain))
    except ValueError:
        yield tuple(re.sub(r"['\"\\]", "", plain).split())
    if "," in piece and len(piece.split()) == 1:
        yield tuple(piece.split(","))  # {rm,-r,x}


def _unwrapped(words: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """A command, and each that it may start in turn."""
    while words:
        name = posixpath.basename(words[0])
        yield (name, *words[1:])
        if name in _SHELLS and depth < _DEEPEST:
            for word in words[1:]:
                yield from _commands(word, depth + 1)
        if name in _RUNNERS:
            for at in range(1, len(words)):
                yield from _unwrapped(words[at:], depth) if words[at] not in _RUNNERS else ()
                yield (posixpath.basename(words[at]), *words[at + 1 :])
        if name not in _GRAMMAR | _RUNNERS and not _ASSIGNMENT.match(words[0]):
            return
        words = words[1:]
