"""Your own loop over chat completions, async."""

import asyncio

import openai

import reverie
from reverie import testing

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


async def weather(city: str) -> str:
    return f"{city}: rain, 12 degrees"


async def main(url: str) -> None:
    client = openai.AsyncOpenAI(base_url=url, api_key="none")
    async with reverie.Session.open(
        "shop", model="gpt-5", client=client, memory=True, tools=[WEATHER]
    ) as s:
        await s.add("Do I need an umbrella in Oslo?")
        while True:
            request = await s.prepare()
            reply = await s.observe(await client.chat.completions.create(**request.openai()))
            if not reply.tool_calls:
                break
            await s.add(
                *[call.result(await weather(**call.arguments)) for call in reply.tool_calls]
            )
        print(reply.text)
    await client.close()


with testing.home(), testing.provider([testing.call("weather", city="Oslo"), "Yes."]) as provider:
    asyncio.run(main(provider.openai_url))
