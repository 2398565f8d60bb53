"""Seeds of the simulation are clean, play the same way again, and find faults that are put in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reverie.errors import ReverieError
from reverie.session import Budget, summaries
from reverie.store import ConsolidationLock, ObjectStore, transaction
from reverie.team import store as team_store
from reverie.team import sync as team_round
from tests.conftest import Scale
from tests.simulation.model import Broken
from tests.simulation.running import simulate
from tests.tally import counted

pytestmark = [pytest.mark.spec("1.simulation")]
MOST = 80
"""Seeds within which a fault that was put in is found."""


def test_seeds_are_clean(scale: Scale) -> None:
    count = scale.pick(40, 1_000 * min(scale.times, 4))
    simulate(range(scale.seed * 100_000, scale.seed * 100_000 + count))
    counted("simulation seeds", count, drawn=True)


def test_a_seed_plays_the_same_way_again() -> None:
    first = simulate([7, 8])
    assert first == simulate([7, 8])
    assert first[0] != first[1]


# --- faults that are put in: each must be found

Patch = pytest.MonkeyPatch


def lock_always_succeeds(patch: Patch) -> None:
    real = ConsolidationLock.look

    def look(self: ConsolidationLock) -> Any:
        seen = real(self)
        return replace(seen, state="free") if seen.state == "held" else seen

    patch.setattr(ConsolidationLock, "look", look)


def lost_lock_lands(patch: Patch) -> None:
    patch.setattr(ConsolidationLock, "_must_be", lambda *_: None)


def landing_does_not_compare(patch: Patch) -> None:
    real = transaction.land

    def land(memories: Any, changes: Mapping[str, Any], here: Any, *more: Any, **given: Any) -> str:
        now = {k: memories.folder.bytes_of(k) for k in here if memories.folder.exists(k)}
        return real(memories, changes, now, *more, **given)

    patch.setattr(transaction, "land", land)


def budget_is_not_reserved(patch: Patch) -> None:
    real = Budget._line  # pyright: ignore[reportPrivateUsage]

    def line(self: Budget, reservation: Any, more: dict[str, float]) -> None:
        if "reserved" not in more:
            real(self, reservation, more)

    patch.setattr(Budget, "_line", line)


def pointer_is_left_out(patch: Patch) -> None:
    patch.setattr("reverie.topics.index.without", lambda data, key: data)


def server_takes_any_tag(patch: Patch) -> None:
    real = team_store._raise_version  # pyright: ignore[reportPrivateUsage]

    def raised(within: Any, place: Any, expected: str) -> Any:
        del expected
        return real(within, place, team_store._tag(within, place))  # pyright: ignore[reportPrivateUsage]

    patch.setattr(team_store, "_raise_version", raised)


def pull_takes_without_asking(patch: Patch) -> None:
    """What is read first is not compared when it lands."""
    real = team_round.folder.land

    def land(memories: Any, changes: Mapping[str, Any], here: Any, why: str) -> Any:
        fresh = team_round.folder.read_files(memories)
        return real(memories, changes, fresh, why)

    patch.setattr(team_round.folder, "land", land)


def object_is_not_kept(patch: Patch) -> None:
    real = ObjectStore.put
    count = [0]

    def put(self: ObjectStore, data: bytes, *more: Any, **given: Any) -> Any:
        count[0] += 1
        return real(self, data if count[0] % 5 else data + b"!", *more, **given)

    patch.setattr(ObjectStore, "put", put)


def message_is_read_otherwise(patch: Patch) -> None:
    """A session that is opened again has other words in it than were sent."""
    real = summaries.decode
    patch.setattr(
        summaries, "decode", lambda text, load: real(text.replace("I look", "I see"), load)
    )


FAULTS: tuple[tuple[Callable[[Patch], None], str, int], ...] = (
    (lock_always_succeeds, "dream at once", 0),
    (lost_lock_lands, "had lost its lock", 1),
    (landing_does_not_compare, "wrote over what came later|no copy of it", 10),
    (budget_is_not_reserved, "budget is passed", 13),
    (pointer_is_left_out, "not that of the folder", 16),
    (server_takes_any_tag, "taken twice", 16),
    (pull_takes_without_asking, "no copy of it", 10),
    (object_is_not_kept, "no such file|is lost", 3),
    (message_is_read_otherwise, "sent differently", 2),
)
"""Each with what is said when it is found, and where the seeds begin: near one that finds it."""


@pytest.mark.parametrize(("fault", "words", "first"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_a_fault_that_is_put_in_is_found(
    fault: Callable[[Patch], None], words: str, first: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises((Broken, ReverieError), match=words) as found:
            simulate(range(first, first + MOST))
    assert any("seed" in note for note in found.value.__notes__)
