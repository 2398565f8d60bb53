"""A tool call as rules see it: which tool and what for, which commands, which files, which words.

The tools of several clients are known by name, others by the names of their inputs. Paths are made
absolute from where the call is made; whoever has a disk hands in how links are resolved. What
cannot be read is left out; nothing raises. A leaf: it imports its neighbours alone.
"""

from __future__ import annotations

from reverie.memory.rules.shell import ShellCommand, commands, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
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


class CallPlace:
    """Where a call is made. `resolve` gives the path that a path really is."""

    __slots__ = ("cwd", "resolve", "root", "user")

    def __init__(
        self, cwd: str, root: str = "", user: str = "", resolve: Callable[[str], str] | None = None
    ) -> None:
        self.cwd = normal(cwd or "/")
        self.root = normal(root or cwd or "/")
        self.user = user.rstrip("/")
        self.resolve = resolve

    def absolute(self, path: str, below: str = "") -> str:
        """A path as it is named in a call, absolute and without links, dots and tildes."""
        path = joined(below, path)
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


class Act:
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

    def __init__(self, tool: str, role: str, place: CallPlace, acts: list[Act]) -> None:
        self.tool = tool
        self.role = role
        self.place = place
        self.acts = acts


def role_of(tool: str) -> str:
    """What a tool is for, by its name; of an MCP tool the last part counts."""
    name = tool.rpartition("__")[2].lower()
    return _ROLE_OF.get(name, OTHER)


def parse(tool: str, given: object, place: CallPlace) -> ParsedCall:
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
    act = Act([], _joined(values, names, _NEW)[:MAX_TEXT], place.cwd)
    act.before = _joined(values, _OLD, _OLD)[:MAX_TEXT]
    _named(act, [_text(values[name]) for name in _PATHS if name in values], place, role == WRITE)
    patch = next((_text(values[name]) for name in _PATCHES if name in values), "")
    if _PATCHED[0][:4] in patch:
        role = WRITE
        _patched(act, patch[:MAX_TEXT], place)
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
            return " ".join(_quoted(str(one)) for one in cast("list[object]", value))
    return ""


def _quoted(word: str) -> str:
    plain = all(sign.isalnum() or sign in "-_./=:@%+," for sign in word)
    return word if word and plain else "'" + word.replace("'", "'\\''") + "'"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(one) for one in cast("list[object]", value))
    return ""


def _joined(values: Mapping[str, object], names: Iterable[str], inside: Iterable[str]) -> str:
    """The texts of a call under these names, and those of its single edits."""
    found = [_text(values[name]) for name in names if name in values]
    edits = values.get("edits")
    for one in cast("list[object]", edits) if isinstance(edits, list) else ():
        if isinstance(one, dict):
            edit = cast("dict[str, object]", one)
            found += [_text(edit[name]) for name in inside if name in edit]
    return "\n".join(filter(None, found))


def _named(act: Act, paths: Iterable[str], place: CallPlace, writes: bool) -> None:
    for path in paths:
        for one in filter(None, path.split("\n")):
            whole = place.absolute(one)
            act.paths.append(whole)
            if writes:
                act.written.append(whole)


def _patched(act: Act, patch: str, place: CallPlace) -> None:
    added, gone = list[str](), list[str]()
    for row in patch.split("\n"):
        for start in _PATCHED:
            if row.startswith(start):
                _named(act, [row[len(start) :].strip()], place, True)
        if row.startswith("+"):
            added.append(row[1:])
        elif row.startswith("-"):
            gone.append(row[1:])
    act.text, act.before = "\n".join(added), "\n".join(gone)


def _of_command(one: ShellCommand, place: CallPlace, where: str) -> Act:
    below = joined(where, one.cwd) if where else one.cwd
    act = Act(one.views, one.text[:MAX_TEXT], place.absolute(below) if below else place.cwd)
    act.written = [place.absolute(path, below) for path in one.writes]
    act.paths = act.written + [place.absolute(path, below) for path in one.reads]
    return act
