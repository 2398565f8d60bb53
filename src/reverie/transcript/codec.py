"""Entries as JSON text, one line each, and back.

The text of a block goes into the line as it is and comes out as it was. Parts of a
request head are stored once by hash: the line names the hash, `blobs` gives the texts.
A line of a later format version or unknown type decodes to `Unknown` and is of no
effect; only a text that is no entry at all raises InvalidMessage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeAlias, cast

from reverie.errors import InvalidMessage
from reverie.transcript.blocks import Block, Json, block_from, dump, elements, joined, members
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Boundary,
    Candidate,
    Entry,
    Extracted,
    Failed,
    ForkEnded,
    HeadSet,
    Mark,
    NotesTaken,
    Parts,
    Recalled,
    Record,
    Replaced,
    ResultDecided,
    Rewound,
    Sent,
    Stand,
    Started,
    Strip,
    TurnEnded,
    Unknown,
    Usage,
    UserMessage,
    WordsRemoved,
)

VERSION = 1
BLOBS = ("system", "tools", "context", "options")
Members: TypeAlias = Mapping[str, tuple[str, Json]]
Load: TypeAlias = Callable[[str], str | None]

NAMES: dict[str, type[Record]] = {
    "started": Started,
    "head": HeadSet,
    "result": ResultDecided,
    "sent": Sent,
    "fork": ForkEnded,
    "failed": Failed,
    "turn": TurnEnded,
    "notes": NotesTaken,
    "extracted": Extracted,
    "recalled": Recalled,
    "forgotten": WordsRemoved,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "attached": Attached,
    "replaced": Replaced,
    "rewound": Rewound,
}
_TYPES = {kind: name for name, kind in NAMES.items()}


def blob_name(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def blobs(record: Record) -> dict[str, str]:
    """What must be on disk, by hash, before the record is appended."""
    if not isinstance(record, HeadSet):
        return {}
    texts = [str(getattr(record, part)) for part in BLOBS]
    return {blob_name(text): text for text in texts}


def encode(entry: Entry) -> str:
    """One line, without its end."""
    record = entry.record
    name = record.type if isinstance(record, Unknown) else _TYPES[type(record)]
    parts = {
        "v": dump(VERSION),
        "id": dump(entry.id),
        "parent": dump(entry.parent),
        "at": dump(_iso(entry.at)),
        "type": dump(name),
    }
    if isinstance(record, Unknown):
        return joined({**parts, **{k: raw for k, (raw, _) in _extra(record.raw).items()}})
    return joined({**parts, **_body(record)})


def _extra(raw: str) -> Members:
    known = ("v", "id", "parent", "at", "type", "sum")
    return {k: v for k, v in members(raw).items() if k not in known}


def _body(record: Record) -> dict[str, str]:
    out: dict[str, str] = {}
    for part in fields(record):
        value = cast("object", getattr(record, part.name))
        if part.name in BLOBS and isinstance(record, HeadSet):
            out[part.name] = dump({"blob": blob_name(str(value))})
        elif part.name == "blocks":
            out["blocks"] = _array(cast("tuple[Block, ...]", value))
        elif isinstance(record, Replaced) and part.name == "by":
            stands = [joined({"role": dump(s.role), "blocks": _array(s.blocks)}) for s in record.by]
            out["by"] = f"[{','.join(stands)}]"
        elif value != part.default:
            out[part.name] = dump(_plain(value))
    return out


def _array(blocks: tuple[Block, ...]) -> str:
    return f"[{','.join(b.raw for b in blocks)}]"


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(v) for v in cast("tuple[object, ...]", value)]
    if isinstance(value, (Usage, Mark, Strip, Parts, Boundary, Candidate)):
        return asdict(value)
    return value


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def decode(text: str, load: Load = lambda _: None) -> Entry:
    """The entry a line holds; `load` gives the text of a blob, or None where it is lost."""
    found = members(text)
    values = {k: v for k, (_, v) in found.items()}
    entry, name = values.get("id"), values.get("type")
    if not isinstance(entry, str) or not entry or not isinstance(name, str):
        raise InvalidMessage("a transcript line has no id or no type")
    parent = values.get("parent")
    at = _time(values.get("at"))
    record = _record(name, text, found, values, load)
    return Entry(entry, parent if isinstance(parent, str) else "", at, record)


def _time(value: Json) -> float:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            return 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def _record(name: str, text: str, found: Members, values: Mapping[str, Json], load: Load) -> Record:
    kind = NAMES.get(name)
    if kind is None or values.get("v") != VERSION:
        return Unknown(name, text)
    try:
        return _make(kind, found, load)
    except (InvalidMessage, TypeError, ValueError, KeyError, AttributeError) as error:
        return Unknown(name, text, f"{name} record cannot be read: {error}")


def _make(kind: type[Record], found: Members, load: Load) -> Record:
    given: dict[str, Any] = {}
    for part in fields(kind):
        if part.name not in found:
            continue
        raw, value = found[part.name]
        if part.name in BLOBS and kind is HeadSet:
            given[part.name] = _loaded(cast("dict[str, str]", value)["blob"], load)
        elif part.name == "blocks":
            given["blocks"] = _blocks(raw)
        elif part.name == "by":
            given["by"] = tuple(_stand(raw) for raw, _ in elements(raw))
        else:
            given[part.name] = _field(part.name, value)
    return kind(**given)


def _loaded(name: str, load: Load) -> str:
    text = load(name)
    if text is None or blob_name(text) != name:
        raise InvalidMessage("a stored part of the request is missing or damaged", where=name)
    return text


def _blocks(raw: str) -> tuple[Block, ...]:
    return tuple(block_from(text, value) for text, value in elements(raw))


def _stand(raw: str) -> Stand:
    found = members(raw)
    role = found["role"][1]
    return Stand("assistant" if role == "assistant" else "user", _blocks(found["blocks"][0]))


def _field(name: str, value: Json) -> object:
    """A member as the type its record has for it."""
    if name == "usage" and isinstance(value, dict):
        return Usage(**cast("dict[str, int]", value))
    if name == "parts" and isinstance(value, dict):
        return Parts(**cast("dict[str, Any]", value))
    if name == "marks" and isinstance(value, list):
        return tuple(Mark(**cast("dict[str, Any]", m)) for m in value)
    if name == "strips" and isinstance(value, list):
        return tuple(Strip(**cast("dict[str, Any]", s)) for s in value)
    if name == "boundary" and isinstance(value, dict):
        given: dict[str, Any] = dict(value)
        named = ("tools", "kept", "missing")
        given.update({k: tuple(given[k]) for k in named if k in given})
        return Boundary(**given)
    if name == "candidates" and isinstance(value, list):
        return tuple(Candidate(**cast("dict[str, Any]", c)) for c in value)
    if name == "written" and isinstance(value, list):
        return tuple(str(path) for path in value)
    return value
