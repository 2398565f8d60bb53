"""The client that you have, with context and memory by one line."""

import anthropic

import reverie
from reverie import testing


def ask(client: anthropic.Anthropic, text: str) -> str:
    reply = client.messages.create(
        model="claude-opus-5-5", max_tokens=1024, messages=[{"role": "user", "content": text}]
    )
    return reverie.Reply.of(reply).text


with testing.home(), testing.provider(["Noted.", "From the read replica."]) as provider:
    client = anthropic.Anthropic(base_url=provider.anthropic_url, api_key="none")

    with reverie.wrap(client, memory=True) as wrapped:
        print(ask(wrapped, "Please remember: orders are exported from the read replica."))

    with reverie.wrap(client, memory=True) as wrapped:  # another day, another process
        print(ask(wrapped, "Where do I export orders from?"))
        print(reverie.report(wrapped))

    print("the model was told:", "read replica" in str(provider.requests[-1].messages))
    client.close()
