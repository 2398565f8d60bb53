"""Tools for the model, in three wire formats, and the answers to their calls.

A `Toolset` is offered beside the caller's own tools: `.anthropic()`, `.openai()` and
`.responses()` describe it, `.handle(call)` answers a call in the form it came in, or
gives None where the call is somebody else's. What a model writes badly is answered with
an error result and never raises. Nothing here runs a command or opens a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from reverie.errors import InvalidInput, InvalidMessage, ReverieError
from reverie.light import dataclass
from reverie.settings import DEFAULTS, Settings
from reverie.transcript.blocks import dump
from reverie.wire.forms import answer, called, definition
from reverie.wire.reading import Format
from reverie.wire.reply import ToolCall, tool_result

if TYPE_CHECKING:
    from reverie.tools.async_toolset import AsyncToolset

F = TypeVar("F", bound=Callable[..., Any])
READ_BACK = "read_back"
DESCRIPTION = (
    "Reads back what left the conversation to keep it small, by the reference that stands in "
    "its place (such as r:abc123). With query, only the lines that hold that text. Long ones "
    "come in parts."
)
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "reference": {"type": "string", "description": "Such as r:abc123"},
            "query": {"type": "string", "description": "Only lines that hold this text"},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line"},
            "column": {"type": "integer", "minimum": 1, "description": "Where in a long line"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines at most"},
        },
        "required": ["reference"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
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
    run: Callable[[Mapping[str, Any]], Answer] | None = None


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


class Originals(Protocol):
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
        return self._described("messages")

    def openai(self) -> list[Any]:
        """For `tools=` of chat completions."""
        return self._described("chat")

    def responses(self) -> list[Any]:
        """For `tools=` of responses."""
        return self._described("responses")

    def _described(self, form: Format) -> list[Any]:
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
            found, is_error = _answered(offer, call.raw)
            return tool_result(call.id, found.text, is_error=is_error)
        form, ident, name, given = called(call)
        offer = self._offers.get(name)
        if offer is None:
            return None
        found, is_error = _answered(offer, given)
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
        from reverie.concurrency import Aio

        face: Any = Aio(self)
        return face

    def __iter__(self) -> Iterator[Offer]:
        return iter(self._offers.values())

    def __add__(self, other: Toolset) -> Toolset:
        return Toolset([*self, *other])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self.names)})"


def _answered(offer: Offer, given: object) -> tuple[Answer, bool]:
    """The answer to what a model wrote, and whether it is an error."""
    if offer.run is None:
        raise InvalidInput(
            f"this toolset describes {offer.name} and knows no list to read from",
            do="Use the handle of what fit returned, or of a Fitter",
        )
    from reverie.tools.box import problems, read  # due once a model calls

    try:
        text = given if isinstance(given, str) else dump(given or {})
        value = read(text)
        wrong = problems(value, offer.schema)
        if wrong:
            raise InvalidMessage(f"The input of {offer.name} is wrong: {'; '.join(wrong[:8])}")
        return offer.run(value), False
    except ReverieError as error:
        return Answer(str(error)), True


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
    originals: Originals | None, name: str = READ_BACK, settings: Settings = DEFAULTS
) -> Offer:
    """The tool that reads back from a list, or its description alone."""

    def run(value: Mapping[str, Any]) -> Answer:
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


def _page(found: Original, value: Mapping[str, Any], settings: Settings) -> Answer:
    from io import BytesIO

    from reverie.tools.readback import ReadRange, page  # due once a model calls

    wanted = ReadRange(
        str(value.get("query") or ""),
        int(value.get("offset") or 1),
        int(value.get("column") or 1),
        value.get("limit"),
        settings.collapse_reference * settings.text_bytes_per_token,
    )
    text = BytesIO(found.text.encode("utf-8", "replace"))
    shown = page(found.title, "", text, wanted).content
    return Answer(shown if isinstance(shown, str) else dump(shown), found.media)


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
