"""A LangGraph store on our memory, held to what LangGraph's own in-memory store does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import reverie
from reverie.adapters import ReverieStore
from reverie.errors import SecretFound

pytestmark = pytest.mark.spec("18.adapters")
USERS, DOCS = ("users", "anna"), ("docs", "v1")
VALUES: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (USERS, "color", {"text": "Anna likes green", "rank": 3, "tags": ["a", "b"]}),
    (USERS, "colour", {"text": "Anna likes green", "rank": 5}),  # a twin under another key
    (USERS, "plain", {"n": 1, "nested": {"deep": [1, {"x": None}]}}),
    (("users", "bob"), "color", {"content": "Bob likes red, and ```json in his texts```"}),
    (DOCS, "a key / with: signs", {"memory": "  blanks around  ", "rank": 1}),
    (DOCS, "ünïcode", {"data": "Größe"}),
]


@pytest.fixture(params=["theirs", "ours"])
def store(request: pytest.FixtureRequest, home: Path) -> BaseStore:
    made = InMemoryStore() if request.param == "theirs" else ReverieStore(reverie.Memory("p"))
    for namespace, key, value in VALUES:
        made.put(namespace, key, value)
    return made


def found(items: list[Any]) -> set[tuple[tuple[str, ...], str]]:
    return {(item.namespace, item.key) for item in items}


def test_what_was_put_comes_back_as_it_was(store: BaseStore) -> None:
    for namespace, key, value in VALUES:
        item = store.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, value)
        assert item.created_at <= item.updated_at
    assert store.get(USERS, "nothing") is None
    assert store.get(("users",), "color") is None


def test_putting_again_takes_its_place_and_deleting_takes_it_away(store: BaseStore) -> None:
    store.put(USERS, "color", {"text": "Anna likes blue"})
    item = store.get(USERS, "color")
    assert item is not None
    assert item.value == {"text": "Anna likes blue"}
    store.delete(USERS, "color")
    store.delete(USERS, "color")
    assert store.get(USERS, "color") is None
    assert store.get(USERS, "colour") is not None


def test_searching_goes_by_prefix_and_filter(store: BaseStore) -> None:
    assert found(store.search(("users",))) == {(ns, k) for ns, k, _ in VALUES if ns[0] == "users"}
    assert found(store.search(USERS, filter={"rank": 3})) == {(USERS, "color")}
    store.put(("ranks",), "one", {"rank": 1})
    store.put(("ranks",), "two", {"rank": 2})
    assert found(store.search(("ranks",), filter={"rank": {"$gte": 2}})) == {(("ranks",), "two")}
    assert found(store.search(USERS, filter={"nested": {"deep": [1, {"x": None}]}})) == {
        (USERS, "plain")
    }
    assert len(store.search((), limit=2)) == 2
    assert len(store.search((), limit=10, offset=4)) == 4


def test_namespaces_are_listed(store: BaseStore) -> None:
    assert store.list_namespaces() == [DOCS, USERS, ("users", "bob")]
    assert store.list_namespaces(prefix=("users",)) == [USERS, ("users", "bob")]
    assert store.list_namespaces(suffix=("v1",)) == [DOCS]
    assert store.list_namespaces(max_depth=1) == [("docs",), ("users",)]


async def test_the_same_for_tasks(store: BaseStore) -> None:
    await store.aput(USERS, "pet", {"text": "A zebra"})
    item = await store.aget(USERS, "pet")
    assert item is not None
    assert item.value == {"text": "A zebra"}
    assert (USERS, "pet") in found(await store.asearch(("users",), limit=50))


def test_ours_is_found_by_words_has_a_history_and_refuses_secrets(home: Path) -> None:
    memory = reverie.Memory("p")
    store = ReverieStore(memory)
    for namespace, key, value in VALUES:
        store.put(namespace, key, value)
    best = store.search(("users",), query="which colour does bob like")[0]
    assert (best.namespace, best.key) == (("users", "bob"), "color")
    assert best.score is not None
    assert memory.search("Bob likes red")[0].text.startswith("Bob likes red")
    store.put(USERS, "color", {"text": "Anna likes blue"})
    memory.undo()
    item = store.get(USERS, "color")
    assert item is not None
    assert item.value["text"] == "Anna likes green"
    memory.add("A memory of another kind")
    assert len(store.search((), limit=50)) == len(VALUES)
    with pytest.raises(SecretFound):
        store.put(USERS, "key", {"text": "password = hunter2hunter2hunter2AB99"})
    assert len(ReverieStore(reverie.Memory("p")).search((), limit=50)) == len(VALUES)


def test_items_are_found_by_key_also_those_that_an_earlier_version_named(home: Path) -> None:
    long = ("users", "a-very-long-name-of-a-user-that-leaves-no-room-for-more", "notes")
    ours = ReverieStore(memory=reverie.Memory("shop"))
    for n in range(5):
        ours.put(long, f"key {n}", {"text": f"Note number {n}"})
    found = [ours.get(long, f"key {n}") for n in range(6)]
    assert [one and one.value["text"] for one in found] == [
        *(f"Note number {n}" for n in range(5)),
        None,
    ]
    body = (
        'Older\n\n```json\n{"namespace": ["users"], "key": "k", "text": "text", "value": {}}\n```'
    )
    reverie.Memory("shop").add(body, name="users k 0a1b2c3d", type="reference")
    again = ReverieStore(memory=reverie.Memory("shop"))
    item = again.get(("users",), "k")
    assert item is not None
    assert item.value == {"text": "Older"}
    again.put(("users",), "k", {"text": "Newer"})
    item = again.get(("users",), "k")
    assert item is not None
    assert item.value == {"text": "Newer"}
    assert len(reverie.Memory("shop").list()) == 6
