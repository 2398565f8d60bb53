"""The ready agent, its events, and a rule of yours that holds a call before it runs.

`embedded` is no language model: it does a few plain things, free and without a network. Any other
name (`claude-opus-5-5`, `gpt-5`) asks that model, with the key in your environment.
"""

import tempfile
from pathlib import Path

import reverie
from reverie import testing

with testing.home(), tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "notes.txt").write_text("The code word is heron.\n")
    reverie.Memory(folder).add("Never run npm here, use pnpm")

    with reverie.blocking(reverie.Agent.open(folder, model="embedded", mode="allow")) as agent:
        print(agent.run("read notes.txt").text)
        for event in agent.stream("run npm install"):
            if isinstance(event, reverie.Event) and event.kind == "result":
                print(event.text)
