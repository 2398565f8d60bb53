"""The pages of docs/reference that are made from the code: settings, commands, the library.

`problems()` tells where a page is not what the code says, or where a public name, a setting, an
option or an argument says nothing of itself. Every name of `reverie.__all__` and of the public
modules has its place in `CHAPTERS`. A page is plain Markdown, so that it reads the same on a code
host.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import click

import reverie
from reverie import errors, layers, models, testing
from reverie.apps.cli import COMMANDS, build, load
from reverie.settings import FLAGS, SETTINGS, page
from scripts.pages import ROOT

FOLDER = Path("docs/reference")

# -- the library ---------------------------------------------------------------------

WIDTH = 88
CHAPTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Long-term memory": ("What is kept beyond a conversation.", ("Memory",)),
    "Fitting a list": ("Context for a list of messages that you keep.", ("fit", "Fitter")),
    "A client in use": ("Memory and context for an SDK's client.", ("wrap",)),
    "Sessions and agents": (
        "A conversation on record, in your loop or in ours.",
        ("Session", "Agent", "blocking"),
    ),
    "Tools": ("What a model is offered, in each API's form.", ("tools", "Toolset")),
    "Messages": ("In a form that belongs to no provider.", ("user", "tool_result")),
    "What comes back": (
        "Values: frozen, with fields of plain types and a `repr` that reads well.",
        ("Event", "Fitted", "Found", "MatchedRule", "Notice", "Reply", "Report", "Request",
         "Saved", "ToolCall", "Turn"),
    ),
    "Reports, models, settings, errors": (
        "What happened, who answers, and what may be changed.",
        ("report", "Model", "Settings", "ReverieError"),
    ),
}  # fmt: skip
MODULES: tuple[ModuleType, ...] = (errors, layers, models, testing)
LAYERS = (
    "Layer", "View", "World", "Record", "clear", "store", "replace", "attach",
    "COLLAPSE", "CLASSIC",
)  # fmt: skip
"""What a layer of one's own is made of, in the order that it is met."""
GIVEN = {"Agent", "Fitted", "Reply", "Report", "Request", "Session", "Settings", "World", "View"}
"""Made by us and handed out; nobody calls their constructor."""
ALIASES = {
    "Layer": "Callable[[View, World], Awaitable[Sequence[Record]]]",
    "Record": "Clearing | Storing | Replacing | Attaching  # by clear, store, replace, attach",
}
OTHERS = {"Settings": "Its fields are the [settings](settings.md)."}

FOOT = "This page is made from the code by `python -m scripts.generate`.\n"
LIBRARY = """\
# The library, name by name

Public is what this page and [the public modules](modules.md) name; anything else may change at
any time. What waits for a disk (`Memory`, `Fitter`, `Toolset`) has the same methods for tasks
under `aio`; what waits for a model (`Session`, `Agent`) is written for tasks, and `blocking` opens
it in a `with`. To learn by doing, begin with [the library](../library.md),
[fitting](../fitting.md) or [your own loop](../loop.md).
"""
PUBLIC_MODULES = """\
# Public modules

Four modules beside `reverie` itself are public. The adapters for other frameworks have
[a page of their own](../adapters.md).
"""


def library_page() -> str:
    """`reverie` itself."""
    parts = [LIBRARY]
    for chapter, (about, names) in CHAPTERS.items():
        parts.append(f"## {chapter}\n\n{about}\n")
        parts += [_entry(name, _found(name), 3) for name in names]
    return "\n".join([*parts, FOOT])


def _found(name: str) -> Any:
    """A public name; `reverie.tools` is a package too, and the function is meant."""
    from reverie.toolbox import tools

    return tools if name == "tools" else getattr(reverie, name)


def modules_page() -> str:
    """The public modules."""
    parts = [PUBLIC_MODULES]
    for module in MODULES:
        parts.append(f"## {module.__name__}\n\n{inspect.getdoc(module)}\n")
        parts += [_entry(name, getattr(module, name), 3) for name in public_names(module)]
    return "\n".join([*parts, FOOT])


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or what it defines itself, in the order it does."""
    if module is layers:
        return list(LAYERS)
    named = getattr(module, "__all__", None)
    if named is not None:
        return list(named)
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def library_problems() -> Iterator[str]:
    """Public names that no chapter has, chapters' names that are not public, and what says
    nothing of itself."""
    yield from misplaced(reverie.__all__)
    for module in (reverie, *MODULES):
        for name in public_names(module):
            found = _found(name) if module is reverie else getattr(module, name)
            yield from undocumented(f"{module.__name__}.{name}", found)


def misplaced(public: Iterable[str]) -> Iterator[str]:
    """Those of the package's names that no chapter has, and names of chapters that it has not."""
    placed = [name for _, names in CHAPTERS.values() for name in names]
    for name in sorted({*public} ^ {*placed}):
        yield f"reverie.{name}: it must stand in __all__ and in one chapter of the reference"


def undocumented(name: str, found: object) -> Iterator[str]:
    """The name itself or those of its members that have no docstring."""
    if (isinstance(found, type) or inspect.isroutine(found)) and not _words(found):
        yield f"{name}: it has no docstring"
    if isinstance(found, type):
        for member, value in _members(found):
            if not _words(value):
                yield f"{name}.{member}: it has no docstring"


# -- one entry -----------------------------------------------------------------------


def _entry(name: str, found: Any, level: int) -> str:
    parts = [f"{'#' * level} {name}", _stub(name, found), _words(found)]
    if not isinstance(found, type) and not inspect.isroutine(found):
        parts = [parts[0], _value(name, found)]
    if isinstance(found, type):
        parts.append(OTHERS.get(name, "") or _kind(found))
        parts += [_member(name, member, value) for member, value in _members(found)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _kind(found: type) -> str:
    """Of an error: what it is a kind of, and how a command that meets it ends."""
    if not issubclass(found, errors.ReverieError):
        return ""
    above = " and ".join(f"`{one.__name__}`" for one in found.__bases__ if one is not Exception)
    code = f"exit code {found.exit_code}"
    return f"A kind of {above}; {code}." if above else f"The {code} where no kind has its own."


def _value(name: str, found: Any) -> str:
    if isinstance(found, tuple):
        return ", ".join(f"`{_called(one)}`" for one in found)
    return f"```pyi\n{ALIASES.get(name, str(found))}\n```"


def _called(layer: Any) -> str:
    return layer[0] if isinstance(layer, tuple) else layer.__name__


def _member(owner: str, name: str, value: Any) -> str:
    return f"#### {owner}.{name}\n\n{_stub(name, value)}\n\n{_words(value)}"


def _stub(name: str, found: Any) -> str:
    code = _code(name, found)
    return f"```pyi\n{code}\n```" if code else ""


def _code(name: str, found: Any) -> str:
    if isinstance(found, type):
        return _class(name, found)
    if isinstance(found, property):
        assert found.fget is not None
        return f"{name}: {inspect.signature(found.fget).return_annotation}"
    inner = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):
        return ""
    before = "async " if inspect.iscoroutinefunction(inner) else ""
    made = _signature(f"{before}def {name}", signature)
    return f"@classmethod\n{made}" if isinstance(found, classmethod) else made


def _class(name: str, found: type) -> str:
    if name in GIVEN or getattr(found, "_is_protocol", False) or "__init__" not in vars(found):
        fields = dataclasses.is_dataclass(found) and name in ("Report", "Reply")
        return _signature(name, inspect.signature(found), returns=False) if fields else ""
    return _signature(name, inspect.signature(found), returns=False)


def _signature(before: str, signature: inspect.Signature, *, returns: bool = True) -> str:
    given = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    words: list[str] = []
    for at, one in enumerate(given):
        alone = one.kind is one.KEYWORD_ONLY
        star = any(p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in given[:at])
        words += ["*"] if alone and not star else []
        words.append(_parameter(one))
    end = f" -> {_plain(signature.return_annotation)}" if returns else ""
    line = f"{before}({', '.join(words)}){end}"
    if len(line) <= WIDTH:
        return line
    return f"{before}(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    told = f": {_plain(one.annotation)}" if one.annotation is not one.empty else ""
    if one.default is one.empty:
        return f"{stars}{one.name}{told}"
    shown = "..." if repr(one.default).startswith("<") else repr(one.default)
    return f"{stars}{one.name}{told} = {shown}"


def _plain(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("builtins.", "")


def _members(found: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, in the order of the code; not fields."""
    if issubclass(found, Exception) and found is not errors.ReverieError:
        return
    fields = (
        {one.name for one in dataclasses.fields(cast("Any", found))}
        if dataclasses.is_dataclass(found)
        else set[str]()
    )
    for name, value in vars(found).items():
        if name.startswith("_") or name in fields or isinstance(value, type):
            continue
        if isinstance(value, property | classmethod | staticmethod) or inspect.isroutine(value):
            yield name, value


def _words(found: Any) -> str:
    """The docstring, in lines as they are."""
    inner = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    if isinstance(inner, property):
        inner = inner.fget
    return inspect.cleandoc(getattr(inner, "__doc__", None) or "")


# -- the commands --------------------------------------------------------------------

COMMAND_LINE = """\
# Every command

[The command line](../cli.md) tells what the commands are for, with examples, and what exit codes
mean. `reverie help COMMAND` shows at a terminal what this page says.
"""

Walked = Iterator[tuple[str, click.Command]]


def commands() -> Walked:
    """Every command with the words that call it, the program itself first."""
    top = build()
    yield "reverie", top
    for name in COMMANDS:
        yield from _below(f"reverie {name}", load(name))


def _below(words: str, command: click.Command) -> Walked:
    yield words, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _below(f"{words} {name}", inner)


def cli_page() -> str:
    """Each command, what it does and what it takes."""
    told = (_command(words, one) for words, one in commands())
    return "\n".join([COMMAND_LINE, *told, FOOT])


def _command(words: str, command: click.Command) -> str:
    level = "##" if words.count(" ") < 2 else "###"
    context = click.Context(command, info_name=words)
    usage = " ".join([words, *command.collect_usage_pieces(context)])
    rows = [_row(context, one) for one in command.params if not getattr(one, "hidden", False)]
    table = ["| given | what it does |", "| --- | --- |", *rows] if rows else []
    about = (command.help or "").replace("\b\n", "").strip()
    lines = [f"{level} {words}", "", f"`{usage}`", "", *_flush(about), ""]
    return "\n".join([*lines, *table, *([""] if table else [])])


def _flush(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def _row(context: click.Context, one: click.Parameter) -> str:
    told = one.get_help_record(context)
    name = told[0] if told else one.make_metavar(context)
    about = told[1] if told else ""
    return f"| `{_cell(name)}` | {_cell(about)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def silent(walked: Walked) -> Iterator[str]:
    """Options and arguments without a word of help, commands and settings without any."""
    for words, command in walked:
        if not (command.help or "").strip():
            yield f"`{words}` says nothing of itself"
        for one in command.params:
            if not getattr(one, "help", "") and not getattr(one, "hidden", False):
                yield f"`{words}`: {'/'.join(one.opts)} has no help"
    for name, known in (*SETTINGS.items(), *FLAGS.items()):
        if not known.about:
            yield f"{name}: nothing says what it is for"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": page,
    "cli.md": cli_page,
    "api.md": library_page,
    "modules.md": modules_page,
}


def stale(folder: Path) -> Iterator[str]:
    """Pages that are not what the code says."""
    for name, made in PAGES.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != made():
            yield f"{FOLDER / name}: not what the code says; run `python -m scripts.generate`"


def problems() -> Iterator[str]:
    """Yield a line for each stale page, and for each name that says nothing of itself."""
    yield from stale(ROOT / FOLDER)
    yield from silent(commands())
    yield from library_problems()


def write() -> None:
    for name, made in PAGES.items():
        (ROOT / FOLDER / name).write_text(made(), encoding="utf-8")
