"""Which conversation this is: one digest after another over its blocks, in normal form.

Two requests that say the same have the same chain, whatever moves between them: cache marks,
a text in place of one text block, how blocks are spread over messages, thinking that was left
out. The seed is the credential alone, so that two people never share a chain. What is made here
is hashed and never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from reverie.transcript.blocks import dump

SIZE = 16
MARK = "cache_control"
TEXTS = ("text", "input_text", "output_text")


def normal(value: object) -> object:
    """A block without what may change while it says the same."""
    if isinstance(value, list):
        return [normal(one) for one in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    found = {k: normal(v) for k, v in cast("dict[str, object]", value).items() if k != MARK}
    if found.get("type") in TEXTS:
        return {"type": "text", "text": found.get("text")}
    if found.get("type") == "tool_result":
        if found.get("is_error") is False:
            del found["is_error"]
        found["content"] = content(found.get("content"))
    return dict(sorted(found.items()))


def content(value: object) -> object:
    """What a result holds: a text is the one block that it stands for."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [] if value is None else normal(value)


def digest(value: object) -> bytes:
    """The digest of a block in normal form."""
    return of_text(dump(normal(value)))


def content_digest(value: object) -> str:
    """The digest of a result's content: with the call's id it is the key of a decision."""
    return of_text(dump(content(value))).hex()


def of_text(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SIZE).digest()


def seed(credential: str) -> bytes:
    """Where the chain of one tenant begins."""
    return blake2b(
        credential.encode("utf-8", "replace"), digest_size=SIZE, person=b"tenant"
    ).digest()


def seed_of(person: str, tenant: bytes) -> bytes:
    """Where the chain of one person begins, of those behind one credential."""
    named = person.encode("utf-8", "surrogatepass")
    return blake2b(tenant + named, digest_size=SIZE, person=b"person").digest()


def extended(chain: bytes, role: str, block: bytes) -> bytes:
    """The chain behind one more block."""
    return blake2b(chain + role.encode() + block, digest_size=SIZE).digest()


def credential(headers: Mapping[str, str]) -> str:
    """What a client proves itself with; it is hashed and kept nowhere."""
    return headers.get("x-api-key") or headers.get("authorization") or ""


def as_value(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
