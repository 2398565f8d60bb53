"""What keeps the lists up to date while the page is open, and tells open pages what changed.

One thread looks at sizes and times, reads what has changed, and rests four times as long as that
took, at least a second. It works beside requests, never inside one.
"""

from __future__ import annotations

import threading
import time

from reverie.apps.web.desk import Desk
from reverie.errors import ReverieError
from reverie.session.dream.branch import dreams, dreams_folder
from reverie.upkeep.tasks import next_dream

LEAST = 1.0
REST = 4.0


class Keeper:
    """The thread that looks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.has_looked = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reverie-keeper", daemon=True)
        self._dreams = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.look()
            except ReverieError as error:
                self._desk.said = [*self._desk.said, str(error)][-20:]
            self.has_looked.set()
            self._stop.wait(max(LEAST, REST * (time.monotonic() - began)))

    def look(self) -> None:
        """Once: sessions, memories, dreams; what changed is told."""
        desk = self._desk
        for name in self._sessions():
            desk.hub.tell(f"session-{name}")
        with desk.memory() as memories:
            if memories is None:
                return
            changed = desk.memories.refresh(memories)
            desk.due = next_dream(desk.place, memories)
            state = "".join(
                f"{one.id}{one.status}{one.phase}{one.tools}"
                for one in dreams(dreams_folder(memories))
            )
        if changed or not desk.base.fact("score"):
            with desk.memory() as memories:
                desk.memories.check(memories)
            desk.refresh_recall()
            desk.hub.tell("memories")
        if state != self._dreams:
            self._dreams = state
            desk.hub.tell("dream")

    def _sessions(self) -> list[str]:
        desk = self._desk

        def step(count: int, whole: int) -> None:
            desk.reading = (count, whole)
            if count % 10 == 0:
                desk.hub.tell("sessions")
            if self._stop.is_set():
                raise ReverieError("stopped")

        changed = desk.sessions.refresh(step)
        desk.reading = (0, 0)
        if changed:
            desk.hub.tell("sessions")
        return changed[:50]
