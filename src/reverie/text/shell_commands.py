"""The commands of a shell line, as far as they can be told without running it.

It sees through `cd x &&`, assignments, pipes, groups, subshells, substitutions, here-documents,
`bash -c`, and programs that run others (`sudo`, `env`, `xargs`, `npx`, `uv run`, …). `ShellScan`
takes the line apart; what is nested is read to a fixed depth. It says what a line may do, and is no
proof of what it cannot: variables, patterns (`/bin/r?`), aliases, decoded or downloaded text and
code of another language (`python -c`) are not read.

It imports the scan alone, so that a hook can use it without the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

from reverie.text.shell import ShellPiece, ShellScan

MAX_CHARACTERS = 100_000
MAX_COMMANDS = 500
MAX_DEPTH = 5
MAX_COMPARED = 100  # words of a command that a rule is compared with
_SYNTAX = frozenset("$ \t\n\r;&|(){}`<>")  # a word with one of these may be a line
_QUOTES = str.maketrans("", "", "'\"\\")
_BREAKS = str.maketrans(dict.fromkeys(";&|\r(){}`<>", "\n"))


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _set("if then else elif fi do done while until ! time { } esac")
_CLAUSES = _set("for case select function")
_GRAMMAR = _KEYWORDS | _set("case in coproc function")  # a command may follow
_SHELLS = _set("sh bash zsh dash ksh fish ash")
# Programs that run the command behind their own words, and their options that take a value.
_WRAPPERS = {
    "sudo": "-u -g -h -p -C -r -t -T -U -D --user --group --host --prompt",
    "doas": "-u -C",
    "env": "-u --unset -C --chdir",
    "nohup": "",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p",
    "time": "-f -o",
    "stdbuf": "-i -o -e",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "setsid": "",
    "watch": "-n --interval",
    "xargs": "-I -n -P -L -d -E -s -a",
    "timeout": "-k -s --signal --kill-after",
    "flock": "-w -E",
    "strace": "-o -e -p",
    "npx": "-p --package -c",
    "bunx": "",
    "pnpx": "",
    "uvx": "--from --with --python -p",
    "cross-env": "",
    "dotenv": "-e -f",
}
_TAKES_ONE = frozenset({"timeout", "flock"})  # a word of their own comes before the command
_PACKAGES = _set("npx bunx pnpx uvx cross-env dotenv")
# Programs that run another, at a place among their words that `starts` does not look for.
_LAUNCHERS = (frozenset(_WRAPPERS) - _PACKAGES) | _set(
    "busybox chroot chrt find parallel pkexec runuser script setpriv taskset toybox unbuffer "
    "unshare"
)
_READERS = _SHELLS | _set("eval su trap")  # read a word as a line
_RUNNERS = {
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx", "run"),
    "bun": ("x", "run"),
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pixi": ("run",),
    "pipx": ("run",),
    "conda": ("run",),
    "bundle": ("exec",),
    "mise": ("exec", "x"),
}
_PACKAGE_VERBS = _set(
    "exec dlx run install i add remove rm up update upgrade test t start build dev publish "
    "pack link unlink init create audit outdated why list ls config store import rebuild "
    "prune fetch deploy patch env setup dedupe workspace workspaces cache info login logout "
    "version"
)
_FILE_PROGRAMS = _set(
    "rm mv cp cat ls rmdir mkdir touch cd pushd less more head tail stat chmod chown ln tee "
    "truncate unlink shred rsync scp vi vim nano code open source . bat file wc diff"
)
_ALL_WRITTEN = _set(
    "rm mv rmdir mkdir touch tee truncate unlink shred chmod chown chgrp vi vim nano patch"
)
_LAST_WRITTEN = _set("cp ln install rsync scp")
_IN_PLACE = _set("sed perl ruby gsed")
_FOLDERS = _set("-C --prefix --cwd --dir --directory -chdir --chdir --workdir")
_GIT_WRITES = _set("rm mv restore checkout clean apply stash")


class ShellCommand:
    """One simple command: the ways its words can be read, the files it names, what it feeds in."""

    __slots__ = ("cwd", "fed", "reads", "said", "views", "writes")

    def __init__(self, views: list[list[str]], cwd: str, said: list[str]) -> None:
        self.views = views  # as it stands first; behind it without each program that runs others
        self.cwd = cwd  # where it runs, relative to where the line begins
        self.said = said  # all its words, with what is set before it
        self.fed = ""  # a here-document or here-string
        self.reads: list[str] = []
        self.writes: list[str] = []

    @property
    def text(self) -> str:
        """All that it says, for words that are looked for in it."""
        return " ".join(self.said) + ("\n" + self.fed if self.fed else "")


def commands(line: str) -> list[ShellCommand]:
    """Every simple command of a line, the nested ones too, in the order they stand."""
    found: list[ShellCommand] = []
    _collect(line[:MAX_CHARACTERS], "", 0, found)
    return found


def starts(line: str) -> set[tuple[str, ...]]:
    """The first words of every command that a line may start, for rules that forbid one.

    Errs towards too many: quoted text is read as a line too, and every word behind a program that
    runs others may be the command. Linear in the line.
    """
    return set(_started(line.replace("\\\n", ""), 0))


def _started(line: str, depth: int) -> Iterator[tuple[str, ...]]:
    for piece in (line, *line.replace("$(", "(").translate(_BREAKS).split("\n")):
        scan = ShellScan(piece.replace("$'", "'").replace('$"', '"'))
        words = [one.text for one in scan.pieces() if one.kind == "word"]
        yield from _nested(scan.line.translate(_QUOTES).split() if scan.is_open else words, depth)
        if "," in piece and len(piece.split()) == 1:
            yield from _nested(piece.strip().split(","), depth)  # {rm,-r,x}


def _nested(words: list[str], depth: int) -> Iterator[tuple[str, ...]]:
    """A command, and each that it may start in turn."""
    runs = reads = False
    for at, word in enumerate(words):
        name = name_of(word)
        yield (name, *words[at + 1 : at + MAX_COMPARED])
        if reads and depth < MAX_DEPTH - 1 and not _SYNTAX.isdisjoint(word):
            yield from _started(word, depth + 1)
        reads = reads or name in _READERS
        runs = runs or reads or name in _LAUNCHERS
        if not runs and name not in _GRAMMAR and not is_assignment(word):
            return


def _collect(line: str, cwd: str, depth: int, found: list[ShellCommand]) -> None:
    if depth > MAX_DEPTH or len(found) >= MAX_COMMANDS:
        return
    scan = ShellScan(line)
    words: list[str] = []
    around: list[str] = []
    kept = _Redirections()
    for piece in scan.pieces():
        if piece.kind == "word":
            words.append(piece.text)
        elif piece.kind != "end":
            kept.take(piece)
        else:
            cwd = _end_command(words, kept, cwd, depth, found)
            words, kept = [], _Redirections()
            if piece.text == "(":
                around.append(cwd)
            elif piece.text == ")" and around:
                cwd = around.pop()  # what a subshell changed ends with it
    _end_command(words, kept, cwd, depth, found)
    for inner in scan.inner:
        _collect(inner, cwd, depth + 1, found)


class _Redirections:
    __slots__ = ("fed", "reads", "writes")

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.fed = ""

    def take(self, piece: ShellPiece) -> None:
        if piece.kind == "fed":
            self.fed += piece.text
        elif piece.kind == ">":
            self.writes.append(piece.text)
        elif piece.kind == "<":
            self.reads.append(piece.text)


def _end_command(
    words: list[str], kept: _Redirections, cwd: str, depth: int, found: list[ShellCommand]
) -> str:
    """A command is over: what it is, and where the next one starts."""
    said, words = words, _plain_start(words)
    if (not said and not kept.writes) or len(found) >= MAX_COMMANDS:
        return cwd
    views, scripts = _views(words)
    one = ShellCommand(views, _working_folder(views[-1], cwd), said)
    one.fed = kept.fed
    one.reads, one.writes = list(kept.reads), list(kept.writes)
    last = views[-1]
    _files(last, one)
    found.append(one)
    if kept.fed and last and name_of(last[0]) in _SHELLS:
        scripts.append(kept.fed)
    for script in scripts:
        _collect(script, cwd, depth + 1, found)
    if last and last[0] in ("cd", "pushd"):
        where = next((w for w in last[1:] if not w.startswith("-")), "")
        return join_path(cwd, where) if where else cwd
    return cwd


def _working_folder(words: list[str], cwd: str) -> str:
    """Where a command works that is told so by an option: `-C`, `--prefix`, …"""
    for at, word in enumerate(words[1:6], 1):
        name, sign, value = word.partition("=")
        if name in _FOLDERS:
            value = value if sign else "".join(words[at + 1 : at + 2])
            return join_path(cwd, value) if value else cwd
    return cwd


def join_path(base: str, path: str) -> str:
    """A path behind another, as text."""
    if path.startswith(("/", "~")) or not base:
        return path
    return base.rstrip("/") + "/" + path


def _plain_start(words: list[str]) -> list[str]:
    """The words without what a shell takes off first: keywords and assignments."""
    at = 0
    while at < len(words) and (words[at] in _KEYWORDS or is_assignment(words[at])):
        at += 1
    if at < len(words) and words[at] in _CLAUSES:
        return []
    return words[at:]


def is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    name = name.removesuffix("+")
    name = name.partition("[")[0] if name.endswith("]") else name
    return bool(sign) and name.isidentifier() and name.isascii()


def is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1


def name_of(word: str) -> str:
    """A program's name without the folder it lies in."""
    return word.rpartition("/")[2] or word


# --- programs that run others


def _views(words: list[str]) -> tuple[list[list[str]], list[str]]:
    """The command as it stands and as what it runs; and scripts that it is given as a word."""
    views = [words]
    scripts: list[str] = []
    while len(views) <= MAX_DEPTH:
        inner = _inside(views[-1], scripts)
        if not inner:
            break
        views.append(inner)
    return views, scripts


def _inside(words: list[str], scripts: list[str]) -> list[str]:
    """What a command runs in its turn, or nothing."""
    if len(words) < 2:
        return []
    name = name_of(words[0])
    if name in _SHELLS:
        script = _shell_script(words)
        scripts.extend([script] if script else [])
        return []
    if name == "eval":
        scripts.append(" ".join(words[1:]))
        return []
    if name in _WRAPPERS:
        return _behind(words, _WRAPPERS[name].split(), name in _TAKES_ONE)
    if name in _RUNNERS:
        return _run_by(words, _RUNNERS[name])
    if name.startswith("python") and "-m" in words[1:4]:
        return words[words.index("-m") + 1 :]
    if name == "find":
        return _found_and_run(words)
    return []


def _shell_script(words: list[str]) -> str:
    for at, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return words[at + 1] if at + 1 < len(words) else ""
        if not word.startswith("-"):
            break
    return ""


def _behind(words: list[str], valued: list[str], takes_one: bool) -> list[str]:
    at = 1
    while at < len(words):
        word = words[at]
        if word in valued:
            at += 2
        elif word.startswith("-") or is_assignment(word):
            at += 1
        elif takes_one:
            takes_one = False
            at += 1
        else:
            break
    return words[at:]


def _run_by(words: list[str], verbs: tuple[str, ...]) -> list[str]:
    plain = [at for at, word in enumerate(words) if at and not word.startswith("-")]
    if plain and words[0] in ("pnpm", "yarn") and words[plain[0]] not in _PACKAGE_VERBS:
        return words[plain[0] :]
    if not plain or words[plain[0]] not in verbs:
        return []
    return _behind(words[plain[0] :], [], False)


def _found_and_run(words: list[str]) -> list[str]:
    for flag in ("-exec", "-execdir", "-ok"):
        if flag in words:
            inner = words[words.index(flag) + 1 :]
            end = next((at for at, word in enumerate(inner) if word in (";", "+")), len(inner))
            return inner[:end]
    return ["rm", *words[1:2]] if "-delete" in words else []


# --- the files it names


def _files(words: list[str], one: ShellCommand) -> None:
    if not words:
        return
    name, given = name_of(words[0]), _operands(words)
    if words[0] != name:
        one.reads.append(words[0])
    named = [word for word in given if name in _FILE_PROGRAMS or looks_like_path(word)]
    written: list[str] = []
    if name in _ALL_WRITTEN:
        written = named
    elif name in _LAST_WRITTEN:
        written = named[-1:]
    elif name in _IN_PLACE and any(w.startswith(("-i", "--in-place", "-pi")) for w in words[1:]):
        written = named
    elif name == "git" and given and given[0] in _GIT_WRITES:
        written = [word for word in named if word != given[0]]
    elif name == "dd":
        written = [word[3:] for word in words[1:] if word.startswith("of=")]
    one.writes += written
    one.reads += [word for word in named if word not in written]


def _operands(words: list[str]) -> list[str]:
    """The words that are no options, and what options are set to."""
    found: list[str] = []
    for word in words[1:]:
        if not word.startswith("-"):
            found.append(word)
        elif "=" in word:
            found.append(word.partition("=")[2])
    return found


def looks_like_path(word: str) -> bool:
    """Whether a bare word may well be a file: it has a folder, an ending, or a leading dot."""
    if not word or len(word) > 4_096 or "\n" in word or " " in word.strip():
        return False
    if "://" in word:
        return False
    if "/" in word or word.startswith((".", "~")):
        return True
    stem, dot, ending = word.rpartition(".")
    return bool(dot and stem) and ending.isalnum() and len(ending) <= 10 and not ending.isdigit()
