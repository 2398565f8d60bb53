"""What leaves by default: as much as the client may read back. Through the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reverie.apps.proxy import sealing
from reverie.testing import Provider
from tests.proxy.clients import BIG, SESSION, assistant, gave, use, user
from tests.proxy.proxied import KEY, READ, Through, standing

pytestmark = pytest.mark.spec("18.proxy")
BASH = {**READ, "name": "Bash"}
ROUNDS = 60


def talk(rounds: int) -> list[dict[str, Any]]:
    """Reads of many files, and one large result of a command at the end."""
    found = [user("Read these files one after another, please")]
    for n in range(rounds):
        text = f"result {n}\n" + f"line of file {n}\n" * 200
        found += [assistant(use(f"t{n}", "Bash", command=f"cat {n}")), user(gave(f"t{n}", text))]
    last = [assistant(use("big", "Bash", command="make")), user(gave("big", BIG))]
    return [*found, *last]


def sent(proxy: Through, upstream: Provider, client: str, **headers: str) -> tuple[bool, bool]:
    """Whether the large result was stored, and whether old rounds were sealed."""
    body = {"model": "claude-opus-5-5", "max_tokens": 9, "tools": [READ, BASH]}
    url = f"http://127.0.0.1:{proxy.address.port}/{proxy.address.token}/{client}anthropic"
    data = json.dumps({**body, "messages": talk(ROUNDS)})
    named = {"x-api-key": KEY, **headers}
    found = httpx2.post(f"{url}/v1/messages", content=data, headers=named, timeout=30)
    assert found.status_code == 200, found.text
    text = json.dumps(upstream.requests[-1].messages)
    return BIG[:9_000] not in text.replace("\\n", "\n"), "line of file 1\\n" * 100 not in text


CASES = {
    "installed": ("claude-code/", {SESSION: "s"}, (True, True)),
    "by URL alone": ("", {SESSION: "s"}, (False, False)),
    "opencode by URL": ("", {"x-session-id": "s"}, (False, False)),
    "codex by URL": ("", {"originator": "codex_exec"}, (True, True)),
    "unknown": ("", {}, (True, False)),
}


@pytest.mark.parametrize("case", list(CASES))
def test_what_leaves_is_what_the_client_may_read(home: Path, case: str) -> None:
    client, headers, wanted = CASES[case]
    with standing(home, seal=sealing("collapse"), by_client=True) as (upstream, proxy):
        assert sent(proxy, upstream, client, **headers) == wanted
        assert sent(proxy, upstream, client, **headers) == wanted
        status = httpx2.get(f"{proxy.address.base}/status").json()
    assert status["clients"] == ({"claude-code": {"main": 2}} if client else {})
    assert status["breaks"] == 0
    said = [one.text for one in proxy.notices if "reverie install" in one.text]
    assert len(said) == (wanted == (False, False)), "it is said once"


def test_a_policy_that_was_named_holds_for_every_client(home: Path) -> None:
    with standing(home, seal=sealing("collapse")) as (upstream, proxy):
        assert sent(proxy, upstream, "", **{SESSION: "s"}) == (True, True)


def test_a_path_with_an_unknown_client_is_refused(home: Path) -> None:
    with standing(home) as (_, proxy):
        url = f"{proxy.address.base}/somebody/anthropic/v1/messages"
        assert httpx2.post(url, content=b"{}").status_code == 404
