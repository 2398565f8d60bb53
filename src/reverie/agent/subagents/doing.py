"""What an agent does right now, in three to five words: "Reading validate.py".

Without a model it is told from its last tool call. With one, every half minute a background agent's
own model is asked on its cached prefix, or the model that writes summaries on the last few
messages, whichever costs less; with all tools denied, counted before it leaves, and never where
nothing happened since. An answer that is no such phrase is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reverie.errors import ReverieError
from reverie.providers.prices import price_of
from reverie.session import fork as forks
from reverie.session.budget import weight
from reverie.session.fork import Worker
from reverie.text.terminal import clean
from reverie.tools.runner import NoTools
from reverie.transcript.blocks import dump, text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import Entry, HeadSet, Usage, UserMessage
from reverie.transcript.tasks import Task
from reverie.transcript.view import EMPTY, View
from reverie.wire.reply import ToolCall
from reverie.wire.request import Request, render
from reverie.world import ForkSpec, Model

SOURCE = "agent_summary"
TAIL = 4_000
"""Characters of the last messages that another model is shown."""
OUTPUT = 20
"""Tokens that such an answer has, about."""
MAX_LETTERS = 60
ASK = """\
Say what you are doing right now in three to five words, in the present tense, beginning with a verb
that ends in -ing, and name the file or function: "Fixing null check in validate.py". Not vague, not
in the past tense. Answer with these words alone; call no tool."""
_VERBS: Mapping[str, tuple[str, str]] = {
    "Read": ("Reading", "file_path"),
    "ReadBack": ("Reading back", "reference"),
    "Edit": ("Editing", "file_path"),
    "Write": ("Writing", "file_path"),
    "Grep": ("Searching for", "pattern"),
    "Glob": ("Looking for files", "pattern"),
    "List": ("Listing", "path"),
    "Bash": ("Running", "command"),
    "SearchMemory": ("Searching memory for", "query"),
    "SearchSessions": ("Searching sessions for", "query"),
    "SendMessage": ("Writing to", "to"),
}
_PHRASE = re.compile(r"[A-Z][\w-]*ing\b[^\n]{2,}")


def doing(call: ToolCall) -> str:
    """What a call does, without a model."""
    verb, member = _VERBS.get(call.name, (f"Calling {call.name}", ""))
    value = str(call.arguments.get(member, "")) if member else ""
    if member in ("file_path", "path"):
        value = value.rstrip("/").rpartition("/")[2] or "the project"
    words = clean(value).split()
    return " ".join((verb, *words[: max(1, 5 - len(verb.split()))]))[:MAX_LETTERS]


def phrase(text: str) -> str:
    """An answer as it is shown; "" where it is no such phrase."""
    line = clean(text).strip().strip("\"'.").strip()
    fits = _PHRASE.fullmatch(line) and 2 <= len(line.split()) <= 7 and len(line) <= MAX_LETTERS
    return line if fits else ""


async def summary(worker: Worker, model: Model, cheap: Model | None) -> str:
    """The phrase that a model gives; "" where it gives none."""
    if worker.view.sent is None:
        return ""
    if cheap is not None and tail_is_cheaper(worker, model, cheap):
        request = _tail(worker.view, cheap.name)
        ask = worker.world.ask
        if ask is None:
            return ""
        reply = await ask(request, cheap)
        return phrase(reply.text)
    spec = ForkSpec(SOURCE, ASK, Task(SOURCE))
    try:
        async with worker.forked(SOURCE) as child:
            return phrase((await forks.run(child, spec, model, NoTools())).text)
    except ReverieError:
        return ""


def tail_is_cheaper(worker: Worker, model: Model, cheap: Model) -> bool:
    """Whether another model on the last messages costs less than this one on its own prefix."""
    settings = worker.world.settings
    prefix = weight(Usage(len(ASK) // 4, worker.view.tokens, 0, OUTPUT), settings)
    tail = weight(Usage((TAIL + len(ASK)) // 4, 0, 0, OUTPUT), settings)
    one, other = price_of(model.name), price_of(cheap.name)
    if cheap.capabilities.free:
        return True
    if one is None or other is None:  # not to be compared: only by tokens
        return tail < prefix
    return tail * other.input < prefix * one.input


def _tail(view: View, model: str) -> Request:
    """A request of its own: the last messages as text, and what is asked."""
    texts: list[str] = []
    for item in view.items:
        for piece in item.pieces:
            found = piece.block.text or dump(piece.block.value.get("input", ""))
            texts.append(f"{item.role}: {found}")
    shown = "\n".join(texts)[-TAIL:]
    told = f"The end of what an agent has done so far:\n\n{shown}\n\n{ASK}"
    made = apply(EMPTY, Entry("head", "", 0.0, HeadSet(model)))
    message = UserMessage((text_block(told),))
    return render(apply(made, Entry("ask", "", 0.0, message)), SOURCE, Task(SOURCE))
