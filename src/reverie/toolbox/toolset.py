"""The public Toolset: three formats, calls answered, originals found again.

Tools for the model, in three wire formats, and the answers to their calls.

A `Toolset` is offered beside the caller's own tools: `.anthropic()`, `.openai()` and
`.responses()` describe it, `.handle(call)` answers a call in the form it came in, or
gives None where the call is somebody else's. What a model writes badly is answered with
an error result and never raises. Nothing here runs a command or opens a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from reverie.errors import InvalidInput, InvalidMessage, ReverieError
from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.transcript.blocks import MEDIA, Block, dump, media_of, members, text_of
from reverie.transcript.mentions import part_reference, reference, round_text
from reverie.transcript.messages import strip_line_numbers
from reverie.wire.forms import answer, definition, parse_call, tool_name
from reverie.wire.lists import AdoptedList, AdoptedMessage, Format, value_of
from reverie.wire.reply import ToolCall, tool_result

if TYPE_CHECKING:
    from reverie.toolbox.async_toolset import AsyncToolset

F = TypeVar("F", bound=Callable[..., Any])
READ_BACK = "read_back"
DESCRIPTION = (
    "Reads back what left the conversation to keep it small, by the reference that stands in "
    "its place (such as r:abc123). With query, only the lines that have all its words. "
    "Long ones come in parts."
)
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "reference": {"type": "string", "description": "Such as r:abc123"},
            "query": {"type": "string", "description": "Only lines with these words"},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line"},
            "column": {"type": "integer", "minimum": 1, "description": "Where in a long line"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines at most"},
        },
        "required": ["reference"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool has to say: a text, and pictures where the form of the call can hold them."""

    text: str
    media: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool: how it is described, and who answers. Without `run` it is only described."""

    role: str  # by which `names` renames it
    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], ToolAnswer] | None = None


class Owner(Protocol):
    """Whatever has tools for the model: a memory, a fitter, a session."""

    @property
    def tools(self) -> Toolset: ...


@dataclass(frozen=True, slots=True)
class Original:
    """What a reference names."""

    title: str
    text: str
    media: tuple[Mapping[str, Any], ...] = ()  # of its result, in our blocks


class OriginalSource(Protocol):
    """Where what left a conversation is found again: a list, or a transcript."""

    def find(self, wanted: str) -> Original | None: ...


class Toolset:
    """Tools of ours, to offer to a model beside one's own."""

    __slots__ = ("_offers",)

    def __init__(self, offers: Sequence[Offer] = ()) -> None:
        self._offers: dict[str, Offer] = {}
        for offer in offers:
            if offer.name in self._offers:
                raise InvalidInput(
                    "two tools have the same name",
                    where=offer.name,
                    do="Give one of them another with names=",
                )
            self._offers[offer.name] = offer

    def anthropic(self) -> list[Any]:
        """For `tools=` of the Messages API."""
        return self._describe_tool("messages")

    def openai(self) -> list[Any]:
        """For `tools=` of chat completions."""
        return self._describe_tool("chat")

    def responses(self) -> list[Any]:
        """For `tools=` of responses."""
        return self._describe_tool("responses")

    def _describe_tool(self, form: Format) -> list[Any]:
        return [definition(o.name, o.description, o.schema, form) for o in self]

    @property
    def names(self) -> tuple[str, ...]:
        """What the tools are called, in the order they are offered."""
        return tuple(self._offers)

    def handle(self, call: object) -> Any:
        """The result of a call in the form it came in: a tool message (chat completions), a
        `tool_result` block (Messages), an output item (responses), or for a `ToolCall` of
        ours what `session.add` takes. None where the call is not for a tool of this set."""
        if isinstance(call, ToolCall):
            offer = self._offers.get(call.name)
            if offer is None:
                return None
            found, is_error = _answer_call(offer, call.raw)
            content = [{"type": "text", "text": found.text}, *found.media]
            return tool_result(call.id, content if found.media else found.text, is_error=is_error)
        form, ident, name, given = parse_call(call)
        offer = self._offers.get(name)
        if offer is None:
            return None
        found, is_error = _answer_call(offer, given)
        made = answer(ident, found.text, form, is_error=is_error)
        if found.media and form == "messages":
            made["content"] = [{"type": "text", "text": found.text}, *map(dict, found.media)]
        return made

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """The same tools under other names; `names` says which."""
        return Toolset([replace(o, name=names.get(o.role, o.name)) for o in self])

    @property
    def aio(self) -> AsyncToolset:
        """The same methods for tasks, each through a worker thread."""
        from reverie.concurrency import AsyncFacade

        face: Any = AsyncFacade(self)
        return face

    def __iter__(self) -> Iterator[Offer]:
        return iter(self._offers.values())

    def __add__(self, other: Toolset) -> Toolset:
        return Toolset([*self, *other])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self.names)})"


def _answer_call(offer: Offer, given: object) -> tuple[ToolAnswer, bool]:
    """The answer to what a model wrote, and whether it is an error."""
    if offer.run is None:
        raise InvalidInput(
            f"this toolset describes {offer.name} and knows no list to read from",
            do="Use the handle of what fit returned, or of a Fitter",
        )
    from reverie.toolbox.json_schema import problems  # due once a model calls
    from reverie.toolbox.toolbox import read

    try:
        text = given if isinstance(given, str) else dump(given or {})
        value = read(text)
        wrong = problems(value, offer.schema)
        if wrong:
            raise InvalidMessage(f"The input of {offer.name} is wrong: {'; '.join(wrong[:8])}")
        return offer.run(value), False
    except ReverieError as error:
        return ToolAnswer(str(error)), True


def tools(*owners: Owner, names: Mapping[str, str] | None = None) -> Toolset:
    """Tools for the model from memories, fitters and sessions, and `read_back` with them;
    `names` gives each the name the model shall know it by."""
    offers = [offer for owner in owners for offer in owner.tools]
    if not any(offer.role == READ_BACK for offer in offers):
        offers.insert(0, reading_back(None))
    found = Toolset(offers)
    unknown = set(names or ()) - {o.role for o in found}
    if unknown:
        raise InvalidInput("there is no such tool", where=", ".join(sorted(unknown)))
    return found.renamed(names or {})


def reading_back(
    originals: OriginalSource | None, name: str = READ_BACK, settings: Settings = DEFAULTS
) -> Offer:
    """The tool that reads back from a list, or its description alone."""

    def run(value: Mapping[str, Any]) -> ToolAnswer:
        wanted = str(value["reference"]).strip().strip("`[]()")
        found = originals.find(wanted) if originals is not None else None
        if found is None:
            raise InvalidMessage(
                "nothing left the conversation under this reference",
                where=wanted[:200],
                do="Use a reference such as r:abc123 as it stands in the conversation",
            )
        return _page(found, value, settings)

    return Offer(READ_BACK, name, DESCRIPTION, SCHEMA, run if originals is not None else None)


def _page(found: Original, value: Mapping[str, Any], settings: Settings) -> ToolAnswer:
    from io import BytesIO

    from reverie.toolbox.read_back import ReadRange, page  # due once a model calls

    wanted = ReadRange(
        str(value.get("query") or ""),
        int(value.get("offset") or 1),
        int(value.get("column") or 1),
        value.get("limit"),
        settings.collapse_reference * settings.text_bytes_per_token,
    )
    text = BytesIO(found.text.encode("utf-8", "replace"))
    shown = page(found.title, "", text, wanted)
    return ToolAnswer(shown, found.media if wanted.begins else ())


def takes(
    given: Callable[..., object], gives: str, names: str, *, required: str = ""
) -> Callable[[F], F]:
    """Give a function the signature by which `given` is called with these names.

    The arguments of `Session.open` and its like are said once, as the fields of a dataclass. Type
    checkers follow by `ParamSpec`; this lets `help` and `inspect` see the same.
    """

    def dress(function: F) -> F:
        import inspect

        known = inspect.signature(given).parameters
        shown: Any = function
        parameters = [known[name] for name in names.split()]
        parameters = [
            one.replace(default=one.empty) if one.name == required else one for one in parameters
        ]
        shown.__signature__ = inspect.Signature(parameters, return_annotation=gives)
        return function

    return dress


def check_arguments(given: Mapping[str, object], names: str) -> None:
    """Raise TypeError for an argument that is not among these names."""
    for name in given.keys() - set(names.split()):
        raise TypeError(f"open() got an unexpected keyword argument {name!r}")


# --- What a fitted list left out, found again in the list it was made from.
#
# A reference names a call (what was said with it, its input as it was written, its result whole)
# or a message. The text is the caller's own; nothing is stored or copied.


@dataclass(frozen=True, slots=True)
class ListOriginals:
    """The messages behind a fitted list."""

    adoption: AdoptedList
    plain: bool = False  # without the numbers that a tool puts before the lines of a file

    def find(self, wanted: str) -> Original | None:
        """All that a reference names: in a long list two calls may share one."""
        found = [*self._calls(wanted), *self._messages(wanted)] or [*self._rounds(wanted)]
        if not found:
            return None
        return Original(
            ", ".join(f.title for f in found),
            "\n\n".join(f.text for f in found),
            tuple(m for f in found for m in f.media),
        )

    def _calls(self, wanted: str) -> Iterator[Original]:
        for part in self.adoption.parts:
            for block in part.blocks if part.part == "assistant" else ():
                known = (reference(block.call), block.call, self.adoption.theirs.get(block.call))
                if block.type == "tool_use" and wanted and wanted in known:
                    yield self._call(part, block)

    def _call(self, part: AdoptedMessage, call: Block) -> Original:
        said = [_whole(b) for b in part.blocks if b.type != "tool_use"]
        asked = f"{call.get('name')} {members(call.raw)['input'][0]}"
        result = self._result(call.call)
        content = result.value.get("content") if result is not None else ""
        given, found = call.value.get("input"), text_of(content)
        found = strip_line_numbers(call.get("name"), given, found) if self.plain else found
        text = "\n\n".join([*[s for s in said if s], asked, found])
        return Original(f"{call.get('name')} {reference(call.call)}", text, media_of(content))

    def _result(self, call: str) -> Block | None:
        blocks = (b for part in self.adoption.parts for b in part.blocks)
        return next((b for b in blocks if b.type == "tool_result" and b.call == call), None)

    def _messages(self, wanted: str) -> Iterator[Original]:
        for part in self.adoption.parts:
            if part.part in ("user", "assistant") and reference(part.id) == wanted:
                said = [b for b in part.blocks if b.type not in MEDIA]
                text = "\n\n".join(filter(None, map(_whole, said)))
                yield Original(f"message {wanted}", text, media_of([b.value for b in part.blocks]))

    def _rounds(self, wanted: str) -> Iterator[Original]:
        """The messages from the one on that a part's reference names."""
        parts = [p for p in self.adoption.parts if p.part != "aside"]
        first = next((n for n, p in enumerate(parts) if part_reference(p.id) == wanted), len(parts))
        text = "\n\n".join([_message(part) for part in parts[first:]])
        if text:
            yield Original(f"part {wanted}", text)


def _message(part: AdoptedMessage) -> str:
    """A message in words, each block under what it is."""
    return round_text("assistant" if part.part == "assistant" else "user", part.blocks)


def _whole(block: Block) -> str:
    """A block in words; one that has none as it came."""
    return block.text or ("" if block.blank else block.raw)


# --- A caller's tools, and what they are for: told by `roles=`, else guessed from names and
# schemas.
#
# No role is needed for memory to work. They say which results can be had again, which tool reads
# files, and by which tool the model reads back what left the context.


Role: TypeAlias = Literal["read", "write", "edit", "shell", "search", "read_back", "remember"]
ROLES: tuple[Role, ...] = get_args(Role)
REPEATABLE = frozenset({"read", "write", "edit", "shell", "search"})
_KNOWN: Mapping[Role, str] = {
    "read": "read readfile cat openfile viewfile getfile",
    "write": "write writefile createfile savefile",
    "edit": "edit editfile multiedit strreplace applypatch",
    "shell": "bash shell sh runcommand runshell terminal",
    "search": "grep glob searchfiles findfiles listfiles ls",
    "read_back": "readback",
    "remember": "remember",
}
_NAMES: Mapping[str, Role] = {name: role for role in ROLES for name in _KNOWN[role].split()}
_PATHS = frozenset({"path", "file_path", "filepath", "filename"})
_CONTENTS = frozenset({"content", "contents", "text", "data"})


def roles_of(
    tools: Iterable[Mapping[str, Any]], given: Mapping[str, str] | None
) -> dict[str, Role]:
    """The role of each tool that has one, by its name."""
    offered = {tool_name(tool): tool for tool in tools}
    for name, role in (given or {}).items():
        if role not in ROLES:
            do = f"It is one of {', '.join(ROLES)}"
            raise InvalidInput("there is no such role", where=f"{name}: {role}", do=do)
        if name not in offered:
            do = "Give it among tools= as well"
            raise InvalidInput("a role is given to a tool that is not offered", where=name, do=do)
    found: dict[str, Role] = {}
    for name, tool in offered.items():
        role = _guess(name, tool)
        if role is not None:
            found[name] = role
    return {**found, **cast("Mapping[str, Role]", given or {})}


def _guess(name: str, tool: Mapping[str, Any]) -> Role | None:
    known = _NAMES.get(re.sub(r"[^a-z]", "", name.lower()))
    if known is not None:
        return known
    fields = _properties(tool)
    if not fields & _PATHS:
        return None
    if fields & _CONTENTS:
        return "write"
    return "read" if len(fields - _PATHS) <= 2 and "old_string" not in fields else None


def _properties(tool: Mapping[str, Any]) -> frozenset[str]:
    about: Any = tool.get("function") or tool
    schema: Any = about.get("input_schema") or about.get("parameters") or {}
    return frozenset(map(str, schema.get("properties") or ()))


# --- the tools themselves


def flat(tools: Sequence[object] | Toolset) -> list[object]:
    """Tools one by one; a `Toolset` stands for those in it."""
    if isinstance(tools, Toolset):
        return list(tools.anthropic())
    return [one for tool in tools for one in (flat(tool) if isinstance(tool, Toolset) else [tool])]


def describe_tool(tool: object) -> dict[str, Any]:
    """A tool as a session keeps it, whichever API it was described for."""
    value = value_of(tool)
    if value.get("type") != "function":
        return value
    about = cast("dict[str, Any]", value.get("function") or value)
    made: dict[str, Any] = {"name": about.get("name")}
    if about.get("description"):
        made["description"] = about["description"]
    made["input_schema"] = about.get("parameters") or {"type": "object", "properties": {}}
    return {**made, "strict": True} if about.get("strict") is True else made
