"""Your own loop over responses, async; stopped in the middle and taken up again."""

import asyncio
from typing import Any

import openai

import reverie
from reverie import testing

LOOK_UP = {
    "type": "function",
    "name": "look_up",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}},
    "strict": False,
}


async def main(url: str) -> None:
    client = openai.AsyncOpenAI(base_url=url, api_key="none")
    given: dict[str, Any] = {"model": "gpt-5", "client": client, "memory": True, "tools": [LOOK_UP]}
    async with reverie.Session.open("shop", **given) as first:
        await first.add("Where is order 7741?")
        request = await first.prepare()
        await first.observe(await client.responses.create(**request.responses()))

    async with reverie.Session.open("shop", **given, resume=first.id) as second:
        await second.add(reverie.tool_result("call_1", "left on Monday"))
        request = await second.prepare()
        reply = await second.observe(await client.responses.create(**request.responses()))
        print(reply.text)
    await client.close()


ANSWERS = [testing.call("look_up", "call_1", order="7741"), "It left on Monday."]
with testing.home(), testing.provider(ANSWERS) as provider:
    asyncio.run(main(provider.openai_url))
    print(f"the cache held: {provider.requests[1].extends(provider.requests[0])}")
