"""Keep, find, correct, take back: long-term memory without a key."""

import reverie
from reverie import testing

with testing.home():  # leave this out to keep what you add
    memory = reverie.Memory("shop")
    saved = memory.add("Integration tests hit a real database, because a mocked one hid a bug")
    memory.add("Parcels go out on Mondays, since the carrier asks for it")

    for found in memory.search("what do the integration tests hit?", limit=1):
        print(f"found:   {found.text} ({found.age}, {found.why})")

    memory.update(saved.file, "Integration tests hit a real Postgres, because a mock hid a bug")
    print(f"changed: {memory.get(saved.file).text}")

    memory.undo()
    print(f"undone:  {memory.get(saved.file).text}")

    print(memory.context("integration tests"))  # a text for a prompt
