"""The replay lab: recorded sessions run again under a policy of ours, and billed.

The course is fixed: every answer is the recorded one, at the recorded pace. What differs is
what would have been sent. So a replay counts tokens, cache reads, faults, and which of the
names that later steps used were still at hand; whether a model would have thought better
or worse it cannot show. It asks no model, opens no connection, and changes no session.
"""

from __future__ import annotations

from reverie.apps.replay.course import Course, CourseStep, of_entries, of_lines
from reverie.apps.replay.figures import CAVEAT, Figures, MeasuredSession, measured
from reverie.apps.replay.page import page
from reverie.apps.replay.policies import POLICIES, PolicyName, ReplayPolicy
from reverie.lazy import offered

__all__ = [
    "CAVEAT",
    "POLICIES",
    "Course",
    "CourseStep",
    "Figures",
    "MeasuredSession",
    "PolicyName",
    "ReplayPolicy",
    "measured",
    "of_entries",
    "of_lines",
    "page",
]

__getattr__ = offered(
    __name__,
    {
        "binding": "Bindings",
        "course": "FACTS TOOLS TOOL_TOKENS stand_in",
        "figures": "plays",
        "meter": "Meter tokens",
        "needs": "identifiers",
        "policies": "plain_marks",
        "run": "PlayedRound Seen movement paired play",
        "stage": "ReplayStage",
    },
)
