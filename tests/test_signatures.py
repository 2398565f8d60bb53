"""Every public signature, held as text: what changes here is a change for callers.

python -m tests.test_signatures      writes the file anew
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie

FILE = Path(__file__).parent / "fixtures" / "signatures.txt"


def lines() -> Iterator[str]:
    """The public names with their signatures, and those of their public members."""
    for name in sorted(reverie.__all__):
        found = getattr(reverie, name)
        if not isinstance(found, type):
            yield f"{name}{inspect.signature(found)}"
            continue
        yield name if _has_no_own_init(found) else f"{name}{inspect.signature(found)}"
        for member in sorted(vars(found)):
            if not member.startswith("_"):
                yield from _member(name, member, inspect.getattr_static(found, member), found)


def _has_no_own_init(found: type) -> bool:
    is_table = found is reverie.Settings  # which docs/settings.md holds
    return is_table or "__init__" not in vars(found) or getattr(found, "_is_protocol", False)


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
