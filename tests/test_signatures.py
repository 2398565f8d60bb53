"""Every public signature, held as text: what changes here is a change for callers.

python -m tests.test_signatures      writes the file anew
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import reverie
from reverie import layers, models, testing

FILE = Path(__file__).parent / "fixtures" / "signatures.txt"


def lines() -> Iterator[str]:
    """The public names with their signatures, and those of their public members."""
    for name in sorted(reverie.__all__):
        yield from _name(name, getattr(reverie, name))
    for room in (layers, models, testing):
        names = getattr(room, "__all__", None) or _own(room)
        for name in sorted(names):
            yield from _name(f"{room.__name__.partition('.')[2]}.{name}", getattr(room, name))


def _own(room: ModuleType) -> list[str]:
    """The names that a module defines itself."""
    known = vars(room).items()
    found = [n for n, v in known if getattr(v, "__module__", "") == room.__name__]
    return [name for name in found if not name.startswith("_")]


def _name(name: str, found: object) -> Iterator[str]:
    if not isinstance(found, type):
        yield f"{name}{inspect.signature(found)}" if inspect.isroutine(found) else name
        return
    yield name if _has_no_own_init(found) else f"{name}{inspect.signature(found)}"
    for member in sorted(vars(found)):
        if not member.startswith("_"):
            yield from _member(name, member, inspect.getattr_static(found, member), found)


def _has_no_own_init(found: type) -> bool:
    is_given = found in (reverie.Settings, layers.World)  # a table of its own; handed in
    return is_given or "__init__" not in vars(found) or getattr(found, "_is_protocol", False)


def _member(owner: str, name: str, static: object, found: type) -> Iterator[str]:
    if dataclasses.is_dataclass(found) and name in {one.name for one in dataclasses.fields(found)}:
        return
    if isinstance(static, property):
        returned = inspect.signature(static.fget).return_annotation if static.fget else ""
        yield f"{owner}.{name}: {returned}"
    elif callable(getattr(found, name)):
        kind = "async " if inspect.iscoroutinefunction(getattr(found, name)) else ""
        yield f"{kind}{owner}.{name}{inspect.signature(getattr(found, name))}"


@pytest.mark.spec("18.signatures")
def test_no_public_signature_changes_unseen() -> None:
    told = "if it is meant: python -m tests.test_signatures"
    assert FILE.read_text(encoding="utf-8").splitlines() == list(lines()), told


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
