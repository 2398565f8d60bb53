"""What to do about an error, where the command line can say it better than the library.

The library names no commands; here they are, by the error and the command that met it.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from reverie.errors import Held, NotFound, ReverieError, StoreError
from reverie.reports.transcript_view import DisplayPart, TranscriptStep, overview, steps
from reverie.session.summaries import Transcript
from reverie.store.files import Changed
from reverie.text.format import plural, size, utc_minute
from reverie.text.safety import clean, line

if TYPE_CHECKING:
    import click
    from rich.console import Console

    from reverie.world import Notice

_SESSIONS = "`reverie sessions list` shows the ids, with `--all` those of every project"
_MEMORIES = "`reverie memory list`, `memory log` and `memory review list` show what there is"
HINTS: dict[tuple[type[ReverieError], str], str] = {
    **{(NotFound, name): _SESSIONS for name in ("sessions", "cache", "replay", "recall", "chat")},
    (NotFound, "memory"): _MEMORIES,
    (NotFound, "dream"): "`reverie dream status` shows the ids",
    (Held, "dream"): "Wait for it, or stop it with `reverie dream kill`",
    **{
        (StoreError, name): "`reverie trust` shows that file and approves it"
        for name in ("off", "on")
    },
    (Changed, "sessions"): "`--force` overwrites what is there",
    (Changed, "memory"): "Try again; with `export`, `--force` overwrites what is there",
}


# --- What a person sees, and what a program reads.
#
# Text of others is never printed as it is: escape sequences, control signs and signs that turn the
# direction of writing are taken out first, since a terminal would obey them. Colour and boxes are
# for a terminal alone; into a pipe goes plain text in columns. With `--json` a command prints one
# JSON document and nothing else on stdout.


T = TypeVar("T")
U = TypeVar("U")

PATIENCE = 1.0
"""Seconds after which people are shown that something goes on."""

_NARROWEST = 12

_UNPRINTABLE = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]"
)


def inert(text: str) -> str:
    """A JSON text of the same value that a terminal can show: what it would obey is escaped."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_text(value: object) -> str:
    """A value as JSON text, safe to print anywhere."""
    return inert(json.dumps(value, ensure_ascii=False, indent=2))


def json_line(value: object) -> None:
    """A value on one line, at once: what a server says when it listens."""
    print(inert(json.dumps(value, ensure_ascii=False)), flush=True)


def document(value: object) -> None:
    """The one answer of a command to `--json`."""
    sys.stdout.write(json_text(value) + "\n")


def hand_down(context: click.Context) -> None:
    """What was given before a command's name counts for the command too."""
    given = {name: value for name, value in context.params.items() if value}
    if "project" in given:
        given["project"] = given["project"].cwd  # the folder, as the option takes it
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: given}


def raw(text: str) -> None:
    """JSON text to stdout byte for byte; on a terminal in a spelling that is inert there."""
    if sys.stdout.isatty():
        sys.stdout.write(inert(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.buffer.flush()


def console(stream: TextIO | None = None) -> Console:
    """A console that colours on a terminal alone, and never reads markup out of a text."""
    from rich.console import Console

    from reverie.settings.sources import environment

    out = stream or sys.stdout
    on_terminal = out.isatty()
    return Console(
        file=out,
        force_terminal=on_terminal,
        no_color=bool(environment().get("NO_COLOR")) or not on_terminal,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not on_terminal,
    )


def say(text: str = "", style: str = "", indent: int = 0) -> None:
    """Lines for people, on stdout."""
    if not sys.stdout.isatty():
        for one in clean(text).split("\n"):
            sys.stdout.write((" " * indent + one).rstrip() + "\n")
        return
    from rich.padding import Padding
    from rich.text import Text

    shown = Text(clean(text), style=style)
    console().print(Padding(shown, (0, 0, 0, indent)) if indent else shown)


def note(text: str) -> None:
    """A line beside the answer, on stderr."""
    sys.stderr.write(clean(text) + "\n")


def tell(notice: Notice) -> None:
    """What the library has to say, on stderr."""
    note(notice.text)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    right: bool = False
    style: str = ""
    wraps: bool = False
    cut: bool = False  # gives way where a terminal is too narrow for all


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Rows under heads: boxes and colours on a terminal, plain columns elsewhere."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_table(columns, cells)
    else:
        _plain(columns, cells)


def _print_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out = console()
    heads = [column.name for column in columns]
    widths = [max(map(cell_len, cells_of)) for cells_of in zip(heads, *cells, strict=True)]
    fixed = sum(w for w, column in zip(widths, columns, strict=True) if not column.cut)
    sharing = max(1, sum(column.cut for column in columns))
    room = max(_NARROWEST, (out.width - fixed - 3 * len(columns)) // sharing)
    for column in columns:
        shown.add_column(
            column.name,
            justify="right" if column.right else "left",
            style=column.style or None,
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            min_width=_NARROWEST if column.cut and column.wraps else None,
            max_width=room if column.cut else None,
        )
    for row in cells:
        shown.add_row(*[Text(cell) for cell in row])
    out.print(shown)


def _plain(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len

    every = [[column.name for column in columns], *([line(c, 10_000) for c in r] for r in cells)]
    widths = [max(cell_len(row[n]) for row in every) for n in range(len(columns))]
    for row in every:
        padded: list[str] = []
        for cell, width, column in zip(row, widths, columns, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if column.right else cell + space)
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def with_progress(items: Sequence[T], what: str, work: Callable[[T], U]) -> Iterator[U]:
    """The work on each item; on a terminal, with progress once a second has passed."""
    started = time.monotonic()
    bar = None
    try:
        for count, item in enumerate(items):
            if bar is None and sys.stderr.isatty() and time.monotonic() - started > PATIENCE:
                from rich.progress import Progress

                bar = Progress(console=console(sys.stderr), transient=True)
                bar.add_task(what, total=len(items), completed=count)
                bar.start()
            yield work(item)
            if bar is not None:
                bar.advance(bar.task_ids[0])
    finally:
        if bar is not None:
            bar.stop()


@contextlib.contextmanager
def waiting(what: str) -> Generator[None]:
    """A sign of life for work in one piece: on a terminal, once a second has passed."""
    if not sys.stderr.isatty():
        yield
        return
    status = console(sys.stderr).status(what)
    later = threading.Timer(PATIENCE, status.start)
    later.daemon = True
    later.start()
    try:
        yield
    finally:
        later.cancel()
        later.join()
        status.stop()


# --- A conversation for people: printed step by step, or written as a page of Markdown.
#
# What stands in the place of messages is headed by what happened to them: whether it was asked
# for, what it took and freed, and what is neither in the context nor behind a reference. Nothing
# that others wrote acts here, neither on a terminal nor as HTML.


_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 1_200
_SHOWN_NAMES = 5
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_FENCE = re.compile(r"(`{3,}|~{3,})")


def when(at: float) -> str:
    """A time, or nothing where there is none."""
    try:
        return utc_minute(at) if at else ""
    except (OverflowError, OSError, ValueError):
        return ""


_NAMES = {"user": "you", "assistant": "assistant", "attached": "attached", "replaced": ""}
_STYLES = {"user": "bold cyan", "assistant": "bold green", "replaced": "bold magenta"}
_QUIET = ("started", "turn", "kept")
_LEFT = {"left": "left behind", "replaced": "replaced since"}
_DONE = {"snip": "snipped", "collapse": "sealed", "collapse fold": "folded"}
_STANDS = {"compaction": "the summary", "session_memory": "the notes"}


def print_steps(found: Sequence[TranscriptStep], *, full: bool) -> None:
    """Print a conversation; without `full`, long texts are cut and small decisions left out."""
    for step in found:
        if step.kind in _NAMES and step.parts:
            _tell_message(step, full)
        elif full or step.kind not in _QUIET:
            say(f"▪ {decision(step)}", "yellow" if step.kind == "failed" else "dim")


def _tell_message(step: TranscriptStep, full: bool) -> None:
    who = speaker(step)
    facts = [when(step.at), str(step.facts.get("model") or ""), _LEFT.get(step.state, "")]
    style = _STYLES.get(step.kind if who in _NAMES.values() else "", "bold")
    if step.kind == "replaced":
        who = f"▪ {decision(step, full=full)}; {who}"
    say()
    say(" · ".join([who, *filter(None, facts)]), style)
    for part in _worth_telling(step):
        text, more = (clean(part.text), 0) if full else _cut(clean(part.text))
        if part.kind == "call":
            text = line(part.text, 10_000 if full else 200)
        style = "" if part.kind == "text" else "dim"
        label = {"call": f"→ {part.name} ", "result": f"← {part.name}\n"}.get(part.kind, "")
        label = "(thinking) " if part.kind == "thinking" else label
        say(f"{label}{text}".rstrip("\n"), style, indent=2)
        if more and part.kind != "call":
            say(f"… {plural(more, 'character')} more; --full shows them", "dim", indent=2)


def _worth_telling(step: TranscriptStep) -> list[DisplayPart]:
    return [p for p in step.parts if p.text.strip() or p.kind in ("call", "result")]


def speaker(step: TranscriptStep) -> str:
    origin = str(step.facts.get("origin") or "")
    if step.kind == "user" and step.parts and all(p.kind == "result" for p in step.parts):
        return "tools"
    if step.kind == "user" and origin not in ("", "user"):
        return origin
    if step.kind == "replaced":
        return _STANDS.get(str(step.facts.get("reason")), "in their place")
    return _NAMES.get(step.kind, step.kind)


def _cut(text: str) -> tuple[str, int]:
    """The beginning of a text, and how many characters more it has."""
    head = "\n".join(text.split("\n")[:_SHOWN_LINES])[:_SHOWN_CHARACTERS]
    return head, len(text) - len(head)


def decision(step: TranscriptStep, *, full: bool = False) -> str:
    """A decision or an event in a line."""
    if step.kind == "replaced":
        return _replacement(step.facts, full)
    facts = {key: line(str(value), 500) for key, value in step.facts.items()}
    about = f"result of {facts.get('tool') or 'a tool'} ({facts.get('call')})"
    why = f": {facts['why']}" if facts.get("why") else ""
    match step.kind:
        case "stored":
            return f"stored: {about}, {size(int(facts['size']))} in {facts['path']}{why}"
        case "cleared" | "kept":
            return f"{step.kind}: {about}{why}"
        case "moved":
            return f"prefix moved: {', '.join(dict.fromkeys(step.facts['reasons']))}"
        case "head":
            reason = f" ({facts['reason']})" if facts["reason"] else ""
            tools = plural(len(step.facts["tools"]), "tool")
            return f"request head{reason}: model {facts['model'] or '-'}, {tools}"
        case "failed":
            where = f" ({facts['where']})" if facts["where"] else ""
            return f"failed: {facts['layer']}: {facts['error']}{where}"
        case _:
            known = ", ".join(f"{k} {v}" for k, v in facts.items() if v)
            return f"{step.kind}: {known}" if known else step.kind


def _replacement(facts: Mapping[str, Any], full: bool) -> str:
    """What happened to messages that something else stands for now."""
    reason = str(facts.get("reason") or "")
    said: list[str] = []
    if "trigger" in facts:
        done = "compacted automatically" if facts["trigger"] == "auto" else "compacted as asked"
        said = [*_measurement_texts(facts), _missing(facts["missing"], full)]
    else:
        done = _DONE.get(reason, line(reason) or "replaced")
        said = [line(str(facts.get("why") or ""), 500)]
    counts = filter(None, [*said, _replaced_text(facts)])
    return f"{done}: {', '.join(counts)}".removesuffix(": ")


def _measurement_texts(facts: Mapping[str, Any]) -> list[str]:
    before, after, fidelity = (facts[k] for k in ("tokens_before", "tokens_after", "fidelity"))
    tokens = f"{before:,} → {after:,} tokens" if after else f"{before:,} tokens" if before else ""
    return [
        tokens,
        f"{plural(facts['calls'], 'call')} to a model" if facts["calls"] else "",
        "" if fidelity is None else f"fidelity {fidelity:.0%}",
    ]


def _missing(names: Sequence[str], full: bool) -> str:
    shown = names if full else names[:_SHOWN_NAMES]
    more = f" and {len(names) - len(shown):,} more" if len(shown) < len(names) else ""
    listed = ", ".join(line(name, 80) for name in shown)
    return f"{plural(len(names), 'name')} missing: {listed}{more}" if names else ""


def _replaced_text(facts: Mapping[str, Any]) -> str:
    if "messages" not in facts:
        return ""
    stay = [f"{facts[side]:,} {side}" for side in ("before", "behind") if facts[side]]
    left = f" ({' and '.join(stay)} stay)" if stay else ""
    return f"{plural(facts['messages'], 'message')} replaced{left}"


# --- as a page


def markdown(found: Transcript, folder: str = "") -> str:
    """The conversation as Markdown in which nothing of it acts as HTML."""
    facts = overview(found)
    out = [f"# {_inert(line(facts['title']))}", "", f"Session `{found.id}`", ""]
    for step in steps(found, folder):
        if step.kind not in _NAMES:
            out += [] if step.kind in _QUIET else [f"*{_inert(decision(step))}*", ""]
            continue
        left = f" ({_LEFT[step.state]})" if step.state in _LEFT else ""
        out += [f"## {speaker(step).capitalize()}{left}", ""]
        if step.kind == "replaced":
            out += [f"*{_inert(decision(step))}*", ""]
        for part in _worth_telling(step):
            out += [_page_part(part), ""]
    return "\n".join(out)


def _page_part(part: DisplayPart) -> str:
    text = clean(part.text)
    if part.kind == "text":
        return _inert_page(text)
    label = {"call": f"→ {line(part.name)}", "result": f"← {line(part.name)}"}
    head = _inert(label.get(part.kind, part.kind))
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    return f"{head}\n\n{fence}\n{text}\n{fence}"


def _inert(text: str) -> str:
    return _HTML.sub("&lt;", text)


def _inert_page(text: str) -> str:
    """Markdown of others with its HTML escaped, and every fence it opens closed."""
    out: list[str] = []
    fence = ""
    for one in text.split("\n"):
        found = _FENCE.match(one)
        if fence:
            out.append(one)
            if found and found[1].startswith(fence) and not one.strip(fence[0]).strip():
                fence = ""
            continue
        if found and "`" not in one[found.end() :]:
            fence = found[1]
        out.append(_inert(one))
    return "\n".join([*out, fence] if fence else out)
