"""One digest for every request that is sent: what a change of the code's shape must not move.

Three kinds of sessions are rendered again, each with the product's own fold and layers:

- the recorded sessions of `REVERIE_SHARED`, under both context policies;
- the transcripts that version 0.1.0 wrote (`tests/fixtures/written_by_0.1.0.tar.gz`);
- the homes that `scripts/golden.py` keeps: what they send next.

The recorded sessions are digested twice: as requests of our own, and as what the providers put on
the wire for them (path, headers and body) in each of the three formats.

The digests of the first two stand in `tests/fixtures/digests.json`, and a test compares them. A
change that means to send other bytes writes them again and says why.

    python -m scripts.digests            compare
    python -m scripts.digests --write    write them anew
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

import reverie
from reverie import testing
from reverie.apps.replay import PolicyName, RecordedCourse, ReplayPolicy, ReplayStage, of_lines
from reverie.errors import ImportFailed
from reverie.providers import AnthropicModel, Connection, OpenAIModel, Retries, SdkErrors
from reverie.session import SessionLibrary
from reverie.transcript import EMPTY, Sent, apply
from reverie.wire import Request, render
from reverie.world import Model

if TYPE_CHECKING:
    from scripts.golden import Golden

ROOT = Path(__file__).resolve().parent.parent
DIGESTS = ROOT / "tests/fixtures/digests.json"
OLD = ROOT / "tests/fixtures/written_by_0.1.0.tar.gz"
POLICIES: tuple[PolicyName, ...] = ("classic", "collapse")
FORMATS = ("messages", "chat", "responses")
NAMES = {"messages": "claude-opus-4-6", "chat": "gpt-5.6", "responses": "gpt-5.6"}
SMALL = {"collapse_tail": 6_000}
MODEL = "claude-sonnet-4-5"
TOOLS: list[Any] = [testing.tool_definition("Bash", command={"type": "string"})]


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
        retries = Retries(0, testing.ManualClock())
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


async def _requests(course: RecordedCourse, policy: ReplayPolicy) -> AsyncIterator[Request]:
    stage = ReplayStage(course.head, policy)
    for step in course.steps:
        stage.clock.time += step.gap
        if step.role != "assistant":
            await stage.add(step.blocks)
            continue
        yield await stage.prepare()
        stage.observe([b for b in step.blocks if not b.thinking])
        stage.clock.time += 2.0


async def _recorded(course: RecordedCourse, policy: ReplayPolicy) -> dict[str, str]:
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


def sent_bodies(library: SessionLibrary, session: str) -> Iterator[str]:
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
    library = SessionLibrary(folder, folder)
    return {
        one.id: together(sent_bodies(library, one.id))
        for one in sorted(library.sessions(), key=lambda one: one.id)
    }


# --- what a kept home sends next


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def next_requests(golden: Golden, session: str, policy: str) -> dict[str, str]:
    """The digest of a session's next request, in each wire format."""
    return anyio.run(_next, golden, session, policy)


async def _next(golden: Golden, session: str, policy: str) -> dict[str, str]:
    async with session_of(golden, policy, session) as one:
        await one.add("What was in the first part?")
        sent = await one.prepare()
        forms = {"messages": sent.anthropic, "chat": sent.openai, "responses": sent.responses}
        return {name: digest(form()) for name, form in forms.items()}


def next_fitted(golden: Golden) -> list[Any]:
    """What a new `Fitter` makes of a list that was written over: its digest, the tokens of what it
    stands for, and a line of a result that left it, read back."""
    over = json.loads((golden.place / "fitted.json").read_text())
    with fitter_of(golden) as fitter:
        sent = fitter.fit([*over, {"role": "user", "content": "go on"}])
        known = re.findall(r"r:(?!abc123)\w{6}", json.dumps(list(sent)))[0]
        asked = json.dumps({"reference": known, "query": "line 199"})
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "read_back", "arguments": asked},
        }
        return [digest(list(sent)), sent.before, fitter.handle(call)]


def session_of(golden: Golden, policy: str, resume: str = "") -> Any:
    """A session opened as these are."""
    return reverie.Session.open(
        golden.project,
        model=MODEL,
        policy=policy,
        system="Be brief.",
        tools=[*TOOLS, *reverie.tools().anthropic()],
        home=golden.home,
        settings=SMALL,
        resume=resume,
    )


def fitter_of(golden: Golden) -> reverie.Fitter:
    store, small = golden.place / "store", {"collapse_tail": 1_500}
    return reverie.Fitter(model="gpt-5", tools=reverie.tools(), store=store, settings=small)


def main() -> None:
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
