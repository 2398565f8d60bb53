"""Memory and context in a loop one already has: `reverie.wrap`.

    client = reverie.wrap(anthropic.Anthropic(), memory=True)

The clients of Anthropic and OpenAI, blocking and async; everything of them stays as it is. Calls
of Messages, chat completions and responses are fitted, also streamed ones; all others pass, and so
does a request whose history lies with the provider. The model reads back what left the list by
itself, in rounds that the caller does not see. If anything here fails, the caller's own request
goes out; `extra_headers={"X-Reverie": "off"}` lets one pass as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.errors import InvalidInput

if TYPE_CHECKING:
    from reverie.api.fitting import Policy
    from reverie.api.memory import Memory
    from reverie.world import Notice

C = TypeVar("C")
POLICIES = ("collapse", "classic", "off")


def wrap(
    client: C,
    *,
    memory: bool | Memory | None = None,
    policy: Policy = "collapse",
    learn: bool = True,
    tools: bool = True,
    on_notice: Callable[[Notice], object] | None = None,
) -> C:
    """An SDK client with context and memory. The one handed in stays as it is, and does the
    sending; wrap it once for each user.

    - `client`: of Anthropic's or OpenAI's SDK, blocking or async.
    - `memory`: None writes nothing anywhere; True is the memory of this folder; or a `Memory`.
    - `policy`: `collapse`, `classic` or `off`.
    - `learn`: whether turns are learned from, by fixed rules that cost nothing.
    - `tools`: whether the model gets `read_back`.
    - `on_notice`: is handed each notice; without it they are logged under `reverie`.
    """
    if policy not in POLICIES:
        do = "It is collapse, classic or off"
        raise InvalidInput("there is no such policy", where=str(policy)[:80], do=do)
    inner = _http_client(client)
    from reverie.api.wrapping import Wrapping, WrapRules
    from reverie.world import notice_listener

    say = notice_listener(on_notice)
    wrapping = Wrapping(WrapRules(_memory(memory, on_notice), policy, learn, tools, say))
    made: Any = client
    return made.copy(http_client=_wrapped(inner, wrapping))


def _memory(wanted: bool | Memory | None, say: Callable[[Notice], object] | None) -> Memory | None:
    if wanted is None or wanted is False:
        return None
    if wanted is True:
        from reverie.api.memory import Memory

        return Memory(on_notice=say)
    return wanted


def _http_client(client: object) -> Any:
    """What a client sends with."""
    inner = getattr(client, "_client", None)
    speaks = hasattr(client, "messages") or hasattr(client, "chat") or hasattr(client, "responses")
    if not speaks or not callable(getattr(client, "copy", None)) or not hasattr(inner, "send"):
        raise InvalidInput(
            "this is no client that can be wrapped",
            where=type(client).__name__,
            do="Hand in Anthropic(), AsyncAnthropic(), OpenAI() or AsyncOpenAI()",
        )
    return inner


def _wrapped(inner: Any, wrapping: Any) -> Any:
    """The same, with ours in between."""
    import httpx2

    from reverie.api.transports import AsyncWrappedTransport, WrappedTransport

    if isinstance(inner, httpx2.AsyncClient):
        made: Any = httpx2.AsyncClient(
            transport=AsyncWrappedTransport(inner, wrapping), timeout=inner.timeout
        )
    else:
        made = httpx2.Client(transport=WrappedTransport(inner, wrapping), timeout=inner.timeout)
    made.__report__ = wrapping.report
    return made
