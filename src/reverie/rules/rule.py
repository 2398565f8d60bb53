"""One rule as its head states it, and its faults.

When a memory applies, as its head says it, by hand or by a model.

    applies_to:
      command: git push
      has: --force|-f
    level: ask

or the same in one line, `applies_to: {command: git push, has: --force|-f}`. Every value may be one,
several with commas between, or a list; `|` in a value means either, in every key (`\\|` is the sign
itself). All keys must fit: of several commands, paths or words one, of `has` each, and of `lacks`
one must be missing. Without `applies_to` a rule is read from its sentence; `applies_to: none` says
that it never is. Reading raises nothing: what is wrong is a fault in words, and `refuse_faults`
keeps a new one from being saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reverie.errors import InvalidInput
from reverie.light import dataclass
from reverie.rules.calls import OTHER, SHELL
from reverie.rules.match import ASK, BLOCK, LEVELS, REMIND, CompiledRule, is_command, kind_of
from reverie.text.shell_commands import commands
from reverie.topics.frontmatter import Frontmatter, parse_frontmatter
from reverie.topics.manifest import SAID

APPLIES, LEVEL = "applies_to", "level"
RULED = ("feedback", "project")
NONE = "none"
MAX_VALUES = 50
MAX_VALUE = 500
KEYS = {
    "tool": "tools",
    "tools": "tools",
    "command": "commands",
    "commands": "commands",
    "program": "programs",
    "programs": "programs",
    "subcommand": "subcommands",
    "has": "has",
    "lacks": "lacks",
    "unless": "unless",
    "path": "paths",
    "paths": "paths",
    "file_type": "types",
    "file_types": "types",
    "words": "words",
}
"""The keys below `applies_to`, and what they are kept as. `command` may also hold `program`,
`subcommand`, `has` and `lacks` below it."""
_SHOWN = ("tool", "command", "has", "lacks", "unless", "paths", "words", "file_type")


@dataclass(frozen=True, slots=True)
class RuleHead:
    """What a head says of when its memory applies; `given` where it says anything at all."""

    rule: CompiledRule
    given: bool = False
    never: bool = False
    faults: tuple[str, ...] = ()


def read(front: Frontmatter) -> RuleHead:
    """When a memory applies, by its head."""
    found = front.find(APPLIES)
    if found is None:
        return RuleHead({})
    values = _values(front, found.value)
    if isinstance(values, str):
        return RuleHead({}, given=True, never=True, faults=(values,) if values else ())
    conditions: dict[str, list[str]] = {}
    faults: list[str] = []
    for key, value in values.items():
        known = KEYS.get(key.strip().lower().replace("-", "_"))
        if known is None:
            faults.append(f"`{APPLIES}` has no `{key[:40]}`: {', '.join(_SHOWN)}")
            continue
        parts = {text: _alternatives(known, text) for text in value}
        faults += [f"`{key}` has an empty choice: `{t[:80]}`" for t, p in parts.items() if "" in p]
        several = known in ("has", "lacks")  # a list of these means all; each may have choices
        given = value if several else [one for part in parts.values() for one in part]
        conditions[known] = conditions.get(known, []) + given
    rule = compile_conditions(conditions)
    faults += faults_of(rule)
    return RuleHead(rule, given=True, never=not rule or bool(faults), faults=tuple(faults))


def either(text: str) -> list[str]:
    """The choices of a value, by `|`."""
    parts = text.replace("\\|", "\0").split("|")
    return [part.strip().replace("\0", "|") for part in parts]


def _alternatives(key: str, text: str) -> list[str]:
    if key == "words" and "||" in text:  # code
        return [text]
    spared = "!" if key == "paths" and text.startswith("!") else ""
    return [spared + one for one in either(text.removeprefix(spared))]


def refuse_faults(key: str, data: bytes, before: bytes = b"") -> None:
    """Raise InvalidInput where a head names calls in a way that can never match, unless it did so
    before: what an older version saved can still be edited."""
    if APPLIES.encode() not in data:
        return
    faults = read(parse_frontmatter(data)).faults
    if faults and faults != read(parse_frontmatter(before)).faults:
        do = f"Change `{APPLIES}` in the frontmatter, or write `{APPLIES}: {NONE}`"
        raise InvalidInput(f"Invalid {APPLIES}: {faults[0]}", where=key, do=do)


def level_of(front: Frontmatter) -> str:
    """The level that a head asks for; one that is not known is the default."""
    asked = front.get(LEVEL).strip().lower()
    return asked if asked in LEVELS else REMIND


def is_firm(front: Frontmatter) -> bool:
    """Whether a head asks or blocks: no dream and no repair touches such a file."""
    return level_of(front) in (ASK, BLOCK)


def is_firm_file(data: bytes) -> bool:
    """The same of a whole file."""
    return LEVEL.encode() in data and is_firm(parse_frontmatter(data))


def said_on(front: Frontmatter) -> tuple[str, ...]:
    """The days on which it was said again."""
    return tuple(parse_values(front.get(SAID)))


def _values(front: Frontmatter, text: str) -> Mapping[str, list[str]] | str:
    """The keys below `applies_to`; a text where there are none: why not, "" for a plain no."""
    below = {
        field.names[-1]: parse_values(field.value)
        for field in front.fields
        if field.names[0] == APPLIES and len(field.names) > 1 and field.value
    }
    if below:
        return below
    bare = text.strip()
    if bare.startswith("{") and bare.endswith("}"):
        return dict(_pairs(bare[1:-1]))
    if bare.lower() in (NONE, "never", "no", "off", ""):
        return ""
    return f"`{APPLIES}` needs keys below it: {', '.join(_SHOWN)}"


def _pairs(text: str) -> Iterable[tuple[str, list[str]]]:
    """The members of a map in one line, and of maps in it."""
    for piece in _split(text):
        key, colon, value = piece.partition(":")
        value = value.strip()
        if value.startswith("{"):
            yield from _pairs(value.strip("{}"))
        elif colon:
            yield key.strip(" \"'"), parse_values(value)


def parse_values(text: str) -> list[str]:
    """One value, several with commas between, or a list, in a line or below one another."""
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1]
    if bare.startswith("- "):
        pieces = [row.strip().removeprefix("-") for row in bare.split("\n")]
    else:
        pieces = _split(bare)
    found = [_bare(piece.strip()) for piece in pieces]
    return [one[:MAX_VALUE] for one in found if one][:MAX_VALUES]


def _bare(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`"
    inside = text[1:-1] if quoted else text
    return inside.replace('\\"', '"').replace("\\\\", "\\") if text[:1] == '"' else inside


def _split(text: str) -> list[str]:
    """At the commas that stand outside brackets and quotes."""
    found, start, depth, quote = list[str](), 0, 0, ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`" and (at == start or text[at - 1] in " [,:{"):
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and depth <= 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


# --- conditions in the form they are matched in


def compile_conditions(conditions: Mapping[str, Iterable[str]]) -> CompiledRule:
    """Conditions as texts, as a rule has them."""
    rule: CompiledRule = {}
    if tools := list(conditions.get("tools", ())):
        rule["tools"] = tools
    if lines := _lines(conditions):
        rule["commands"] = lines
    for key in ("has", "lacks"):
        if some := _join_forms([_choices(one) for one in conditions.get(key, ())]):
            rule[key] = some
    if spared := [words for one in conditions.get("unless", ()) if (words := words_of(one))]:
        rule["unless"] = spared
    named = list(conditions.get("paths", ()))
    if given := [one for one in named if not one.startswith("!")]:
        rule["paths"] = given
    if spared := [one[1:] for one in named if one.startswith("!")]:
        rule["spared"] = spared
    if types := [one.rpartition(".")[2].lower() for one in conditions.get("types", ())]:
        rule["types"] = types
    if words := list(conditions.get("words", ())):
        rule["words"] = words
    return rule


def _lines(conditions: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Commands as their words: whole ones, and programs with each of their subcommands."""
    whole = [words for one in conditions.get("commands", ()) if (words := words_of(one))]
    more = [one.split() for one in conditions.get("subcommands", ())] or [[]]
    programs = conditions.get("programs", ())
    return whole + [[program, *words] for program in programs for words in more]


def _choices(text: str) -> list[list[str]]:
    return [words for one in either(text) if (words := one.split())] or [[text]]


def _join_forms(groups: list[list[list[str]]]) -> list[list[list[str]]]:
    """Join an option and its one letter: a list of `--force` and `-f` means either of them."""
    found: list[list[list[str]]] = []
    for group in groups:
        pairs = ((known, *sorted((known[0][0], group[0][0]), key=len)) for known in found)
        same = [
            known
            for known, short, long in pairs
            if long.startswith(f"-{short}") and short[0] == "-" and len(short) == 2
        ]
        if same:
            same[0].extend(group)
        else:
            found.append(group)
    return found


def words_of(line: str) -> list[str]:
    """The words of a command as a rule names it."""
    found = commands(line)
    return list(found[0].views[0]) if found else []


def faults_of(rule: CompiledRule) -> list[str]:
    """Why a rule can never hold, or would always."""
    found: list[str] = []
    if is_every(rule):
        found.append("it would hold every call: name a command, a path or words")
    for choices in rule.get("lacks", ()):
        told = " or ".join(" ".join(one) for one in choices)
        if choices in rule.get("has", ()) and len(rule.get("lacks", ())) == 1:
            found.append(f"it can never hold: `{told}` must and must not be there")
        if any(set(one) <= set(c[1:]) for c in rule.get("commands", ()) for one in choices):
            found.append(f"it can never hold: its command has `{told}`")
    kinds = {kind_of(tool) for tool in rule.get("tools", ())}
    if rule.get("commands") and kinds and not kinds & {SHELL, OTHER, "*"}:
        found.append("it can never hold: its tool runs no commands")
    found += [
        f"it can never hold: `{one}` is meant and spared"
        for one in rule.get("spared", ())
        if one in rule.get("paths", ())
    ]
    ends = [one.lower().rpartition("*.")[1:] for one in rule.get("paths", ())]
    types = rule.get("types", ())
    if types and ends and all(sign and one.isalnum() and one not in types for sign, one in ends):
        found.append("it can never hold: its paths and its file types exclude each other")
    spaced = [one for one in (*rule.get("tools", ()), *rule.get("types", ())) if " " in one]
    found += [f"it can never hold: `{one[:80]}` has a space" for one in spaced]
    long = [one for one in rule.get("paths", ()) if len(one) >= MAX_VALUE]
    found += [f"its pattern has {MAX_VALUE} characters or more" for _ in long[:1]]
    return found


def is_every(rule: CompiledRule) -> bool:
    """Whether a rule names nothing that tells one call from another."""
    kinds = {kind_of(tool) for tool in rule.get("tools", ())}
    wide = not kinds or bool(kinds & {"*", SHELL, "write", "read", "search"})
    telling = any(rule.get(k) for k in ("commands", "has", "lacks", "words", "types", "spared"))
    every = all(one in ("*", "**", "**/*", "/", ".") for one in rule.get("paths", ()))
    return wide and not telling and every


# --- What is wrong with rules: heads that cannot be used, and rules that exclude each other.


MAX_COMPARED = 200
"""Rules of one program that are held against each other."""


def faults_in(front: Frontmatter, type: str) -> list[str]:  # noqa: A002
    """What is wrong with what a head says of calls."""
    head = read(front)
    found = list(head.faults)
    if head.given and not head.never and type not in RULED:
        found.append(f"only {' and '.join(RULED)} memories are rules")
    level = front.get(LEVEL).strip().lower()
    if level and level not in LEVELS:
        found.append(f"`level: {level[:40]}` is none of {', '.join(LEVELS)}")
    return found


def contradictions(rules: Sequence[CompiledRule]) -> dict[str, list[str]]:
    """Rules that exclude each other: one forbids what another demands of the same command."""
    found: dict[str, list[str]] = {}
    ruled = [rule for rule in rules if rule.get("commands")]
    by_program: dict[str, list[CompiledRule]] = {}
    for rule in ruled:
        for command in rule.get("commands", ()):
            by_program.setdefault(command[0], []).append(rule)
    for same in by_program.values():
        for one in same[:MAX_COMPARED]:
            for other in same[:MAX_COMPARED]:
                if one is not other and _excludes(one, other):
                    found.setdefault(one.get("file", ""), []).append(other.get("file", ""))
                    found.setdefault(other.get("file", ""), []).append(one.get("file", ""))
    return {file: sorted(set(others)) for file, others in found.items()}


def _excludes(one: CompiledRule, other: CompiledRule) -> bool:
    """Whether one rule forbids the option that another needs, of one command."""
    alike = any(
        is_command(mine, theirs) or is_command(theirs, mine)
        for mine in one.get("commands", ())
        for theirs in other.get("commands", ())
    )
    needed = [choice for choices in other.get("lacks", ()) for choice in choices]
    return alike and any(choice in needed for choices in one.get("has", ()) for choice in choices)
