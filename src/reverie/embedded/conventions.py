"""How code is to be written: a rule for names or for what belongs into each function.

"From now on, start attribute names with 'q_'" is an order for good, and one subject has one rule:
a later order about the same names takes the place of the earlier. A rule is what is named (the
part of a program), an aspect of it (how its name starts, ends, is spelled; what stands in it) and
the letters asked for. It counts where the sentence orders or tells what "we" do, and reaches
beyond the task in hand: by its words, by speaking of "your" code or of names in general, or
because the talk is of conventions. English alone. In doubt, nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.embedded.sentences import ExtractedFact, Sentence, pattern

_PARTS = (
    r"(?:functions?['’]?s? (?:arguments?|parameters?)(?: variables?)?|arguments?|parameters?"
    r"|functions?|methods?"
    r"|attributes?|variables?|class(?:es)?|constants?|interfaces?|enums?|propert(?:y|ies)"
    r"|fixtures?|structs?|components?|tables?|columns?|code)"
)
_PART = pattern(rf"\b{_PARTS}\b")
_QUOTED = r"['\"`‘“](?P<quoted>@?\w{1,24})['\"`’”]"
_LETTERS = pattern(
    rf"{_QUOTED}|(?<!\w)(?P<bare>[A-Za-z]{{1,8}}_|_[A-Za-z]{{1,8}}|@\w{{2,30}})(?!\w)"
)
_DIGIT = pattern(r"\b(?:a|one|single|at least one|any) (?:single )?(?:digit|number|numeral)\b")
_CASE = pattern(
    r"\b(?:camel|pascal|snake|kebab|screaming[ _-]?snake|title)[ _-]?case\b"
    r"|\b(?:all[ -])?(?:upper|lower)[ -]?case\b|\ball caps\b"
)
_CONSTRUCT = pattern(
    r"\b(?P<docstrings>doc[- ]?strings?)\b|\b(?P<annotations>(?:type )?annotations?|type hints?)\b"
    r"|\b(?P<asserts>assert(?:ion)?s?(?: statements?)?)\b"
    r"|(?P<try>\btry(?:[-/ ](?:except|catch|finally))?[- ](?:statements?|blocks?|clauses?)\b"
    r"|\btry[-/](?:except|catch)\b)|\b(?P<comments>comments?|commenting)\b"
)
_NAMED = {
    "docstrings": "docstrings",
    "annotations": "type annotations",
    "asserts": "assert statements",
    "try": "try statements",
    "comments": "comments",
}
_ASPECT = pattern(
    r"\b(?P<start>start(?!\s+(?:using|adding|including|ending|incorporat\w+|writing|doing)\b)"
    r"(?:s|ing)?|begin(?:s|ning)?|prefix(?:es|ed|ing)?)\b"
    r"|\b(?P<end>end(?!\s+up\b)(?:s|ing)?|suffix(?:es|ed|ing)?|finish(?:es|ing)?)\b"
    r"|\b(?P<hold>includ(?:e|es|ing)|contain(?:s|ing)?|incorporat(?:e|es|ing))\b"
)
_DECORATED = pattern(r"\bdecorators?\b")
_DECORATOR = pattern(r"(?<!\w)(?P<at>@?)(?P<name>\w{2,40})['\"`’”]? decorator\b")
_IMPORT = pattern(r"\bimport(?:s|ing)?\b(?P<gap>[^'\"`‘“.;]{0,40})")
_OVER = pattern(
    r"\b(?:instead of|rather than|in place of|no longer|not any ?more|formerly|previously|used to"
    r"|replac(?:e|es|ing)|away from|and not|but not|, not)\W*(?:\w+ ){0,4}['\"`‘“]?$"
)
_NAMES = pattern(r"\bnam(?:e|es|ed|ing)\b|\bidentifiers?\b|\b(?:pre|suf)fix")

# What makes a sentence an order, and what does not.
_VERB = (
    r"(?:start|end|begin|finish|include|add|use|import|prefix|suffix|name|write|avoid|put|wrap"
    r"|annotate|apply|decorate|adopt|keep|document|incorporate|assert|implement|ensure|follow"
    r"|insert|append|prepend|provide)"
)
_LASTING = pattern(
    r"\b(?:from (?:now|here|this point|today) on(?:wards?)?|going forward|moving forward"
    r"|in (?:the )?future|always|never|every time|each time|whenever|habit of|(?:remember"
    r"|forget) to"
    r"|at all times|as a rule|without exception)\b"
)
_ORDERS = pattern(
    r"\b(?:i|we)(?:'d| would|'ll| will)?(?: also| now| really| just)? (?:want|need|like|expect|ask"
    r"|require|prefer)s? (?:you|everyone|us|all of you)\b"
    rf"|\b(?:make sure|be sure|ensure|remember|don'?t forget|please|let'?s)\b.{{0,60}}?\b{_VERB}"
    rf"|(?:^|[,;:—-] ?|\band |\bto |\balways |\bthen |\bnow on )"
    rf"(?:please |always |never |also |just )*{_VERB}\b"
    rf"|\bwe(?:'ll be| will| always| also| all| only| now| typically)* {_VERB}(?:ing)?\b"
    r"|\b(?:should|must|needs? to|ha(?:s|ve) to)\b|\b(?:habit of|focus on|start) \w+ing\b"
    r"|\b(?:convention|rule|practice|standard)s?\b.{0,60}?\bis\b"
    r"|\b(?:important|essential|crucial|necessary) (?:that you|to)\b"
    r"|\b(?:emphasi[sz]e|stress)\b.{0,40}\b(?:importance|use)\b"
)
_NO_ORDER = pattern(
    r"^(?:i(?:'ve| have)? (?:notic|seen|saw|read)|did you|do you|have you|you(?:'ve| have| did)"
    r"|why|how|what|no, (?:it|the)|if\b)|\b(?:haven'?t|hasn'?t|didn'?t|weren'?t|was|were)\b"
    r"|\brenam(?:e|ing)\b|\b(?:i|we) (?:mentioned|said|discussed|talked|told)\b"
)
_OF_THIS = pattern(
    r"\b(?:this|that|these|those) (?:file|function|class|method|module|pr|branch|change|commit"
    r"|test|script|component|case|one|field|variable|line)s?\b|\b(?:here(?!')|above|below)\b"
    r"|[\w-]+\.(?:py|tsx?|jsx?|go|rs|java|rb|md|json|c|h|cpp)\b"
)
_STANDARDS = pattern(
    r"\b(?:cod(?:e|ing) (?:standards?|conventions?|practices?|guidelines?|style|rules?)"
    r"|naming (?:conventions?|standards?|rules?)|(?:conventions?|standards?|guidelines?) (?:we|i"
    r"|that we|for)\b|style guide|best practices)\b"
)
_YOUR = pattern(
    rf"\b(?:your|our)(?: own| python| new)* {_PARTS}\b|\b(?:every|each|any|all) {_PARTS} you\b"
)


@dataclass(frozen=True, slots=True)
class CodeRule:
    """One rule: the topic it is the rule for, and what it says in a line."""

    topic: str
    says: str


@dataclass(frozen=True, slots=True)
class ConventionState:
    """What the sentences before have brought: talk of conventions, and the part spoken of."""

    standards: bool = False
    part: str = ""


def update_state(before: ConventionState, sentence: Sentence) -> ConventionState:
    """What the talk is about once a sentence was said."""
    parts = [_plain(one.group()) for one in _PART.finditer(sentence.text)]
    named = [one for one in parts if one != "code"]
    kept = named[-1] if named else before.part
    return ConventionState(before.standards or bool(_STANDARDS.search(sentence.text)), kept)


def read(sentence: Sentence, before: ConventionState) -> list[ExtractedFact]:
    """The rules that a sentence gives; a question gives none."""
    text = sentence.text
    if sentence.asks or _NO_ORDER.search(text) or _OF_THIS.search(text) or not _ORDERS.search(text):
        return []
    lasting = bool(_LASTING.search(text) or _YOUR.search(text)) or before.standards
    rules = list(_rules(text, before, lasting=lasting))
    whole = len(rules) == 1 and _is_whole(text, rules[0])
    said = text if whole else ""  # a sentence of several rules would tell each of them with each
    return [
        ExtractedFact("order", "feedback", one.says, said=said, topic=one.topic, line=one.says)
        for one in rules
    ]


def _is_whole(said: str, rule: CodeRule) -> bool:
    """Whether a sentence says it without the one before."""
    part = rule.topic.split()[0].lower().rstrip("s")
    return part in said.lower() or rule.topic.startswith(("Import", "Decorator", "Comments"))


def _rules(text: str, before: ConventionState, *, lasting: bool) -> Iterator[CodeRule]:
    if _DECORATED.search(text):
        yield from _decorators(text, before) if lasting else ()
        return
    found: list[CodeRule] = [*_imports(text)] if lasting else []
    if not found:
        found += _names(text, before, lasting=lasting)
        if lasting:
            found += _constructs(text, before)
    yield from dict.fromkeys(found)


def _imports(text: str) -> Iterator[CodeRule]:
    word = _IMPORT.search(text)
    letters = _LETTERS.search(text)
    if word and letters and re.search(r"\bmodule|\blibrary|\bpackage", text, re.IGNORECASE):
        name = letters["quoted"] or ""
        if name.isidentifier():
            yield CodeRule(f"Import of {name}", f"Import the '{name}' module, even where unused.")


def _names(text: str, before: ConventionState, *, lasting: bool) -> Iterator[CodeRule]:
    """What letters, which spelling or a digit stands in which names."""
    marks = [one for one in _LETTERS.finditer(text) if not _OVER.search(text[: one.start()])]
    about_names = bool(_NAMES.search(text)) or lasting
    last_aspect, last_part = "", ""
    for n, mark in enumerate(marks):
        low = marks[n - 1].end() if n else 0
        high = marks[n + 1].start() if n + 1 < len(marks) else len(text)
        letters = mark["quoted"] or mark["bare"] or ""
        aspect = _last(_ASPECT, text[low : mark.start()]) or last_aspect
        if not aspect and (beside := _ASPECT.search(text[mark.end() : high])):
            aspect = beside.lastgroup or ""
        part = _part(text, low, mark.start(), mark.end(), high) or last_part or before.part
        last_aspect, last_part = aspect, part
        if part and part != "code" and about_names and aspect:
            yield _name_rule(part, aspect, letters)
    yield from _spelling_rules(text, last_part or before.part, lasting=lasting)


def _decorators(text: str, before: ConventionState) -> Iterator[CodeRule]:
    for mark in _DECORATOR.finditer(text):
        if not mark["at"] and "_" not in mark["name"]:
            continue
        part = _part(text, 0, mark.start(), mark.end(), len(text), after=True) or before.part
        if part and part != "code":
            says = f"Add the '@{mark['name']}' decorator to all {_many(part)}."
            yield CodeRule(f"Decorator @{mark['name']} on {_many(part)}", says)


def _name_rule(part: str, aspect: str, letters: str) -> CodeRule:
    names = f"{part.capitalize()} names"
    if aspect == "start":
        return CodeRule(f"{names}: beginning", f"{names} start with '{letters}'.")
    if aspect == "end":
        return CodeRule(f"{names}: ending", f"{names} end with '{letters}'.")
    return CodeRule(f"{names}: letters inside", f"{names} include '{letters}'.")


def _spelling_rules(text: str, before: str, *, lasting: bool) -> Iterator[CodeRule]:
    """Rules for names that have no letters of their own."""
    for mark in (_DIGIT.search(text), _CASE.search(text)):
        if mark is None or _OVER.search(text[: mark.start()]):
            continue
        part = _part(text, 0, mark.start(), mark.end(), len(text)) or before
        if not part or part == "code" or not (_NAMES.search(text) or lasting):
            continue
        names = f"{part.capitalize()} names"
        if mark.re is _DIGIT:
            yield CodeRule(f"{names}: digit", f"{names} include a single digit.")
        else:
            yield CodeRule(f"{names}: spelling", f"{names} are written in {mark.group()}.")


def _constructs(text: str, before: ConventionState) -> Iterator[CodeRule]:
    """What belongs into every function, method or class."""
    if _NAMES.search(text) and _LETTERS.search(text):
        return
    for mark in _CONSTRUCT.finditer(text):
        if _OVER.search(text[: mark.start()]):
            continue
        what = _NAMED[mark.lastgroup or "comments"]
        if what == "comments":
            yield CodeRule("Comments in code", "Add comments to your code.")
            continue
        part = _part(text, 0, mark.start(), mark.end(), len(text), after=True) or before.part
        if part and part != "code":
            many = _many(part)
            yield CodeRule(f"{what.capitalize()} in {many}", f"Use {what} in all {many}.")


def _part(text: str, low: int, start: int, end: int, high: int, *, after: bool = False) -> str:
    """The part of a program that letters are about: the nearest before them, else behind."""
    ahead = [one for one in _PART.finditer(text[low:start]) if _plain(one.group()) != "code"]
    behind = [one for one in _PART.finditer(text[end:high]) if _plain(one.group()) != "code"]
    if after:  # what stands in a function, not what it is given
        ahead = [one for one in ahead if _plain(one.group()) != "function argument"]
        behind = [one for one in behind if _plain(one.group()) != "function argument"]
    order = (behind[:1], ahead[-1:]) if after else (ahead[-1:], behind[:1])
    found = next((one[0] for one in order if one), None)
    return _plain(found.group()) if found else ""


def _plain(part: str) -> str:
    """A part in the singular: one name for one thing."""
    low = part.lower().replace("’", "'")
    if re.search(r"argument|parameter", low):
        return "function argument"
    if low.startswith("propert"):
        return "property"
    if low.startswith("class"):
        return "class"
    return low.removesuffix("s")


def _many(part: str) -> str:
    if part == "property":
        return "properties"
    return part + ("es" if part.endswith("s") else "s")


def _last(words: re.Pattern[str], text: str) -> str:
    found = list(words.finditer(text))
    return (found[-1].lastgroup or "") if found else ""


def latest(found: Sequence[ExtractedFact]) -> list[ExtractedFact]:
    """Findings with one rule a topic: the last that was said, where the first one stood."""
    last = {one.topic: one for one in found if one.topic}
    out: list[ExtractedFact] = []
    for one in found:
        if not one.topic:
            out.append(one)
        elif (kept := last.pop(one.topic, None)) is not None:
            out.append(kept)
    return out
