"""Words that often stand for one another: short forms of the trade, and everyday synonyms.

Groups, not a hierarchy: a query's term also looks for the others of its group, at a part of its
weight. English, written by hand, and only those that changed a figure recall is measured by.
"""

from __future__ import annotations

from reverie.text.stems import stem

_GROUPS = """
delete remove erase drop purge cleanup
fix repair resolve mend patch
bug defect issue problem
folder directory dir
doc docs documentation
test spec
command cmd
limit cap maximum max
prevent avoid block forbid
stop halt terminate kill abort cancel
env environment
split divide separate
rename move
create add new introduce
change modify edit update alter
error failure exception crash fail
repo repository
config configuration settings setting configure preferences option
dependency package library module
deploy release ship rollout publish
function method routine
argument parameter arg param
async asynchronous
speed performance fast slow latency
start begin launch initialize init
check verify validate validation
show display render print
find search lookup locate
choose select pick
save store persist write
load read fetch retrieve
send submit post
receive get
merge combine join
style format formatting lint
image picture photo
job work career occupation profession employment
trip travel journey vacation holiday visit
house home apartment flat
game gaming play
sport exercise workout fitness gym
stress anxiety relax destress
book novel read
song music concert band
paint painting art drawing
dog puppy
pet animal
child kid son daughter
wife husband spouse partner married marriage wedding
company business firm startup store
beach ocean sea
event activity
plan goal intention
help support assist
big large huge
"""


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in _GROUPS.strip().splitlines():
        group = dict.fromkeys(map(stem, line.split()))
        for word in group:
            table.setdefault(word, {}).update((other, None) for other in group if other != word)
    return {word: tuple(others) for word, others in table.items()}


SYNONYMS = _table()
