"""A layer of your own: screenshots leave the context after three more answers."""

from typing import Any

import reverie
from reverie import layers


async def hide_screenshots(view: layers.View, world: layers.World) -> list[layers.Record]:
    """A layer returns decisions and never edits a message."""
    old = [c for c in view.calls.values() if c.name == "screenshot" and c.age > 3]
    return [layers.clear(call.id) for call in old]


fitter = reverie.Fitter(
    model="gpt-5", layers=[*layers.COLLAPSE, hide_screenshots], tools=reverie.tools()
)
messages: list[dict[str, Any]] = [{"role": "user", "content": "Click through the shop"}]
for number in range(8):
    function = {"name": "screenshot", "arguments": "{}"}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append(
        {"role": "tool", "tool_call_id": call["id"], "content": f"pixels {number} " * 200}
    )
    fitter.fit(messages)

sent = fitter.fit(messages)
print([len(str(one["content"])) for one in sent if one["role"] == "tool"])
