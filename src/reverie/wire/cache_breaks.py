"""Cache breaks: which answer read less from the prompt cache than it should have, and why.

`CacheBreakDetector` is a value that is told of each request and each answer. It expects an answer
to read what the last one read and wrote; a clear drop that no announced change explains is a
`CacheBreak`. The break names the first changed block and byte where both requests are at hand, the
part alone where only digests are, the lifetime that ran out, or the provider, and carries the
provider's own diagnosis. `watch_entries` does the same over a recorded transcript. Pure: no clock,
no I/O. It changes no request and never raises over what a provider says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Literal, TypeAlias

from reverie.errors import InvalidMessage
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.text.format import first_byte
from reverie.transcript.blocks import Json, elements, members, parse
from reverie.transcript.fold import apply
from reverie.transcript.messages import SentBlock
from reverie.transcript.records import AssistantMessage, Entry, HeadSet, Parts, Sent, Usage
from reverie.transcript.view import EMPTY, View
from reverie.wire.request import Difference, Request, chain_at, render

What: TypeAlias = Request | Sent
Cause: TypeAlias = Literal["changed", "expired", "provider", "unknown"]

UNSAID = "head"  # what the view says of a head that was changed without a reason
# members of the options that no provider counts into the cached prefix
# fmt: off
NEUTRAL = frozenset({
    "diagnostics", "max_completion_tokens", "max_output_tokens", "max_tokens", "metadata", "stop",
    "stop_sequences", "stream", "stream_options", "temperature", "top_k", "top_p", "user",
})
# fmt: on
DIAGNOSED = {
    "model_changed": "model",
    "tools_changed": "tools",
    "system_changed": "system",
    "messages_changed": "messages",
    "input_changed": "messages",
    "context_compacted": "messages",
    "prompt_cache_key_changed": "options",
    "text_format_changed": "options",
    "reasoning_effort_changed": "options",
    "verbosity_changed": "options",
    "service_tier_changed": "options",
}
_SHOWN = 24  # bytes shown on either side of the first differing one


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the provider itself says of a miss."""

    reason: str
    part: str = ""
    tokens: int | None = None

    def __str__(self) -> str:
        tokens = "" if self.tokens is None else f" ({self.tokens:,} tokens)"
        return f"the provider says {self.reason}{tokens}"


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """The first thing that differs: its part, its name, and the place where it is known."""

    part: str
    name: str = ""
    place: Difference | None = None

    def __str__(self) -> str:
        if self.place is None:
            return f"{self.name or self.part} changed"
        where = f"{self.name} changed at byte {self.place.byte}"
        return f"{where} («{self.place.before}» became «{self.place.after}»)"


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """One answer that read less than was cached, with all that is known of the reason."""

    expected: int
    read: int
    cause: Cause
    change: ChangedPart | None = None
    idle: float = 0.0  # seconds since the request before
    expired: str = ""  # the longest lifetime that ran out meanwhile
    diagnosis: Diagnosis | None = None
    source: str = ""
    at: float = 0.0
    entry: str = ""  # the answer's entry, where it was recorded

    @property
    def lost(self) -> int:
        return self.expected - self.read

    @property
    def part(self) -> str:
        return self.change.part if self.change else ""

    @property
    def explanation(self) -> str:
        """One sentence, naming the first changed block where there is one."""
        said = f"; {self.diagnosis}" if self.diagnosis else ""
        read = f"Only {self.read:,} of {self.expected:,} cached tokens were read"
        return f"{read}: {self._why()}{said}."

    def _why(self) -> str:
        ran_out = f"the {self.expired} lifetime ran out ({_spell(self.idle)} without a request)"
        match self.cause:
            case "changed":
                also = f", and {ran_out}" if self.expired else ""
                return f"{self.change}{also}"
            case "expired":
                return ran_out
            case "unknown":
                return "nothing else had changed, and the messages cannot be compared by digests"
            case "provider":
                also = f", and more was lost than what expired when {ran_out}"
                return "nothing that was sent had changed" + (also if self.expired else "")


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """What the last answered request left in the provider's cache."""

    what: What
    at: float
    tokens: int = 0
    long: int = 0  # of these, what is known to stand under a long lifetime
    applied: str = "[]"  # the provider's own edits of the context


@dataclass(frozen=True, slots=True)
class CacheBreakDetector:
    """The watch over one conversation; a fork is watched from its parent's value on."""

    settings: Settings = DEFAULTS
    left: CachedPrefix | None = None
    asked: tuple[What, float] | None = None
    reasons: tuple[str, ...] = ()  # announced since the last answer

    def announced(self, *reasons: str) -> CacheBreakDetector:
        """The prefix moves, and this is why: the next answer sets a new baseline."""
        said = tuple(r for r in reasons if r != UNSAID)
        return replace(self, reasons=(*self.reasons, *said)) if said else self

    def sent(self, what: What, at: float, moved: Sequence[str] = ()) -> CacheBreakDetector:
        """A request leaves. One that stays without an answer keeps its announcements."""
        return replace(self.announced(*moved), asked=(what, at))

    def answered(
        self, usage: Usage | None, diagnostics: str = "null", applied: str = "[]"
    ) -> tuple[CacheBreakDetector, CacheBreak | None]:
        """The answer to the last request: its usage, the provider's diagnosis of the cache
        and the edits it applied to the context, as the JSON texts of a reply."""
        if self.asked is None:
            return self, None
        what, at = self.asked
        left = self.left
        calm = left is not None and not self.reasons and _same(applied, left.applied)
        found: CacheBreak | None = None
        if left is not None and calm and usage is not None:
            found = self._judge_usage(left, what, at, usage, diagnose_break(diagnostics))
        new = CachedPrefix(what, at, applied=applied)
        if usage is not None:
            kept = left.long if left is not None and calm and usage.read >= left.long else 0
            cached = usage.read + usage.written
            new = replace(new, tokens=cached, long=min(cached, kept + usage.written_1h))
        elif left is not None and calm:
            new = replace(new, tokens=left.tokens, long=left.long)
        return CacheBreakDetector(self.settings, new), found

    def _judge_usage(
        self, left: CachedPrefix, what: What, at: float, usage: Usage, diagnosis: Diagnosis | None
    ) -> CacheBreak | None:
        if not self._has_dropped(left.tokens, usage.read):
            return None
        idle = max(0.0, at - left.at)
        alive, expired = self._alive(left, idle)
        change, certain = compare_requests(left.what, what)
        cause: Cause = "provider"
        if change is not None:
            cause = "changed"
        elif not self._has_dropped(alive, usage.read):
            cause = "expired"
        elif not certain and diagnosis is not None and diagnosis.part:
            cause, change = "changed", ChangedPart(diagnosis.part)
        elif not certain:
            cause = "unknown"
        return CacheBreak(
            left.tokens, usage.read, cause, change, idle, expired, diagnosis, what.source, at
        )

    def _has_dropped(self, expected: int, read: int) -> bool:
        drop = expected - read
        if drop <= 0 or drop < self.settings.cache_break_tokens:
            return False
        # a quotient is rounded once, so that a drop of exactly the share counts
        return drop / expected >= self.settings.cache_break_share

    def _alive(self, left: CachedPrefix, idle: float) -> tuple[int, str]:
        """How much must still be cached after so long a pause, and what has expired.
        A provider without marks does not tell its lifetimes: nothing is taken for expired."""
        lifetimes = {
            "5m": self.settings.cache_short_minutes * 60,
            "1h": self.settings.cache_long_minutes * 60,
        }
        given = {mark.ttl for mark in left.what.marks}
        gone = [ttl for ttl in ("5m", "1h") if ttl in given and idle > lifetimes[ttl]]
        if not gone:
            return left.tokens, ""
        return (0 if len(gone) == len(given) else left.long), gone[-1]


def watch_entries(
    entries: Iterable[Entry], watch: CacheBreakDetector | None = None, base: View = EMPTY
) -> list[CacheBreak]:
    """All breaks of a recorded transcript. Each request is rendered again and taken for
    what was sent where its digests agree; where they do not, the digests alone speak.
    For a fork: its parent's watch where it starts, and its view's `base`."""
    start = watch or CacheBreakDetector()
    view = base if base is EMPTY else replace(base, base=base)
    watches: dict[str, CacheBreakDetector] = {}
    source = ""
    heads: list[str] = []  # why the head was changed since the last request
    found: list[CacheBreak] = []
    for entry in entries:
        if view.entries.place(entry.id) is not None:
            continue
        record = entry.record
        if isinstance(record, HeadSet):
            heads.append(record.reason)
        elif isinstance(record, Sent):
            source = record.source
            watches.setdefault(source, start)
            by_layers = announcements(view, heads)
            watches = {name: one.announced(*by_layers) for name, one in watches.items()}
            watches[source] = watches[source].sent(_what(view, record), entry.at)
            heads = []
        elif isinstance(record, AssistantMessage) and source in watches:
            watches[source], broken = watches[source].answered(
                record.usage, record.diagnostics, record.applied_edits
            )
            found += [replace(broken, entry=entry.id)] if broken else []
        view = apply(view, entry)
    return found


def announcements(view: View, heads: Sequence[str]) -> tuple[str, ...]:
    """Why layers moved the prefix. Another model, or other tools, are a break whoever asked for
    them: what was cached is lost, and it is named."""
    moved = list(view.moved)
    for reason in heads:
        if reason in moved:
            moved.remove(reason)
    return tuple(moved)


def _what(view: View, record: Sent) -> What:
    request = replace(render(view, record.source), marks=record.marks)
    return request if request.parts() == record.parts else record


# --- the provider's word


def diagnose_break(text: str) -> Diagnosis | None:
    """A provider's diagnosis from its JSON text; None where it says nothing of a miss.
    Takes `{"cache_miss_reason": {"type": …}}` and `{"type": "cache_miss", "reason": …}`."""
    try:
        value = parse(text or "null")
    except InvalidMessage:
        return None
    if isinstance(value, dict) and isinstance(inner := value.get("cache_miss_reason"), dict):
        value = inner
    if not isinstance(value, dict):
        return None
    reason = value.get("reason") or value.get("type")
    if not isinstance(reason, str) or not reason or reason == "cache_hit":
        return None
    tokens = value.get("cache_missed_input_tokens", value.get("cache_missed_tokens"))
    known = tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None
    return Diagnosis(reason[:80], DIAGNOSED.get(reason, ""), known)


def _same(a: str, b: str) -> bool:
    """Whether two answers tell of the same edits: a provider repeats them every time."""
    empty = ("", "[]", "null")
    return a == b or (a in empty and b in empty)


# --- comparing


def compare_requests(before: What, after: What) -> tuple[ChangedPart | None, bool]:
    """The first change from one request to a later one, and whether all could be compared."""
    if isinstance(before, Request) and isinstance(after, Request):
        return _head_change(before.head, after.head) or _message_change(before, after), True
    old, new = _parts(before), _parts(after)
    for part in ("model", "tools", "system"):
        if getattr(old, part) != getattr(new, part):
            return ChangedPart(part), True
    if isinstance(after, Request):
        extends: bool | None = chain_at(after, old.blocks).hex() == old.messages
    elif new.blocks > old.blocks:
        extends = None  # a digest of more blocks says nothing about fewer
    else:
        extends = (new.blocks, new.messages) == (old.blocks, old.messages)
    if extends is False:
        return ChangedPart("messages"), True
    if old.options != new.options:
        return ChangedPart("options"), True
    return None, extends is True


def _parts(what: What) -> Parts:
    return what.parts() if isinstance(what, Request) else what.parts


def _head_change(before: HeadSet, after: HeadSet) -> ChangedPart | None:
    if before.model != after.model:
        return _change("model", "the model", 0, before.model, after.model)
    if before.options != after.options:
        old, new = _members(before.options), _members(after.options)
        for key in dict.fromkeys([*old, *new]):
            if key not in NEUTRAL and old.get(key) != new.get(key):
                return _change("options", key, 0, old.get(key, ""), new.get(key, ""))
    for part in ("tools", "system"):
        old_text, new_text = getattr(before, part), getattr(after, part)
        if old_text != new_text:
            return _array_change(part, old_text, new_text)
    return None


def _members(text: str) -> dict[str, str]:
    return {key: raw for key, (raw, _) in members(text).items()}


def _array_change(part: str, before: str, after: str) -> ChangedPart | None:
    nothing: tuple[str, Json] = ("", None)
    pairs = zip_longest(elements(before), elements(after), fillvalue=nothing)
    for at, ((old, was), (new, now)) in enumerate(pairs):
        if old != new:
            named = was if old else now
            name = named.get("name") if isinstance(named, dict) else None
            name = f"tool {name}" if part == "tools" and name else f"{part} block {at}"
            return _change(part, name, at, old, new)
    return None  # only the space between the elements differs, and that is not sent


def _message_change(before: Request, after: Request) -> ChangedPart | None:
    if chain_at(after, before.blocks) == chain_at(before, before.blocks):
        return None
    pairs = zip_longest(_flat(before), _flat(after))
    for at, (old, new) in enumerate(pairs):
        if old is None:
            break
        role, number, index, piece = old
        same = new is not None and role == new[0] and piece.block.raw == new[3].block.raw
        if not same:
            name = f"{role} message {number}, block {index} ({piece.block.type or 'no type'})"
            raw = new[3].block.raw if new is not None else ""
            return _change("messages", name, at, piece.block.raw, raw)
    return ChangedPart("messages")


def _flat(request: Request) -> Iterator[tuple[str, int, int, SentBlock]]:
    for number, message in enumerate(request.messages()):
        for index, piece in enumerate(message.pieces):
            yield message.role, number, index, piece


def _change(part: str, name: str, block: int, before: str, after: str) -> ChangedPart:
    old, new = before.encode("utf-8", "replace"), after.encode("utf-8", "replace")
    byte = first_byte(old, new)
    return ChangedPart(
        part, name, Difference(part, block, byte, _around(old, byte), _around(new, byte))
    )


def _around(text: bytes, at: int) -> str:
    shown = text[max(0, at - _SHOWN) : at + _SHOWN].decode("utf-8", "ignore")
    return shown if text else "nothing"


def _spell(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
