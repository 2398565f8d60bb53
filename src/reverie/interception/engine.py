"""A client's request in, the one that goes out, its answer: what every way through shares.

If anything of ours fails, the client's own bytes go out. Files come first, then the line in the
log, then the request. What the session of the shadow does behind an answer is nobody's wait.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
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
    reading_of,
)
from reverie.interception.mirror import MirrorOptions, MirrorSession
from reverie.interception.mirror_pool import LockTable, MirrorPool, RequestTails
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
PATIENCE = 20.0
CHARACTERS = 8_000
PREVIEW = 1_200
SAID = 1_000
"""Different notices about bodies that passed; no more are said."""


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
    patience: float = PATIENCE  # seconds, after which a request passes as it is
    by_client: bool = False  # nothing is sealed or stored that the client may not read
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
        self._deciding = LockTable()
        self._said: set[str] = set()

    async def aclose(self) -> None:
        await self.shadows.aclose()
        self._log.close()

    # --- a request

    async def outgoing(
        self, form: Format, headers: Mapping[str, str], data: bytes, client: str = ""
    ) -> OutgoingRequest:
        """What goes out; the client's own bytes where anything fails. `client` is the name of one
        that was installed."""
        if headers.get(SWITCH, "").strip().lower() == "off" or headers.get(INSIDE):
            return self._pass_through(data, "off", "off")
        try:
            asked = await to_thread.run_sync(self._read, form, headers, data, client)
        except (UnpatchableBody, ReverieError, OSError) as error:
            self._say_once(f"a body passed as it is: {error}")
            return self._pass_through(data, "passed: not readable")
        self._count(asked, client)
        if asked.kind == "side":
            return self._pass_through(data, "passed: a side request")
        found, error = None, f"it took over {self.rules.patience:g} s"
        with anyio.move_on_after(self.rules.patience):
            found, error = await alone(self._build_request(asked, data), None)
        if found is None:
            self._say(f"a request passed as it is, since something of ours failed: {error}")
            self.figures.counts["failed"] += 1
            return self._pass_through(data, "passed: it failed")
        return found

    def _count(self, asked: InterceptedRequest, client: str) -> None:
        """Count what an installed client sends, by the policy that holds for it."""
        if asked.reading == "refused":
            self._say_once(
                "large results stay in the context of a client that asks before it reads outside "
                "its project: `reverie install` sets it up"
            )
        counts = self.figures.clients.setdefault(client, Counter()) if client else Counter[str]()
        counts[asked.kind] += 1

    def _pass_through(self, data: bytes, told: str, kind: str = "passed") -> OutgoingRequest:
        self.figures.counts[kind] += 1
        return OutgoingRequest(data, told)

    def _read(
        self, form: Format, headers: Mapping[str, str], data: bytes, client: str
    ) -> InterceptedRequest:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise UnpatchableBody("it is not UTF-8") from error
        caller = caller_of(headers, self.rules.scope)
        body = scan_body(text, form, caller.seed, caller.thread, self._known)
        folder = project = self._project(body, caller, headers)
        person = "" if self.rules.folder else person_of(body, headers, folder=bool(project))
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
        reading = reading_of(headers, client) if self.rules.by_client else "granted"
        return InterceptedRequest(
            body,
            caller,
            kind,
            prompt_of(body, kind),
            folder,
            project,
            memory,
            reading,
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
        limits, needed = await to_thread.run_sync(self._look, asked)
        shadow = await self._shadow(asked) if needed else None
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

    def _look(self, asked: InterceptedRequest) -> tuple[ResultLimits, bool]:
        """What may stay of a request, and whether its mirrored session is needed."""
        self._log.refresh()
        limits = self._limits(asked)
        if asked.kind == "main" or self._seals(asked):
            return limits, True
        made = plan(asked, self._log.decisions, limits)
        return limits, bool(made.open_results or (made.unruled and self.rules.shadows.memory))

    async def _patch_request(
        self,
        asked: InterceptedRequest,
        data: bytes,
        limits: ResultLimits,
        shadow: MirrorSession | None,
    ) -> OutgoingRequest:
        work = partial(plan, asked, limits=limits)
        async with self._deciding.of(asked.thread):
            made = await to_thread.run_sync(work, self._log.decisions)
            undecided = bool(asked.prompt) and made.reminder is None
            unruled = made.unruled and shadow is not None and shadow.rules is not None
            if self._is_open(made) or undecided or unruled:
                await self._decide(asked, made, shadow, limits)
                made = await to_thread.run_sync(work, self._log.decisions)
        following = shadow if asked.kind == "main" else None
        text = await to_thread.run_sync(self._render, asked, made)
        out = self._outgoing(
            asked, made, text or data, following, changed=text is not None, taken=undecided
        )
        return await self._collapse_rounds(out, asked, shadow, limits)

    async def _collapse_rounds(
        self,
        out: OutgoingRequest,
        asked: InterceptedRequest,
        shadow: MirrorSession | None,
        limits: ResultLimits,
    ) -> OutgoingRequest:
        """The same with old rounds sealed, where that is wanted and can be read back."""
        seal = self.rules.seal if self._seals(asked) else None
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

    def _seals(self, asked: InterceptedRequest) -> bool:
        return self.rules.seal is not None and asked.reading == "granted"

    def _is_open(self, made: OutgoingPlan) -> bool:
        return bool(made.open_results or made.sent_results or made.inherited)

    def _limits(self, asked: InterceptedRequest) -> ResultLimits:
        rules, body = self.rules, asked.body
        reader = rules.way_back.tool if rules.way_back else reader_of(body)
        reader = "" if asked.reading == "refused" else reader
        model = str(body.members.get("model") or "")
        known, fallback = table_capabilities(model).window, rules.settings.fallback_window
        window = context_window(model, known=known, fallback=fallback)
        scaled = rules.settings.scaled(window)
        whole = scaled.read_whole * scaled.text_bytes_per_token
        return ResultLimits(
            rules.characters, str(rules.shadows.own.home / "projects"), reader, whole
        )

    def _render(self, asked: InterceptedRequest, made: OutgoingPlan) -> bytes | None:
        """The bytes that go out; None where they are the client's own. Breaks are counted."""
        found = self._ends.followed(asked, made)
        if found.broken:
            self.figures.breaks += 1
            self._say("the prefix of a request changed: please report this", "error")
        self.figures.client_breaks += found.left
        text = render_body(asked, made, found.known or self._recorded(asked))
        return None if text is None else text.encode()

    def _recorded(self, asked: InterceptedRequest) -> int:
        """How many parts were sent before this process began, as far as the log knows."""
        known = self._log.decisions.positions.get(asked.main, {})
        parts = asked.body.parts
        ends = (n for n in range(len(parts), 0, -1) if parts[n - 1].chain.hex() in known)
        return next(ends, 0) if known else 0

    def _outgoing(
        self,
        asked: InterceptedRequest,
        made: OutgoingPlan,
        data: bytes,
        shadow: MirrorSession | None,
        *,
        changed: bool,
        taken: bool,
    ) -> OutgoingRequest:
        told = f"stored={made.stored} reminders={made.reminded} saved={made.saved}"
        told += "" if asked.memory else " memory=none"
        self.figures.counts["changed" if changed else "unchanged"] += 1
        self.figures.saved += made.saved
        return OutgoingRequest(data, told, asked, shadow, taken)

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
        if shadow is not None and made.open_results:
            store = partial(self._store_results, asked, made.open_results, shadow, limits)
            lines += await shadow.do(store)
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

    async def _store_results(
        self,
        asked: InterceptedRequest,
        parts: Sequence[ScannedPart],
        shadow: MirrorSession,
        limits: ResultLimits,
    ) -> list[Line]:
        return [await self._store_result(asked, part, shadow, limits) for part in parts]

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
        work = shadow.do(partial(self._ingest_and_recall, asked, shadow))
        text, error = await alone(work, "")
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
        work = shadow.do(partial(_followed_by, out, asked, shadow, reply))
        _, error = await alone(work, None)
        if error:
            shadow.failed = True
            self._say(f"a conversation was not taken in: {error}")

    async def rested(self, out: OutgoingRequest) -> None:
        """Wait whether the client goes on; where it does not, the turn is over."""
        if out.shadow is None or out.asked is None:
            return
        await anyio.sleep(self.rules.rest)
        if out.shadow.closes:
            return
        work = out.shadow.do(partial(out.shadow.end_turn, out.asked))
        _, error = await alone(work, None)
        if error:
            self._say(f"a turn was not ended: {error}")

    def _say_once(self, text: str) -> None:
        if text not in self._said and len(self._said) < SAID:
            self._said.add(text)
            self._say(text)

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
