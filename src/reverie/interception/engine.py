"""A client's request in, the one that goes out, its answer: what every way through shares.

If anything of ours fails, the client's own bytes go out. Files come first, then the line in the
log, then the request. What the session of the shadow does behind an answer is nobody's wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from reverie.concurrency import alone, isolate_sync
from reverie.errors import ReverieError
from reverie.interception import decisions as chain
from reverie.interception.decisions import (
    DecisionLog,
    Line,
    OutgoingRequest,
    PassThrough,
    TrafficCounts,
    reminder_line,
    result_line,
    undecided_lines,
)
from reverie.interception.identity import (
    INSIDE,
    SWITCH,
    Caller,
    caller_of,
    folder_of,
    is_attended,
    kind_of,
    person_of,
    prompt_of,
    reader_of,
)
from reverie.interception.mirror import MirrorOptions, MirrorSession
from reverie.interception.mirror_pool import MirrorPool, RequestTails
from reverie.interception.patches import (
    InterceptedRequest,
    OutgoingPlan,
    ResultLimits,
    plan,
    render_body,
    result_of,
)
from reverie.interception.scan import RequestBody, ScanCache, ScannedPart, scan_body
from reverie.layers.tool_results import ends, file_of, stored_decision
from reverie.light import dataclass
from reverie.providers.capabilities import table_capabilities
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.store import home as places
from reverie.store.files import Folder
from reverie.store.home import address_folder, named_project
from reverie.text.json_spans import UnpatchableBody
from reverie.transcript.mentions import reference
from reverie.transcript.messages import context_window, strip_line_numbers
from reverie.wire.lists import Format
from reverie.wire.reply import Reply
from reverie.world import Notice, ReadBackHint

if TYPE_CHECKING:
    from reverie.interception.decisions import Seal

NAME = "proxy"
PLACE = "proxy"
"""The folder in home with the log of decisions."""
REST_SECONDS = 3.0
CHARACTERS = 8_000
PREVIEW = 1_200
_LOCKS = 4_096


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an engine may do."""

    shadows: MirrorOptions
    settings: Settings = DEFAULTS
    characters: int = CHARACTERS  # of a result that stays
    preview: int = PREVIEW  # bytes shown of one that is stored
    dry: bool = False  # everything passes as it is, and is recorded
    way_back: ReadBackHint | None = None  # how results are read back, where it is not by a file
    seal: Seal | None = None
    rest: float = REST_SECONDS  # without a request, after which a turn is over
    scope: str = ""  # parts callers that share a credential
    folder: str = ""  # the project of every request; else each tells its own


class InterceptionEngine:
    """One home's way through. Use it in one event loop."""

    def __init__(self, rules: EngineOptions) -> None:
        self.rules = rules
        self.figures = TrafficCounts()
        self._log = DecisionLog(rules.shadows.own.home / PLACE)
        self._known = ScanCache()
        self._ends = RequestTails()
        self.shadows = MirrorPool(rules.shadows, self._log)
        self._deciding: dict[str, anyio.Lock] = {}

    async def aclose(self) -> None:
        await self.shadows.aclose()
        self._log.close()

    # --- a request

    async def outgoing(
        self, form: Format, headers: Mapping[str, str], data: bytes
    ) -> OutgoingRequest:
        """What goes out; the client's own bytes where anything fails."""
        if headers.get(SWITCH, "").strip().lower() == "off" or headers.get(INSIDE):
            return self._pass_through(data, "off", "off")
        try:
            asked = self._read(form, headers, data)
        except (UnpatchableBody, ReverieError, OSError) as error:
            self._say(f"a body passed as it is: {error}")
            return self._pass_through(data, "passed: not readable")
        if asked.kind == "side":
            return self._pass_through(data, "passed: a side request")
        found, error = await alone(self._build_request(asked, data), None)
        if found is None:
            self._say(f"a request passed as it is, since something of ours failed: {error}")
            self.figures.counts["failed"] += 1
            return self._pass_through(data, "passed: it failed")
        return found

    def _pass_through(self, data: bytes, told: str, kind: str = "passed") -> OutgoingRequest:
        self.figures.counts[kind] += 1
        return OutgoingRequest(data, told)

    def _read(self, form: Format, headers: Mapping[str, str], data: bytes) -> InterceptedRequest:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise UnpatchableBody("it is not UTF-8") from error
        caller = caller_of(headers, self.rules.scope)
        body = scan_body(text, form, caller.seed, caller.thread, self._known)
        folder = project = self._project(body, caller, headers)
        person = "" if self.rules.folder else person_of(body, folder=bool(project))
        if person:
            key = caller.seed
            caller = replace(caller, seed=chain.seed_of(person, key))
            body = scan_body(text, form, caller.seed, caller.thread, self._known)
            folder = self._began(caller) or self._own(key, project, person)
        elif not project:  # a place for stored results alone
            folder = str(self.rules.shadows.own.home / PLACE / "keys" / caller.seed.hex()[:16])
            if not os.path.isdir(folder):
                Folder(Path(folder)).close()
        kind = kind_of(body, headers)
        memory = bool(person or project or self.rules.folder)
        return InterceptedRequest(
            body,
            caller,
            kind,
            prompt_of(body, kind),
            folder,
            project,
            memory,
            is_attended(headers),
        )

    def _began(self, caller: Caller) -> str:
        """Where a session began: there it stays."""
        main = f"{caller.seed.hex()[:12]}:{caller.session}"
        return self._log.decisions.sessions.get(main, ("", ""))[1]

    def _project(self, body: RequestBody, caller: Caller, headers: Mapping[str, str]) -> str:
        """The folder that a client works in, none of ours; "" where it is not known."""
        named = self.rules.folder or self._began(caller) or folder_of(body, headers)
        ours = [os.path.realpath(self.rules.shadows.own.home / one) for one in (PLACE, "projects")]
        if not self.rules.folder and os.path.realpath(named).startswith(tuple(ours)):
            return ""
        return named if os.path.isabs(named) and os.path.isdir(named) else ""

    def _own(self, key: bytes, project: str, person: str) -> str:
        """The folder of a person's in a project; without one, of those behind a key."""
        home, environ = self.rules.shadows.own.home, self.rules.shadows.own.environ
        if project:
            root = places.canonical_root(Path(project))
            around = places.project_folder(home, root, environ=environ)
        else:
            around = named_project(home, f"proxy {key.hex()[:16]}")
        return str(address_folder(places.transcripts_folder(around, home, environ), person))

    async def _build_request(self, asked: InterceptedRequest, data: bytes) -> OutgoingRequest:
        if self.rules.dry:
            return OutgoingRequest(data, "recorded", asked, await self._shadow(asked))
        self._log.refresh()
        limits = self._limits(asked.body)
        shadow = await self._shadow(asked) if self._needs_shadow(asked, limits) else None
        follows = False
        try:
            out, error = await alone(self._patch_request(asked, data, limits, shadow), None)
            follows = out is not None and out.shadow is not None
        finally:
            if shadow is not None and not follows:
                shadow.uses -= 1
        if out is None:
            raise PassThrough(error)
        return out

    def _needs_shadow(self, asked: InterceptedRequest, limits: ResultLimits) -> bool:
        if asked.kind == "main" or self.rules.seal is not None:
            return True
        made = plan(asked, self._log.decisions, limits)
        return bool(made.open_results or (made.unruled and self.rules.shadows.memory))

    async def _patch_request(
        self,
        asked: InterceptedRequest,
        data: bytes,
        limits: ResultLimits,
        shadow: MirrorSession | None,
    ) -> OutgoingRequest:
        async with self._lock(asked.thread):
            made = plan(asked, self._log.decisions, limits)
            undecided = bool(asked.prompt) and made.reminder is None
            unruled = made.unruled and shadow is not None and shadow.rules is not None
            if self._is_open(made) or undecided or unruled:
                await self._decide(asked, made, shadow, limits)
                made = plan(asked, self._log.decisions, limits)
        following = shadow if asked.kind == "main" else None
        out = self._render_outgoing(asked, made, data, following, taken=undecided)
        return await self._collapse_rounds(out, asked, shadow, limits)

    async def _collapse_rounds(
        self,
        out: OutgoingRequest,
        asked: InterceptedRequest,
        shadow: MirrorSession | None,
        limits: ResultLimits,
    ) -> OutgoingRequest:
        """The same with old rounds sealed, where that is wanted and can be read back."""
        seal = self.rules.seal
        if seal is None or shadow is None or not limits.reader or asked.kind == "agent":
            return out
        text = out.body.decode()
        summing = asked.kind == "compaction"
        work = partial(seal, asked.body.form, text, limits.reader, shadow.folder, summing=summing)
        found, error = await alone(to_thread.run_sync(work), None)
        if error:
            self._say(f"nothing was sealed: {error}")
        return (
            out if found is None else replace(out, body=found.encode(), told=f"{out.told} sealed")
        )

    def _is_open(self, made: OutgoingPlan) -> bool:
        return bool(made.open_results or made.sent_results or made.inherited)

    def _lock(self, thread: str) -> anyio.Lock:
        if len(self._deciding) > _LOCKS:
            self._deciding = {k: v for k, v in self._deciding.items() if v.locked()}
        return self._deciding.setdefault(thread, anyio.Lock())

    def _limits(self, body: RequestBody) -> ResultLimits:
        rules = self.rules
        reader = rules.way_back.tool if rules.way_back else reader_of(body)
        model = str(body.members.get("model") or "")
        known, fallback = table_capabilities(model).window, rules.settings.fallback_window
        window = context_window(model, known=known, fallback=fallback)
        scaled = rules.settings.scaled(window)
        whole = scaled.read_whole * scaled.text_bytes_per_token
        return ResultLimits(
            rules.characters, str(rules.shadows.own.home / "projects"), reader, whole
        )

    def _render_outgoing(
        self,
        asked: InterceptedRequest,
        made: OutgoingPlan,
        data: bytes,
        shadow: MirrorSession | None,
        *,
        taken: bool,
    ) -> OutgoingRequest:
        known = self._count_known_parts(asked, made)
        text = render_body(asked, made, known)
        told = f"stored={made.stored} reminders={made.reminded} saved={made.saved}"
        told += "" if asked.memory else " memory=none"
        self.figures.counts["changed" if text is not None else "unchanged"] += 1
        self.figures.saved += made.saved
        return OutgoingRequest(data if text is None else text.encode(), told, asked, shadow, taken)

    def _count_known_parts(self, asked: InterceptedRequest, made: OutgoingPlan) -> int:
        """How many parts the last request had that this one goes on from; breaks are counted."""
        found = self._ends.followed(asked, made)
        if found.broken:
            self.figures.breaks += 1
            self._say("the prefix of a request changed: please report this", "error")
        self.figures.client_breaks += found.left
        return found.known

    def _is_rewritten(self, asked: InterceptedRequest) -> bool:
        """Whether a client without sessions writes its history anew from request to request
        (aider does): what joins a prompt there would be gone with the next one."""
        if asked.caller.session:
            return False
        known = self._log.decisions.positions.get(asked.main, {})
        return not self._ends.goes_on(asked) and any(at in known for at in asked.chains())

    # --- deciding

    async def _decide(
        self,
        asked: InterceptedRequest,
        made: OutgoingPlan,
        shadow: MirrorSession | None,
        limits: ResultLimits,
    ) -> None:
        """Decide what is open: files first, then the lines, under one lock."""
        lines: list[Line] = []
        if shadow is not None:
            lines += [await self._store_result(asked, p, shadow, limits) for p in made.open_results]
        tenant = asked.tenant
        lines += [result_line(tenant, part.call, part.key, "") for part in made.sent_results]
        lines += [reminder_line(asked.thread, at, text) for at, text in made.inherited]
        spot = asked.prompted
        if spot is not None and made.reminder is None:
            lasts = not self._is_rewritten(asked)
            text = await self._recall_for_prompt(asked, shadow) if shadow is not None else ""
            text = text if lasts else ""
            lines.append(reminder_line(asked.thread, spot.chain.hex(), text))
        await to_thread.run_sync(partial(self._settle, lines, asked, made, shadow))

    def _settle(
        self,
        lines: list[Line],
        asked: InterceptedRequest,
        made: OutgoingPlan,
        shadow: MirrorSession | None,
    ) -> None:
        """Write down what was decided, and what rules say to calls whose results are new."""
        if shadow is not None and shadow.rules is not None and made.unruled:
            looked = partial(shadow.rules.decided, asked, made.unruled, self._log.decisions)
            ruled, error = isolate_sync(looked, list[Line]())
            lines = [*lines, *ruled]
            if error:
                self._say(f"no rules were looked up: {error}")
        durable = any(line["text"] or line["kind"] != "rule" for line in lines)
        self._log.decide(partial(undecided_lines, lines), durable=durable)

    async def _store_result(
        self,
        asked: InterceptedRequest,
        part: ScannedPart,
        shadow: MirrorSession,
        limits: ResultLimits,
    ) -> Line:
        result = result_of(asked.body, part)
        key, data = file_of(result)
        stem, _, ending = key.rpartition(".")
        plain = strip_line_numbers(*asked.body.called(part), result.text)
        if plain != result.text:
            data, ending = plain.encode("utf-8", "surrogatepass"), "txt"
        key = f"{stem}-{part.key[:8]}.{ending}"
        disk = shadow.session.world.disk
        path = await disk.write(key, data)
        way = self.rules.way_back or ReadBackHint("", reader=limits.reader)
        where = way.stored(path, reference(part.call))
        preview = f"It begins:\n\n{ends(result.text, self.rules.preview)}"
        why = f"over {limits.characters:,} characters"
        decided = stored_decision(result, key, data, where, preview, why)
        self.shadows.keep((asked.tenant, part.call, part.key), decided)
        return result_line(asked.tenant, part.call, part.key, decided.content)

    # --- the shadow

    async def _shadow(self, asked: InterceptedRequest) -> MirrorSession | None:
        found, error = await alone(self.shadows.of(asked), None)
        if error:
            self._say(f"a conversation has no session of ours: {error}")
        return found

    async def _recall_for_prompt(self, asked: InterceptedRequest, shadow: MirrorSession) -> str:
        """Take in the prompt, and find what memory says to it."""
        async with shadow.turn:
            text, error = await alone(self._ingest_and_recall(asked, shadow), "")
        if error:
            shadow.failed = True
            self._say(f"nothing was recalled: {error}")
        return text

    async def _ingest_and_recall(self, asked: InterceptedRequest, shadow: MirrorSession) -> str:
        await shadow.heard(asked)
        first = not any(
            asked.thread in self._log.decisions.reminders.get(part.chain.hex(), {})
            for part in asked.body.parts
            if part.kind == "text"
        )
        text = await shadow.recalled(asked.prompt, first=first)
        await shadow.asks()
        return text

    async def answered(self, out: OutgoingRequest, reply: Reply | None) -> None:
        """The answer came, whole; or not."""
        if out.shadow is None or out.asked is None:
            return
        shadow = out.shadow
        try:
            if not shadow.failed:
                await self._follow(out, out.asked, shadow, reply)
        finally:
            shadow.uses -= 1

    async def _follow(
        self,
        out: OutgoingRequest,
        asked: InterceptedRequest,
        shadow: MirrorSession,
        reply: Reply | None,
    ) -> None:
        async with shadow.turn:
            _, error = await alone(_followed_by(out, asked, shadow, reply), None)
        if error:
            shadow.failed = True
            self._say(f"a conversation was not taken in: {error}")

    async def rested(self, out: OutgoingRequest) -> None:
        """Wait whether the client goes on; where it does not, the turn is over."""
        if out.shadow is None or out.asked is None:
            return
        await anyio.sleep(self.rules.rest)
        async with out.shadow.turn:
            _, error = await alone(out.shadow.end_turn(out.asked), None)
        if error:
            self._say(f"a turn was not ended: {error}")

    def _say(self, text: str, level: str = "warning") -> None:
        self.rules.shadows.say(Notice(NAME, text, "error" if level == "error" else "warning"))


async def _followed_by(
    out: OutgoingRequest, asked: InterceptedRequest, shadow: MirrorSession, reply: Reply | None
) -> None:
    """Let the shadow follow: the request, where nothing was asked of memory for it, and its
    answer."""
    if not out.taken:
        await shadow.heard(asked)
        await shadow.asks()
    if reply is None:
        await shadow.unanswered()
    else:
        await shadow.answered(asked, reply)
