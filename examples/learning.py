"""Keep what is worth keeping of a conversation; by fixed rules, or by `model=`."""

import reverie
from reverie import testing

messages = [
    {"role": "user", "content": "Always run the linter before you commit. Otherwise CI fails."},
    {"role": "assistant", "content": "I will."},
    {"role": "user", "content": "Bugs are tracked in the Linear project ORDERS."},
    {"role": "assistant", "content": "Thanks."},
]

with testing.home():
    memory = reverie.Memory("shop")
    for saved in memory.learn(messages):
        print(saved.outcome, saved.file, "-", saved.text.splitlines()[0])

    print("again:", memory.learn(messages))  # the same conversation teaches nothing new
