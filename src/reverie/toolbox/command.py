"""A shell line read strictly; what it may start and reaches.

Command lines, read strictly: plain words, pipes and chains, or nothing.

What is not plainly understood is refused as `Unclear`: substitutions, variables,
redirections (but `2>/dev/null` and `2>&1`), brace and tilde expansion, comments,
newlines, control signs. So what passes means to a shell exactly what it means here.
Nothing is ever run by this module.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

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
class SimpleCommand:
    """One command of a line, and the operator that follows it."""

    words: tuple[ShellWord, ...]
    then: str = ""

    @property
    def name(self) -> str:
        return self.words[0].text

    def __str__(self) -> str:
        return " ".join(w.quoted for w in self.words)


def parse(line: str) -> tuple[SimpleCommand, ...]:
    """The commands of a line, or Unclear."""
    if len(line) > MAX_CHARACTERS:
        raise Unclear(f"the command is longer than {MAX_CHARACTERS:,} characters")
    commands: list[SimpleCommand] = []
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


def _simple(words: list[ShellWord], then: str) -> SimpleCommand:
    if not words or words[0].quoted in _QUIET:
        raise Unclear("a command is empty")
    return SimpleCommand(tuple(words), then)


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
            piece, at = _read_quoted(line, at)
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


def _read_quoted(line: str, at: int) -> tuple[str, int]:
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


# --- What a command line may start, read laxly: for rules that forbid.
#
# It sees through assignments, `!` and the words of shell grammar, programs that run another
# (`env`, `sudo`, `xargs`, `find -exec` …), a shell's `-c`, folders before a name, quotes and
# backslashes within it, subshells and substitutions. It errs towards finding too many.
#
# It cannot see what only a shell knows: variables (`$X`), patterns (`/bin/r?`), aliases and
# functions made elsewhere, text decoded or downloaded before it is run, and programs that do the
# same under another name or from within a language (`python -c`). A rule is no wall.


_DEEPEST = 4
_COMPARED = 100  # words of a command that a rule is compared with

_LINE = re.compile(r"[\s;&|(){}`<>$]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_GRAMMAR = frozenset(
    ("!", "if", "then", "elif", "else", "while", "until", "do", "case", "in", "coproc", "function")
)
_RUNNERS = frozenset(
    (
        *("builtin", "busybox", "chroot", "chrt", "command", "doas", "env", "exec", "find"),
        *("flock", "ionice", "nice", "nohup", "parallel", "pkexec", "runuser", "script"),
        *("setpriv", "setsid", "stdbuf", "strace", "su", "sudo", "taskset", "time", "timeout"),
        *("toybox", "trap", "unbuffer", "unshare", "watch", "xargs"),
    )
)
_SHELLS = frozenset(("ash", "bash", "dash", "eval", "fish", "ksh", "sh", "su", "trap", "zsh"))


def starts(line: str) -> set[tuple[str, ...]]:
    """The first words of every command that a line may start; linear in the line."""
    return set(_commands(line.replace("\\\n", ""), 0))


def _commands(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    for piece in (line, *_BREAKS.split(line)):
        for words in _readings(piece):
            yield from _nested_commands(words, depth)


def _readings(piece: str) -> Iterator[tuple[str, ...]]:
    """A piece as words: as a shell reads it, or with every quote left out."""
    plain = re.sub(r"\$(?=['\"])", "", piece)
    try:
        yield tuple(shlex.split(plain))
    except ValueError:
        yield tuple(re.sub(r"['\"\\]", "", plain).split())
    if "," in piece and len(piece.split()) == 1:
        yield tuple(piece.split(","))  # {rm,-r,x}


def _nested_commands(words: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """A command, and each that it may start in turn; behind a program that runs others that
    may be any word, and behind a shell a whole line as well."""
    runs = nested = False
    for at, word in enumerate(words):
        name = posixpath.basename(word)
        yield (name, *words[at + 1 : at + _COMPARED])
        if nested and depth < _DEEPEST and _LINE.search(word):
            yield from _commands(word, depth + 1)
        nested = nested or name in _SHELLS
        runs = runs or nested or name in _RUNNERS
        if not runs and name not in _GRAMMAR and not _ASSIGNMENT.match(word):
            return


# --- Path patterns with `**`, `*`, `?`, `[…]` and `{a,b}`, matched name by name.
#
# They stand for the files that ripgrep's `--glob` gives, except that a backslash and a brace
# without a comma are themselves. Libraries for ignore files read patterns otherwise: there `src/*`
# takes in whatever lies below, and `{a,b}` is no choice. The time is bounded by the product of the
# lengths, whatever the pattern. `*` also takes names that begin with a dot. Nothing here touches
# the disk.


MAX = 64
_LONGEST = 1_000
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class BadPattern(InvalidInput, code="bad_pattern"):
    """A pattern that cannot be used, and why."""


def expand(pattern: str) -> list[str]:
    """A pattern with braces as several without."""
    if len(pattern) > _LONGEST:
        raise BadPattern(f"the pattern is longer than {_LONGEST:,} characters")
    done: list[str] = []
    todo = [pattern]
    while todo:
        one = todo.pop(0)
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
        else:
            todo += [one[: found.start()] + c + one[found.end() :] for c in found[1].split(",")]
        if len(done) + len(todo) > MAX:
            raise BadPattern(f"the pattern stands for more than {MAX} others")
    return done


def matcher(pattern: str, *, folders: bool = False) -> Callable[[Sequence[str]], bool]:
    """A test for the names of a relative path, one after the other.

    `a/**` is what lies below `a`; with `folders` it is `a` too.
    """
    compiled = [tuple(p for p in one.split("/") if p) for one in expand(pattern)]
    if not folders:
        compiled = [(*one, "*") if one[-1:] == ("**",) else one for one in compiled]
    return lambda names: any(_match(one, names) for one in compiled)


@lru_cache(maxsize=1024)
def _name(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(fnmatch.translate(pattern))
    except re.error as error:
        raise BadPattern(f"the pattern is not valid: {error}") from error


def _match(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Which beginnings of `names` the pattern so far can stand for, step by step."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            test = _name(part)
            reached = {n + 1 for n in reached if n < len(names) and test.match(names[n])}
    return len(names) in reached
