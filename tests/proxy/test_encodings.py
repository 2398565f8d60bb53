"""Packed request bodies are read within limits, and go up as what they say. Real server."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reverie.apps.proxy import unpack
from tests.proxy.clients import BIG, assistant, gave, use, user
from tests.proxy.proxied import KEY, READ, proxied
from tests.proxy.sockets import raw, sends

pytestmark = pytest.mark.spec("18.proxy")
zstd: Any = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
brotli: Any = import_module("brotli")
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "br": brotli.compress,
}
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
TALK = [user("Go on"), assistant(use("t1", "Bash", command="make")), user(gave("t1", BIG))]
BODY = {"model": "claude-opus-5-5", "max_tokens": 9, "tools": [READ], "messages": TALK}


def went_up(home: Path, *given: tuple[bytes, str, str]) -> list[tuple[str, bytes]]:
    """How bodies are packed that go up, and their bytes; each is given with its path."""
    with raw(sends(OK)) as upstream, proxied(home, upstream.url) as proxy:
        for data, coding, path in given:
            named = {"x-api-key": KEY, "content-encoding": coding}
            url = f"{proxy.address.anthropic}/v1/{path}"
            assert httpx2.post(url, content=data, headers=named, timeout=30).status_code == 200
    out: list[tuple[str, bytes]] = []
    for one in upstream.requests:
        head, _, body = one.partition(b"\r\n\r\n")
        lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        assert int(lines[b"content-length"]) == len(body)
        out.append((lines.get(b"content-encoding", b"").decode(), body))
    return out


@pytest.mark.parametrize("coding", list(PACK))
def test_a_packed_body_is_read_and_goes_up_as_what_it_says(home: Path, coding: str) -> None:
    sent = json.dumps(BODY).encode()
    ((found, body),) = went_up(home, (PACK[coding](sent), coding, "messages"))
    values: list[Any] = [json.loads(one) for one in (body, sent)]
    stored, whole = (one["messages"][2]["content"][0].pop("content") for one in values)
    assert (found, whole == BIG, len(stored) < len(BIG) / 2) == ("", True, True)
    assert values[0] == values[1]


@pytest.mark.parametrize("coding", list(PACK))
def test_one_that_stays_as_it_is_goes_up_as_it_came(home: Path, coding: str) -> None:
    plain = json.dumps({**BODY, "messages": TALK[:1]}).encode()
    packed = PACK[coding](plain)
    broken = (packed[:-4], packed + b"tail", b"nonsense", PACK[coding](b"no JSON"))
    given = [(data, coding, "messages") for data in (packed, *broken)]
    given += [(packed, coding, "other"), (packed, f"{coding}, {coding}", "messages")]
    assert went_up(home, *given) == [(named, data) for data, named, _ in given]


@pytest.mark.parametrize("coding", list(PACK))
def test_a_body_is_unpacked_to_its_limit_alone(coding: str) -> None:
    packed = PACK[coding](b"0" * 30_000_000)
    assert len(packed) < 100_000
    assert unpack(packed, coding, 1_000_000) is None
    assert unpack(PACK[coding](b"0" * 1_000), coding, 1_000) == b"0" * 1_000
