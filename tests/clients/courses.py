"""Sessions in the shapes of recorded ones: r1 to r4, and every event that befalls a history.

Each course drives one or more `Shape`s; what the model does stands in its plans. The results are
of every size from 5 to 25 KB, none more often than another.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import reverie
from reverie.simulator import cut
from tests.clients.line import Line
from tests.clients.shape import OPUS, SONNET, Shape, gen, sub

SIZES = tuple(1_000 * n for n in (13, 7, 19, 9, 25, 11, 5, 21, 15, 23, 17))


TOPICS = (
    "How do we deploy the parser service to staging?",
    "Which database do the integration tests use?",
    "What is the rule for naming branches?",
    "Who has to approve a release of the gateway?",
)
FACTS = (
    "The parser service is deployed to staging with `make ship`, never by hand.",
    "Integration tests use the real database on port 5544, since mocks hid a broken migration.",
    "Branches are named after the ticket, in lower case, with hyphens.",
    "A release of the gateway is approved by two people of the platform team.",
)


def remembered(cwd: Path, home: Path) -> None:
    """Something is known of the project before a session begins."""
    with reverie.Memory(cwd, home=home) as memory:
        for fact in FACTS:
            memory.add(fact)


def shape(line: Line, session: str, cwd: Path, *more: Any, **others: Any) -> Shape:
    """A client whose prompts ask about what is known, while more becomes known in between."""
    found = Shape(line.url, session, cwd, *more, **others)
    home = line.proxy.home if line.proxy else None
    if home is None:
        return found

    def between(count: int) -> str:
        with reverie.Memory(cwd, home=home) as memory:
            lesson = f"Lesson {session[-2:]}-{count}"
            memory.add(f"{lesson}: to deploy parser {count}, give the flag --f{count}.")
        return TOPICS[count % len(TOPICS)]

    return dataclasses.replace(found, between=between)


def rounds(name: str, count: int = 11, parallel: int = 2) -> list[list[Any]]:
    """Rounds of calls, every third with several at once."""
    found: list[list[Any]] = []
    for n in range(count):
        size = SIZES[n % len(SIZES)]
        several = parallel if n % 3 == 2 else 1
        found.append([gen(f"{name}-{n}-{k}", size) for k in range(several)])
    return found


PLANS: dict[str, list[Any]] = {
    "main": [*rounds("main", 5), [sub("sub"), sub("sub"), sub("sub")], *rounds("late", 5)],
    "more": rounds("more", 6),
    "third": rounds("third", 5),
    "sub": rounds("sub", 2),
    "short": rounds("short", 2),
    "other": rounds("other", 3),
    "wide": [[gen(f"wide-{n}", 7_000) for n in range(12)], [gen("after-wide", 15_000)]],
    "tiny": [[gen("tiny", 900)], [gen("tiny-2", 1_200)]],
}


def r1(line: Line, cwd: Path) -> None:
    """Eleven rounds, parallel calls, three sub-agents, gone on with twice, two compactions."""
    one = shape(line, line.session(1), cwd, OPUS)
    one.prompt("[[main]] fix the parser")
    one.compact()
    one.prompt("[[more]] and now the tests")
    one.compact()
    one.prompt("[[third]] go on with the docs")


def r2(line: Line, cwd: Path) -> None:
    """The same on another model, with a fork, an interrupt, a cut stream, twins, an upgrade."""
    one = shape(line, line.session(2), cwd, SONNET)
    one.prompt("[[main]] fix the parser")
    one.prompt("[[more]] and now the tests", most=4)
    one.interrupt()
    one.prompt("[[third]] no, rather this")
    two = one.fork(line.session(15))
    two.prompt("[[short]] in the fork")
    one.prompt("[[other]] in the old one")
    twin = shape(line, line.session(14), cwd, SONNET)
    twin.prompt("[[main]] fix the parser", most=4)
    one.compact()
    one.version = "2.1.326"
    one.messages[0]["content"][0] = one.reminders[0]
    one.prompt("[[short]] after the upgrade")


def r3(line: Line, cwd: Path) -> None:
    """Two versions of the client, an interrupt, three long prompts."""
    one = shape(line, line.session(3), cwd, OPUS, "2.1.197")
    one.prompt("[[main]] fix the parser")
    one.version = "2.1.325"
    one.messages[0]["content"][0] = one.reminders[0]
    one.prompt("[[more]] and now the tests", most=5)
    one.interrupt()
    one.prompt("[[third]] go on")
    one.prompt("[[other]] the rest")


RECORDED: dict[str, Callable[[Line, Path], None]] = {"r1": r1, "r2": r2, "r3": r3}


# --- one event each


def _begun(line: Line, cwd: Path, plan: str = "other", **more: Any) -> Shape:
    one = shape(line, line.session(1), cwd, **more)
    one.prompt(f"[[{plan}]] begin the work")
    return one


def interrupt(line: Line, cwd: Path) -> None:
    one = shape(line, line.session(1), cwd)
    one.prompt("[[more]] begin the work", most=3)
    one.interrupt()
    one.prompt("[[other]] rather this")
    one.prompt("[[short]] and then that")


def interrupt_with_a_made_up_turn(line: Line, cwd: Path) -> None:
    one = shape(line, line.session(1), cwd)
    one.prompt("[[more]] begin the work", most=3)
    one.interrupt()
    made_up = {"type": "text", "text": "No response requested."}
    one.messages.append({"role": "assistant", "content": [made_up]})
    one.prompt("[[other]] rather this")


def rewind(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd)
    kept = len(one.messages)
    one.prompt("[[more]] one way")
    one.rewind(kept)
    one.prompt("[[third]] another way")
    one.rewind(3)
    one.prompt("[[short]] from the beginning")


def fork(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd)
    two = one.fork(line.session(2))
    two.prompt("[[more]] in the fork")
    one.prompt("[[third]] in the old one")
    two.prompt("[[short]] in the fork again")
    one.prompt("[[short]] in the old one again")


def clear(line: Line, cwd: Path) -> None:
    _begun(line, cwd)
    two = shape(line, line.session(2), cwd)
    two.prompt("<command-name>/clear</command-name>\n[[other]] begin the work")
    two.prompt("[[short]] go on")


def twins(line: Line, cwd: Path) -> None:
    shapes = [shape(line, line.session(n), cwd) for n in (1, 2)]
    for one in shapes:
        one.prompt("[[other]] the same words", most=2)
    for one in shapes:
        one.go_on()
    for one in shapes:
        one.prompt("[[other]] the same words")


def compaction(line: Line, cwd: Path) -> None:
    one = shape(line, line.session(1), cwd, OPUS)
    one.prompt("[[more]] begin the work", most=4)
    one.compact()
    one.go_on()
    one.prompt("[[other]] go on")
    one.compact()
    one.prompt("[[short]] and on")


def cut_stream(line: Line, cwd: Path) -> None:
    plan = {3: cut(400), 6: cut(0)}
    line.engine.faults = type(line.engine.faults)(lambda n, _: plan.get(n))
    one = _begun(line, cwd, "more")
    one.prompt("[[short]] go on")
    assert sum(entry.fault == "cut" for entry in line.engine.log) == 2


def sub_agents(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd, "main")
    one.prompt("[[main]] once more")


def version_change(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd)
    for version in ("2.1.197", "2.1.325"):
        one.version = version
        one.messages[0]["content"][0] = one.reminders[0]
        one.prompt(f"[[other]] with {version}")


def model_change(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd)
    for model in (OPUS, SONNET):
        one.model = model
        one.messages[0]["content"][0] = one.reminders[0]
        one.prompt(f"[[other]] with {model}")


def joined_late(line: Line, cwd: Path) -> None:
    """The first half of the session went past the proxy."""
    recorder, proxied = line.recorder, (line.recorder.upstream, line.recorder.openai)
    assert line.proxy is not None
    recorder.upstream, recorder.openai = line.proxy.upstream, ""
    one = _begun(line, cwd, "more")
    recorder.upstream, recorder.openai = proxied
    one.prompt("[[other]] go on")
    one.prompt("[[short]] and on")


def restart(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd)
    line.restart()
    one.prompt("[[more]] go on", most=3)
    line.restart()
    one.go_on()


def wide(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd, "wide")
    one.prompt("[[wide]] once more")


def tiny(line: Line, cwd: Path) -> None:
    one = _begun(line, cwd, "tiny")
    one.prompt("[[tiny]] once more")


def at_once(line: Line, cwd: Path) -> None:
    """Eight times the same request at the same time, and then the session goes on."""
    one = _begun(line, cwd)
    one.messages.append(
        {"role": "user", "content": [{"type": "text", "text": "[[more]] " + TOPICS[0]}]}
    )
    body = one.body()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: one.send(body), range(8)))
    sent = {json.dumps(entry.body["messages"]) for entry in line.upstream_side[-8:]}
    assert len(sent) == 1, "the same request went up in several forms"
    one.messages.append({"role": "assistant", "content": answers[0]})
    results = [one.result(block) for block in answers[0] if block["type"] == "tool_use"]
    one.messages.append({"role": "user", "content": results})
    one.go_on()


def two_projects(line: Line, cwd: Path) -> None:
    other = cwd.with_name("another-project")
    other.mkdir(exist_ok=True)
    shapes = [shape(line, line.session(n), place) for n, place in enumerate((cwd, other))]
    for one in shapes:
        one.prompt("[[other]] the same words", most=2)
    for one in shapes:
        one.go_on()


EVENTS: dict[str, Callable[[Line, Path], None]] = {
    one.__name__: one
    for one in (
        interrupt,
        interrupt_with_a_made_up_turn,
        rewind,
        fork,
        clear,
        twins,
        compaction,
        cut_stream,
        sub_agents,
        version_change,
        model_change,
        joined_late,
        restart,
        wide,
        tiny,
        two_projects,
        at_once,
    )
}
