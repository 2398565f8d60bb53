"""Values whose methods are compiled at first use are those of the standard library in all else."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
from typing import Any

import pytest

from reverie import light

pytestmark = pytest.mark.spec("18.light")


def both(how: dict[str, bool]) -> tuple[Any, Any]:
    """The same class made by us and by the standard library."""

    def made(decorator: Any) -> Any:
        @decorator(slots=True, **how)
        class Value:
            """A value."""

            one: int
            two: str = "b"
            seen: list[int] = dataclasses.field(default_factory=list[int])
            aside: int = dataclasses.field(default=3, compare=False, repr=False)
            kept: int = dataclasses.field(init=False, default=0)

            def __post_init__(self) -> None:
                object.__setattr__(self, "kept", self.one * 2)

        return Value

    return made(light.dataclass), made(dataclasses.dataclass)


WAYS = [
    {"frozen": True},
    {"frozen": False},
    {"frozen": True, "kw_only": True},
    {"frozen": False, "unsafe_hash": True},
]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_it_is_what_the_standard_library_makes(how: dict[str, bool]) -> None:
    ours, theirs = both(how)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    shape = [(f.name, f.type, f.init, f.repr, f.compare) for f in dataclasses.fields(ours)]
    assert shape == [
        (f.name, f.type, f.init, f.repr, f.compare) for f in dataclasses.fields(theirs)
    ]
    mine, same = ours(one=1), theirs(one=1)
    assert repr(mine).rpartition(".")[2] == repr(same).rpartition(".")[2]
    assert dataclasses.asdict(mine) == dataclasses.asdict(same)
    assert dataclasses.replace(mine, two="c") == ours(one=1, two="c", aside=9)
    assert mine not in (ours(one=2), same)
    assert ours(one=1).seen is not mine.seen
    assert copy.deepcopy(mine) == copy.copy(mine) == mine
    with pytest.raises(TypeError, match="missing 1 required"):
        ours()


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_hashes_and_changes_are_allowed_where_they_were(how: dict[str, bool]) -> None:
    for made in both(how):
        value = made(one=1, seen=())
        if how.get("unsafe_hash") or how["frozen"]:
            assert hash(value) == hash(made(one=1, seen=(), aside=5))
        else:
            with pytest.raises(TypeError, match="unhashable"):
                hash(value)
        if how["frozen"]:
            with pytest.raises(dataclasses.FrozenInstanceError, match="field 'one'"):
                value.one = 2
            with pytest.raises(dataclasses.FrozenInstanceError, match="field 'one'"):
                del value.one
        else:
            value.one = 2
            assert value.one == 2


@light.dataclass(frozen=True, slots=True)
class Kept:
    name: str
    parts: tuple[Kept, ...] = ()


@light.dataclass(frozen=True, slots=True)
class Wider(Kept):
    size: int = 0

    def __repr__(self) -> str:
        return "own"


def test_a_value_goes_through_pickle_and_a_wider_one_has_all_fields() -> None:
    value = Kept("a", (Kept("b"),))
    assert pickle.loads(pickle.dumps(value)) == value
    wide = Wider("a", (), 3)
    assert (wide.name, wide.size, repr(wide)) == ("a", 3, "own")
    assert wide != Kept("a")
    match wide:
        case Wider(name, _, size):
            assert (name, size) == ("a", 3)


def test_methods_are_compiled_when_they_are_called() -> None:
    @light.dataclass(frozen=True, slots=True)
    class Late:
        one: int = 1

    before = Late.__init__
    assert Late() == Late(1)
    assert Late.__init__ is not before
    assert "one" in Late.__init__.__code__.co_varnames


def test_a_class_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):
        light.dataclass(slots=False)


def test_a_pattern_is_compiled_when_something_is_asked_of_it() -> None:
    bad, good = light.pattern("("), light.pattern("(a+)b", re.IGNORECASE)
    with pytest.raises(re.error):
        bad.search("a")
    found = good.search("xAAb")
    assert found is not None
    assert found[1] == "AA"
    assert (good.sub("-", "abab"), good.flags & re.IGNORECASE) == ("--", re.IGNORECASE)


def test_nearly_no_method_is_compiled_by_loading() -> None:
    code = (
        "import builtins, dataclasses\n"
        "made = []\n"
        "known = dataclasses._process_class\n"
        "def counted(cls, *given, **named):\n"
        "    made.append(cls.__module__)\n"
        "    return known(cls, *given, **named)\n"
        "dataclasses._process_class = counted\n"
        "from reverie import fit, Memory\n"
        "fit([{'role': 'user', 'content': 'x'}], model='gpt-5')\n"
        "print(*[name for name in made if name.startswith('reverie')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        "reverie.light",
        "reverie.transcript.claude_code",
        "reverie.transcript.view",
    }


def test_an_empty_home_is_one_and_leaves_nothing() -> None:
    from reverie import Memory, testing

    before = Memory("shop").folder
    with testing.home() as home:
        inside = Memory("shop")
        inside.add("The shop sells zebras")
        assert inside.folder.is_relative_to(home)
        assert inside.folder.is_dir()
    assert not home.exists()
    assert Memory("shop").folder == before
