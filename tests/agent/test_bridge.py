"""Letters over a real NATS server: once and in order, whoever dies in between."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.agent import (
    AgentInbox,
    AgentMessage,
    LeaderMailboxes,
    NatsBridge,
    RemoteMail,
    delivered_numbers,
)
from reverie.errors import InvalidInput, NotAvailable
from reverie.simulator import call
from reverie.transcript import EMPTY, Entry, apply
from tests.loop.stage import until

from .stage import cast, environ_in, opened, results, texts

pytestmark = [pytest.mark.spec("10.bridge"), pytest.mark.integration]
SERVER = Path(sys.executable).parent / "nats-server"


class Server:
    """A server of its own port and folder, that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        line = [SERVER, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.folder]
        self.process = subprocess.Popen([*map(str, line)], stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    made = Server(tmp_path / "nats")
    yield made
    made.kill()


async def connected(server: Server, name: str) -> NatsBridge:
    with anyio.fail_after(30):
        while True:
            try:
                return await NatsBridge.connected(server.url, name)
            except NotAvailable:
                await anyio.lowlevel.checkpoint()


class Receiver:
    """A lead's mailbox, and a transcript that its letters are recorded in."""

    def __init__(self, folder: Path) -> None:
        self.mail = LeaderMailboxes(folder, lambda notice: pytest.fail(notice.text))
        self.view: Any = EMPTY
        self.texts: list[str] = []
        self.post = AgentInbox(lambda: self.view, [self.mail.own])

    def read(self) -> int:
        for message in self.post.letters():
            entry = Entry(f"e{len(self.view.entries)}", self.view.leaf, 0.0, message)
            self.view = apply(self.view, entry)
            self.texts.append(message.blocks[0].text.split("\n")[1])
        return len(self.texts)


async def test_letters_cross_once_and_in_order_whoever_is_killed(
    server: Server, tmp_path: Path
) -> None:
    receiver = Receiver(tmp_path / "session")
    crashes = 0

    def deliver(letter: AgentMessage) -> AgentMessage:
        nonlocal crashes
        done = receiver.mail.put(letter)
        if letter.number % 10 == 0 and crashes < letter.number // 10:
            crashes += 1
            raise OSError("killed between the mailbox and the acknowledgement")
        return done

    sending = await connected(server, "here")
    here = RemoteMail("aaaa", tmp_path, lambda letter: letter, sending)
    sent = 0
    for n in range(40):
        if n == 20:
            server.kill()
            server.start()
        with anyio.fail_after(60):
            while True:
                try:
                    await here.send(AgentMessage("lead", "bridge:there", f"news {n}"))
                    break
                except NotAvailable:
                    await anyio.lowlevel.checkpoint()
        sent += 1
        if n % 7 == 6:  # the other end listens now and then, and dies at every tenth letter
            bridge = await connected(server, "there")
            there = RemoteMail("bbbb", tmp_path / f"h{n}", deliver, bridge)
            said: list[str] = []
            async with there.listening(said.append):
                with anyio.move_on_after(2):
                    goal = sent
                    await until(lambda goal=goal, said=said: receiver.read() >= goal or bool(said))
            await bridge.aclose()
    bridge = await connected(server, "there")
    async with RemoteMail("bbbb", tmp_path / "last", receiver.mail.put, bridge).listening(
        pytest.fail
    ):
        await until(lambda: receiver.read() >= sent)
    await bridge.aclose()
    await sending.aclose()
    told = [text.removeprefix("[from aaaa] ") for text in receiver.texts]
    assert list(dict.fromkeys(told)) == [f"news {n}" for n in range(40)]
    assert len(told) - 40 <= 1  # one may be sent twice, where the server died before its answer
    assert crashes >= 1
    assert len(delivered_numbers(receiver.view.entries)) == 1
    receiver.mail.close()


async def test_two_sessions_write_to_each_other_over_the_bridge(
    server: Server, tmp_path: Path
) -> None:
    await (await connected(server, "x")).aclose()
    sends = call("SendMessage", {"to": "bridge:second", "message": "The build is green"})
    bad = call("SendMessage", {"to": "bridge:no.such*name", "message": "x"})
    first, model = cast([[sends, bad], "Sent."])
    second, other = cast(["I see."])
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    there = {**environ_in(tmp_path / "two"), "REVERIE_BRIDGE_URL": server.url}
    here = {**environ_in(tmp_path / "one"), "REVERIE_BRIDGE_URL": server.url}
    named = {**there, "REVERIE_BRIDGE_NAME": "second"}
    async with opened(tmp_path / "two", other, environ=named) as reader:
        async with opened(tmp_path / "one", model, environ=here) as writer:
            await writer.turn("Tell them")
            sender = writer.session.id
        await until(lambda: reader.crew.waiting == 1)
        await reader.turn("Any news?")
    told = results(first.requests("lead")[1])
    assert told[0] == "Handed over to the bridge for second"
    assert "names no end of a bridge" in told[1]
    said = texts(second.requests("lead")[0])
    assert '<agent-message from="bridge-' in said
    assert f"[from {sender.replace('-', '')[:12]}] The build is green" in said


async def test_a_bridge_that_is_not_there_is_said_and_all_goes_on(tmp_path: Path) -> None:
    played, model = cast(["Fine."])
    notices: list[Any] = []
    environ = {**environ_in(tmp_path), "REVERIE_BRIDGE_URL": "nats://someone:secret@127.0.0.1:9"}
    async with opened(tmp_path, model, notices, environ=environ) as lead:
        await lead.turn("Go")
    said = "\n".join(one.text for one in notices)
    assert "the bridge does not answer" in said
    assert "secret" not in said
    assert len(played.asked) == 1


async def test_what_is_too_long_is_not_handed_over(tmp_path: Path) -> None:
    here = RemoteMail("aaaa", tmp_path, lambda letter: letter)
    with pytest.raises(InvalidInput, match="at most"):
        await here.send(AgentMessage("lead", "bridge:x", "x" * 20_001))
