"""A LangGraph store whose items are memories: plain files, with their history and their guards.

An item is one memory. Its text (the member `text`, `content`, `memory` or `data`) stands first, so
that it is found and read like any other; everything else of it follows as JSON, so that it comes
back as it was put. Searching is ours: by words, best first. A secret is refused with `SecretFound`.
An item that orders to override, leak, hide or run waits for review: `get` returns it, while search
and sessions do not. There is no expiry.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from json import JSONDecodeError, dumps, loads
from typing import TYPE_CHECKING, Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from reverie.errors import NotFound
from reverie.session.open_memory import OpenMemory, lend_memories, lend_memory
from reverie.topics.entry import key_for
from reverie.world import say_nothing

if TYPE_CHECKING:
    from reverie.memory.memory import Memory
    from reverie.memory.values import Pending

TYPE = "reference"
TEXTS = ("text", "content", "memory", "data")
_REST = re.compile(r"(?:\n\n|^)```json\n(.*)\n```$", re.DOTALL)
_MOST = 1_000
"""Memories that a search by words looks through, the best first."""
_COMPARED: dict[str, Any] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class ReverieStore(BaseStore):
    """The store of a graph, in one memory; `memory=` says which."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory.__as_model__("store")
        self._named: dict[tuple[tuple[str, ...], str], str] | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._run_op(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        from anyio import to_thread

        return await to_thread.run_sync(self.batch, list(ops))

    def _run_op(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._find_item(op.namespace, op.key)
            waiting = self._waiting(op.namespace, op.key)
            at = found[1].updated_at.timestamp() if found else 0.0
            if waiting and waiting[-1].at >= at:
                return _item(waiting[-1].text, waiting[-1].at)
            return found[1] if found else None
        if isinstance(op, PutOp):
            return self._put(op)
        if isinstance(op, SearchOp):
            return list(self._search_items(op))
        return self._namespaces(op)

    def _find_item(self, namespace: tuple[str, ...], key: str) -> tuple[str, Item] | None:
        """The file of an item, and the item."""
        named = key_for(_name(namespace, key), TYPE)
        for file in (named, self._files_by_name().get((namespace, key), "")):
            for one in lend_memories(self._memory.__project__, say_nothing) if file else ():
                with suppress(NotFound):
                    text = one.store.folder.read(file).body.strip()
                    item = _item(text, one.provenance(file)[1])
                    if item and (item.namespace, item.key) == (namespace, key):
                        return file, _set_created(one, file, item)
        return None

    def _files_by_name(self) -> dict[tuple[tuple[str, ...], str], str]:
        """The files of items whose names do not follow from their keys, as an earlier version
        named them; looked at once."""
        if self._named is None:
            every = ((_item(one.text, one.saved), one.file) for one in self._memory.list())
            self._named = {(item.namespace, item.key): file for item, file in every if item}
        return self._named

    def _waiting(self, namespace: tuple[str, ...], key: str) -> list[Pending]:
        return [
            one
            for one in self._memory.pending()
            if (item := _item(one.text, one.at)) and (item.namespace, item.key) == (namespace, key)
        ]

    def _put(self, op: PutOp) -> None:
        known = self._find_item(op.namespace, op.key)
        if op.value is None:
            if known:
                self._memory.remove(known[0])
            for one in self._waiting(op.namespace, op.key):
                self._memory.reject(one.id)
            return
        body = _body(op.namespace, op.key, op.value)
        if known:
            self._memory.update(known[0], body)
        else:
            self._memory.add(body, name=_name(op.namespace, op.key), type=TYPE)

    def _search_items(self, op: SearchOp) -> Iterator[SearchItem]:
        every = self._memory.list()
        if op.query:
            every = self._memory.search(op.query, limit=_MOST)
        fits = [
            (found, item)
            for found in every
            if (item := _item(found.text, found.saved)) is not None
            and item.namespace[: len(op.namespace_prefix)] == op.namespace_prefix
            and _fits(item.value, op.filter or {})
        ]
        for found, item in fits[op.offset : op.offset + op.limit]:
            with lend_memory(self._memory.__project__, say_nothing) as one:
                _set_created(one, found.file, item)
            score = found.score if op.query else None
            yield SearchItem(
                item.namespace, item.key, item.value, item.created_at, item.updated_at, score
            )

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        every = (_item(one.text, one.saved) for one in self._memory.list())
        known = {item.namespace for item in every if item is not None}
        wanted = op.match_conditions or ()
        fits = [ns for ns in known if all(_matches(one, ns) for one in wanted)]
        cut = sorted({ns[: op.max_depth] for ns in fits})
        return cut[op.offset : op.offset + op.limit]


def _set_created(one: OpenMemory, file: str, item: Item) -> Item:
    steps = one.store.history.log(file)
    if steps:
        item.created_at = datetime.fromtimestamp(steps[0].at, UTC)
    return item


def _name(namespace: tuple[str, ...], key: str) -> str:
    """A name that no other item has, and that tells a person which one it is."""
    mark = blake2b(dumps([*namespace, key]).encode(), digest_size=4).hexdigest()
    return f"{mark} {' '.join((*namespace, key))[:60]}"


def _body(namespace: tuple[str, ...], key: str, value: Mapping[str, Any]) -> str:
    named = next((name for name in TEXTS if isinstance(value.get(name), str)), "")
    text = str(value.get(named, ""))
    if not text or text != text.strip():
        named, text = "", ""
    rest = {k: v for k, v in value.items() if k != named}
    about = {"namespace": namespace, "key": key, "text": named, "value": rest}
    return f"{text}\n\n```json\n{dumps(about, ensure_ascii=False)}\n```".strip()


def _item(text: str, saved: float) -> Item | None:
    """The item that a memory is; None where it is a memory of another kind."""
    rest = _REST.search(text.strip())
    if rest is None:
        return None
    try:
        about: Any = loads(rest[1])
        named, key, value = about["text"], str(about["key"]), dict[str, Any](about["value"])
        namespace = tuple(map(str, about["namespace"]))
    except (JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    if named:
        value = {str(named): text.strip()[: rest.start()], **value}
    at = datetime.fromtimestamp(saved, UTC)
    return Item(value=value, key=key, namespace=namespace, created_at=at, updated_at=at)


def _fits(value: object, wanted: object) -> bool:
    """Whether a value is as a filter wants it: the same, or by the operators of LangGraph."""
    if not isinstance(wanted, Mapping):
        return value == wanted
    for name, one in cast("Mapping[str, Any]", wanted).items():
        if name.startswith("$"):
            compare = _COMPARED.get(name)
            if compare is None:
                raise ValueError(f"Unsupported operator: {name}")
            if value is None or not compare(value, one):
                return False
        elif not isinstance(value, Mapping) or not _fits(cast("Any", value).get(name), one):
            return False
    return True


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(b in ("*", a) for a, b in zip(part, path, strict=True))
