"""The figures of a replayed session, as a program and a person read them.

`cost` is what the conversation's own requests cost, `billed` everything: reading back, finding
again and the model calls behind it too. These leave thinking out, as recorded figures of other
context managers do; `thinking` has them once more with the recorded thinking sent and bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from reverie.apps.replay.course import Interface, RecordedCourse
from reverie.apps.replay.policies import PolicyName, ReplayPolicy
from reverie.apps.replay.run import NeedCounts, ReplayRun, Tick, play
from reverie.text.format import plural

Runs: TypeAlias = Mapping[PolicyName, ReplayRun]
CAVEAT = (
    "The course of a replay is fixed: it counts tokens, faults and names that are no longer "
    "at hand, not whether a model would have thought better or worse."
)


@dataclass(frozen=True, slots=True)
class BackgroundFigures:
    """Calls in the background, and their cost in input tokens."""

    notes: int
    extractions: int
    cost: int


@dataclass(frozen=True, slots=True)
class ThinkingFigures:
    """The same session with its recorded thinking, on a provider that binds it."""

    blocks: int
    cost: int
    naive_cost: int
    billed: int
    refused: int  # requests a provider would refuse
    stripped: int


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    """What a policy did to one session. Costs are in units of one input token."""

    session: str
    policy: PolicyName
    tail: int
    cost: int
    naive_cost: int
    recovery: int
    refind: int
    summaries: int
    peak: int
    breaks: int  # the prefix changed, and nothing had announced it
    facts: int
    facts_here: int
    near: NeedCounts
    far: NeedCounts
    shown_whole: float
    results: int
    shown: int  # of these, results that the model was shown whole
    announced: int  # the prefix moved, and a record says why
    requests: int
    hit: float
    read: int
    written: int
    plain: int
    output: int
    pairing_faults: int
    window: int
    over_window: int  # requests larger than the window: in life they fail
    thinking: ThinkingFigures
    program: str
    file: str
    background: BackgroundFigures  # in `billed`, not in `cost`
    billed: int
    through: Interface
    shown_tokens: float = 1.0  # the part of all results, by tokens, that the model was shown
    notes: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """All costs against sending everything."""
        return self.billed / self.naive_cost if self.naive_cost else 0.0

    def value(self) -> dict[str, object]:
        """For `--json`."""
        return asdict(self)

    def told(self) -> list[str]:
        """What a person must know of this session beside the figures."""
        out = list(self.notes)
        if self.over_window:
            out.append(
                f"{self.over_window:,} of {self.requests:,} requests are larger than the window "
                f"of {self.window:,} tokens: under {self.policy} this session would have failed"
            )
        if self.breaks:
            asked = plural(self.breaks, "request")
            out.append(f"{asked} changed the prefix and nothing announced it")
        if self.thinking.refused:
            asked = plural(self.thinking.refused, "request")
            out.append(f"{asked} would be refused for the thinking in it")
        if self.pairing_faults:
            out.append(f"A call is cut from its result in {plural(self.pairing_faults, 'request')}")
        return out


@dataclass(frozen=True, slots=True)
class MeasuredSession:
    """A measured session: its figures, and every run for the plots."""

    figures: ReplayFigures
    played: Runs


def plays(policy: ReplayPolicy, also: Sequence[PolicyName], course: RecordedCourse) -> int:
    """How many steps `measure_session` will take."""
    names = {"naive", policy.name, *also}
    bound = {"naive", policy.name} if course.thinking else set[str]()
    return (len(names) + len(bound)) * len(course.steps)


async def measure_session(
    course: RecordedCourse,
    policy: ReplayPolicy,
    *,
    file: str = "",
    also: Sequence[PolicyName] = (),
    tick: Tick = lambda: None,
) -> MeasuredSession:
    """A session under a policy, against sending everything; `also` runs others beside it."""
    played: dict[PolicyName, ReplayRun] = {}
    for name in dict.fromkeys(("naive", policy.name, *also)):
        played[name] = await play(course, policy.under(name), tick=tick)
    bound: dict[PolicyName, ReplayRun] = {}
    for name in dict.fromkeys(("naive", policy.name)) if course.thinking else ():
        bound[name] = await play(course, policy.under(name), thinking=True, tick=tick)
    thinking = _thinking(course, bound or played, policy.name)
    return MeasuredSession(_figures(course, played, policy, thinking, file), played)


def _thinking(course: RecordedCourse, bound: Runs, name: PolicyName) -> ThinkingFigures:
    ours = bound[name]
    naive = bound["naive"]
    bill = ours.bill
    costs = round(bill.requests), round(naive.bill.total), round(bill.total)
    return ThinkingFigures(course.thinking, *costs, ours.refused, ours.stripped)


def _figures(
    course: RecordedCourse, played: Runs, policy: ReplayPolicy, thinking: ThinkingFigures, file: str
) -> ReplayFigures:
    ours = played[policy.name]
    window = policy.settings.fallback_window
    read, written, plain, output = ours.sums()
    return ReplayFigures(
        session=course.session,
        policy=policy.name,
        tail=policy.tail,
        through=policy.through,
        cost=round(ours.bill.requests),
        naive_cost=round(played["naive"].bill.total),
        billed=round(ours.bill.total),
        recovery=round(ours.bill.recovery),
        refind=round(ours.bill.refind),
        summaries=ours.summaries,
        peak=ours.peak,
        breaks=ours.count("unannounced"),
        facts=ours.facts,
        facts_here=ours.facts_here,
        near=ours.near,
        far=ours.far,
        shown_whole=ours.shown_whole,
        results=ours.results,
        shown=ours.shown,
        announced=ours.count("announced"),
        requests=len(ours.rounds),
        hit=round(ours.hit, 4),
        read=read,
        written=written,
        plain=plain,
        output=output,
        pairing_faults=ours.faults,
        window=window,
        over_window=ours.over(window),
        thinking=thinking,
        program=course.program,
        file=file,
        background=BackgroundFigures(ours.notes, ours.extractions, round(ours.bill.background)),
        shown_tokens=round(ours.shown_tokens / ours.tokens, 4) if ours.tokens else 1.0,
        notes=course.notes,
    )
