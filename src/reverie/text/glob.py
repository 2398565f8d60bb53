"""Path patterns of rules, matched name by name: `*`, `?`, `**`, `{a,b}`; no regular expression.

`*.env` and `generated/` are found at any depth, `src/api/**` from the project's root on, `/etc/**`
and `~/.ssh/` where they say. A pattern that names a folder holds for all that lies below it. The
time is bounded by the product of the lengths. A leaf: it imports nothing.
"""

from __future__ import annotations

MAX_PATTERN = 500
MAX_CHOICES = 64


def choices(pattern: str) -> list[str]:
    """A pattern with braces as several without; too many are the pattern as it stands."""
    done, todo = list[str](), [pattern[:MAX_PATTERN]]
    while todo:
        one = todo.pop()
        start = one.find("{")
        end = one.find("}", start)
        inside = one[start + 1 : end] if 0 <= start < end else ""
        if "," not in inside:
            done.append(one)
            continue
        todo += [one[:start] + part.strip() + one[end + 1 :] for part in inside.split(",")]
        if len(done) + len(todo) > MAX_CHOICES:
            return [pattern]
    return done


def star(pattern: str, name: str) -> bool:
    """Whether `*` and `?` make a name of a pattern; each sign is looked at a bounded time."""
    at = place = 0
    mark, back = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            mark, back = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at += 1
            place += 1
        elif mark >= 0:
            back += 1
            at, place = mark + 1, back
        else:
            return False
    return all(sign == "*" for sign in pattern[at:])


def names_of(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def fits(pattern: str, path: str, root: str, user: str) -> bool:
    """Whether a pattern stands for a path, or for a folder that it lies in. `path` is absolute
    and without links; `root` is the project's, `user` the person's home."""
    return any(_fits(one, path, root, user) for one in choices(pattern))


def _fits(pattern: str, path: str, root: str, user: str) -> bool:
    names = names_of(path)
    if pattern.startswith("~"):
        pattern = user + pattern[1:]
    wanted = names_of(pattern)
    if not wanted:
        return False
    if pattern.startswith("/"):
        return _leads(wanted, names)
    inside = names_of(root)
    below = names[: len(inside)] == inside
    here = names[len(inside) :] if below else names
    if len(wanted) == 1:
        return wanted[0] == "**" or any(star(wanted[0], name) for name in here)
    if below:
        return _leads(wanted, here)
    return any(_leads(wanted, here[at:]) for at in range(len(here)))


def _leads(wanted: list[str], names: list[str]) -> bool:
    """Whether the names begin with what is wanted: what lies below a folder is meant with it."""
    reached = {0}
    for part in wanted:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            reached = {n + 1 for n in reached if n < len(names) and star(part, names[n])}
        if not reached:
            return False
    return True


def anchors(pattern: str) -> list[str]:
    """By what a pattern is found again: a whole name in it, or a file's ending; none of either
    for one choice is none for all."""
    found: list[str] = []
    for one in choices(pattern):
        parts = names_of(one.removeprefix("~"))
        plain = [part for part in parts if not any(sign in part for sign in "*?")]
        last = parts[-1] if parts else ""
        ending = last.rpartition(".")[2] if "." in last else ""
        if plain:
            found.append("n:" + max(plain, key=len))
        elif ending and not any(sign in ending for sign in "*?"):
            found.append("x:" + ending)
        else:
            return []
    return found


def marks(path: str) -> list[str]:
    """The anchors that a path answers to."""
    names = names_of(path)
    found = ["n:" + name for name in names]
    # a pattern may stand for a folder, so every name's ending counts
    return found + ["x:" + name.rpartition(".")[2] for name in names if "." in name]
