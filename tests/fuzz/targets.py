"""What is fuzzed: everything that reads bytes of others. A target does what the product does with
them, catches what the product raises by design, and looks at what must hold of the result."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from reverie.agent import LeaderKeys
from reverie.agent import decode as decode_letter
from reverie.apps.team import batch_in
from reverie.errors import InvalidInput, InvalidMessage, PathRefused, ReverieError, SecretFound
from reverie.interception import (
    Decisions,
    InterceptedRequest,
    RequestBody,
    ResultLimits,
    ScanCache,
    caller_of,
    folder_of,
    joined_stream,
    kind_of,
    plan,
    prompt_of,
    reader_of,
    reminder_line,
    render_body,
    result_line,
    scan_body,
)
from reverie.memory import read_export
from reverie.secrets import check_clean
from reverie.secrets import scan as scanner_scan
from reverie.store import BadLine, Folder, Journal, check_key, fold_key
from reverie.team import HttpRefusal
from reverie.text import UnpatchableBody, at, commands, put
from reverie.text import read as jsonc_read
from reverie.toolbox import servers_in
from reverie.topics import (
    TopicFile,
    check,
    contents,
    edit,
    find,
    parse_frontmatter,
    parse_index,
    resolve_include,
    rule_paths,
    without,
)
from reverie.topics import put as index_put
from reverie.transcript import EMPTY, HeadSet, Unknown, apply, decode, encode, parse, read
from reverie.wire import (
    BadStream,
    ChatAssembler,
    EventParser,
    FailedAttempt,
    Format,
    MessagesAssembler,
    ResponsesAssembler,
    ServerEvent,
    adopt,
    format_of,
    parse_message,
    render,
    value_of,
)
from tests.fuzz.mutating import Run, Shape

KEYS = LeaderKeys(b"k" * 32)


@dataclass(frozen=True, slots=True)
class Target:
    """What is done with an input, and how inputs are made."""

    run: Run
    shape: Shape


# --- memory files


def front(data: bytes, chance: Random) -> None:
    found = parse_frontmatter(data)
    topic = TopicFile("a.md", data)
    for name in ("name", "description", "type", "note", "title", "body", "text", "fault"):
        assert isinstance(getattr(topic, name), str)
    value = chance.choice(("plain", "with: colon", '"quoted"', "é \u2028 x", "- list", "# no"))
    try:
        changed = edit(data, ("name",), value)
    except InvalidInput:
        return
    if found.present and not found.fault:
        assert parse_frontmatter(changed).get("name") == value, changed[:200]


def pointers(data: bytes, chance: Random) -> None:
    found = parse_index(data)
    contents(found)
    check(found, ["a.md", "b.md"])
    key = chance.choice(("a.md", "new.md"))
    put = index_put(data, key, "A title", "what it is about")
    assert parse_index(put).find(key) is not None, put[:300]
    assert parse_index(without(put, key)).find(key) is None
    for one in found.pointers:
        assert not one.key or not {"", ".."} & set(one.key.split("/")), one


def include(data: bytes, chance: Random) -> None:
    text = data.decode("utf-8", "replace")
    for path in find(text):
        full = resolve_include(path, file="/p/CLAUDE.md", user="/home/u")
        assert full.startswith("/"), path
        assert "\0" not in full
    rule_paths(text)


def keys(data: bytes, chance: Random) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        key = check_key(text)
    except PathRefused:
        return
    parts = key.split("/")
    assert not {"", ".", ".."} & set(parts), key
    assert "\0" not in key
    assert "\\" not in key
    assert ":" not in key
    assert check_key(key) == key
    assert fold_key(key) == fold_key(fold_key(key))
    assert len(key.encode()) <= 4096


def secret(data: bytes, chance: Random) -> None:
    hits = scanner_scan(data, "a.md")
    try:
        check_clean(data, "a.md")
        assert not hits
    except SecretFound:
        assert hits


# --- transcripts


def lines(data: bytes, chance: Random) -> None:
    text = data.decode("utf-8", "replace")
    view = EMPTY
    for line in text.splitlines():
        try:
            entry = decode(line)
        except InvalidMessage:
            continue
        if not isinstance(entry.record, Unknown | HeadSet):  # a head's parts are stored apart
            assert decode(encode(entry)).record == entry.record, line[:300]
        try:
            view = apply(view, entry)
        except ReverieError:
            continue
    render(view).body()
    try:
        found = read(text.splitlines(), "a.jsonl")
    except ReverieError:
        return
    for entry in found.entries:
        decode(encode(entry))


_FOLDER: list[Path] = []


def _folder() -> Path:
    if not _FOLDER:
        memory = Path("/dev/shm")
        _FOLDER.append(Path(mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None)))
    return _FOLDER[0]


def journal(data: bytes, chance: Random) -> None:
    """Whatever a file holds, a line that is added is read again, and the lines before it stay."""
    path = _folder() / "a.jsonl"
    path.write_bytes(data)
    with Folder(_folder()) as folder:
        before = [line for line in _read(folder) if not isinstance(line, BadLine)]
        log = Journal.open(folder, "a.jsonl")
        log.append(['{"mine":1}'])
        log.close()
        after = [line.text for line in _read(folder) if not isinstance(line, BadLine)]
    assert after[-1] == '{"mine":1}'
    assert after[: len(before)] == [line.text for line in before]


def _read(folder: Folder) -> list[Any]:
    log = Journal.open(folder, "a.jsonl", write=False)
    try:
        return list(log.read())
    finally:
        log.close()


# --- what providers send


def _events(data: bytes, cuts: Sequence[int]) -> list[ServerEvent] | str:
    events, found, last = EventParser(), list[ServerEvent](), 0
    try:
        for cut in (*cuts, len(data)):
            found += events.feed(data[last:cut])
            last = cut
    except BadStream:
        return "bad"
    return found


def sse(data: bytes, chance: Random) -> None:
    cuts = sorted(chance.randint(0, len(data)) for _ in range(chance.choice((1, 3, 20))))
    assert _events(data, cuts) == _events(data, ())


Taker = MessagesAssembler | ChatAssembler | ResponsesAssembler
_TAKERS: dict[Format, Callable[[], Taker]] = {
    "messages": partial(MessagesAssembler, "here"),
    "chat": partial(ChatAssembler, None, "here"),
    "responses": partial(ResponsesAssembler, None, "here"),
}
_DESIGNED = (InvalidMessage, FailedAttempt, BadStream)


def stream(form: Format, data: bytes, chance: Random) -> None:
    """A stream, read as an answer, and passed on as the proxy does."""
    taker = _TAKERS[form]()
    try:
        for event in EventParser().feed(data):
            taker.take(event.data)
        if taker.done or taker.ended():
            taker.reply()
    except _DESIGNED:
        pass
    passing = joined_stream(form, frozenset({"mine"}))
    try:
        passing.feed(data)
        found = passing.ended()
        if found is not None:
            passing.end([found])
    except (*_DESIGNED, ReverieError):
        pass


def answer(form: Format, data: bytes, chance: Random) -> None:
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(*_DESIGNED):
        _TAKERS[form]().read(text)


# --- what clients send


def body(form: Format, data: bytes, chance: Random) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        found = scan_body(text, form, b"seed", "thread", ScanCache())
    except UnpatchableBody:
        return
    json.loads(text)  # what is taken for a body is one
    again = _scanned_later(text, form, chance)
    if again is not None:
        assert [(p.chain, p.start, p.end) for p in again.parts] == [
            (p.chain, p.start, p.end) for p in found.parts
        ], "read piece by piece it is another one"
    _planned(found, chance)
    _adopted(found, form)


def _scanned_later(text: str, form: Format, chance: Random) -> RequestBody | None:
    """The same body, after an earlier one of its conversation was read."""
    known = ScanCache()
    with contextlib.suppress(UnpatchableBody):
        scan_body(text[: chance.randint(0, len(text))] + "]}", form, b"seed", "thread", known)
    scan_body(text, form, b"seed", "thread", known)
    return scan_body(text, form, b"seed", "thread", known)


def _planned(found: RequestBody, chance: Random) -> None:
    headers = {"x-api-key": "k"}
    caller = caller_of(headers, "")
    kind = kind_of(found, headers)
    asked = InterceptedRequest(found, caller, kind, prompt_of(found, kind), "/p")
    folder_of(found, headers)
    limits = ResultLimits(100, "/h/projects", reader_of(found) or "Read")
    decisions = Decisions()
    made = plan(asked, decisions, limits)
    for part in (*made.open_results, *made.sent_results, *made.unruled):
        decisions.take(result_line(asked.tenant, part.call, part.key, '"It is stored."'))
    if asked.prompted is not None:
        line = reminder_line(asked.thread, asked.prompted.chain.hex(), "Remember this.")
        decisions.take(line)
    text = render_body(asked, plan(asked, decisions, limits), chance.randint(0, 3))
    if text is not None:
        json.loads(text)


def _adopted(found: RequestBody, form: Format) -> None:
    try:
        said = [value_of(one) for one in found.messages(0)]
        format_of(said)
        adopt([parse_message(one, form) for one in said], form)
    except InvalidMessage:
        pass


# --- other files of others


def imports(data: bytes, chance: Random) -> None:
    for ending in (".json", ".jsonl", ".md"):
        path = _folder() / f"export{ending}"
        path.write_bytes(data)
        for system in ("mem0", "letta"):
            try:
                for one in read_export(system, path):
                    assert isinstance(one.text, str)
                    assert isinstance(one.at, float)
            except ReverieError:
                pass


def batch(data: bytes, chance: Random) -> None:
    try:
        drafts = batch_in(data, {})
    except HttpRefusal:
        return
    for one in drafts:
        one.key.encode()
        (one.content or "").encode()


def letter(data: bytes, chance: Random) -> None:
    with contextlib.suppress(InvalidMessage):
        decode_letter(data, KEYS, "ann", "bob", 1)


def shell(data: bytes, chance: Random) -> None:
    for one in commands(data.decode("utf-8", "replace")):
        assert isinstance(one.text, str)


def comments(data: bytes, chance: Random) -> None:
    text = data.decode("utf-8", "replace")
    try:
        jsonc_read(text)
        patch = put(text, ("mcpServers", "reverie"), {"command": "x"})
    except ReverieError:
        return
    changed = patch.on(text)
    assert at(changed, ("mcpServers", "reverie")) is not None
    assert patch.back().on(changed) == text


def servers(data: bytes, chance: Random) -> None:
    with contextlib.suppress(ReverieError):
        servers_in(data, {"HOME": "/h"})


def value(data: bytes, chance: Random) -> None:
    with contextlib.suppress(InvalidMessage):
        parse(data.decode("utf-8", "replace"))


_FORMS: Iterable[Format] = ("messages", "chat", "responses")
TARGETS: dict[str, Target] = {
    "frontmatter": Target(front, "bytes"),
    "index": Target(pointers, "bytes"),
    "includes": Target(include, "bytes"),
    "keys": Target(keys, "bytes"),
    "scanner": Target(secret, "bytes"),
    "lines": Target(lines, "lines"),
    "journal": Target(journal, "lines"),
    "sse": Target(sse, "bytes"),
    **{f"stream-{form}": Target(partial(stream, form), "lines") for form in _FORMS},
    **{f"answer-{form}": Target(partial(answer, form), "json") for form in _FORMS},
    **{f"body-{form}": Target(partial(body, form), "json") for form in _FORMS},
    "imports": Target(imports, "json"),
    "batch": Target(batch, "json"),
    "letter": Target(letter, "json"),
    "shell": Target(shell, "bytes"),
    "comments": Target(comments, "bytes"),
    "servers": Target(servers, "json"),
    "value": Target(value, "bytes"),
}
