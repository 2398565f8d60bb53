"""How a complaint or an order is worded as a rule: the words as they were said, or turned.

"Why do you X" is "do not X", "you forgot to X" is "X", "stop X-ing" is "avoid X-ing": a few fixed
forms, which add no thought of their own. What fits none is left as it was said, without the words
that only lead in. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from reverie.embedded.extraction.found import pattern
from reverie.embedded.extraction.tags import bases

# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|yup|nope|nah|hmm+|no(?=\s*[,.!:–—-]|\s+(?:you|u|i|we|it|that"
    r"|this|do|don'?t|stop|use|never|always|the|just|please)\b)|also|and|but|so|well|please|pls|plz"
    r"|oh|ah|right|sure|great|thanks|thank you|btw|by the way|alright|all right|cool|nice"
    r"|wait(?=\s*[,.!:…–—-])|wtf|dude|man|bro|jesus|ffs|ugh|argh|gah|seriously|come on|lol|um|uh"
    r"|perfect|actually|anyway|like|or|just|then|because|one (?:more|last|other) thing|remember|ps"
    r"|p\.s|fyi|h(?:ey|i|ello)(?: (?!you|we|i\b)\w+)?|again|lastly|finally|first|hm"
    r"|(?-i:[A-Z][a-z]+(?=[,!])))\b[\s,:!.–—-]*)*"
)
_YOU, _NOT = r"(?:you|u)", r"(?:n'?t| not)"
_OATH = r"(?: the (?:hell|heck|fuck)| on earth)?"
_SO = (
    r"(?:(?:just|again|still|even|actually|really|also|simply|obviously|clearly|literally|already"
    r"|once again|always|constantly|ever|then|basically|apparently|only|fucking|bloody|bother to"
    r"|suddenly) )*"
)
_END = re.compile(
    r"(?:,? (?:again|did (?:you|u)|right|at all|every time|all the time|everywhere))+$"
    r"|(?<= )any (?=\w)",
    re.IGNORECASE,
)


def _bare(what: str) -> str:
    return " ".join(_END.sub("", what.strip(" ,.!?…")).split()).strip(" ,.!?…")


def stem(word: str) -> str:
    """The base of a step's past or -ing; nothing where it is no step."""
    return bases().get(word.lower(), "")


def _based(what: str) -> str:
    """Words with their first verb in its base: "wrote any tests" is "write tests"."""
    first, _, rest = _bare(what).partition(" ")
    return f"{stem(first) or first} {rest}".strip()


def _do(found: re.Match[str]) -> str:
    return _based(found["what"])


def _do_not(found: re.Match[str]) -> str:
    what = _bare(found["what"])
    if re.match(r"not \w+ing\b", what):
        return _based(what.removeprefix("not "))
    if re.match(r"\w+ing\b", what):
        return f"avoid {what}"
    return f"do not {_based(what)}" if " " in what else ""


def _avoid(found: re.Match[str]) -> str:
    return f"avoid {_bare(found['what'])}"


def _prefer(found: re.Match[str]) -> str:
    return f"prefer {_bare(found['better'])} to {_bare(found['worse'])}"


Turn = Callable[[re.Match[str]], str]
FORMS: tuple[tuple[re.Pattern[str], Turn], ...] = (
    (
        pattern(
            r"^why (?:are you )?(?P<worse>\w+ing .{2,}?),? (?:and not|instead of|rather than"
            r"|when you could)(?: just| simply)? (?P<better>\w+ing .{2,}?)[ ?.]*$"
        ),
        _prefer,
    ),
    (
        pattern(rf"^why{_OATH} (?:did|do|have){_NOT} {_YOU} {_SO}(?P<what>\w+ .{{3,}})$"),
        _do,
    ),
    (
        pattern(
            rf"^why{_OATH} (?:(?:do|did|would|have) {_YOU} {_SO}"
            rf"|are {_YOU} {_SO}(?=(?:not )?\w+ing\b))(?P<what>\w+ .{{2,}})$"
        ),
        _do_not,
    ),
    (
        pattern(
            rf"^(?:is there a reason |how come )?(?:we|{_YOU}) {_SO}"
            rf"(?:did{_NOT}|forgot to|never|failed to) {_SO}(?P<what>\w+ .{{2,}})$"
        ),
        _do,
    ),
    (
        pattern(
            rf"^(?:did{_NOT}|did|have{_NOT}|have) {_YOU} (?:even |bother to )(?P<what>\w+ .{{2,}})$"
        ),
        _do,
    ),
    (pattern(rf"^(?:did|have) {_YOU} not (?P<what>\w+ .{{2,}})$"), _do),
    (pattern(rf"^are {_YOU} (?:forgetting|refusing|failing) to (?P<what>\w+ .{{2,}})$"), _do),
    (pattern(rf"^{_YOU} should(?: have|'?ve) (?P<what>\w+ .{{2,}})$"), _do),
    (
        pattern(
            r"^(?:(?:can|could|will) you )?(?:please )?(?:stop|quit|cease) (?P<what>\w+ing\b.*)$"
        ),
        _avoid,
    ),
    (pattern(rf"^{_YOU} (?:keep|kept)(?: on)? (?P<what>\w+ing\b.+)$"), _avoid),
    (pattern(rf"^why{_OATH} do {_YOU} keep (?:on )?(?P<what>\w+ing\b.+)$"), _avoid),
    (
        pattern(rf"^{_YOU}(?:'?re| are) {_SO}(?P<what>\w+ing .+?)(?: again|(?= without \w+ing))$"),
        _avoid,
    ),
    (
        pattern(
            rf"^(?:i (?:already |just |explicitly )*(?:told|asked) {_YOU} (?:\w+ )?not to"
            rf"|(?:can|could|would) {_YOU} (?:please |maybe |just )*not|i do{_NOT} want {_YOU} to)"
            rf" (?P<what>\w+ .+)$"
        ),
        _do_not,
    ),
    (
        pattern(
            rf"^i (?:already |just |explicitly )*(?:told|asked) {_YOU} (?:\w+ )?to"
            r" (?P<what>\w+ .+)$"
        ),
        _do,
    ),
    (pattern(r"(?<!^)\b(?P<what>make sure (?:to|that you|you) .+)$"), lambda found: found["what"]),
    (pattern(rf"^i (?:want|expect|need) {_YOU} to (?P<what>\w+ .+)$"), _do),
    (pattern(rf"^{_YOU} {_SO}(?P<what>\w+ed .+ without \w+ing\b.*)$"), _do_not),
)


def turned(said: str) -> str:
    """The rule that a complaint comes to by a fixed form; nothing where it fits none."""
    return first(FORMS, said) or first(FORMS, said.partition(", ")[2])


def first(forms: Iterable[tuple[re.Pattern[str], Turn]], said: str) -> str:
    """What the first form that fits makes of some words."""
    for row, turn in forms:
        found = row.search(said)
        if found is not None:
            return turn(found)
    return ""
