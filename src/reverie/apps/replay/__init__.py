"""The replay lab: recorded sessions run again under a policy of ours, and billed.

The course is fixed: every answer is the recorded one, at the recorded pace. What differs is
what would have been sent. So a replay counts tokens, cache reads, faults, and which of the
names that later steps used were still at hand; whether a model would have thought better
or worse it cannot show. It asks no model, opens no connection, and changes no session.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "course": "CourseStep FACTS Interface RecordedCourse TOOLS TOOL_TOKENS identifiers needs "
        "of_entries of_lines stand_in",
        "figures": "CAVEAT MeasuredSession measure_session plays",
        "page": "page_text",
        "policies": "BoundThinking Meter POLICIES PolicyName ReplayPolicy plain_marks tokens",
        "run": "MessageText ReplayStage ReplayedRound is_paired movement play",
    },
)
