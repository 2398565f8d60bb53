"""What a client's settings need so that it speaks through the proxy, and the way back.

All of it is pure: text in, text out. A client is described by the members its settings must
have; an installation is the patches that put them there, and a note of what stood there before.
Taken back on the text that was written, the patches give the very bytes of before; where
somebody has edited the file since, only what still is as we wrote it goes, and every other
word stays.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reverie.clients.proxy_address import ProxyAddress
from reverie.errors import InvalidInput
from reverie.text import json_spans
from reverie.text.json_spans import TextPatch

RESULTS = "projects/*/*/tool-results/**"
"""Where stored results lie below home."""


@dataclass(frozen=True, slots=True)
class RequiredSetting:
    """One value that must stand in a client's settings.

    `add` puts it at the end of a list. One that is `optional` gives way where the user has put
    something of another shape in its place.
    """

    path: tuple[str, ...]
    value: str
    add: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """A program whose settings we know."""

    name: str
    title: str
    form: Literal["json", "toml"]
    files: Callable[[Mapping[str, str], Path], tuple[Path, ...]]
    """The settings file; the first that exists counts, or else the last."""
    wishes: Callable[[ProxyAddress, Path], tuple[RequiredSetting, ...]]


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """A wish that was fulfilled, and what stood there before."""

    wish: RequiredSetting
    had: int
    """How many names of the path were there."""
    old: Any = None

    @property
    def replaced(self) -> bool:
        return self.had == len(self.wish.path) and not self.wish.add


@dataclass(frozen=True, slots=True)
class Installation:
    """What was done to one file."""

    client: str
    before: str | None
    """The digest of the file as it was; None where there was none."""
    after: str
    patches: tuple[TextPatch, ...]
    edits: tuple[SettingEdit, ...]


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """A file's new text, None where the file goes, and what a person should know."""

    text: str | None
    notes: tuple[str, ...] = ()
    installation: Installation | None = None


# --- the clients


def _claude_files(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    return (Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json",)


def _claude_wishes(address: ProxyAddress, ours: Path) -> tuple[RequiredSetting, ...]:
    return (
        RequiredSetting(("env", "ANTHROPIC_BASE_URL"), address.anthropic),
        RequiredSetting(("permissions", "allow"), f"Read(/{ours / RESULTS})", add=True),
    )


def _codex_files(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    return (Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml",)


def _codex_wishes(address: ProxyAddress, ours: Path) -> tuple[RequiredSetting, ...]:
    del ours  # its sandbox lets it read everywhere
    return (RequiredSetting(("openai_base_url",), address.openai),)


def _opencode_files(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    return (folder / "opencode.jsonc", folder / "opencode.json")


def _opencode_wishes(address: ProxyAddress, ours: Path) -> tuple[RequiredSetting, ...]:
    readable = (
        "permission",
        "external_directory",
        str(ours / "projects" / "*" / "tool-results" / "*"),
    )
    return (
        RequiredSetting(("provider", "anthropic", "options", "baseURL"), f"{address.anthropic}/v1"),
        RequiredSetting(("provider", "openai", "options", "baseURL"), address.openai),
        RequiredSetting(readable, "allow", optional=True),
    )


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", "json", _claude_files, _claude_wishes),
        Client("codex", "Codex", "toml", _codex_files, _codex_wishes),
        Client("opencode", "opencode", "json", _opencode_files, _opencode_wishes),
    )
}


# --- there and back


def digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def install(client: Client, text: str | None, wishes: tuple[RequiredSetting, ...]) -> InstallPlan:
    """The settings with every wish fulfilled; one that is fulfilled already is left alone."""
    form = _FORMS[client.form]
    now = form.empty if text is None else text
    notes: list[str] = []
    edits: list[SettingEdit] = []
    patches = [TextPatch(0, "", form.empty)] if text is None and form.empty else []
    for wish in wishes:
        try:
            edit, patch = form.fulfilled(now, wish)
        except json_spans.Unreadable:
            raise
        except InvalidInput as error:
            if not wish.optional:
                raise
            notes.append(f"{'.'.join(wish.path[:-1])} is left as it is: {error}")
            continue
        if patch is None:
            continue
        now = patch.on(now)
        edits.append(edit)
        patches.append(patch)
    if not edits:
        return InstallPlan(text, tuple(notes))
    after = digest(now) or ""
    done = Installation(client.name, digest(text), after, tuple(patches), tuple(edits))
    return InstallPlan(now, tuple(notes), done)


def values(client: Client, text: str | None) -> dict[str, Any]:
    """Return a client's settings as an object; {} where there are none."""
    return _toml(text or "") if client.form == "toml" else json_spans.read(text or "{}").value


def uninstall(client: Client, text: str | None, done: Installation) -> InstallPlan:
    """The settings without what we put there; None where the file was ours alone."""
    if text is None:
        return InstallPlan(None)
    if digest(text) == done.after:
        for patch in reversed(done.patches):
            text = patch.back().on(text)
        return InstallPlan(None if done.before is None else text)
    form = _FORMS[client.form]
    notes: list[str] = []
    for edit in reversed(done.edits):
        text, note = form.undone(text, edit)
        notes += [note] if note else []
    ours_alone = done.before is None and form.is_empty(text)
    return InstallPlan(None if ours_alone else text, tuple(notes))


def is_in_place(client: Client, text: str | None, wishes: tuple[RequiredSetting, ...]) -> bool:
    """Whether the settings still say what the first wish, the address, wants."""
    if text is None:
        return False
    try:
        return _FORMS[client.form].fulfilled(text, wishes[0])[1] is None
    except InvalidInput:
        return False


def diff(name: str, old: str | None, new: str | None) -> str:
    """The change as people read it."""
    before, after = (old or "").splitlines(), (new or "").splitlines()
    heads = [name if text is not None else "/dev/null" for text in (old, new)]
    return "\n".join(difflib.unified_diff(before, after, heads[0], heads[1], lineterm=""))


# --- the two forms of settings


class _Json:
    empty = "{}\n"

    def is_empty(self, text: str) -> bool:
        return json_spans.read(text).value == {}

    def fulfilled(self, text: str, wish: RequiredSetting) -> tuple[SettingEdit, TextPatch | None]:
        held = json_spans.at(text, wish.path)
        edit = SettingEdit(wish, _present(text, wish.path), held.value if held else None)
        if held and (
            wish.value in held.value if _is_list(wish, held) else held.value == wish.value
        ):
            return edit, None
        change = json_spans.append_item if wish.add else json_spans.put
        return edit, change(text, wish.path, wish.value)

    def undone(self, text: str, edit: SettingEdit) -> tuple[str, str]:
        wish = edit.wish
        held = json_spans.at(text, wish.path)
        if wish.add and held and _is_list(wish, held) and wish.value in held.value:
            text = json_spans.remove_member(text, wish.path, held.value.index(wish.value)).on(text)
        elif not wish.add and held and held.value == wish.value:
            if edit.replaced:
                return json_spans.put(text, wish.path, edit.old).on(text), ""
            text = json_spans.remove_member(text, wish.path).on(text)
        else:
            return text, f"{'.'.join(wish.path)} was changed since: it stays as it is"
        for length in range(len(wish.path), edit.had, -1):
            held = json_spans.at(text, wish.path[:length])
            if held and held.value in ({}, []):
                text = json_spans.remove_member(text, wish.path[:length]).on(text)
        return text, ""


def _is_list(wish: RequiredSetting, held: json_spans.JsonNode) -> bool:
    return wish.add and isinstance(held.value, list)


def _present(text: str, path: tuple[str, ...]) -> int:
    return next(n for n in range(len(path), -1, -1) if json_spans.at(text, path[:n]) is not None)


class _Toml:
    """Keys with a text before the first table. What a patch does is read again to be sure."""

    empty = ""

    def is_empty(self, text: str) -> bool:
        return not text.strip()

    def fulfilled(self, text: str, wish: RequiredSetting) -> tuple[SettingEdit, TextPatch | None]:
        (key,) = wish.path
        data = _toml(text)
        old = data.get(key)
        edit = SettingEdit(wish, int(key in data), old)
        if old == wish.value:
            return edit, None
        line = f"{key} = {json.dumps(wish.value)}"
        if key not in data:
            return edit, _working_patch(
                text, [TextPatch(0, "", line + "\n")], {**data, key: wish.value}
            )
        found = [TextPatch(m.start(1), m[1], line) for m in _assignments(key, text)]
        return edit, _working_patch(text, found, {**data, key: wish.value})

    def undone(self, text: str, edit: SettingEdit) -> tuple[str, str]:
        (key,) = edit.wish.path
        data = _toml(text)
        if data.get(key) != edit.wish.value:
            return text, f"{key} was changed since: it stays as it is"
        rest = {name: value for name, value in data.items() if name != key}
        if edit.replaced:
            line, wanted = f"{key} = {json.dumps(edit.old)}", {**rest, key: edit.old}
            found = [TextPatch(m.start(1), m[1], line) for m in _assignments(key, text)]
        else:
            found, wanted = [TextPatch(m.start(), m[0], "") for m in _assignments(key, text)], rest
        return _working_patch(text, found, wanted).on(text), ""


def _assignments(key: str, text: str) -> list[re.Match[str]]:
    name = re.escape(key)
    value = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
    form = rf"""^[ \t]*((?:{name}|"{name}"|'{name}')[ \t]*=[ \t]*{value})[ \t]*(?:\r?\n|\Z)?"""
    return list(re.finditer(form, text, re.MULTILINE))


def _working_patch(text: str, patches: list[TextPatch], wanted: dict[str, Any]) -> TextPatch:
    for patch in patches:
        try:
            if tomllib.loads(patch.on(text)) == wanted:
                return patch
        except tomllib.TOMLDecodeError:
            continue
    raise InvalidInput("no place was found where this can be changed", do="Change it by hand")


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise json_spans.Unreadable(f"it is not TOML: {error}") from error


_FORMS = {"json": _Json(), "toml": _Toml()}
