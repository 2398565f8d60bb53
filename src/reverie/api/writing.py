"""Changing a memory: adding, updating, removing, taking back, deciding on what waits.

Writes go to exactly the address. Each is a version with its origin and is on the disk when it
returns. What is refused is refused in words about the text that was handed in: no error names a
file that its caller did not.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from reverie.api.pool import Ground, Opened, shared
from reverie.api.reading import looked, missing, must_be_type
from reverie.api.values import Saved, Undone
from reverie.errors import InvalidInput, NotFound, ScanFailed, SecretFound
from reverie.light import dataclass
from reverie.memory import secrets
from reverie.memory.format.entry import TopicFile, is_index
from reverie.memory.trust import Trust
from reverie.memory.versions import By, Origin
from reverie.store.lists import Forgotten
from reverie.store.memories import Remembered, Reverted
from reverie.store.plain import digest
from reverie.world import Say


@dataclass(frozen=True, slots=True)
class Writer:
    """One address, who writes there, and who hears notices."""

    ground: Ground
    agent: str
    say: Say
    trust: Trust = Trust.USER
    tool: str = "reverie.Memory"

    def origin(self, action: str, note: str = "") -> Origin:
        who = f"agent:{self.agent}" if self.agent else "user"
        return Origin(action, self.trust, agent=who, tool=self.tool, note=note)

    @contextmanager
    def opened(self) -> Generator[Opened]:
        """The memory, made where it is missing, with no other writer in it."""
        with shared().opened(self.ground, self.say) as one, one.memories.folder.locked():
            yield one

    @contextmanager
    def found(self, file: str) -> Generator[tuple[Opened, TopicFile]]:
        """A memory of this very address."""
        if not self.ground.is_there:
            raise missing(file)
        with self.opened() as one:
            try:
                topic = one.memories.find(file)
            except NotFound as error:
                raise error if error.code == "ambiguous" else missing(file) from None
            yield one, topic


@contextmanager
def _about_the_text() -> Generator[None]:
    """Refusals say what is wrong with the text, not in which file of ours it would have been."""
    try:
        yield
    except (SecretFound, ScanFailed, Forgotten) as error:
        raise type(error)(error.what, do=error.do, code=error.code) from None
    except NotFound:
        raise
    except InvalidInput as error:
        where = "" if error.where.endswith(".md") else error.where
        raise type(error)(error.what, where=where, do=error.do, code=error.code) from None


def _must_be_allowed(writer: Writer, text: str) -> None:
    """Refuse secrets and forgotten words by the lines of the text itself; the write looks again."""
    data = text.encode("utf-8", "replace")
    secrets.checked(data)
    with shared().opened(writer.ground, writer.say) as one:
        one.memories.forgotten.guard("", data)


def add(writer: Writer, text: str, type: str, name: str, description: str) -> Saved:  # noqa: A002
    """Keep a text as it stands."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        given = text.__class__.__name__
        raise InvalidInput("What is added is a text", where=given, do="Give one string")
    must_be_type(type)
    if not text.strip():
        raise InvalidInput("There is nothing to add", do="Give a text that is not blank")
    _must_be_allowed(writer, text)
    with writer.opened() as one, _about_the_text():
        done = one.memories.remember(
            text, writer.origin("save"), name=name, description=description, type=type
        )
        return saved(one, done)


def saved(one: Opened, done: Remembered) -> Saved:
    """What became of a text, in plain types."""
    if done.queued is not None:
        why = "; ".join(f"{found.rule}: {found.words}" for found in done.queued.evidence)
        return Saved("queued", done.key, done.queued.text, reason=why)
    text = one.memories.folder.read(done.key).body.strip()
    if done.saved is None:
        return Saved("unchanged", done.key, text, reason="it is there already")
    return Saved("saved", done.key, text, newest_change(one, done.key))


def newest_change(one: Opened, key: str) -> str:
    """What `undo` takes to take back the last change of a file."""
    steps = one.memories.history.log(key)
    return steps[-1].id if steps else ""


def update(writer: Writer, file: str, text: str) -> Saved:
    """Put another text in a memory's place; its name, type and description stay."""
    if not text.strip():
        raise InvalidInput("There is nothing to keep", do="Give a text, or remove the memory")
    _must_be_allowed(writer, text)
    with writer.found(file) as (one, topic), _about_the_text():
        made = topic.with_body(text)
        if made.data == topic.data:
            return saved(one, Remembered(topic.key))
        before = digest(topic.data)
        done = one.memories.save(made.key, made.data, writer.origin("edit"), expect=before)
        return saved(one, done)


def remove(writer: Writer, file: str) -> Saved:
    """Take a memory out; its versions stay."""
    with writer.found(file) as (one, topic):
        one.memories.remove(topic.key, writer.origin("remove"))
        text = topic.body.strip()
        return Saved("removed", topic.key, text, newest_change(one, topic.key))


# Taking back


def undo(writer: Writer, change: str) -> Undone:
    """Take one change back with all that was made in the same step."""
    _must_be_there(writer, "There is nothing to undo")
    with writer.opened() as one:
        return _undone(one, one.memories.undo(change, writer.origin("undo")))


def revert(writer: Writer, session: str, agent: str, tool: str) -> Undone:
    """Take back all that came from one origin."""
    given: list[tuple[By, str]] = [("session", session), ("agent", agent), ("tool", tool)]
    wanted = [one for one in given if one[1]]
    if len(wanted) != 1:
        raise InvalidInput("Exactly one origin is taken back", do="Give session=, agent= or tool=")
    by, value = wanted[0]
    _must_be_there(writer, f"Nothing came from this {by}")
    with writer.opened() as one:
        return _undone(one, one.memories.revert(by, value, writer.origin("undo")))


def _must_be_there(writer: Writer, what: str) -> None:
    if not writer.ground.is_there:
        raise NotFound(what)


def _undone(one: Opened, done: Reverted) -> Undone:
    files = tuple(each.key for each in done.done if not is_index(each.key))
    left = tuple((each.key, each.refusal) for each in done.refused if not is_index(each.key))
    steps = [version.id for version in one.memories.history.log() if version.group == done.group]
    return Undone(files, left, steps[-1] if steps else "")


# What waits


def accept(writer: Writer, item: str) -> Saved:
    """Save what waited: a person has seen it."""
    _must_be_there(writer, "Nothing of this name waits")
    with writer.opened() as one:
        looked(one)
        found = one.memories.review.find(item)
        note = f"from {found.origin.agent or found.origin.kind}"
        return saved(one, one.memories.accept(found, writer.origin("accept", note)))


def reject(writer: Writer, item: str) -> None:
    """Let go of what waited."""
    _must_be_there(writer, "Nothing of this name waits")
    with writer.opened() as one:
        one.memories.drop(one.memories.review.find(item))
