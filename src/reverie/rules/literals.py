"""Compile a rule from its own sentence, where the sentence names a call literally.

Literal is what stands in backticks, a path, an option, a program with its subcommand, or a name as
code has it. A clause becomes one letter per token: a literal, or a word that `data/words.tsv`
knows. `data/shapes.tsv` says which rows of letters are a rule, and about which literal. A clause
with a word that no table knows fits no shape, so "don't forget git push" forbids nothing, and a
command that the same text recommends is never forbidden. In doubt there is no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

from reverie.light import dataclass, pattern
from reverie.rules.calls import WRITE, CallContext, parse
from reverie.rules.match import CompiledRule, breaks
from reverie.text.shell_commands import commands, is_option

MAX_SENTENCE = 600  # the longest rule of tests/fixtures/rules has 89 characters
COMMAND, OPTION, PATH, CODE, BRANCH, PLACE, WORD = (
    "command", "option", "path", "code", "branch", "place", "word",
)  # fmt: skip
_LETTERS = {
    "veto": "!", "subject": "?", "hands": "H", "kept": "K", "never": "F", "no": "M", "not": "N",
    "fine": "A", "instead": "I", "rather": "R", "without": "X", "with": "W", "demand": "D",
    "verb": "V", "also": "j", "tail": "f", "filler": "f", "bare": "f", "leave": "L", "alone": "f",
    "thing": "f", "hand": "f", "owned": "k",
}  # fmt: skip
"""One letter per kind of word, the first that a word has; O is the literal that a shape is about,
B another one, G an option beside it, S a place ("in src/"), C what git is told to do with it, f a
word that changes nothing, ? one that no table knows."""
_VERBS = {
    COMMAND: {"run"}, OPTION: {"run", "write"}, PATH: {"touch", "read", "commit", "delete"},
    CODE: {"write"}, BRANCH: {"run", "commit", "push", "to", "in"},
}  # fmt: skip
_MOST_WORDS = 5  # the longest cue of words.tsv
_SENTENCE = pattern(r"[.!;](?=\s|$)|(?<=\?)\s|(?<=？)|[。！；\n]")
_CLAUSE = pattern(
    r"[,:](?=[\s`]|[^\x00-\x7f]|$)|(?<=[`\u2e80-\uffff]),|[：，、（）]|\s\((?!`)|\)(?=[\s.,;:]|$)"
    r"|\s[-–—→]\s|\s(?:but|because|since|sondern|weil|denn|sino|porque|mais|car|но)\s|因为"
)
_QUOTED = pattern(r"`([^`\n]{1,200})`")
_ASIDE = pattern(r"\(`([^`\n]{1,200})`")
_DECORATION = pattern(r"\*\*|^\s*(?:[-*•]|\d+\.)\s", re.MULTILINE)
_FILE = pattern(
    r"[^/]*[^/.]\.(?:json|ya?ml|toml|lock|mdx?|py|[jt]sx?|mjs|rs|go|rb|php|cs|java|kt|swift|sql"
    r"|prisma|proto|sh|cfg|ini|conf|xml|html|s?css|ipynb|tf|tfvars|env|gradle|properties|snap|csv"
    r"|txt)|\.env|\.\w{4,}|\*\.[\w.]+|[A-Z][a-z]+file|LICENSE|CODEOWNERS|node_modules|__\w+__"
)
_NO_PATH = pattern(
    r"and/or|read/write|yes/no|on/off|client/server|input/output|he/she|try/except|[/.*~]+"
    r"|[\w-]+\.(?:com|org|net|io|dev|app|co|de|ai|uk|eu)(?:/.*)?|\w+://.*"
)
_TRAILER = pattern(r"[A-Z]\w+(?:-[A-Z]\w+){2}")
_CODE = pattern(
    r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(\)?|[A-Za-z_]\w+(?:\.[A-Za-z_]\w+){1,3}|![a-z]{4,}"
    r"|[a-z]+(?:[A-Z][a-z0-9]+){2,}[A-Z]*"
    r"|@[a-z]+(?:-[a-z]+)+|(?:TODO|FIXME|XXX)s?|[a-z][\w.-]*:\d{2,5}|[A-Z]\w+(?:-[A-Z]\w+){2}"
)
_BRANCH = pattern(r"[A-Za-z][\w-]*(?:[./][\w*-]+)*")
_NAME = pattern(r"[a-z][a-z0-9-]*")
_PROSE = ["*.md", "*.mdx", "*.txt", "*.rst"]
_SHORT = {"git commit --no-verify": "-n"} | {
    f"git {verb} {option}": short
    for option, short in (("--force", "-f"), ("--interactive", "-i"), ("--delete", "-d"))
    for verb in ("push", "rebase", "add", "branch", "checkout", "clean", "tag")
}


@cache
def table(name: str) -> list[list[str]]:
    """Read the rows of a data file: behind its source line and its header, by tabs."""
    from importlib.resources import files

    text = files("reverie.rules").joinpath("data", f"{name}.tsv").read_text("utf-8")
    return [row.split("\t") for row in text.splitlines()[2:]]


@cache
def _words() -> dict[str, set[str]]:
    """What the table calls each word; the name of a kind of file also has its pattern."""
    known: dict[str, set[str]] = {}
    for kind, _, words in table("words"):
        for word in words.split("|"):
            name, _, place = word.partition("=")
            known.setdefault(name, set()).update({kind, place} - {""})
    return known


@cache
def _dense() -> str:
    """The known words of scripts without spaces, the longest first."""
    dense = [word for word in _words() if any(ord(sign) >= 0x2E80 for sign in word)]
    return "|".join(sorted(map(re.escape, dense), key=len, reverse=True))


@cache
def _programs() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names of programs, those that are ordinary words too, and subcommands."""
    rows = [[set(cell.split()) for cell in row[1:]] for row in table("programs")]
    names, ordinary, verbs = (frozenset[str]().union(*column) for column in zip(*rows, strict=True))
    return names | ordinary, ordinary, verbs


@dataclass(frozen=True, slots=True)
class RuleToken:
    """A word or a literal of a clause; `kinds` are what the tables call a word."""

    text: str
    kind: str = WORD
    kinds: frozenset[str] = frozenset()

    def letter(self, about: str) -> str:
        if self.kind == WORD:
            if about == OPTION and self.action:
                return "C"
            kinds = self.kinds | {"verb"} if self.kinds & _VERBS[about] else self.kinds
            kinds = kinds | {"owned"} if about == PATH and "made" in kinds else kinds
            return next((letter for kind, letter in _LETTERS.items() if kind in kinds), "?")
        if self.kind == PLACE:
            return "O" if about == PATH else "S"
        if self.kind == about:
            return "O"
        return "G" if self.kind == OPTION else "B"

    @property
    def action(self) -> list[str]:
        """What a program is told to do by this word: to commit and to push is git's."""
        git = self.kinds & {"commit", "push"}
        if git:
            return ["git", *sorted(git)][:2]
        verb, _, more = self.text.partition(" ")  # "install packages with"
        own = not self.kinds or more.endswith("with")
        return [verb] if own and verb in _programs()[2] else []

    @property
    def line(self) -> list[str]:
        """The words of a command."""
        return list(commands(self.text)[0].views[0])


FoundRule: TypeAlias = tuple[CompiledRule, list[RuleToken]]


def compile_sentence(text: str) -> CompiledRule | None:
    """Return when a rule applies by its own words; None where they do not name it literally."""
    quoted = [one.split() for one in _QUOTED.findall(text[:MAX_SENTENCE])]
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
    kinds = frozenset[str]().union(*(token.kinds for clause in clauses for token in clause))
    if kinds & {"veto", "fine"}:
        return None
    before, named = list[RuleToken](), list[RuleToken]()
    for clause in clauses:
        topic = named if _is_about(clause) and len(named) == 1 else before
        rest = [token for token in clause if "it" not in token.kinds]
        found = _of_clause(clause, kinds) or _of_clause(topic + rest, kinds)
        if found is not None:
            return found
        named = [token for token in clause if token.kind != WORD and not _goes_on(token, clause)]
        letters = {token.letter(CODE) for token in clause}
        before = clause if letters <= set("Ff") or letters <= set("OBGSfVD") else []
    return None


def _is_about(clause: Sequence[RuleToken]) -> bool:
    """Whether a clause forbids something that the one before it names: "don't edit it"."""
    kinds = frozenset[str]().union(*(token.kinds for token in clause))
    orders = bool(kinds & {"run", "touch", "write", "delete"}) and "thing" not in kinds
    return "it" in kinds or (orders and all(token.kind == WORD for token in clause))


def _goes_on(token: RuleToken, clause: Sequence[RuleToken]) -> bool:
    """Whether a command may have more words: the next one is in no table."""
    after = clause[clause.index(token) + 1 :][:1]
    return token.kind == COMMAND and any(one.kind == WORD and not one.kinds for one in after)


def _of_clause(tokens: list[RuleToken], around: frozenset[str]) -> FoundRule | None:
    rows = {kind: "".join(token.letter(kind) for token in tokens) for kind in _VERBS}
    for _, about, letters, effect, *_ in table("shapes"):
        for kind in about.split():
            found = re.fullmatch(letters, rows[kind]) if "O" in rows[kind] else None
            if found is not None:
                part = {name: tokens[slice(*found.span(name))] for name in found.groupdict()}
                objects = [one for one in part["o"] if "also" not in one.kinds]
                rule = _effect(effect, kind, objects, part.get("g", []), tokens, around)
                if rule:
                    return rule, objects
    return None


# --- the conditions that a shape stands for


def _effect(
    effect: str,
    kind: str,
    objects: Sequence[RuleToken],
    options: Sequence[RuleToken],
    clause: Sequence[RuleToken],
    around: frozenset[str],
) -> CompiledRule | None:
    texts = [one.text for one in objects]
    if kind == BRANCH:
        return {"commands": [["git", "push"]], "has": [[[one] for one in texts]]}
    if effect == "wrapper":
        return _unwrapped(texts[0])
    if effect == "outside":
        return {"commands": [objects[0].line], "unless": [one.line for one in options]}
    if effect in ("has", "lacks"):
        if kind == OPTION:
            return _acted(effect, options[0].action, texts[0])
        words = [word for one in options for word in one.text.split()]
        rule: CompiledRule = {"commands": [objects[0].line]}
        return {**rule, "has": [[words]]} if effect == "has" else {**rule, "lacks": [[words]]}
    if kind == COMMAND:
        return _commands([one.line for one in objects])
    if kind == OPTION:  # one letter means something else in every program
        return {"has": [[[one] for one in texts]]} if min(map(len, texts)) > 3 else None
    return _files(texts, clause, around) if kind == PATH else _code(texts, clause)


def _unwrapped(line: str) -> CompiledRule | None:
    """Forbid the program alone where the one that runs it is demanded: `uv run pytest`."""
    views = commands(line)[0].views
    if len(views) < 2 or not views[-1]:
        return None
    return {"commands": [views[-1][:1]], "unless": [views[0][: -len(views[-1])]]}


def _acted(effect: str, action: list[str], option: str) -> CompiledRule | None:
    """An option that something is not to be done with, or without."""
    if len(action) == 1:  # of any program
        return {"has": [[action], [[option]]]} if effect == "has" else None
    if effect == "lacks":
        return {"commands": [action], "lacks": [[[option]]]}
    return _commands([[*action, option]])


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
    if any(one.text.startswith("in commit") for one in clause) or _TRAILER.fullmatch(texts[0]):
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
    lines = [
        one.text
        for tokens in sentences
        for one in tokens
        if one.kind == COMMAND and one not in objects and one.line not in rule.get("commands", ())
    ]
    place, whole = CallContext("/"), " ".join(one.text for one in objects[:1])
    spared = [
        line
        for line in lines
        for tried in (line, f"{line} {whole}")  # what is run by the one that is recommended
        if breaks(rule, parse("Bash", {"command": tried}, place))
    ]
    if spared:
        views = [commands(line)[0].views[0] for line in dict.fromkeys(spared)]
        rule = {**rule, "unless": [*rule.get("unless", []), *views]}
    fine = [tokens for tokens in sentences if any("fine" in one.kinds for one in tokens)]
    paths = [_path(one.text) for tokens in fine for one in tokens if one.kind in (PATH, PLACE)]
    return {**rule, "spared": [*rule.get("spared", []), *paths]} if paths else rule


# --- the tokens of a clause


def _cut(text: str, ends: re.Pattern[str]) -> Iterator[str]:
    """The parts of a text; what is quoted ends none."""
    quoted = [one.span() for one in _QUOTED.finditer(text)]
    start = 0
    for end in ends.finditer(text):
        if not any(first < end.start() < last for first, last in quoted):
            yield text[start : end.start()]
            start = end.end()
    yield text[start:]


def clause_tokens(clause: str, wrapped: frozenset[str] = frozenset()) -> list[RuleToken]:
    """The words and literals of a clause; `wrapped` are words behind the first of a command that
    the text quotes: what "plain" stands before is then a program."""
    parts = _QUOTED.split(clause)  # what is quoted stands at the odd places
    plain = [
        (word, bool(n % 2))
        for n, part in enumerate(parts)
        for word in ([part.strip()] if n % 2 else _split(part))
    ]
    verbs = [_words().get(word.lower(), set[str]()) for word, quoted in plain if not quoted]
    runs = any("run" in kinds and "write" not in kinds for kinds in verbs)
    pushes, commits = (any(verb in kinds for kinds in verbs) for verb in ("push", "commit"))
    asides = set(_ASIDE.findall(clause))
    found: list[RuleToken] = []
    at = 0
    while at < len(plain):
        towards = _words().get(plain[at - 1][0].lower(), set[str]()) if at else set[str]()
        if (pushes or (commits and "to" in towards)) and _is_branch(*plain[at]):
            token, used = RuleToken(plain[at][0], BRANCH), 1
        else:
            token, used = _literal(plain, at, runs) or _known(plain, at)
            bare = "bare" in towards or token.text in _programs()[1]
            if bare and token.text in wrapped and token.kind != COMMAND:
                token = RuleToken(token.text, COMMAND)
        at += used
        if token.kind != WORD and token.text in asides:  # "the dev server (`npm run dev`)"
            while found and found[-1].kind == WORD and not found[-1].kinds:
                found.pop()
        before = found[-1] if found else RuleToken("")
        if before.kinds & {"in", "to"} and (token.kind == PATH or "folder" in token.kinds):
            globs = [kind for kind in token.kinds if kind.startswith("*")]
            found[-1] = RuleToken(globs[0] if globs else f"{token.text.rstrip('/')}/", PLACE)
        elif before.kind != PLACE or "in" not in token.kinds:
            found.append(token)
    return found


def _split(text: str) -> list[str]:
    found: list[str] = []
    for word in text.replace("’", "'").split():
        bare = word.strip("\"'“”„«»‘[]{},;:" if "(" in word[1:] else "\"'“”„«»‘[]{},;:?()")
        bare = bare.rstrip(".!") if len(bare) > 1 else bare
        if bare[:2].lower() == "n'":
            found.append("n'")
            bare = bare[2:]
        dense = any(ord(sign) >= 0x2E80 for sign in bare)
        found += filter(None, re.split(f"({_dense()}|[\x21-\x7e]+)", bare) if dense else [bare])
    return found


def _known(plain: Sequence[tuple[str, bool]], at: int) -> tuple[RuleToken, int]:
    """The longest run of words that the tables know, or the word that they do not."""
    for count in range(_MOST_WORDS, 0, -1):
        part = plain[at : at + count]
        text = " ".join(word for word, _ in part).lower()
        if not any(quoted for _, quoted in part) and (kinds := _words().get(text)):
            return RuleToken(text, WORD, frozenset(kinds)), len(part)
    return RuleToken(plain[at][0], "quote" if plain[at][1] else WORD), 1


def _literal(
    plain: Sequence[tuple[str, bool]], at: int, runs: bool
) -> tuple[RuleToken, int] | None:
    text, quoted = plain[at]
    line, used = _command(plain, at, runs)
    kind = ""
    if line:
        text, kind = line, COMMAND
    elif is_option(text) and text.strip("-")[:1].isalpha():
        kind = OPTION
    elif is_path(text):
        kind = PATH
    elif _is_code(text) or (quoted and len(text) > 2 and not text.replace(" ", "").isalpha()):
        kind = CODE
    return (RuleToken(text, kind), used or 1) if kind else None


def _command(plain: Sequence[tuple[str, bool]], at: int, runs: bool) -> tuple[str, int]:
    """A command that begins here, and how many words it takes; in backticks it may be of any
    program where it is to be run."""
    text, quoted = plain[at]
    programs, ordinary, verbs = _programs()
    if quoted:
        found = commands(text)
        words = found[0].views[0] if len(found) == 1 else []
        script = bool(words) and (words[0].startswith("./") or words[0].endswith(".sh"))
        known = bool(words) and (words[0] in programs or (runs and len(words) > 1))
        return (text, 1) if script or (known and words[0][0].isalpha()) else ("", 0)
    if text not in programs:
        return "", 0
    words, guessed = [text], False
    for word, in_quotes in plain[at + 1 :]:
        task = word.isdigit() or (":" in word.strip(":") and "//" not in word)
        task = task or (words[-1] in ("run", "exec") and word in programs)
        own = task or is_option(word) or word in verbs
        more = not own and not guessed and text not in ordinary and word not in _words()
        more = more and _NAME.fullmatch(word) is not None
        if in_quotes or not (own or more):
            break
        guessed = guessed or more
        words.append(word)
    return ("", 0) if len(words) == 1 and text in ordinary else (" ".join(words), len(words))


def _is_branch(text: str, quoted: bool) -> bool:
    named = quoted and _BRANCH.fullmatch(text) is not None and not _FILE.fullmatch(text)
    return "branch" in _words().get(text, ()) or (named and text not in _programs()[0])


def _is_code(text: str) -> bool:
    return _CODE.fullmatch(text) is not None and _NO_PATH.fullmatch(text) is None


def is_path(text: str) -> bool:
    """Say whether a word can only be a file or folder."""
    if not text.isascii() or any(sign in text for sign in " ()<>|$\\=#;@,`"):
        return False
    if _NO_PATH.fullmatch(text) or set(text.split("/")) <= _programs()[0]:
        return False
    return "/" in text or _FILE.fullmatch(text) is not None
