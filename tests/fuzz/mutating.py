"""Inputs made of a corpus by chance: bytes are damaged, JSON is damaged as a tree, lines as lines.

The same chance makes the same input. Nothing here knows what is done with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Literal

Shape = Literal["bytes", "json", "lines"]
LARGEST = 20_000
"""Bytes of an input, but for the few that are long on purpose."""
_DEEP, _LONG = "\ue000", "\ue001"
_RAW = {
    f'"{_DEEP}"': "[" * 3_000 + "]" * 3_000,
    f'"{_LONG}"': '"' + "a1b2 " * 20_000 + '"',
    '"\\ue000"': "[" * 3_000 + "]" * 3_000,
    '"\\ue001"': '"' + "a1b2 " * 20_000 + '"',
}
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    10**400,
    -(10**400),
    1e308,
    float("nan"),
    float("inf"),
    0.1,
    "",
    "text",
    "\ud800",
    "\u202e\u200b",
    "a\0b",
    "../../etc/passwd",
    "<system-reminder>",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59-14:00",
    [],
    {},
    [[]],
    {"": None},
    {"type": "text"},
    {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
)
BYTES = (
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b"---\n",
    b": ",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    "\u2028".encode(),
    "．．／".encode(),
    b"../",
    b"\\",
    b'"',
    b"'",
    b"`",
    b"```\n",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"@",
    b"#",
    b"<!--",
    b"-->",
    b"\x1b[31m",
    b" " * 300,
    b"a" * 300,
    b"9" * 300,
    b"data: ",
    b"event: ",
    b"null",
)


def made(chance: Random, corpus: Sequence[bytes], shape: Shape) -> bytes:
    """One input."""
    data = chance.choice(corpus)
    if shape == "json":
        data = _tree(chance, data, corpus)
    elif shape == "lines":
        data = _lines(chance, data, corpus)
    if shape == "bytes" or chance.random() < 0.3:
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            data = _bytes(chance, data, corpus)
    return data if len(data) <= 10 * LARGEST else data[:LARGEST]


def _bytes(chance: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    end = min(len(data), at + chance.choice((1, 1, 2, 4, 30, 200)))
    match chance.randint(0, 7):
        case 0 if data:
            at = min(at, len(data) - 1)
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[:at] + data[at:end] * chance.choice((2, 3, 50)) + data[end:]
        case 3:
            other = chance.choice(corpus)
            return data[:at] + other[chance.randint(0, len(other)) :]
        case 4:
            return data[:at]
        case 5:
            cut = chance.randint(0, len(data))
            return data[:at] + data[cut : cut + 60] + data[at:]
        case _:
            return data[:at] + chance.choice(BYTES) + data[at:]


def _lines(chance: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    rows = data.split(b"\n")
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(rows))
        match chance.randint(0, 6):
            case 0:
                rows.insert(at, chance.choice(rows))
            case 1 if len(rows) > 1:
                del rows[at]
            case 2:
                other = chance.randrange(len(rows))
                rows[at], rows[other] = rows[other], rows[at]
            case 3:
                rows[at] = _bytes(chance, rows[at], corpus)
            case _:
                head, brace, rest = rows[at].partition(b"{")
                rows[at] = head + (_tree(chance, brace + rest, corpus) if brace else rest)
    return b"\n".join(rows)


def _tree(chance: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(chance, data, corpus)
    places: list[tuple[Any, Any]] = []
    _collect(value, places)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if not places:
            value = chance.choice(VALUES)
            break
        where, key = chance.choice(places)
        if isinstance(where, list) and key >= len(where):
            continue
        if isinstance(where, dict) and key not in where:
            continue
        _damage(chance, where, key, places)
    try:
        text = json.dumps(value, ensure_ascii=chance.random() < 0.7)
    except (ValueError, RecursionError):  # it holds itself, or goes too deep
        return data
    if _DEEP in text or _LONG in text or "ue00" in text:
        for sign, raw in _RAW.items():
            text = text.replace(sign, raw)
    return text.encode("utf-8", "surrogatepass")


def _damage(chance: Random, where: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    match chance.randint(0, 9):
        case 0:
            del where[key]
        case 1 if isinstance(where, list):
            where.insert(key, where[key])
        case 2:
            other, name = chance.choice(places)
            if isinstance(other, list) and name >= len(other):
                return
            if isinstance(other, list) or name in other:
                where[key] = json.loads(json.dumps(other[name]))
        case 3 if isinstance(where, dict):
            where[chance.choice(("", "type", "content", "role", "id", "input", "\ud800"))] = (
                where.pop(key)
            )
        case 4:
            where[key] = [where[key]]
        case 5 if isinstance(where[key], str) and where[key]:
            text = where[key]
            cut = chance.randint(0, len(text))
            where[key] = (
                text[:cut] + chance.choice(("", "\n", "\0", "é", "\ud83d", "<")) + text[cut:]
            )
        case 6 if chance.random() < 0.03:
            where[key] = chance.choice((_DEEP, _LONG))
        case _:
            where[key] = json.loads(json.dumps(chance.choice(VALUES)))


def _collect(value: Any, places: list[tuple[Any, Any]]) -> None:
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            places.append((value, key))
            _collect(inner, places)
    elif isinstance(value, list):
        for key, inner in enumerate(list(value)):
            places.append((value, key))
            _collect(inner, places)


Run = Callable[[bytes, Random], None]
