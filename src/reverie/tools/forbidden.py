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
_COMPARED = 100  # words of a command that a rule is compared with
_BREAKS = re.compile(r"[;&|\n\r(){}`<>]|\$\(")
_LINE = re.compile(r"[\s;&|(){}`<>$]")
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
    """The first words of every command that a line may start; linear in the line."""
    return set(_commands(line.replace("\\\n", ""), 0))


def _commands(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    for piece in (line, *_BREAKS.split(line)):
        for words in _readings(piece):
            yield from _unwrapped(words, depth)


def _readings(piece: str) -> Iterator[tuple[str, ...]]:
    """A piece as words: as a shell reads it, or with every quote left out."""
    plain = re.sub(r"\$(?=['\"])", "", piece)
    try:
        yield tuple(shlex.split(plain))
    except ValueError:
        yield tuple(re.sub(r"['\"\\]", "", plain).split())
    if "," in piece and len(piece.split()) == 1:
        yield tuple(piece.split(","))  # {rm,-r,x}


def _unwrapped(words: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """A command, and each that it may start in turn; behind a program that runs others that
    may be any word, and behind a shell a whole line as well."""
    runs = nested = False
    for at, word in enumerate(words):
        name = posixpath.basename(word)
        yield (name, *words[at + 1 : at + _COMPARED])
        if nested and depth < _DEEPEST and _LINE.search(word):
            yield from _commands(word, depth + 1)
        nested = nested or name in _SHELLS
        runs = runs or nested or name in _RUNNERS
        if not runs and name not in _GRAMMAR and not _ASSIGNMENT.match(word):
            return
