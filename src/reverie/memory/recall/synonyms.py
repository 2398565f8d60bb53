"""Words that often stand for one another: short forms of the trade, and everyday synonyms.

Groups, not a hierarchy: a query's term also looks for the others of its group, at a part of its
weight. English; written by hand and meant to stay small.
"""

from __future__ import annotations

from reverie.text.tokens import stem

_GROUPS = """
delete remove erase drop purge cleanup
create add new introduce
change modify edit update alter
fix repair resolve mend patch
bug defect issue problem
error failure exception crash fail
folder directory dir
repo repository
config configuration settings setting configure preferences option
auth authentication authorization login signin credentials
db database
env environment
doc docs documentation
dependency package library module
deploy release ship rollout publish
test spec
function method routine
argument parameter arg param
async asynchronous
sync synchronize synchronization
variable var
command cmd
message msg
directory path
speed performance fast slow latency
limit cap maximum max
minimum min
start begin launch initialize init
stop halt terminate kill abort cancel
check verify validate validation
prevent avoid block forbid
show display render print
hide conceal mask redact
find search lookup locate
choose select pick
save store persist write
load read fetch retrieve
send submit post
receive get
merge combine join
split divide separate
copy duplicate clone
rename move
secret password token key credential
permission access rights
user account
schedule cron timetable
backup snapshot
restore recover recovery
retry attempt
timeout deadline
queue backlog
cache memoize
style format formatting lint
indent indentation tabs spaces
language locale
image picture photo
movie film
job work career occupation profession employment
hobby pastime interest
buy purchase shop
trip travel journey vacation holiday visit
town city
country nation
house home apartment flat
car vehicle
doctor physician medical
sick ill disease illness
food meal dish dinner lunch breakfast eat
cook bake recipe
game gaming play
sport exercise workout fitness gym
win victory award prize
competition contest tournament championship
happy glad joy
sad unhappy upset
afraid scared fear
stress anxiety relax destress
book novel read
song music concert band
paint painting art drawing
dog puppy
cat kitten
pet animal
child kid son daughter
parent mother father mom dad
wife husband spouse partner married marriage wedding
brother sister sibling
friend buddy pal
school class course education study college university
teacher instructor mentor coach
money finance cost price budget
boss manager supervisor
company business firm startup store
meeting appointment
party celebration celebrate
gift present
birthday age old
garden plant flower
beach ocean sea
mountain hike hiking
event activity
plan goal intention
feel feeling emotion
help support assist
big large huge
small little tiny
quick fast rapid
favorite favourite prefer preference
"""


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in _GROUPS.strip().splitlines():
        group = dict.fromkeys(map(stem, line.split()))
        for word in group:
            table.setdefault(word, {}).update((other, None) for other in group if other != word)
    return {word: tuple(others) for word, others in table.items()}


SYNONYMS = _table()
