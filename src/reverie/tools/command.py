"""Command lines, read strictly: plain words, pipes and chains, or nothing.

What is not plainly understood is refused as `Unclear`: substitutions, variables,
redirections (but `2>/dev/null` and `2>&1`), brace and tilde expansion, comments,
newlines, control signs. So what passes means to a shell exactly what it means here.
Nothing is ever run by this module.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from reverie.errors import InvalidInput
from reverie.light import dataclass

MAX_COMMANDS = 16
MAX_CHARACTERS = 10_000
_OPERATORS = ("&&", "||", "|", ";")
_QUIET = ("2>/dev/null", "2>&1")
_GLOBS = "*?["
_SPACE = " \t"
_PLAIN = re.compile(r"[\w./,:=@%+^\]-]")
_LITERAL = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]")
_MOST_READ = 20_000
_BREAKS = re.compile(r"[;&|\n\r(){}`<>]|\$\(")


class Unclear(InvalidInput, code="unclear"):
    """A command line that is not plain enough to be sure what it does."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """One word: what it says, and how to write it so that a shell reads just that."""

    text: str
    quoted: str
    globs: bool = False


@dataclass(frozen=True, slots=True)
class Simple:
    """One command of a line, and the operator that follows it."""

    words: tuple[ShellWord, ...]
    then: str = ""

    @property
    def name(self) -> str:
        return self.words[0].text

    def __str__(self) -> str:
        return " ".join(w.quoted for w in self.words)


def parse(line: str) -> tuple[Simple, ...]:
    """The commands of a line, or Unclear."""
    if len(line) > MAX_CHARACTERS:
        raise Unclear(f"the command is longer than {MAX_CHARACTERS:,} characters")
    commands: list[Simple] = []
    words: list[ShellWord] = []
    for token in _tokens(line.strip(_SPACE)):
        if isinstance(token, ShellWord):
            words.append(token)
            continue
        commands.append(_simple(words, token))
        words = []
    if words or not commands or commands[-1].then != ";":
        commands.append(_simple(words, ""))
    if len(commands) > MAX_COMMANDS:
        raise Unclear(f"the line has more than {MAX_COMMANDS} commands")
    return tuple(commands)


def _simple(words: list[ShellWord], then: str) -> Simple:
    if not words or words[0].quoted in _QUIET:
        raise Unclear("a command is empty")
    return Simple(tuple(words), then)


def _tokens(line: str) -> Iterator[ShellWord | str]:
    at = 0
    while at < len(line):
        if line[at] in _SPACE:
            at += 1
            continue
        operator = next((o for o in _OPERATORS if line.startswith(o, at)), "")
        if operator:
            yield operator
            at += len(operator)
            continue
        quiet = next((q for q in _QUIET if _stands_alone(line, q, at)), "")
        if quiet:
            yield ShellWord(quiet, quiet)
            at += len(quiet)
            continue
        word, at = _word(line, at)
        yield word


def _stands_alone(line: str, text: str, at: int) -> bool:
    end = at + len(text)
    return line.startswith(text, at) and (end == len(line) or line[end] in " \t|;")


def _word(line: str, at: int) -> tuple[ShellWord, int]:
    text, quoted, globs = "", "", False
    while at < len(line) and line[at] not in _SPACE and line[at] not in "|;&":
        character = line[at]
        if character in "'\"":
            piece, at = _quoted(line, at)
            text += piece
            quoted += shlex.quote(piece)
            continue
        if character not in _GLOBS and not _PLAIN.match(character):
            raise Unclear(f"the command has {character!r} outside quotes")
        text += character
        globs = globs or character in _GLOBS
        quoted += character if character in _GLOBS else shlex.quote(character)
        at += 1
    if at < len(line) and line[at] == "&" and not line.startswith("&&", at):
        raise Unclear("the command has '&' outside quotes")
    return ShellWord(text, quoted, globs), at


def _quoted(line: str, at: int) -> tuple[str, int]:
    quote = line[at]
    end = line.find(quote, at + 1)
    if end < 0:
        raise Unclear("a quote is not closed")
    piece = line[at + 1 : end]
    if any(not _LITERAL.match(c) for c in piece):
        raise Unclear("there is a control character in quotes")
    if quote == '"' and re.search(r"[$`!]|\\[\\\"$`]|\\$", piece):
        raise Unclear('there is a $, `, ! or escape in a text in " quotes')
    return piece, end + 1


def plain_words(line: str) -> tuple[str, ...] | None:
    """The words of a line that is one plain command; None for anything else."""
    try:
        commands = parse(line)
    except Unclear:
        return None
    only = commands[0]
    if len(commands) > 1 or any(w.globs or w.quoted in _QUIET for w in only.words):
        return None
    return tuple(w.text for w in only.words)


def segments(line: str) -> list[tuple[str, ...]]:
    """The beginnings of all commands that may stand in a line, read laxly."""
    found: list[tuple[str, ...]] = []
    for piece in _BREAKS.split(line):
        try:
            words = shlex.split(piece) if len(piece) <= _MOST_READ else None
        except ValueError:
            words = None
        if words is None:
            words = piece.replace("'", "").replace('"', "").split()
        if words:
            found.append(tuple(words))
    return found
