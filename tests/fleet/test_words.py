"""Codes of jobs in words: one table for every door, with every code that a job can get."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import reverie
from reverie import errors
from reverie.fleet import REASONS, in_words

pytestmark = [pytest.mark.spec("9.fleet-words")]
SOURCE = Path(reverie.__file__).parent


def codes() -> Iterator[str]:
    """The codes that stand in the source as they are: second in an outcome or an end."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if "TaskOutcome(" not in text and "JobEnd(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                is_end = node.func.id in ("TaskOutcome", "JobEnd") and len(node.args) > 1
                for one in ast.walk(node.args[1]) if is_end else ():
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield one.value


def test_every_code_that_a_task_gives_has_words() -> None:
    found = set(codes())
    assert len(found) > 15
    assert found - REASONS.keys() == {"dream-"}  # and how a dream stands that did not land
    assert {"dream-failed", "dream-killed"} <= REASONS.keys()


def test_every_error_that_ends_a_job_has_words() -> None:
    own = {"ReverieError", "Held", "BudgetExceeded", "NotFound"}  # have codes of their own
    names = {
        name
        for name, one in inspect.getmembers(errors, inspect.isclass)
        if issubclass(one, errors.ReverieError) and name not in own
    }
    assert names - REASONS.keys() == set()


def test_a_code_of_another_version_is_its_own_word() -> None:
    assert in_words("levitated") == "levitated"
    assert in_words("held") == "another process holds the memory"
