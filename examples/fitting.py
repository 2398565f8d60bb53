"""A list of messages that stays small: large results leave, and can be read back."""

import re
from typing import Any

import reverie

kit = reverie.tools()  # `read_back`, to offer to the model beside your own tools
messages: list[dict[str, Any]] = [{"role": "user", "content": "Why does the build fail?"}]

for number in range(12):  # what a model would do in twelve rounds
    function = {"name": "build", "arguments": '{"target": "all"}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    log = "".join(f"step {n}: compiled module_{number}_{n}.py\n" for n in range(1_000))
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": log})

sent = reverie.fit(messages, model="gpt-5", tools=kit.openai())
print(f"{len(messages)} messages: {sent.before:,} tokens, sent {sent.tokens:,}")

shown = str(sent[-1]["content"])
reference = re.findall(r"r:[0-9a-z]{6}", shown)[-1]
arguments = f'{{"reference": "{reference}"}}'
asked = {"id": "c1", "type": "function", "function": {"name": "read_back", "arguments": arguments}}
answer = sent.handle(asked)
print(f"the model may read back {reference}: {len(answer['content']):,} characters come")
