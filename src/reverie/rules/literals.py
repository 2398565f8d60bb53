"""The words and literals of a clause, by the tables in `data/`.

Literal is what stands in backticks, a path, an option, a program with its subcommand, or a name as
code has it; a branch where something is pushed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from reverie.light import dataclass, pattern
from reverie.text.shell_commands import commands, is_option
from reverie.text.tables import read_rows

COMMAND, OPTION, PATH, CODE, BRANCH, PLACE, WORD = (
    "command", "option", "path", "code", "branch", "place", "word",
)  # fmt: skip
VERBS = {
    BRANCH: {"run", "commit", "push", "to", "in"}, COMMAND: {"run"}, OPTION: {"run", "write"},
    PATH: {"touch", "read", "commit", "delete"}, CODE: {"write"},
}  # fmt: skip
"""What may be forbidden to do with each kind of literal; another verb is another matter."""
OPENS = frozenset({"never", "no", "not", "hands", "instead", "leave"})  # what comes is forbidden
CLOSES = frozenset({"banned", "kept", "owned", "rather"})  # what was named is
_LIGHT = frozenset({"filler", "bare", "tail", "thing", "hand", "also", "demand", "alone"})
_MOST_WORDS = 5  # the longest cue of words.tsv
QUOTED = pattern(r"`([^`\n]{1,200})`")
_FILE = pattern(
    r"[^/]*[^/.]\.(?:json|ya?ml|toml|lock|mdx?|py|[jt]sx?|mjs|rs|go|rb|php|cs|java|kt|swift|sql"
    r"|prisma|proto|sh|cfg|ini|conf|xml|html|s?css|ipynb|tf|tfvars|env|gradle|properties|snap|csv"
    r"|txt)|\.env|\.\w{4,}|\*\.[\w.]+|[A-Z][a-z]+file|LICENSE|CODEOWNERS|node_modules|__\w+__"
)
_NO_PATH = pattern(
    r"and/or|read/write|yes/no|on/off|client/server|input/output|he/she|try/except|[/.*~]+"
    r"|[\w-]+\.(?:com|org|net|io|dev|app|co|de|ai|uk|eu)(?:/.*)?|\w+://.*"
)
_CODE = pattern(
    r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(\)?|[A-Za-z_]\w+(?:\.[A-Za-z_]\w+){1,3}|![a-z]{4,}"
    r"|[a-z]+(?:[A-Z][a-z0-9]+){2,}[A-Z]*"
    r"|@[a-z]+(?:-[a-z]+)+|(?:TODO|FIXME|XXX)s?|[a-z][\w.-]*:\d{2,5}|[A-Z]\w+(?:-[A-Z]\w+){2}"
)
_BRANCH = pattern(r"[A-Za-z][\w-]*(?:[./][\w*-]+)*")
_NAME = pattern(r"[a-z][a-z0-9-]*")


@cache
def table(name: str) -> list[list[str]]:
    """Read the rows of a data file, without its header."""
    return read_rows("reverie.rules", name)[1:]


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

    def is_light(self, about: str) -> bool:
        """Whether a word says nothing that could turn what is said about a literal."""
        if self.kind != WORD:
            return True
        known = _LIGHT | OPENS | CLOSES | VERBS[about]
        return bool(self.kinds & known) and not self.kinds & {"veto", "subject", "fine"}

    def mark(self, about: str) -> str:
        """O for a literal of this kind, B for another; j, D and V for words, a dot for the rest."""
        if self.kind != WORD:
            place = self.kind == PLACE
            return "O" if self.kind == about or (place and about == PATH) else "." if place else "B"
        if self.kinds & VERBS[about]:
            return "V"
        return "j" if "also" in self.kinds else "D" if "demand" in self.kinds else "."

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


def clause_tokens(clause: str, wrapped: frozenset[str] = frozenset()) -> list[RuleToken]:
    """The words and literals of a clause; `wrapped` are words behind the first of a command that
    the text quotes: what "plain" stands before is then a program."""
    parts = QUOTED.split(clause)  # what is quoted stands at the odd places
    plain = [
        (word, bool(n % 2))
        for n, part in enumerate(parts)
        for word in ([part.strip()] if n % 2 else _split(part))
    ]
    verbs = [_words().get(word.lower(), set[str]()) for word, quoted in plain if not quoted]
    runs = any("run" in kinds and "write" not in kinds for kinds in verbs)
    pushes, commits = (any(verb in kinds for kinds in verbs) for verb in ("push", "commit"))
    found: list[RuleToken] = []
    at = 0
    while at < len(plain):
        towards = _words().get(plain[at - 1][0].lower(), set[str]()) if at else set[str]()
        onto = pushes or (commits and any("to" in one.kinds for one in found))
        if onto and _is_branch(*plain[at]):
            token, used = RuleToken(plain[at][0], BRANCH), 1
        else:
            token, used = _literal(plain, at, runs) or _known(plain, at)
            bare = "bare" in towards or token.text in _programs()[1]
            if bare and token.text in wrapped and token.kind != COMMAND:
                token = RuleToken(token.text, COMMAND)
        at += used
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
    return "branch" in _words().get(text, ()) or (
        named and text not in _programs()[0] - _programs()[1]
    )


def _is_code(text: str) -> bool:
    return _CODE.fullmatch(text) is not None and _NO_PATH.fullmatch(text) is None


def is_path(text: str) -> bool:
    """Say whether a word can only be a file or folder."""
    if not text.isascii() or any(sign in text for sign in " ()<>|$\\=#;@,`"):
        return False
    if _NO_PATH.fullmatch(text) or set(text.split("/")) <= _programs()[0]:
        return False
    return "/" in text or _FILE.fullmatch(text) is not None
