"""Thinking bound to what precedes it, and compaction blocks that stand for what they sum up.

Each thinking block the simulator emits is signed over every block before it: tools,
system prompt, messages, without marks, strings as text blocks, `cache_edits` left out.
A signature holds all it needs, so a restarted simulator still knows its own. `adopt`
binds the blocks of a recorded history to their recorded prefixes. Texts are never kept.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from reverie.simulator.profiles import bad, exact
from reverie.simulator.prompt_cache import EDITS, blocks_in, digest, objects
from reverie.transcript.blocks import Object

THINKING = ("thinking", "redacted_thinking")
UNBOUND = bytes(16)  # the chain where nothing is bound to a prefix
PREFIX = "prefix_binding_mismatch"
MODEL = "model_binding_mismatch"
DAMAGED = "`compaction` block's `signature` does not verify"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A thinking block that failed a check: where it stands and which."""

    message: int
    block: int
    kind: str
    reason: str  # empty: its signature is nobody's

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.block}"


@dataclass(frozen=True, slots=True)
class BindingCheck:
    """A request's chain after its last block, and what failed on the way."""

    chain: bytes
    mismatches: tuple[Mismatch, ...] = ()


class ThinkingSigner:
    """Signs and verifies; remembers only what it adopted."""

    def __init__(self, secret: bytes = b"simulated") -> None:
        self._secret = secret
        self._adopted: dict[bytes, set[bytes]] = {}

    # --- signatures

    def _seal(self, purpose: str, *parts: bytes) -> bytes:
        key = self._secret[:64]
        mac = blake2b(key=key, digest_size=16, person=purpose.encode()[:16])
        for part in parts:
            mac.update(len(part).to_bytes(8, "big") + part)
        return mac.digest()

    def sign(self, text: str, chain: bytes, model: str) -> str:
        """A signature that binds a thinking text to a prefix and a model."""
        named = digest(model.encode())
        seal = self._seal("thinking", text.encode("utf-8", "surrogatepass"), chain, named)
        return urlsafe_b64encode(chain + named + seal).decode()

    def _signed_prefix(self, block: Object, model: str) -> tuple[bytes, bool] | None:
        """The prefix a block of ours was signed over, and whether this model signed it."""
        kind = block["type"]
        text = str(block.get("thinking", "")) if kind == "thinking" else ""
        raw = _decode_signature(block.get("signature" if kind == "thinking" else "data"))
        chain, named, seal = raw[:16], raw[16:32], raw[32:]
        good = self._seal("thinking", text.encode("utf-8", "surrogatepass"), chain, named)
        return (chain, named == digest(model.encode())) if seal == good else None

    def _own(self, block: Object, model: str) -> bool:
        signed = self._signed_prefix(block, model)
        return signed is not None and signed[1]

    # --- chains

    def _links(self, body: Object) -> Iterator[tuple[int, int, str, Object]]:
        for at, message in enumerate(objects(body.get("messages"))):
            for n, block in enumerate(blocks_in(message.get("content"))):
                yield at, n, str(message.get("role")), block

    def head(self, body: Object) -> bytes:
        """The chain over tools and system prompt."""
        chain = b""
        for tool in objects(body.get("tools")):
            chain = link(chain, "tools", tool)
        for block in blocks_in(body.get("system")):
            chain = link(chain, "system", block)
        return chain

    def genuine(self, body: Object, model: str) -> BindingCheck:
        """Only whether each block is this model's own, wherever it stands."""
        failed = [
            Mismatch(at, n, str(block["type"]), "")
            for at, n, _, block in self._links(body)
            if block.get("type") in THINKING and not self._own(block, model)
        ]
        return BindingCheck(UNBOUND, tuple(failed))

    def verify(self, body: Object, model: str) -> BindingCheck:
        """Walk a request; a valid compaction block continues what it stands for."""
        head = chain = self.head(body)
        failed: list[Mismatch] = []
        for at, n, role, block in self._links(body):
            kind = str(block.get("type"))
            if kind in THINKING:
                reason = self._fault(block, chain, model)
                if reason is not None:
                    failed.append(Mismatch(at, n, kind, reason))
            if kind == "compaction" and block.get("content") is not None:
                chain = self._resume_chain(block, head, chain, first=at == n == 0)
            elif kind != EDITS:
                chain = link(chain, role, block)
        return BindingCheck(chain, tuple(failed))

    def _fault(self, block: Object, chain: bytes, model: str) -> str | None:
        signed = self._signed_prefix(block, model)
        if signed is not None:
            if not signed[1]:
                return MODEL
            return None if signed[0] == chain else PREFIX
        adopted = self._adopted.get(digest(exact(block)))
        if adopted is None:
            return ""
        return None if chain in adopted else PREFIX

    def adopt(self, body: Object) -> int:
        """Bind every thinking block of a recorded request to what precedes it there."""
        chain, count = self.head(body), 0
        for _, _, role, block in self._links(body):
            if block.get("type") in THINKING:
                self.adopt_block(block, chain)
                count += 1
            if block.get("type") != EDITS:
                chain = link(chain, role, block)
        return count

    def adopt_block(self, block: Object, chain: bytes) -> None:
        self._adopted.setdefault(digest(exact(block)), set()).add(chain)

    # --- compaction

    def compacted(self, content: str, body: Object, chain: bytes) -> Object:
        """A signed block that stands for a whole request."""
        head = digest(self.head(body))
        seal = self._seal("compaction", head, chain)
        said = self._seal("summary", content.encode("utf-8", "surrogatepass"), seal)
        signature = urlsafe_b64encode(head + chain + seal + said).decode()
        return {
            "type": "compaction",
            "content": content,
            "signature": signature,
            "encrypted_content": None,
            "tool_changes": [],
        }

    def _resume_chain(self, block: Object, head: bytes, before: bytes, *, first: bool) -> bytes:
        if not first:
            said = "`compaction` block is not the first block of the conversation"
            raise bad(said, code="compaction_block_misplaced")
        raw = _decode_signature(block.get("signature"))
        made_with, chain, seal, said_seal = raw[:16], raw[16:32], raw[32:48], raw[48:]
        if seal != self._seal("compaction", made_with, chain):
            raise bad(DAMAGED, code="compaction_signature_invalid")
        content = str(block["content"]).encode("utf-8", "surrogatepass")
        if said_seal != self._seal("summary", content, seal):
            said = "`compaction` block's `content` differs from the text its `signature` recorded"
            raise bad(said, code="compaction_content_mismatch")
        return chain if made_with == digest(head) else link(before, "assistant", block)


def link(chain: bytes, role: str, block: Object) -> bytes:
    """The chain with one more block behind it."""
    return digest(chain + role.encode() + digest(exact(block)))


def _decode_signature(value: object) -> bytes:
    if not isinstance(value, str):
        return b""
    try:
        return urlsafe_b64decode(value.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error, ValueError):
        return b""
