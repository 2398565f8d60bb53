"""Compile a rule from its own sentence, where the sentence names a call literally.

Literal is what stands in backticks, a path, an option, a program with its subcommand, or a name as
code has it. A clause is a rule where a word forbids, a literal stands behind that word or before
it, and `data/words.tsv` knows every other word: "don't forget git push" forbids nothing, since no
table says what "forget" makes of it. What the same text recommends is never forbidden. In doubt
there is no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from reverie.light import pattern
from reverie.rules.calls import WRITE, CallContext, parse
from reverie.rules.literals import (
    BRANCH,
    CLOSES,
    CODE,
    COMMAND,
    OPENS,
    OPTION,
    PATH,
    PLACE,
    QUOTED,
    VERBS,
    WORD,
    RuleToken,
    clause_tokens,
)
from reverie.rules.match import CompiledRule, breaks
from reverie.text.shell_commands import commands

MAX_SENTENCE = 600  # the longest rule of tests/fixtures/rules has 89 characters
_GROUP = pattern("O(?:j+O)*")
_SENTENCE = pattern(r"[.!;](?=\s|$)|(?<=\?)\s|(?<=？)|[。！；\n]")
_CLAUSE = pattern(
    r"[,:](?=[\s`]|[^\x00-\x7f]|$)|(?<=[`\u2e80-\uffff]),|[：，、（）]|\s\((?!`)|\)(?=[\s.,;:]|$)"
    r"|\s[-–—→]\s|\s(?:but|because|since|sondern|weil|denn|sino|porque|mais|car|но)\s|因为"
)
_DECORATION = pattern(r"\*\*|^\s*(?:[-*•]|\d+\.)\s", re.MULTILINE)
_PROSE = ["*.md", "*.mdx", "*.txt", "*.rst"]
_SHORT = {"git commit --no-verify": "-n"} | {
    f"git {verb} {option}": short
    for option, short in (("--force", "-f"), ("--interactive", "-i"), ("--delete", "-d"))
    for verb in ("push", "rebase", "add", "branch", "checkout", "clean", "tag")
}


FoundRule: TypeAlias = tuple[CompiledRule, list[RuleToken]]


def compile_sentence(text: str) -> CompiledRule | None:
    """Return when a rule applies by its own words; None where they do not name it literally."""
    quoted = [one.split() for one in QUOTED.findall(text[:MAX_SENTENCE])]
    wrapped = frozenset(word for words in quoted for word in words[1:])
    sentences = [
        [clause_tokens(clause, wrapped) for clause in _cut(sentence, _CLAUSE)]
        for sentence in _cut(_DECORATION.sub(" ", text[:MAX_SENTENCE]), _SENTENCE)
        if not sentence.rstrip().endswith(("?", "？"))
    ]
    for clauses in sentences:
        found = _of_sentence(clauses)
        if found is not None:
            return _spare(*found, [[token for one in each for token in one] for each in sentences])
    return None


def _of_sentence(clauses: Sequence[list[RuleToken]]) -> FoundRule | None:
    """The first clause that is a rule; one that is only a literal or a "never" joins the next."""
    kinds = _kinds(token for clause in clauses for token in clause)
    if kinds & {"veto", "fine"}:
        return None
    before = list[RuleToken]()
    for clause in clauses:
        rest = [token for token in clause if "it" not in token.kinds]
        found = _of_clause(clause, kinds) or _of_clause(before + rest, kinds)
        if found is not None:
            return found
        forbids = all(token.kinds & {"never", "banned", "filler"} for token in clause)
        names = not _kinds(clause) & (OPENS | CLOSES) and all(t.is_light(CODE) for t in clause)
        before = clause if forbids or names else []
    return None


def _kinds(tokens: Iterable[RuleToken]) -> frozenset[str]:
    return frozenset[str]().union(*(token.kinds for token in tokens))


def _of_clause(tokens: list[RuleToken], around: frozenset[str]) -> FoundRule | None:
    found = _of_option(tokens)
    for kind in VERBS if found is None else ():
        objects = _forbidden(tokens, kind)
        rule = _rule_on(kind, objects, tokens, around) if objects else None
        if rule is not None:
            return rule, objects
    return found or _unwrapped(tokens)


def _forbidden(tokens: list[RuleToken], kind: str) -> list[RuleToken]:
    """The literals of a kind that a clause forbids: the first behind the word that forbids, or the
    last before it. None where a word may turn what is said, or another literal may narrow it."""
    at = next((n for n, one in enumerate(tokens) if one.kinds & (OPENS | CLOSES)), -1)
    cue = tokens[at].kinds if at >= 0 else frozenset[str]()
    if cue & {"rather", "owned"}:  # what follows is what to do, or who does it
        tokens = tokens[: at + 1]
    elif "instead" in cue and tokens[0].kinds & {"run", "write", "demand"}:
        tokens, at = tokens[at:], 0
    if not cue or not all(one.is_light(kind) for one in tokens):
        return []
    row = "".join(one.mark(kind) for one in tokens)
    behind, ahead = _GROUP.search(row, at), list(_GROUP.finditer(row, 0, at))
    if behind is not None and not (ahead and cue & CLOSES):
        start, end = behind.span()
        others, verb = row[at:start] + row[end:], "V" in row[at:]
        said = "hands" in cue or "V" in row if kind == PATH else True
        if "leave" in cue:
            said = "alone" in _kinds(tokens[end:])
        if "not" in cue and not verb:  # "it is not `npm`" forbids nothing, "pnpm not npm" does
            beside = row[max(at - 1, 0) : at] in ("O", "B")
            said = said and (beside or (kind != CODE and "is" not in tokens[at - 1].kinds))
        said = said and "D" not in others
    elif ahead and "instead" not in cue:
        start, end = ahead[-1].span()
        others = row[:start] + row[end:]
        said = not cue & {"no", "not"} or "V" in row[at:]
    else:
        return []
    said = said and ("instead" in cue or not set(others) & {"O", "B"})
    return [one for one in tokens[start:end] if one.kind != WORD] if said else []


def _of_option(tokens: Sequence[RuleToken]) -> FoundRule | None:
    """What is to be done with an option, or without: by a command, or by what a verb says."""
    kinds, row = _kinds(tokens), "".join(one.mark(OPTION) for one in tokens)
    at, forbids = row.find("O"), bool(kinds & (OPENS | CLOSES))
    if row.count("O") != 1 or "instead" in kinds:
        return None
    value = [one for one in tokens[at + 1 : at + 2] if one.kind == WORD and not one.kinds]
    named = [one for one in tokens if one.kind == COMMAND and kinds & {"with", "without"}]
    acts = [one for one in tokens if one.action] if forbids and not named else []
    rest = [one for one in tokens if one not in [tokens[at], *value, *named, *acts]]
    if len(named + acts) != 1 or not all(
        one.kind == WORD and (one.kinds & {"with", "without"} or one.is_light(COMMAND))
        for one in rest
    ):
        return None
    line = named[0].line if named else acts[0].action
    option, lacks = [tokens[at].text, *(one.text for one in value)], ("without" in kinds) == forbids
    if len(line) == 1 and acts:  # of any program
        return None if lacks else ({"has": [[line], [option]]}, [tokens[at]])
    if lacks:
        return {"commands": [line], "lacks": [[option]]}, named
    return _commands([[*line, *option]]), named


# --- the conditions that a rule has


def _rule_on(
    kind: str,
    objects: Sequence[RuleToken],
    clause: Sequence[RuleToken],
    around: frozenset[str],
) -> CompiledRule | None:
    texts = [one.text for one in objects]
    if kind == BRANCH:
        return {"commands": [["git", "push"]], "has": [[[one] for one in texts]]}
    if kind == COMMAND:
        return _commands([one.line for one in objects])
    if kind == OPTION:  # one letter means something else in every program
        return {"has": [[[one] for one in texts]]} if min(map(len, texts)) > 3 else None
    return _files(texts, clause, around) if kind == PATH else _code(texts, clause)


def _unwrapped(tokens: Sequence[RuleToken]) -> FoundRule | None:
    """Forbid the program alone where the one that runs it is demanded: `uv run pytest`."""
    kinds, lines = _kinds(tokens), [one for one in tokens if one.kind == COMMAND]
    if kinds & OPENS and "without" in kinds and len(lines) == 2:  # "no pytest without `uv run`"
        light = all(one.is_light(COMMAND) or "without" in one.kinds for one in tokens)
        rule: CompiledRule = {"commands": [lines[0].line], "unless": [lines[1].line]}
        return (rule, lines[:1]) if light else None
    turned = kinds & (OPENS | CLOSES | {"subject", "without"})
    views = commands(lines[0].text)[0].views if len(lines) == 1 else []
    if turned or "demand" not in kinds or len(views) < 2 or not views[-1]:
        return None
    return {"commands": [views[-1][:1]], "unless": [views[0][: -len(views[-1])]]}, lines


def _commands(lines: list[list[str]]) -> CompiledRule:
    """Commands; a long option of git's also in its short form."""
    start = " ".join(lines[0][:2])
    short = {word: _SHORT.get(f"{start} {word}", "") for word in lines[0]}
    if len(lines) > 1 or not any(short.values()):
        return {"commands": lines}
    rest = [word for word in lines[0] if not short[word]]
    return {"commands": [rest], "has": [[[one], [short[one]]] for one in short if short[one]]}


def _files(
    texts: Sequence[str], clause: Sequence[RuleToken], around: frozenset[str]
) -> CompiledRule:
    """Files that are not to be written, not read either, deleted or committed, as words say."""
    kinds = frozenset[str]().union(*(token.kinds for token in clause))
    if "commit" in kinds:
        forms = [form for one in texts for form in (one, one.rstrip("/"), f"{one.rstrip('/')}/*")]
        has = [[one] for one in dict.fromkeys(forms)]
        return {"commands": [["git", "add"], ["git", "commit"]], "has": [has]}
    rule: CompiledRule = {"paths": [_path(one) for one in texts]}
    if "delete" in kinds:
        return {**rule, "commands": [["rm"], ["rmdir"], ["unlink"], ["git", "rm"]]}
    if "read" in around:
        return rule
    return {**rule, "tools": ["Edit", "Write"] if "hand" in kinds else [WRITE]}


def _code(texts: Sequence[str], clause: Sequence[RuleToken]) -> CompiledRule:
    """Code that is not to be written, or said in a commit."""
    if any(one.text.startswith("in commit") for one in clause):
        return {"commands": [["git", "commit"]], "words": list(texts)}
    words = [one[:-1] if one[:-1].isupper() else one.removesuffix(")") for one in texts]
    rule: CompiledRule = {"tools": [WRITE], "words": words}
    places = [_path(one.text) for one in clause if one.kind == PLACE]
    return {**rule, "paths": places} if places else {**rule, "spared": list(_PROSE)}


def _path(path: str) -> str:
    path = path.removeprefix("./")
    if path.endswith("/"):
        return f"{path}**"
    return path if "/" in path or path.startswith("*") else f"**/{path}"


def _spare(
    rule: CompiledRule, objects: Sequence[RuleToken], sentences: Sequence[Sequence[RuleToken]]
) -> CompiledRule:
    """The rule without what the same text recommends or allows."""
    named = rule.get("commands", ())
    lines = [
        one.text
        for tokens in sentences
        for one in tokens
        if one.kind != WORD and one not in objects and one.text.split() not in named
    ]
    place = CallContext("/")
    run = [one for one in objects[:1] if one.kind == COMMAND]
    spared = [
        line
        for line in lines
        for tried in (line, *(f"{line} {one.text}" for one in run if one.line[0] not in line))
        if breaks(rule, parse("Bash", {"command": tried}, place))  # itself, or what it runs
    ]
    if spared:
        views = [commands(line)[0].views[0] for line in dict.fromkeys(spared)]
        rule = {**rule, "unless": [*rule.get("unless", []), *views]}
    fine = [tokens for tokens in sentences if any("fine" in one.kinds for one in tokens)]
    paths = [_path(one.text) for tokens in fine for one in tokens if one.kind in (PATH, PLACE)]
    return {**rule, "spared": [*rule.get("spared", []), *paths]} if paths else rule


def _cut(text: str, ends: re.Pattern[str]) -> Iterator[str]:
    """The parts of a text; what is quoted ends none."""
    quoted = [one.span() for one in QUOTED.finditer(text)]
    start = 0
    for end in ends.finditer(text):
        if not any(first < end.start() < last for first, last in quoted):
            yield text[start : end.start()]
            start = end.end()
    yield text[start:]
