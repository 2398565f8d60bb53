"""Entries as JSON text, one line each, and back.

The text of a block goes into the line as it is and comes out as it was. Parts of a
request head are stored once by hash: the line names the hash, `blobs` gives the texts.
A line of a later format version or unknown type decodes to `Unknown` and is of no
effect; only a text that is no entry at all raises InvalidMessage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from hashlib import sha256
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from reverie.errors import InvalidMessage
from reverie.light import pattern
from reverie.transcript.blocks import (
    DECODER,
    Block,
    Json,
    block_from,
    dump,
    elements,
    join_members,
    members,
    parse,
)
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
    RequestRefused,
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
FieldReader: TypeAlias = Callable[[Json], Any]

NAMES: dict[str, type[Record]] = {
    "started": Started,
    "head": HeadSet,
    "result": ResultDecided,
    "sent": Sent,
    "refused": RequestRefused,
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
        return join_members({**parts, **{k: raw for k, (raw, _) in _extra(record.raw).items()}})
    return join_members({**parts, **_body(record)})


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
            stands = [
                join_members({"role": dump(s.role), "blocks": _array(s.blocks)}) for s in record.by
            ]
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


# --- back


def decode(text: str, load: Load = lambda _: None) -> Entry:
    """The entry a line holds; `load` gives the text of a blob, or None where it is lost."""
    found = _SAID.match(text)
    entry = None if found is None else _parse_message(text, found)
    if entry is not None:
        return entry
    values = parse(text, "a transcript line")
    if not isinstance(values, dict):
        raise InvalidMessage("a transcript line is no JSON object")
    ident, name = values.get("id"), values.get("type")
    if not isinstance(ident, str) or not ident or not isinstance(name, str):
        raise InvalidMessage("a transcript line has no id or no type")
    parent = values.get("parent")
    record = _record(name, text, values, load)
    return Entry(ident, parent if isinstance(parent, str) else "", _time(values.get("at")), record)


_SAID = pattern(
    r'\{"v":1,"id":"([^"\\]+)","parent":"([^"\\]*)","at":"([^"\\]*)",'
    r'"type":"(user|assistant|attached)","blocks":\['
)
_HEADER = frozenset({"v", "id", "parent", "at", "type", "blocks", "sum"})


def _parse_message(text: str, found: re.Match[str]) -> Entry | None:
    """A message in the form that `encode` gives it, read in one go; None where it is not, or
    anything in it is unusual."""
    at = found.end()
    blocks: list[Block] = []
    try:
        while text[at] != "]":
            value, end = DECODER.raw_decode(text, at)
            blocks.append(block_from(text[at:end], value))
            if text[end] == ",":
                at = end + 1
            elif text[end] == "]":
                at = end
            else:
                return None
        rest = "{" + text[at + 2 :] if text[at + 1] == "," else "{" + text[at + 1 :]
        values = parse(rest)
        if not isinstance(values, dict) or not _HEADER.isdisjoint(values):
            return None
        kind = NAMES[found[4]]
        given = _read_fields(kind, values)
        given["blocks"] = tuple(blocks)
        record = kind(**given)
    except (InvalidMessage, *_UNREADABLE, IndexError):
        return None
    return Entry(found[1], found[2], _time(found[3]), record)


def _time(value: Json) -> float:
    """Seconds since the epoch; 0 for what is no time that could be written again."""
    try:
        at = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError):
        return 0.0
    return float(at) if isinstance(at, (int, float)) and 0 <= at <= _LATEST else 0.0


_LATEST = 253_402_300_799  # the last second of the year 9999
_UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, RecursionError, OverflowError)


def _record(name: str, text: str, values: Mapping[str, Json], load: Load) -> Record:
    kind = NAMES.get(name)
    if kind is None or values.get("v") != VERSION:
        return Unknown(name, text)
    try:
        return _make(kind, text, values, load)
    except (InvalidMessage, *_UNREADABLE) as error:
        return Unknown(name, text, f"{name} record cannot be read: {error}")


def is_later(record: Record) -> bool:
    """Whether a record was written by a later version of this format."""
    if not isinstance(record, Unknown) or record.fault:
        return False
    version = members(record.raw).get("v", ("", 0))[1]
    return isinstance(version, int) and version > VERSION


def _make(kind: type[Record], text: str, values: Mapping[str, Json], load: Load) -> Record:
    given = _read_fields(kind, values)
    if kind is HeadSet:
        stored = [part for part in BLOBS if part in values]
        return HeadSet(
            **{**given, **{part: _load_part(part, values[part], load) for part in stored}}
        )
    if kind in _WITH_BLOCKS:
        found = members(text)
        if "blocks" in found and kind is not Replaced:
            given["blocks"] = _blocks(found["blocks"][0])
        if "by" in found and kind is Replaced:
            given["by"] = tuple(_stand(raw) for raw, _ in elements(found["by"][0]))
    return kind(**given)


_WITH_BLOCKS = frozenset({UserMessage, AssistantMessage, Attached, Replaced})
_BLOB = pattern(r"[0-9a-f]{64}", re.ASCII)


def _load_part(part: str, value: Json, load: Load) -> str:
    """A part of the request's head, which must be what a request can be made of."""
    name = value.get("blob") if isinstance(value, dict) else None
    if not isinstance(name, str) or not _BLOB.fullmatch(name):
        raise InvalidMessage("a stored part of the request has no name")
    text = load(name)
    if text is None or blob_name(text) != name:
        raise InvalidMessage("a stored part of the request is missing or damaged", where=name)
    if part == "options":
        members(text)
    elif part == "tools":
        elements(text)
    else:
        _blocks(text)
    return text


def _blocks(raw: str) -> tuple[Block, ...]:
    return tuple(block_from(text, value) for text, value in elements(raw))


def _stand(raw: str) -> Stand:
    found = members(raw)
    role = found["role"][1]
    return Stand("assistant" if role == "assistant" else "user", _blocks(found["blocks"][0]))


# --- each member as the type that its record has for it; TypeError for anything else


def _read_fields(kind: type, values: Mapping[str, Json]) -> dict[str, Any]:
    readers = _READERS[kind]
    return {name: readers[name](value) for name, value in values.items() if name in readers}


def _wrong(value: Json) -> TypeError:
    return TypeError(f"{type(value).__name__} where another type belongs")


def _text(value: Json) -> str:
    if value.__class__ is str:
        return cast("str", value)
    raise _wrong(value)


def _whole(value: Json) -> int:
    if value.__class__ is int and -_MOST < cast("int", value) < _MOST:
        return cast("int", value)
    raise _wrong(value)


_MOST = 2**63


def _number(value: Json) -> float:
    if value.__class__ in (int, float) and -_MOST < cast("float", value) < _MOST:
        return cast("float", value)
    raise _wrong(value)


def _flag(value: Json) -> bool:
    if value.__class__ is bool:
        return cast("bool", value)
    raise _wrong(value)


def _list_of(reader: FieldReader) -> FieldReader:
    def read(value: Json) -> tuple[Any, ...]:
        if value.__class__ is not list:
            raise _wrong(value)
        return tuple([reader(one) for one in cast("list[Json]", value)])

    return read


def _or_none(reader: FieldReader) -> FieldReader:
    return lambda value: None if value is None else reader(value)


def _value_of(kind: type) -> FieldReader:
    """A reader for a value inside a record; what it does not know is an error, as ever."""
    readers = _readers(kind)

    def read(value: Json) -> object:
        if value.__class__ is not dict:
            raise _wrong(value)
        found = cast("dict[str, Json]", value)
        return kind(**{name: readers[name](one) for name, one in found.items()})

    return read


def _reader(hint: Any) -> FieldReader:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal or hint is str:
        return _text
    if origin in (Union, UnionType):
        return _or_none(_reader(inside[0]))
    if origin is tuple:
        return _list_of(_reader(inside[0]))
    plain: Mapping[type, FieldReader] = {int: _whole, float: _number, bool: _flag}
    return plain[hint] if hint in plain else _value_of(hint)


def _readers(kind: type) -> dict[str, FieldReader]:
    """By a record's members, but for blocks and what is stored by its hash."""
    hints = get_type_hints(kind)
    apart = ("blocks", "by") if kind in _WITH_BLOCKS else BLOBS if kind is HeadSet else ()
    return {part.name: _reader(hints[part.name]) for part in fields(kind) if part.name not in apart}


_READERS: Mapping[type, dict[str, FieldReader]] = {kind: _readers(kind) for kind in _TYPES}
