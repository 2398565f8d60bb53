"""What the model is shown of a rule: the user's own words, whose they are, and what to do now.

In place of the result of a call that was held, or beside the result of one that had left already.
A leaf: hooks and proxies use it too.
"""

from __future__ import annotations

from reverie.memory.rules.match import ASK, BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.memory.rules.match import CompiledRule

USER, TEAMS, UNVERIFIED = "user", "team", "unverified"
_HELD = "Not run yet: this call goes against a rule from memory."
_BLOCKED = "Not run: a rule of the user's forbids this call."
_AFTER = (
    "This call goes against a rule from memory, and was not held back. If it ran, put right what "
    "it did where that matters. Keep to the rule from here on."
)
_AGAIN = (
    "Do the work in a way that keeps to the rule. Only where it clearly does not fit here, make "
    "the same call again: it will run."
)
_NO = "Repeating the call will not help. Keep to the rule, or ask the user."
_ASKS = "A rule says to ask before this call."
_WHOSE = {
    USER: "The user's rule",
    TEAMS: "A rule from the team's memory, which the user has not confirmed",
    UNVERIFIED: "A rule that nobody has confirmed",
}


def told(rules: Sequence[CompiledRule], *, ran: bool = False, asks: bool = False) -> str:
    """The text for the model; `ran` where the call could not be held, `asks` for the person who
    is asked."""
    forbids = any(rule.get("level") in (BLOCK, ASK) for rule in rules)
    quotes = [quoted(rule) for rule in rules]
    if asks:
        return "\n\n".join([_ASKS, *quotes])
    if ran:
        return "\n\n".join([_AFTER, *quotes])
    return "\n\n".join([_BLOCKED if forbids else _HELD, *quotes, _NO if forbids else _AGAIN])


def quoted(rule: CompiledRule) -> str:
    """A rule as the user's words; one of another's as what it is."""
    whose = _WHOSE.get(rule.get("source", USER), _WHOSE[UNVERIFIED])
    said = rule.get("said", 1)
    often = f", said {said} times" if said > 1 else ""
    text = "\n".join(f"> {row}" for row in rule.get("text", "").split("\n"))
    return f"{whose} ({rule.get('file', '')}{often}):\n{text}"
