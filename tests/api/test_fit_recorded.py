"""The promises of `fit`, over recorded sessions in three forms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.apps.replay import RecordedCourse
from reverie.errors import PromptTooLong
from reverie.toolbox import Toolset
from reverie.transcript import REFERENCE, reference
from reverie.wire import Format
from tests.api.lists import (
    FORMS,
    MODELS,
    answered,
    call,
    calls_of,
    courses,
    results_of,
    written,
)
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("18.fit"), pytest.mark.timeout(600)]
STUB = "<persisted-output>"
EXAMPLE = "r:abc123"  # in the words before the first line


@pytest.fixture(scope="module")
def recorded(shared: Path, scale: Scale) -> list[RecordedCourse]:
    return courses(shared, all_of_them=scale.proof)


def offered(form: Format, kit: Toolset) -> list[Any]:
    made = {"messages": kit.anthropic, "chat": kit.openai, "responses": kit.responses}
    return made[form]()


def requests(course: RecordedCourse, form: Format) -> Iterator[tuple[list[Any], list[Any]]]:
    """Each request's list as it grows, and what the model then answers."""
    messages: list[Any] = []
    for step, part in zip(course.steps, written(course, form), strict=True):
        if step.role == "assistant" and messages:
            yield messages, part
        messages += part


def fitter_for(form: Format, **more: Any) -> reverie.Fitter:
    tools = offered(form, reverie.tools())
    return reverie.Fitter(model=MODELS[form], tools=tools, marks=False, **more)


@pytest.mark.parametrize("form", FORMS)
def test_every_request_of_a_session_keeps_the_promises(
    recorded: list[RecordedCourse], form: Format
):
    seals = stubs = 0
    for course in recorded:
        fitter, before, moved = fitter_for(form), [], 0
        kept, texts, messages = list[str](), set[str](), list[Any]()
        for messages, _ in requests(course, form):
            kept += [json.dumps(m) for m in messages[len(kept) :]]
            texts.update(kept[-20:])
            own = list(messages)
            sent = fitter.fit(messages)
            theirs = {id(m) for m in own}
            assert [id(m) for m in messages] == [id(m) for m in own]
            new = [m for m in sent if id(m) not in theirs]  # 1: all others are the same objects
            assert not texts.intersection(json.dumps(m) for m in new)
            assert sent.tokens <= 980_000
            pairs = calls_of(list(sent), form)  # 2: each call once, and with its result
            shown = results_of(list(sent), form)
            assert len(pairs) == len(set(pairs))
            assert set(pairs) == set(shown)
            sealed = [c for c in sent.changes if c.startswith("collapse")]
            if len(sealed) == moved:  # 3: between two seals a request begins with the last
                assert sent[: len(before)] == before
                assert sent.stable == len(before) or not before
            before, moved = list(sent), len(sealed)
            stubs += sum(STUB in text for text in shown.values())
        seals += moved
        assert [json.dumps(m) for m in messages[: len(kept)]] == kept  # 1: never changed
    assert seals
    assert stubs


@pytest.mark.parametrize("form", FORMS)
def test_a_fresh_fit_gives_what_a_kept_fitter_gives(recorded: list[RecordedCourse], form: Format):
    tools = offered(form, reverie.tools())
    compared = 0
    for course in recorded:
        fitter = fitter_for(form)
        for n, (messages, _) in enumerate(requests(course, form)):
            sent = fitter.fit(messages)
            if n % 25 == 0:
                fresh = reverie.fit(messages, model=MODELS[form], tools=tools, marks=False)
                assert list(fresh) == list(sent)
                assert (fresh.tokens, fresh.before, fresh.stable, fresh.changes) == (
                    sent.tokens,
                    sent.before,
                    sent.stable,
                    sent.changes,
                )
                compared += 1
    assert compared


@pytest.mark.parametrize("form", FORMS)
def test_overwriting_the_list_gives_what_keeping_it_gives(
    recorded: list[RecordedCourse], form: Format
):
    for course in recorded:
        keeping, overwriting = fitter_for(form), fitter_for(form)
        over: list[Any] = []
        seen = 0
        for messages, _ in requests(course, form):
            over += messages[seen:]
            seen = len(messages)
            sent = overwriting.fit(json.loads(json.dumps(over)))
            assert list(sent) == list(keeping.fit(messages))
            over = list(sent)


def test_roles_alternate_and_nothing_is_said_for_the_user(recorded: list[RecordedCourse]):
    """Also where the list begins in the middle of a conversation, with the assistant's words."""
    for course in recorded:
        messages = [m for part in written(course, "messages") for m in part]
        first = next(n for n, m in enumerate(messages) if m["role"] == "assistant")
        for start in (0, first):
            sent = fitter_for("messages").fit(messages[start:])
            roles = [m["role"] for m in sent]
            own = [m["role"] for m in messages[start:]]
            assert _in_a_row(roles) <= _in_a_row(own)
            assert "<user>[The conversation before" not in json.dumps(list(sent))


def _in_a_row(roles: list[str]) -> int:
    return sum(one == two for one, two in pairwise(roles))


@pytest.mark.parametrize("form", FORMS)
def test_what_left_is_read_back_whole(recorded: list[RecordedCourse], form: Format):
    read = 0
    for course in recorded:
        messages = [m for part in written(course, form) for m in part]
        fitter = fitter_for(form)
        sent = fitter.fit(messages)
        shown = results_of(list(sent), form)
        there = "\0".join(_words(list(sent)))
        cited = set(REFERENCE.findall(there)) - {EXAMPLE}
        known = {reference(name) for name in calls_of(messages, form)}
        whole = {ref: _plain(_whole(sent, ref, form)) for ref in cited if _is_ours(sent, ref, form)}
        assert known & cited <= whole.keys()
        for name, text in results_of(messages, form).items():
            if shown.get(name) == text:
                continue
            if reference(name) in cited:  # 6: a reference stands in its place, or its part's does
                assert _plain(text) in whole[reference(name)]
            else:
                assert any(_plain(text) in found for found in whole.values())
            read += 1
        for text in _spoken(messages, form):
            assert _stands(text, there) or any(_plain(text) in found for found in whole.values())
    assert read


def _whole(sent: reverie.Fitted[Any], ref: str, form: Format) -> str:
    """All that a reference names, page by page, as each page says how to go on."""
    rows: list[str] = []
    place = {"offset": 1, "column": 1}
    while True:
        page = answered(sent.handle(call("read_back", form, reference=ref, **place)), form)
        lines = page.split("\n")[1:]
        more = re.fullmatch(
            r"\[there is more; go on with offset (\d+)(?: and column (\d+))?\]", lines[-1]
        )
        rows += [line.partition("\t")[2] for line in (lines[:-1] if more else lines)]
        if not more:
            return "\n".join(rows)
        place = {"offset": int(more[1]), "column": int(more[2] or 1)}


def _plain(text: str) -> str:
    """Without line ends: the tool shows numbered lines, and splits those that are long."""
    return re.sub(r"[\r\n\0�]", "", text.encode("utf-8", "replace").decode())


def _spoken(messages: list[Any], form: Format) -> list[str]:
    """All that was said in words, by anybody."""
    out: list[str] = []
    for message in messages:
        content = message.get("content")
        if form == "chat" and message["role"] == "tool":
            continue
        if isinstance(content, str):
            out.append(content)
        elif isinstance(content, list):
            out += [p["text"] for p in content if "text" in p and p["text"].strip()]
    return out


def _stands(text: str, there: str) -> bool:
    """Whether a text is still in a list: in its own message, or among the sealed ones."""
    return text in there


def _words(value: Any) -> Iterator[str]:
    """Every string of a list, as it is and not as JSON writes it: a text may hold a backslash
    and an `n` of its own."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _words(part)


def _is_ours(sent: reverie.Fitted[Any], ref: str, form: Format) -> bool:
    """Not one that a recorded text happens to hold."""
    return "nothing left" not in answered(sent.handle(call("read_back", form, reference=ref)), form)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_way_back_nothing_leaves_before_the_window_forces_it(
    recorded: list[RecordedCourse], form: Format
):
    forced = 0
    for course in recorded:
        notices: list[str] = []
        fitter = reverie.Fitter(
            model=MODELS[form],
            window=60_000,
            marks=False,
            on_notice=lambda n, told=notices: told.append(n.text),
        )
        for messages, _ in requests(course, form):
            sent = _fitted(fitter, messages)
            if isinstance(sent, PromptTooLong):
                assert (sent.needed or 0) > 54_000 == sent.allowed
                break
            assert sent.tokens <= 54_000  # 4
            if sent.before <= 54_000 and not sent.changes:
                assert all(a is b for a, b in zip(sent, messages, strict=True))
            if not sent.changes:
                assert sent.tokens == sent.before
                assert not notices
            else:
                assert len(notices) == 1  # 7: said once
                forced += 1
            assert set(calls_of(list(sent), form)) == set(results_of(list(sent), form))
            assert not REFERENCE.search(json.dumps(sent.changes and results_of(list(sent), form)))
    assert forced


def _fitted(fitter: reverie.Fitter, messages: list[Any]) -> reverie.Fitted[Any] | PromptTooLong:
    try:
        return fitter.fit(messages)
    except PromptTooLong as error:
        return error


def test_another_process_gives_the_same(recorded: list[RecordedCourse], tmp_path: Path):
    course = recorded[0]
    messages = [m for part in written(course, "chat") for m in part]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(messages))
    program = (
        "import json, sys, reverie\n"
        "kit = reverie.tools()\n"
        "sent = reverie.fit(json.load(open(sys.argv[1])), model='gpt-5', tools=kit.openai())\n"
        "print(json.dumps(list(sent)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    here = reverie.fit(messages, model="gpt-5", tools=reverie.tools().openai())
    assert json.loads(done.stdout) == list(here)
