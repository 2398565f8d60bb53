"""What is loaded when: nothing by `import reverie`, little by a name, no event loop by memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reverie

pytestmark = pytest.mark.spec("18.light")

FOREIGN = ("anthropic", "anyio", "asyncio", "click", "httpx", "openai", "rich", "trio")
ROOMS = ("agent", "apps", "embedded", "layers", "providers", "simulator", "toolbox", "wire")
LIGHT = {"reverie.memory", "reverie.lazy", "reverie.light"}
OF_MEMORY = {
    "errors",
    "lazy",
    "light",
    "memory",
    "settings",
    "store",
    "text",
    "topics",
    "transcript",
}
OF_SESSION = {
    *("reverie.session", "reverie.session.open_memory", "reverie.session.recall"),
    "reverie.session.recall.project_index",
}
MODULES = 107
"""Modules of ours behind a first `add` and `search`."""
FIRST_USE = """
memory = reverie.Memory("shop", settings={"embedding_model": "off"})
memory.add("The shop sells zebras")
memory.search("zebra")
"""
USED = """
memory = reverie.Memory("shop", settings={"embedding_model": "off"})  # none is installed
memory.add("The shop sells zebras")
memory.search("zebra"), memory.context("zebra"), memory.list(), memory.history(), memory.undo()
"""


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded behind some lines."""
    text = f"import sys\n{code}\nprint(*sys.modules)"
    run = [sys.executable, "-c", text]
    return set(subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())


def ours(found: set[str]) -> set[str]:
    return {name for name in found if name.startswith("reverie.")}


def test_the_package_loads_nothing_and_a_name_little() -> None:
    assert ours(loaded("import reverie")) == set()
    name = ours(loaded("from reverie import Memory"))
    assert {one.split(".")[1] for one in name} == OF_MEMORY
    assert ours(loaded("from reverie import Found, Saved")) == LIGHT | {"reverie.memory.values"}
    report = {"reverie.session", "reverie.session.report", "reverie.errors"}
    reports = LIGHT - {"reverie.memory"} | report
    assert ours(loaded("from reverie import Report, report")) == reports


def test_a_memory_in_use_loads_memory_store_settings_and_text_alone(home: Path) -> None:
    found = loaded(f"import reverie\n{USED}")
    assert not found.intersection(FOREIGN)
    rooms = {name.split(".")[1] for name in ours(found)}
    assert not rooms.intersection(ROOMS)
    assert {name for name in found if name.startswith("reverie.session")} == OF_SESSION
    assert len(ours(loaded(f"import reverie\n{FIRST_USE}"))) <= MODULES


FITTING = {
    "concurrency",
    "context",
    "errors",
    "layers",
    "lazy",
    "light",
    "providers",
    "settings",
    "text",
    "toolbox",
    "transcript",
}
FITTED = "fit([{'role': 'user', 'content': 'x'}], model='gpt-5')"


def test_fitting_loads_the_transcript_two_layers_and_the_wire_alone() -> None:
    found = loaded(f"from reverie import fit\n{FITTED}")
    assert not found.intersection(FOREIGN)
    assert {name.split(".")[1] for name in ours(found)} == FITTING | {"wire", "world"}
    layers = {name.split(".")[2] for name in found if name.startswith("reverie.layers.")}
    assert layers == {"collapse", "custom", "tool_results"}
    assert {n for n in found if n.startswith("reverie.providers.")} == {
        "reverie.providers.costs",
        "reverie.providers.capabilities",
    }


DUE = (
    *("agent", "apps", "embedded", "simulator", "upkeep"),
    *("session.dream.run", "session.extraction.run", "session.notes.job", "session.recall.recall"),
    *("tools.box", "tools.sandbox", "tools.shell", "tools.process", "tools.guard"),
)


def test_a_session_loads_background_work_tools_and_sdks_when_they_are_due() -> None:
    found = loaded("from reverie import Session")
    assert not found.intersection({"anthropic", "asyncio", "click", "httpx", "openai", "rich"})
    assert not {name for name in found if name.startswith(tuple(f"reverie.{d}" for d in DUE))}


def test_all_names_are_shown_and_each_is_there() -> None:
    assert sorted(reverie.__all__) == sorted(reverie._PLACES)
    assert set(reverie.__all__) <= set(dir(reverie))
    for name in reverie.__all__:
        assert getattr(reverie, name).__name__.rpartition(".")[2] == name  # `tools` may be the room
    with pytest.raises(AttributeError, match="no attribute 'Memori'"):
        reverie.Memori  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_a_public_module_is_there_without_an_import_of_its_own() -> None:
    code = (
        "import sys, reverie; before = len(sys.modules); "
        "reverie.errors.NotFound, reverie.layers.COLLAPSE, reverie.models.embedded, "
        "reverie.testing.home; assert before < len(sys.modules)\n"
        "try: reverie.reports\nexcept AttributeError: print('held')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "held\n"
