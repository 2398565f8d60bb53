"""Your own loop over the Messages API: client and tools are yours, a session says what to send."""

import subprocess

import anthropic

import reverie
from reverie import testing

SHELL = {
    "name": "shell",
    "description": "Runs a command and gives its output.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}
ANSWERS = [testing.call("shell", command="seq 1 20000"), "It counts to 20000."]


def shell(command: str) -> str:
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


with testing.home(), testing.provider(ANSWERS) as provider:
    client = anthropic.Anthropic(base_url=provider.anthropic_url, api_key="none")
    opening = reverie.Session.open(
        "shop", model="claude-opus-5-5", client=client, memory=True, tools=[SHELL]
    )
    with reverie.blocking(opening) as session:
        session.add("What does `seq 1 20000` print?")
        while (reply := session.ask()).tool_calls:
            session.add(*[call.result(shell(**call.arguments)) for call in reply.tool_calls])
        print(reply.text)
        print(f"cache held: {provider.requests[1].extends(provider.requests[0])}")
        print(f"the output has 108,894 bytes, the request {provider.requests[1].tokens:,} tokens")
    client.close()
