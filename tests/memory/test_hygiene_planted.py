"""Planted faults in real documents: found, mended by a dream, and nothing lost by it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.hygiene import (
    ALARMS,
    Dreaming,
    given,
    groups,
    ident,
    is_found,
    is_ours,
    is_repaired,
    lost_facts,
    state,
    task_of,
    written,
)
from bench.planted import Planted, documents, planted, untouched
from reverie.consolidation import CheckInput, check, judged_once, reasons_in
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("B7"), pytest.mark.spec("B6")]


@pytest.fixture(scope="module")
def docs(shared: Path) -> list[dict[str, Any]]:
    return documents(shared)


@pytest.fixture(scope="module")
def made(docs: list[dict[str, Any]], scale: Scale) -> Planted:
    count, share = scale.pick((80, 0.1), (500, 1.0))
    return planted(Random(1).sample(docs, count), 1, share)


def test_nine_of_ten_planted_faults_are_found(made: Planted, scale: Scale) -> None:
    assert len(made.faults) >= scale.pick(15, 200)
    report = check(given(made))
    hit = [is_found(fault, report, made) for fault in made.faults]
    assert sum(hit) >= 0.9 * len(hit)
    for half in ("open", "held"):
        twins = [n for n, f in enumerate(made.faults) if (f.kind, f.half) == ("duplicate", half)]
        assert sum(hit[n] for n in twins) >= 0.9 * len(twins), half


def test_real_documents_raise_no_false_alarm(docs: list[dict[str, Any]], scale: Scale) -> None:
    """Every alarm is one that was looked at and judged real."""
    every = untouched(docs)
    if not scale.proof:
        some = {key_of["path"].removeprefix("docs/learned/") for key_of in docs[::5]}
        every.files = {k: v for k, v in every.files.items() if k in some}
    judged = ALARMS.read_text("utf-8")
    report = check(given(every))
    # without all documents, links lead nowhere and the index is not theirs
    mine = [one for one in report.findings if scale.proof or one.kind not in ("link", "index")]
    wrong = {one.file for one in mine if f"`{ident(one)}`" not in judged}
    assert len(wrong) <= 0.02 * report.memories, wrong


async def test_a_dream_mends_them_loses_nothing_and_ends(made: Planted, tmp_path: Path) -> None:
    look = given(made)
    written(tmp_path / "work", made.files)
    text = await Dreaming(tmp_path / "work", task_of(tmp_path / "work", made.times, look.now)).run()
    new = state(tmp_path / "work")
    ours = [fault for fault in made.faults if is_ours(fault)]
    mended = [is_repaired(fault, new) for fault in ours]
    told = {name: sum(mended[n] for n in numbers) for name, numbers in groups(ours).items()}
    assert sum(mended) >= 0.85 * len(mended), told
    assert lost_facts(made, new) == []
    judged = judged_once(CheckInput(made.files, now=look.now), new, reasons_in(text))
    assert len(judged.faults) <= 0.01 * len(mended)  # the judge is stricter, and takes those back
    written(tmp_path / "again", new)
    await Dreaming(tmp_path / "again", task_of(tmp_path / "again", made.times, look.now)).run()
    assert state(tmp_path / "again") == new
