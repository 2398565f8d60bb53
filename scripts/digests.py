"""One digest for every request that is sent: what a change of the code's shape must not move.

Three kinds of sessions are rendered again, each with the product's own fold and layers:

- the recorded sessions of `REVERIE_SHARED`, under both context policies;
- the transcripts that version 0.1.0 wrote (`tests/fixtures/written_by_0.1.0.tar.gz`);
- a fresh run of `reverie demo`, with what differs from run to run (folders, ids, times) taken out.

The recorded sessions are digested twice: as requests of our own, and as what the providers put on
the wire for them (path, headers and body) in each of the three formats.

The digests of the first two stand in `tests/fixtures/digests.json`, and a test compares them. A
change that means to send other bytes writes them again and says why.

    python -m scripts.digests            compare
    python -m scripts.digests --write    write them anew
    python -m scripts.digests --demo     print those of a demo
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from reverie.apps.replay import Course, PolicyName, ReplayPolicy, ReplayStage, of_lines
from reverie.errors import ImportFailed
from reverie.providers import AnthropicModel, Connection, OpenAIModel, Retries, SdkErrors
from reverie.session import Library
from reverie.testing import ManualClock
from reverie.transcript import EMPTY, Sent, apply
from reverie.wire import Request, render
from reverie.world import Model

ROOT = Path(__file__).resolve().parent.parent
DIGESTS = ROOT / "tests/fixtures/digests.json"
OLD = ROOT / "tests/fixtures/written_by_0.1.0.tar.gz"
POLICIES: tuple[PolicyName, ...] = ("classic", "collapse")
FORMATS = ("messages", "chat", "responses")
NAMES = {"messages": "claude-opus-4-6", "chat": "gpt-5.6", "responses": "gpt-5.6"}
OFTEN_DIFFERENT = (
    (re.compile(r"[/-]tmp[/-]reverie-demo-[\w-]{8}"), "DEMO"),
    (re.compile(r"\btoolu_[0-9a-f]{24}\b"), "CALL"),
    (re.compile(r"\br:[0-9a-z]+\b"), "REFERENCE"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){1,3}-(?:[0-9a-f]{12}\b|…)"), "ID"),
    (re.compile(r"\[[0-9a-f]{8}\]"), "[MARK]"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "FRAME"),
    (re.compile(r"\bin \d+\.\d+s\b"), "in TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?"), "DATE"),
)


class Digest:
    """How many, and one digest over all of them in their order."""

    def __init__(self) -> None:
        self.count, self.found = 0, hashlib.sha256()

    def add(self, body: bytes) -> None:
        self.count += 1
        self.found.update(hashlib.sha256(body).digest())

    def __str__(self) -> str:
        return f"{self.count} {self.found.hexdigest()}"


def together(bodies: Iterable[str]) -> str:
    """One digest over texts."""
    digest = Digest()
    for body in bodies:
        digest.add(body.encode("utf-8", "surrogatepass"))
    return str(digest)


# --- the wire


class Taken(Exception):
    """Raised in place of an answer."""


class Never(Exception):
    """Raised by nobody."""


class Tap:
    """An SDK's client that keeps what it was to send."""

    def __init__(self) -> None:
        self.sent = b""

    async def post(self, path: str, *, content: bytes, options: Any, **_: Any) -> Any:
        self.sent = b"\n".join((path.encode(), json.dumps(options["headers"]).encode(), content))
        raise Taken

    async def get(self, *_: Any, **__: Any) -> Any:
        raise Taken

    async def close(self) -> None:
        pass


class Wires:
    """The providers of the three formats, with nobody behind them."""

    def __init__(self) -> None:
        self.tap = Tap()
        connection = Connection(self.tap, SdkErrors(Never, Never, Never), object, "", "no-key")
        retries = Retries(0, ManualClock())
        self.models: dict[str, Model] = {
            "messages": AnthropicModel(NAMES["messages"], connection, retries),
            "chat": OpenAIModel(NAMES["chat"], connection, retries, "chat"),
            "responses": OpenAIModel(NAMES["responses"], connection, retries, "responses"),
        }

    async def sent(self, request: Request, form: str) -> bytes:
        """What leaves for a request in a format."""
        named = replace(request, head=replace(request.head, model=NAMES[form]))
        with contextlib.suppress(Taken):
            async for _ in self.models[form].stream(named):
                pass
        return self.tap.sent


# --- recorded sessions


async def _requests(course: Course, policy: ReplayPolicy) -> AsyncIterator[Request]:
    stage = ReplayStage(course.head, policy)
    for step in course.steps:
        stage.clock.time += step.gap
        if step.role != "assistant":
            await stage.add(step.blocks)
            continue
        yield await stage.prepare()
        stage.observe([b for b in step.blocks if not b.thinking])
        stage.clock.time += 2.0


async def _recorded(course: Course, policy: ReplayPolicy) -> dict[str, str]:
    ours, wires = Digest(), Wires()
    forms = {form: Digest() for form in FORMATS}
    async for request in _requests(course, policy):
        ours.add(request.body().encode("utf-8", "surrogatepass"))
        for form, digest in forms.items():
            digest.add(await wires.sent(request, form))
    return {"": str(ours), **{form: str(digest) for form, digest in forms.items()}}


def recorded(path: Path, policy: PolicyName) -> dict[str, str]:
    """The digests of one recorded session's requests under a policy: ours (named by nothing), and
    of each wire format."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        course = of_lines(lines, path.name)
    return anyio.run(_recorded, course, ReplayPolicy.of(policy))


def all_recorded(shared: Path) -> dict[str, dict[str, str]]:
    """The digests of all of them: ours as `recorded`, those of the wire as `wire`."""
    out: dict[str, dict[str, str]] = {"recorded": {}, "wire": {}}
    for path in sorted((shared / "data/sessions_dev").glob("*.jsonl.gz")):
        for policy in POLICIES:
            try:
                found = recorded(path, policy)
            except ImportFailed:
                continue
            name = f"{path.name.partition('.')[0]} {policy}"
            out["recorded"][name] = found.pop("")
            out["wire"] |= {f"{name} {form}": digest for form, digest in found.items()}
    return out


# --- transcripts of our own


def sent_bodies(library: Library, session: str) -> Iterator[str]:
    """Every request that a transcript says was sent, rendered again."""
    view = EMPTY
    for entry in library.read(session).entries:
        if isinstance(entry.record, Sent):
            request = replace(render(view, entry.record.source), marks=entry.record.marks)
            if request.parts() != entry.record.parts:
                raise AssertionError(f"{session}: another request than the one sent, {entry.id}")
            yield request.body()
        view = apply(view, entry)


def written_by_old(folder: Path) -> dict[str, str]:
    """The digests of the transcripts that 0.1.0 wrote, unpacked into `folder`."""
    with tarfile.open(OLD) as archive:
        archive.extractall(folder, filter="data")
    library = Library(folder, folder)
    return {
        one.id: together(sent_bodies(library, one.id))
        for one in sorted(library.sessions(), key=lambda one: one.id)
    }


def demo() -> list[str]:
    """The digests of a demo's sessions, without what differs from run to run."""
    told = subprocess.run(
        [sys.executable, "-m", "reverie.apps.cli", "demo", "--keep", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    home = Path(json.loads(told.stdout)["folder"]) / "home/projects"
    (project,) = home.iterdir()
    library = Library(project, project)
    return sorted(
        together(_stripped(body) for body in sent_bodies(library, one.id))
        for one in library.sessions()
    )


def _stripped(body: str) -> str:
    for pattern, word in OFTEN_DIFFERENT:
        body = pattern.sub(word, body)
    return body


def main() -> None:
    if "--demo" in sys.argv:
        print("\n".join(demo()))
        return
    shared = Path(os.environ.get("REVERIE_SHARED", ROOT / "../shared"))
    with tempfile.TemporaryDirectory() as folder:
        found = {**all_recorded(shared), "written_by_0.1.0": written_by_old(Path(folder))}
    if "--write" in sys.argv:
        DIGESTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    known = json.loads(DIGESTS.read_text(encoding="utf-8"))
    moved = [
        f"{kind}: {name}"
        for kind in known
        for name in sorted(known[kind].keys() | found[kind].keys())
        if known[kind].get(name) != found[kind].get(name)
    ]
    print("\n".join(moved) or f"digests: {sum(map(len, known.values()))}, all the same")
    sys.exit(bool(moved))


if __name__ == "__main__":
    main()
