"""Path patterns with `**`, `*`, `?`, `[…]` and `{a,b}`, matched name by name.

They stand for the files that ripgrep's `--glob` gives, except that a backslash and a brace
without a comma are themselves. Libraries for ignore files read patterns otherwise: there `src/*`
takes in whatever lies below, and `{a,b}` is no choice. The time is bounded by the product of the
lengths, whatever the pattern. `*` also takes names that begin with a dot. Nothing here touches
the disk.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from reverie.errors import InvalidInput

MAX = 64
_LONGEST = 1_000
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class BadPattern(InvalidInput, code="bad_pattern"):
    """A pattern that cannot be used, and why."""


def expand(pattern: str) -> list[str]:
    """A pattern with braces as several without."""
    if len(pattern) > _LONGEST:
        raise BadPattern(f"the pattern is longer than {_LONGEST:,} characters")
    done: list[str] = []
    todo = [pattern]
    while todo:
        one = todo.pop(0)
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
        else:
            todo += [one[: found.start()] + c + one[found.end() :] for c in found[1].split(",")]
        if len(done) + len(todo) > MAX:
            raise BadPattern(f"the pattern stands for more than {MAX} others")
    return done


def matcher(pattern: str, *, folders: bool = False) -> Callable[[Sequence[str]], bool]:
    """A test for the names of a relative path, one after the other.

    `a/**` is what lies below `a`; with `folders` it is `a` too.
    """
    compiled = [tuple(p for p in one.split("/") if p) for one in expand(pattern)]
    if not folders:
        compiled = [(*one, "*") if one[-1:] == ("**",) else one for one in compiled]
    return lambda names: any(_match(one, names) for one in compiled)


@lru_cache(maxsize=1024)
def _name(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(fnmatch.translate(pattern))
    except re.error as error:
        raise BadPattern(f"the pattern is not valid: {error}") from error


def _match(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Which beginnings of `names` the pattern so far can stand for, step by step."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            test = _name(part)
            reached = {n + 1 for n in reached if n < len(names) and test.match(names[n])}
    return len(names) in reached
