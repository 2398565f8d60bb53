"""A conversation for people: printed step by step, or written as a page of Markdown.

What stands in the place of messages is headed by what happened to them: whether it was
asked for, what it took and freed, and what is neither in the context nor behind a reference.
Nothing that others wrote acts here, neither on a terminal nor as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.apps.cli.show import clean, line, say
from reverie.session.reading import Transcript
from reverie.text.format import plural, size, utc_minute
from reverie.upkeep.conversation import ShownPart, TranscriptStep, overview, steps

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


def told(found: Sequence[TranscriptStep], *, full: bool) -> None:
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


def _worth_telling(step: TranscriptStep) -> list[ShownPart]:
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
        said = [*_measured(facts), _missing(facts["missing"], full)]
    else:
        done = _DONE.get(reason, line(reason) or "replaced")
        said = [line(str(facts.get("why") or ""), 500)]
    counts = filter(None, [*said, _placed(facts)])
    return f"{done}: {', '.join(counts)}".removesuffix(": ")


def _measured(facts: Mapping[str, Any]) -> list[str]:
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


def _placed(facts: Mapping[str, Any]) -> str:
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


def _page_part(part: ShownPart) -> str:
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
