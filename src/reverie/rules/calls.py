"""A tool call as rules see it: which tool and what for, which commands, which files, which words.

The tools of several clients are known by name, others by the names of their inputs. Paths are made
absolute from where the call is made; whoever has a disk hands in how links are resolved. What
cannot be read is left out; nothing raises. A leaf: it imports its neighbours alone.
"""

from __future__ import annotations

from reverie.text.shell_commands import ShellCommand, commands, join_path

TYPE_CHECKING = False  # as `typing` has it, without importing it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

if TYPE_CHECKING:
    from typing import cast
else:

    def cast(_, value):
        """`typing.cast`, without `typing`."""
        return value


MAX_TEXT = 200_000
SHELL, READ, WRITE, SEARCH, WEB, AGENT, OTHER = (
    "shell", "read", "write", "search", "web", "agent", "other",
)  # fmt: skip
ROLES = (SHELL, READ, WRITE, SEARCH, WEB, AGENT, OTHER)
_TOOLS = {
    SHELL: "bash shell sh terminal exec exec_command local_shell run_shell_command run_command "
    "execute_command run_terminal_cmd powershell bashoutput container.exec shell_command",
    READ: "read read_file readfile view cat open_file read_many_files notebookread view_image",
    WRITE: "write edit multiedit notebookedit write_file edit_file create_file replace apply_patch "
    "str_replace str_replace_editor str_replace_based_edit_tool insert patch update_file "
    "delete_file move_file rename_file create_directory search_replace",
    SEARCH: "grep glob list ls search search_files list_files list_directory codebase_search "
    "grep_search file_search find search_file_content",
    WEB: "webfetch websearch fetch web_fetch web_search fetch_url browser google_web_search",
    AGENT: "task agent dispatch_agent spawn_agent",
}
_ROLE_OF = {name: role for role, names in _TOOLS.items() for name in names.split()}
_COMMANDS = ("command", "cmd", "script", "commands")
_PATHS = (
    "file_path", "path", "notebook_path", "filename", "file", "filepath", "target_file", "dir",
    "directory", "absolute_path", "relative_workspace_path", "source", "destination", "old_path",
    "new_path", "dir_path", "target_directory",
)  # fmt: skip
_TEXTS = (
    "content", "new_string", "new_str", "new_source", "file_text", "text", "insert_text", "body",
    "message", "code_edit", "contents", "prompt", "description", "title", "query", "url",
)  # fmt: skip
_ADDRESSES = ("url", "query")
_NEW = ("new_string", "new_str", "newText")
_OLD = ("old_string", "old_str", "oldText")
_PATCHES = ("patch", "input", "diff")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


class CallContext:
    """Where a call is made. `resolve` gives the path that a path really is, `project_of` the root
    of the repository that a folder is in, or ""."""

    __slots__ = ("cwd", "project_of", "resolve", "root", "user")

    def __init__(
        self,
        cwd: str,
        root: str = "",
        user: str = "",
        resolve: Callable[[str], str] | None = None,
        project_of: Callable[[str], str] | None = None,
    ) -> None:
        self.cwd = normal(cwd or "/")
        self.root = normal(root or cwd or "/")
        self.user = user.rstrip("/")
        self.resolve = resolve
        self.project_of = project_of

    def is_elsewhere(self, path: str) -> bool:
        """Whether a path is in another project: what this one's rules say does not hold there."""
        own = tuple(one.rstrip("/") + "/" for one in (self.root, self.cwd))
        if self.project_of is None or "\0" in path or f"{path}/".startswith(own):
            return False
        return self.project_of(path) not in ("", self.root)

    def absolute(self, path: str, below: str = "") -> str:
        """A path as it is named in a call, absolute and without links, dots and tildes."""
        path = join_path(below, path)
        if path == "~" or path.startswith("~/"):
            path = self.user + path[1:]
        for start in ("$HOME", "${HOME}"):
            if path.startswith(start):
                path = self.user + path[len(start) :]
        for start in ("$PWD/", "${PWD}/"):
            path = path.removeprefix(start)
        whole = normal(path if path.startswith("/") else f"{self.cwd}/{path}")
        return self.resolve(whole) if self.resolve is not None and "\0" not in whole else whole


def normal(path: str) -> str:
    """An absolute path without `.` and `..`, as text."""
    done: list[str] = []
    for name in path.split("/"):
        if name == "..":
            done = done[:-1]
        elif name not in ("", "."):
            done.append(name)
    return "/" + "/".join(done)


class CallAction:
    """One thing that a call does: a command of its line, or all of a call that runs none."""

    __slots__ = ("before", "cwd", "paths", "text", "views", "written")

    def __init__(self, views: list[list[str]], text: str, cwd: str) -> None:
        self.views = views
        self.text = text
        self.before = ""  # what the text stands in for: what was there is not written anew
        self.cwd = cwd
        self.paths: list[str] = []
        self.written: list[str] = []


class ParsedCall:
    """A parsed call."""

    __slots__ = ("acts", "place", "role", "tool")

    def __init__(self, tool: str, role: str, place: CallContext, acts: list[CallAction]) -> None:
        self.tool = tool
        self.role = role
        self.place = place
        self.acts = acts


def role_of(tool: str) -> str:
    """What a tool is for, by its name; of an MCP tool the last part counts."""
    name = tool.rpartition("__")[2].lower()
    return _ROLE_OF.get(name, OTHER)


def parse(tool: str, given: object, place: CallContext) -> ParsedCall:
    """A call from the name of its tool and its input."""
    role = role_of(tool)
    if isinstance(given, str):
        given = {"input": given}
    values = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    line = _line(values)
    if line and role in (SHELL, OTHER):
        where = _first(values, ("workdir", "cwd"))
        acts = [_of_command(one, place, where) for one in commands(line)]
        return ParsedCall(tool, SHELL, place, acts)
    names = _ADDRESSES if role == WEB and any(one in values for one in _ADDRESSES) else _TEXTS
    act = CallAction([], _join_texts(values, names, _NEW)[:MAX_TEXT], place.cwd)
    act.before = _join_texts(values, _OLD, _OLD)[:MAX_TEXT]
    _add_paths(
        act, [_text(values[name]) for name in _PATHS if name in values], place, role == WRITE
    )
    patch = next((_text(values[name]) for name in _PATCHES if name in values), "")
    if _PATCHED[0][:4] in patch:
        role = WRITE
        _read_patch(act, patch[:MAX_TEXT], place)
    elif patch and not act.text:
        act.text = patch[:MAX_TEXT]
    return ParsedCall(tool, role, place, [act])


def _first(values: Mapping[str, object], names: Iterable[str]) -> str:
    found = (values.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), "")


def _line(values: Mapping[str, object]) -> str:
    """The command line of a call; a list of words is joined as a shell would read it."""
    for name in _COMMANDS:
        value = values.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(_quote_word(str(one)) for one in cast("list[object]", value))
    return ""


def _quote_word(word: str) -> str:
    plain = all(sign.isalnum() or sign in "-_./=:@%+," for sign in word)
    return word if word and plain else "'" + word.replace("'", "'\\''") + "'"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(one) for one in cast("list[object]", value))
    return ""


def _join_texts(values: Mapping[str, object], names: Iterable[str], inside: Iterable[str]) -> str:
    """The texts of a call under these names, and those of its single edits."""
    found = [_text(values[name]) for name in names if name in values]
    edits = values.get("edits")
    for one in cast("list[object]", edits) if isinstance(edits, list) else ():
        if isinstance(one, dict):
            edit = cast("dict[str, object]", one)
            found += [_text(edit[name]) for name in inside if name in edit]
    return "\n".join(filter(None, found))


def _add_paths(act: CallAction, paths: Iterable[str], place: CallContext, writes: bool) -> None:
    for path in paths:
        for one in filter(None, path.split("\n")):
            whole = place.absolute(one)
            act.paths.append(whole)
            if writes:
                act.written.append(whole)


def _read_patch(act: CallAction, patch: str, place: CallContext) -> None:
    added, gone = list[str](), list[str]()
    for row in patch.split("\n"):
        for start in _PATCHED:
            if row.startswith(start):
                _add_paths(act, [row[len(start) :].strip()], place, True)
        if row.startswith("+"):
            added.append(row[1:])
        elif row.startswith("-"):
            gone.append(row[1:])
    act.text, act.before = "\n".join(added), "\n".join(gone)


def _of_command(one: ShellCommand, place: CallContext, where: str) -> CallAction:
    below = join_path(where, one.cwd) if where else one.cwd
    act = CallAction(one.views, one.text[:MAX_TEXT], place.absolute(below) if below else place.cwd)
    act.written = [place.absolute(path, below) for path in one.writes]
    act.paths = act.written + [place.absolute(path, below) for path in one.reads]
    return act


# --- Short forms of subcommands: `npm i` is `npm install`. Only what the programs' own help calls
# an alias: `pnpm add` is another thing than `pnpm install`, and stays so. A leaf.


_HELP = {
    "npm": {
        "install": "add i in ins inst insta instal isnt isnta isntal isntall",
        "uninstall": "unlink remove rm r un",
        "update": "u up upgrade udpate",
        "ci": "clean-install ic install-clean isntall-clean",
        "test": "tst t",
        "run": "run-script rum urn",
        "exec": "x",
    },
    "pnpm": {"install": "i", "remove": "rm uninstall un", "update": "up upgrade"},
    "bun": {"install": "i", "add": "a", "remove": "rm"},
    "cargo": {"build": "b", "check": "c", "doc": "d", "run": "r", "remove": "rm", "test": "t"},
}
_SHORT = {
    program: {short: verb for verb, all_short in verbs.items() for short in all_short.split()}
    for program, verbs in _HELP.items()
}


def in_full(program: str, words: Sequence[str]) -> Sequence[str]:
    """A command's words with its subcommand in full; the program's own name stands first."""
    short = _SHORT.get(program)
    if short is None:
        return words
    for at, word in enumerate(words[1:], 1):
        if word in short:
            return [*words[:at], short[word], *words[at + 1 :]]
        before = words[at - 1]
        is_value = before.startswith("-") and "=" not in before  # it may be the option's
        if not word.startswith("-") and not is_value:
            break
    return words
