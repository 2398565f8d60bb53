"""The embedded selector: names and descriptions that clearly fit, or none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import EmbeddedModel, answer_selection, select_files
from reverie.transcript import HeadSet, KnownMemory, RecallTask, Task, Trail
from reverie.wire import Request
from reverie.world import complete

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("8")]

MEMORIES = (
    KnownMemory(
        "deploys.md", "project", "Billing deploys", "when the billing service is deployed", 5.0
    ),
    KnownMemory(
        "minimal_diffs.md", "feedback", "Minimal diffs", "edits touch only what is needed", 4.0
    ),
    KnownMemory("tulips.md", "reference", "Tulips", "where the garden plan lies", 3.0),
    KnownMemory("部署.md", "project", "账单部署", "账单服务的部署时间", 2.0),
)


def chosen(query: str, files: int = 5) -> tuple[str, ...]:
    return select_files(RecallTask(query=query, memories=MEMORIES, files=files))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("When is the billing service deployed?", ("deploys.md",)),
        ("should the diffs be minimal", ("minimal_diffs.md",)),
        ("账单服务什么时候部署？", ("部署.md",)),
        ("where is the garden plan", ("tulips.md",)),
        ("Explain the theory of quantum chess openings", ()),
        ("which service desk answers the telephone of the dentist", ()),
        ("what is it", ()),
        ("", ()),
    ],
)
def test_what_clearly_fits_is_chosen(query: str, wanted: tuple[str, ...]):
    assert chosen(query) == wanted


def test_at_most_so_many_and_the_newer_of_equals_first():
    twins = tuple(
        KnownMemory(f"t{n}.md", description="zebra stripes", saved=float(n)) for n in range(9)
    )
    others = tuple(KnownMemory(f"o{n}.md", description=f"tulip {n}") for n in range(40))
    task = RecallTask(query="zebra stripes", memories=(*twins, *others), files=3)
    assert select_files(task) == ("t8.md", "t7.md", "t6.md")


def request(task: Task) -> Request:
    return Request(HeadSet("embedded"), Trail(), (), source="recall", task=task)


async def test_the_answer_is_json_through_the_models_port():
    task = RecallTask(query="billing service deployed", memories=MEMORIES)
    reply = await complete(EmbeddedModel(answers={"recall": answer_selection}), request(task))
    assert json.loads(reply.text) == {"selected_memories": ["deploys.md"]}
    (block,) = answer_selection(request(Task("recall")))
    assert json.loads(block.get("text")) == {"selected_memories": []}


@given(st.text(max_size=300), st.lists(st.text(max_size=80), max_size=8))
def test_any_query_over_any_manifest_gives_known_names(query: str, about: list[str]):
    memories = tuple(KnownMemory(f"f{n}.md", description=text) for n, text in enumerate(about))
    found = select_files(RecallTask(query=query, memories=memories))
    assert set(found) <= {m.file for m in memories}
    assert len(found) <= 5
