"""Five sessions of one Claude Code user with a login and no key, and what the sixth one knows.

The sessions hold ten facts and corrections, five of them said in passing. The provider on loopback
answers the conversation by a script, and each extraction with what a reader of that request alone
wrote down for the cheapest model (`fixtures/ten_facts.json`).
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from reverie.providers.cli_programs import MARK
from reverie.providers.costs import dollars
from reverie.simulator import Engine, LoggedRequest, call, serving
from reverie.transcript import Block, text_block
from reverie.transcript.records import Usage
from tests.agent_model.test_real_learning import VERSIONS, RealPlace, placed
from tests.processes import running

pytestmark = [pytest.mark.spec("B23"), pytest.mark.integration, pytest.mark.needs("git")]
GIVEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "ten_facts.json").read_text()
)
TURNS: dict[str, dict[str, Any]] = {
    turn["says"]: turn for session in GIVEN["sessions"] for turn in session
}
MODEL, CHEAPEST = "claude-sonnet-4-5", "claude-haiku-4-5"
"""The alias `haiku` names a newer model, which is not in the table."""
NOTE = re.compile(r"<reverie-note [^>]*>\n(.*?)</reverie-note", re.DOTALL)
LOGIN = {
    "accessToken": "sk-ant-oat01-fake-0000",
    "refreshToken": "sk-ant-ort01-fake-0000",
    "expiresAt": 4_102_444_800_000,
    "scopes": ["user:inference", "user:profile"],
    "subscriptionType": "max",
}
FILES = {
    "invoices/rounding.py": "def total(amount):\n    return amount.quantize(CENT)\n",
    "webhooks/stripe.py": "def handle(event, tries=3):\n    return event\n",
    "core/backoff.py": "def retried(work, times=3):\n    return work\n",
    "jobs/export.py": "def export(customers):\n    return [bookings(one) for one in customers]\n",
    "migrations/0001_start.py": "def up():\n    pass\n",
    "scripts/copy_to_staging.py": "def main():\n    pass\n",
    "CHANGES.md": "# 3.2\n\n- Swiss rounding\n- Retry\n- The nigthly export\n",
    "Makefile": "unit:\n\t@echo 12 passed\n",
}

MEMORIES = {
    found[1]: block
    for answers in GIVEN["extractions"].values()
    for block in re.findall(r"<memory .*?</memory>", answers[0], re.DOTALL)
    if (found := re.search(r'^from: "(.*)"$', block, re.MULTILINE))
}
"""What was answered, by the sentence that it rests on."""


class Provider:
    """The provider on loopback: a script for the conversation, recorded answers behind it."""

    def __init__(self, repo: Path) -> None:
        self.repo, self.engine = repo, Engine(answerer=self.answer)
        self.left = dict(MEMORIES)

    def answer(self, body: Any) -> Any:
        prompt = json.dumps(body["messages"], ensure_ascii=False)
        return self.extraction(prompt) if MARK in prompt else self.reply(body)

    def extraction(self, prompt: str) -> str:
        """The recorded memories that rest on words in the request, each once: how turns are joined
        to requests depends on time."""
        said = [one for one in self.left if json.dumps(one, ensure_ascii=False)[1:-1] in prompt]
        return "\n\n".join(self.left.pop(one) for one in said) or "Nothing"

    def reply(self, body: Any) -> str | list[Block]:
        """The next of a turn's calls, or its last words."""
        blocks = [block for message in body["messages"] for block in content(message)]
        at = [n for n, block in enumerate(blocks) if block.get("text", "").strip() in TURNS]
        if not at:
            return "All is well."
        turn = TURNS[blocks[at[-1]]["text"].strip()]
        done = sum(block["type"] == "tool_use" for block in blocks[at[-1] :])
        if done == len(turn["calls"]):
            return turn["answer"]
        name, given = turn["calls"][done]
        filled = json.loads(json.dumps(given).replace("{repo}", str(self.repo)))
        return [text_block("I will see to it."), call(name, filled)]

    @property
    def asked(self) -> list[LoggedRequest]:
        return [one for one in self.engine.log if one.status == 200 and "/messages" in one.path]

    @property
    def background(self) -> list[LoggedRequest]:
        return [one for one in self.asked if MARK in one.body]

    @property
    def sessions(self) -> list[LoggedRequest]:
        return [one for one in self.asked if MARK not in one.body]


def content(message: Any) -> list[dict[str, Any]]:
    found = message["content"]
    return [{"type": "text", "text": found}] if isinstance(found, str) else found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Provider, RealPlace]]:
    made = Provider(tmp_path / "repo")
    with serving(made.engine) as url:
        place = placed(tmp_path, VERSIONS[0], url, REVERIE_CLI_EVERY_TURNS="3")
        del place.environ["ANTHROPIC_API_KEY"]
        login = place.user / ".claude" / ".credentials.json"
        login.write_text(json.dumps({"claudeAiOauth": LOGIN}))
        for name, text in FILES.items():
            path = place.repo / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        yield made, place


def session(place: RealPlace, *said: str) -> None:
    """One session, a turn after the other, each with time for the worker."""
    line = [place.program, "-p", "--model", MODEL, "--dangerously-skip-permissions", "--verbose"]
    line += ["--input-format", "stream-json", "--output-format", "stream-json"]
    with running(line, cwd=place.repo, env=place.environ, stdin=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for number, text in enumerate(said, 1):
            message = {"role": "user", "content": [{"type": "text", "text": text}]}
            program.stdin.write(json.dumps({"type": "user", "message": message}) + "\n")
            program.stdin.flush()
            while json.loads(program.stdout.readline())["type"] != "result":
                pass
            if number % 3 == 0:
                learned(place)
        program.stdin.close()
        program.wait(60)
    place.rest()


def learned(place: RealPlace) -> None:
    """Wait until nothing is due."""
    until = time.monotonic() + 30
    while place.due:
        assert time.monotonic() < until, place.due
        time.sleep(0.05)


def cost(requests: list[LoggedRequest], model: str) -> float:
    """What requests cost by list price, four bytes a token, by what the cache had of them."""
    total = 0.0
    for one in requests:
        parts = one.charge
        long, short = parts.written_1h, parts.written_5m
        share = len(one.body) / 4 / (parts.plain + parts.read + short + long)
        plain, read, written, part = (
            round(share * count) for count in (parts.plain, parts.read, short + long, long)
        )
        price = dollars(model, Usage(plain, read, written, one.output, part))
        assert price is not None
        total += price
    return total


def said_by_memory(body: str) -> list[str]:
    """The pieces that the hooks added to a request: lines of the index, and whole memories."""
    texts = [block["text"] for one in json.loads(body)["messages"] for block in content(one)]
    added = [text for text in texts if "hook additional context: Memory:" in text]
    notes = [one for text in added for one in NOTE.findall(text)]
    index = [line for text in added for line in text.splitlines() if line.startswith("- [")]
    return index + notes


def holds(fact: list[str], *pieces: str) -> bool:
    return any(all(word in piece for word in fact) for piece in pieces)


def test_ten_facts_of_five_sessions_come_back_in_the_sixth(
    served: tuple[Provider, RealPlace],
) -> None:
    provider, place = served
    for turns in GIVEN["sessions"]:
        session(place, *(turn["says"] for turn in turns))
    own, behind = provider.sessions, provider.background
    assert provider.left == {}
    assert all("oauth" in one.headers["anthropic-beta"] for one in (*own, *behind))
    assert median(len(one.body) / 4 for one in behind) <= 4_000
    assert cost(behind, CHEAPEST) <= 0.1 * cost(own, MODEL)

    facts = [one["fact"] for one in GIVEN["questions"]]
    kept = [one.text for one in place.memory.list()]
    assert sum(holds(fact, *kept) for fact in facts) >= 8
    assert sum(not any(holds(fact, one) for fact in facts) for one in kept) <= 1

    place.environ["REVERIE_BACKGROUND_MODEL"] = "off"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(place.session, [one["asks"] for one in GIVEN["questions"]]))
    asked = provider.sessions[len(own) :]
    came = [
        any(holds(one["fact"], *said_by_memory(r.body)) for r in asked if one["asks"] in r.body)
        for one in GIVEN["questions"]
    ]
    assert sum(came) >= 8
