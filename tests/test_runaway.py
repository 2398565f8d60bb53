"""No text makes a pattern or a merge run away: ten times the text costs about ten times the time.

Every regular expression of the code is run over texts made to lead such patterns astray, and each
is allowed a time that one which looks at every character once never needs.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.consolidation.junk import _TRACE
from reverie.light import _Pattern
from reverie.text import commands, union
from reverie.topics import find_claims, merge_text
from reverie.topics.claims import _CODE
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("1.runaway")]

SIZE = 2_000
LIMIT = 1.0
MOST = 0.1  # seconds for one pattern and one text
PIECES = (" ", "\n", "\t", "\r\n", "a", "A", "0", "-", "_", ".", "/", "\\", "'", '"', "`", "(", "[")
MORE = (
    "{",
    "<",
    "a ",
    "a.",
    "a-",
    "a\n",
    "0,",
    "- ",
    "> ",
    "* ",
    "](",
    "a/",
    "==",
    "é",
    "我",
    "\0",
)


def texts(*, proof: bool) -> Iterator[str]:
    """Texts that end in what no pattern expects; in full, also those that end before it."""
    for piece in (*PIECES, *MORE):
        many = piece * (SIZE // len(piece))
        yield f"{many}!"
        if proof:
            yield many


def patterns() -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Every pattern that a module holds by name, alone or among others, and whether it is looked
    for anywhere in a text rather than at one place."""
    for found in pkgutil.walk_packages(reverie.__path__, "reverie."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        for name, value in vars(module).items():
            held = list(within(value))
            placed = re.findall(rf"\b{re.escape(name)}\.(\w*match)\(", source)
            anywhere = re.findall(rf"\b{re.escape(name)}\b(?!\.\w*match\()", source)
            for number, pattern in enumerate(held):
                called = f"{found.name}.{name}" + (f"[{number}]" if len(held) > 1 else "")
                yield called, pattern, not placed or len(anywhere) > 1


def within(value: object) -> Iterator[re.Pattern[Any]]:
    match value:
        case re.Pattern():
            yield value
        case _Pattern():  # not compiled yet, and no less looked at
            yield re.compile(*value._given)
        case dict():
            yield from within(tuple(value.values()))
        case tuple() | list() | set() | frozenset():
            for one in value:
                yield from within(one)
        case _:
            pass


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def slow_text(pattern: re.Pattern[Any], *, anywhere: bool, proof: bool) -> str:
    """A text that takes a pattern too long, by its first characters; nothing where none does."""
    look = pattern.search if anywhere else pattern.fullmatch
    for text in texts(proof=proof):
        for part, most in ((text[: SIZE // 8], MOST / 8), (text, MOST)):
            given = part if isinstance(pattern.pattern, str) else part.encode()
            if seconds(lambda given=given: look(given)) > most:
                return text[:4]
    return ""


def test_no_pattern_runs_away(scale: Scale) -> None:
    looks: dict[tuple[object, int, bool], tuple[str, re.Pattern[Any]]] = {}
    for name, pattern, anywhere in patterns():
        looks.setdefault((pattern.pattern, pattern.flags, anywhere), (name, pattern))
    slow = {
        name: slow_text(one, anywhere=key[2], proof=scale.proof)
        for key, (name, one) in looks.items()
    }
    print(f"{len(slow)} patterns, {len(list(texts(proof=scale.proof)))} texts each")
    assert len(slow) > 450
    assert {name: text for name, text in slow.items() if text} == {}


def test_blank_lines_cost_a_check_no_more_than_other_lines() -> None:
    assert seconds(lambda: _TRACE.search("\n" * 200_000)) < LIMIT
    assert _TRACE.search('x\n\n  File "a.py", line 3\n')


def test_marks_of_code_that_never_close_cost_a_look_at_claims_no_more_than_other_text() -> None:
    assert seconds(lambda: _CODE.findall("`" * 200_000)) < LIMIT
    assert seconds(lambda: _CODE.findall("``a`" * 50_000)) < LIMIT
    assert [one.text for one in find_claims("See `a/b.py` and ``c/d.py``.")] == ["a/b.py", "c/d.py"]


@pytest.mark.parametrize("line", ["\n", "same\n"])
def test_a_merge_of_many_equal_lines_ends_soon(line: str) -> None:
    base = line * 8_000
    ours, theirs = f"{line * 100}ours\n{base}", f"{base}{line * 30}theirs\n{line * 50}"
    assert seconds(lambda: merge_text(base, ours, theirs)) < LIMIT
    text = merge_text(base, ours, theirs).text
    assert "ours\n" in text
    assert "theirs\n" in text
    mixed = "".join(f"{n % 7}\n" for n in range(8_000))
    assert seconds(lambda: merge_text(mixed, f"x\n{mixed}y\n", mixed[400:])) < LIMIT
    assert seconds(lambda: union(mixed.split("\n"), mixed[300:].split("\n"))) < LIMIT


def test_a_long_merge_keeps_what_each_side_did() -> None:
    lines = [f"line {n}\n" for n in range(6_000)]
    ours, theirs = list(lines), list(lines)
    ours[10], theirs[5_000] = "ours\n", "theirs\n"
    ours.insert(3_000, "added\n")
    del theirs[4_000]
    done = merge_text("".join(lines), "".join(ours), "".join(theirs))
    assert done.clean
    wanted = list(lines)
    wanted[10], wanted[5_000] = "ours\n", "theirs\n"
    del wanted[4_000]
    wanted.insert(3_000, "added\n")
    assert done.text == "".join(wanted)


def test_a_long_word_of_a_command_is_cut_up_soon() -> None:
    assert seconds(lambda: commands("x" * 2_000_000)) < LIMIT
    assert [one.views[0] for one in commands("ls 'a b'; rm x")] == [["ls", "a b"], ["rm", "x"]]
