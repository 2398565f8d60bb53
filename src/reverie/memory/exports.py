"""Exports of other memory systems, read item by item.

Read are exports of mem0, Letta and LangGraph, and what Claude, Codex, Gemini and AGENTS.md keep in
Markdown; a list of any length piece by piece. What has no text is passed on. Nothing is judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, cast

from reverie.errors import ImportFailed, NotFound
from reverie.light import dataclass

PIECE = 2**20
MAX_ITEM = 4 * 2**20
"""Characters of one item; a longer one cannot be a memory."""
MAX_DOCUMENT = 256 * 2**20
"""Bytes of a file that has to be read at once."""
LISTS = ("results", "memories", "items", "passages", "data")
"""Members under which a list of memories stands, whichever system wrote it."""
_LISTED = re.compile(f'"(?:{"|".join(LISTS)})"\\s*:\\s*\\[')
_TEXTS = ("memory", "text", "content", "value", "data")
_TIMES = ("updated_at", "last_modified_at", "created_at", "timestamp")
_WHOSE = ("user_id", "agent_id", "run_id", "app_id", "actor_id")
_DATED = re.compile(r"^\s*(?:[-*]\s+)?\[(\d{4}-\d\d-\d\d)[^\]]*\]\s*[-–—:]\s*(\S.*)$")
_ADDED = "## Gemini Added Memories"


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """One text of another system: since when it is known, and what that system says of it."""

    text: str
    at: float = 0.0  # 0: it does not say
    ident: str = ""
    about: str = ""  # whose it is there, in a few words
    kind: str = ""  # what sort of memory that system calls it
    user: str = ""  # the end user whose it is, where it names one
    is_agents: bool = False  # what an agent is to be, not who the user is


def read_export(system: str, path: Path) -> Iterator[ForeignMemory]:
    """The memories in an export."""
    if not path.exists():
        raise NotFound("There is no such file", where=str(path))
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.suffix.lower() in (".md", ".json", ".jsonl", ".txt"):
                yield from read_export(system, file)
        return
    if path.suffix.lower() in (".md", ".txt"):
        yield from _markdown(path)
    elif system == "letta":
        yield from _letta(path)
    else:
        yield from map(_item, items_in(path))


def read_by_user(system: str, path: Path) -> Iterator[tuple[str, Iterator[ForeignMemory]]]:
    """The memories in an export by the user whose they are; all under "" where there is one."""
    users: set[str] = set()
    with suppress(ImportFailed):  # it is told where the memories are read
        users.update(one.user for one in read_export(system, path))
    parts = sorted(users) if len(users - {""}) > 1 else [""]
    for user in parts:
        every = read_export(system, path)
        yield user, every if len(parts) == 1 else (one for one in every if one.user == user)


def items_in(path: Path) -> Iterator[Any]:
    """The items of a list: a JSON array, an object with one, or one item a line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        start = file.read(PIECE).lstrip()
        if not start:
            return
        found = _LISTED.search(start)
        if start[0] == "[":
            yield from _array(file, start[1:], path)
        elif _is_lines(start):
            yield from _lines(file, start)
        elif found is not None:
            yield from _array(file, start[found.end() :], path)
        else:
            raise ImportFailed(
                "There is no list of memories in this file",
                where=str(path),
                do=f"Give a JSON array, an object with one of {', '.join(LISTS)}, or JSON lines",
            )


def _is_lines(start: str) -> bool:
    value = _value(start.partition("\n")[0])
    found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return bool(_text(found)) and not any(isinstance(found.get(name), list) for name in LISTS)


def _lines(file: TextIO, start: str) -> Iterator[Any]:
    rest = start
    while rest:
        line, newline, rest = rest.partition("\n")
        if not newline:
            line += file.readline(MAX_ITEM)
            rest = file.read(PIECE)
        if line.strip():
            yield _value(line)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _array(file: TextIO, start: str, path: Path) -> Iterator[Any]:
    """Items of an array, each decoded when the file has been read that far."""
    decoder = json.JSONDecoder()
    text, at, over = start, 0, False
    while True:
        at = _skip_space(text, at)
        if at < len(text) and text[at] == "]":
            return
        try:
            value, end = decoder.raw_decode(text, at)
            is_cut = end >= len(text) and not over
        except (ValueError, RecursionError):
            value, end, is_cut = None, at, not over and len(text) - at <= MAX_ITEM
            if not is_cut:
                raise ImportFailed(
                    "The list breaks off, or an item of it is no JSON", where=str(path)
                ) from None
        if not is_cut:
            yield value
            at = end
        if is_cut or len(text) - at < PIECE // 2:
            more = "" if over else file.read(PIECE)
            over = over or not more
            text, at = text[at:] + more, 0


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


# --- one item


def _item(item: Any) -> ForeignMemory:
    """An item of mem0, of LangGraph, or of anybody who has a text and a time."""
    if isinstance(item, str):
        return ForeignMemory(item)
    if not isinstance(item, dict):
        return ForeignMemory("")
    found = cast("dict[str, Any]", item)
    meta = found.get("metadata")
    about = cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
    categories = found.get("categories")
    kind = about.get("type") or about.get("category")
    if not kind and isinstance(categories, list) and categories:
        kind = cast("list[Any]", categories)[0]
    space = found.get("namespace")
    where = "/".join(map(str, cast("list[Any]", space))) if isinstance(space, list) else ""
    whose = [f"{name} {found[name]}" for name in _WHOSE if isinstance(found.get(name), str)]
    return ForeignMemory(
        _text(found),
        _time(found) or _time(about),
        str(found.get("id") or found.get("key") or ""),
        ", ".join(filter(None, (where, *whose))),
        str(kind or ""),
        user := str(found.get("user_id") or ""),
        not user and bool(found.get("agent_id")),
    )


def _text(value: object, depth: int = 0) -> str:
    """The text of an item: what it calls so, or what the value it wraps calls so."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, dict) or depth > 3:
        return ""
    found = cast("dict[str, Any]", value)
    texts = (_text(found[name], depth + 1) for name in _TEXTS if name in found)
    return next(filter(None, texts), "")


def _time(value: Mapping[str, Any]) -> float:
    return next((at for name in _TIMES if (at := time_of(value.get(name)))), 0.0)


def time_of(given: object) -> float:
    """Seconds since the epoch from a time as people write it to JSON; 0 where it is none."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        if not 0 < given < 1e14:
            return 0.0
        seconds = given / 1000 if given > 1e11 else float(given)
        return seconds if seconds < 1e10 else 0.0
    if not isinstance(given, str):
        return 0.0
    try:
        found = datetime.fromisoformat(given.strip().replace("Z", "+00:00"))
        at = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return max(at, 0.0)


# --- Letta


def _letta(path: Path) -> Iterator[ForeignMemory]:
    """An agent file of either form (blocks, or `core_memory`), or a list of passages."""
    if path.stat().st_size > MAX_DOCUMENT or path.suffix.lower() == ".jsonl":
        yield from map(_item, items_in(path))
        return
    value = _value(path.read_text(encoding="utf-8-sig", errors="replace"))
    if isinstance(value, list):
        yield from map(_item, cast("list[Any]", value))
        return
    if not isinstance(value, dict):
        raise ImportFailed("This is no agent file", where=str(path), do="Export the agent again")
    found = cast("dict[str, Any]", value)
    blocks = [*_objects(found.get("blocks")), *_objects(found.get("core_memory"))]
    names = {str(a.get("name")) for a in _objects(found.get("agents"))} - {"None"}
    about = str(found.get("name") or ", ".join(sorted(names)))
    for block in blocks:
        label = str(block.get("label") or "")
        text = str(block.get("value") or "").strip()
        ident = str(block.get("id") or label)
        persona = label.startswith("persona")
        yield ForeignMemory(text, _time(block), ident, about, label, is_agents=persona)
    for name in ("passages", "archival_memory", "archives"):
        yield from map(_item, _objects(found.get(name)))
    for agent in _objects(found.get("agents")):
        yield from map(_item, _objects(agent.get("passages")))


def _objects(value: object) -> Sequence[dict[str, Any]]:
    found = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


# --- Markdown


def _markdown(path: Path) -> Iterator[ForeignMemory]:
    """A file of notes: dated lines, Gemini's list of added memories, or the whole as one text."""
    if path.stat().st_size > MAX_ITEM:
        yield ForeignMemory("", about=f"{path.name} is too large")
        return
    text, at = path.read_text(encoding="utf-8-sig", errors="replace"), path.stat().st_mtime
    dated = [found for line in text.splitlines() if (found := _DATED.match(line))]
    _, added, listed = text.partition(_ADDED)
    if dated:
        for one in dated:
            yield ForeignMemory(one[2].strip(), time_of(one[1]), about=path.name)
    elif added:
        for line in listed.splitlines():
            if line.startswith("#"):
                break
            if line.strip():
                yield ForeignMemory(line.strip().removeprefix("- ").strip(), at, about=path.name)
    else:
        yield ForeignMemory(text.strip(), at, about=path.name, kind="reference")
