"""What the proxy saves: recorded shapes of a real client's traffic, with the proxy and without.

Shapes, courses and the judge of prices are those of the tests (`tests/clients`), which share no
code with the proxy; both sides are billed by the same simulated prompt cache.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, Row, at_most

BOUND = 0.65


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    from tests.clients.courses import PLANS, RECORDED, remembered
    from tests.clients.line import standing

    alone = through = 0.0
    breaks = requests = 0
    with tempfile.TemporaryDirectory() as name, standing(PLANS, Path(name) / "home") as standing_:
        for course, play in RECORDED.items():
            line = standing_.begin(PLANS)
            assert line.proxy is not None
            folder = Path(name) / course
            folder.mkdir()
            remembered(folder, line.proxy.home)
            play(line, folder)
            found = line.clean()
            costs = line.costs()
            alone, through = alone + costs[0], through + costs[1]
            breaks += len(found.caused)
            requests += found.requests
            told = f"{costs[1] / costs[0]:.3f} of the client alone, {found.requests} requests"
            yield f"course {course}", told, "", None
    what = "cost of recorded shapes through the proxy, as a share of the client alone"
    yield at_most("proxy.saving", what, through / alone, BOUND, "share", requests)
    what = "prefixes that the proxy breaks and the client does not"
    yield Figure("proxy.breaks", what, breaks, 0.0, "none", "lower", n=requests)
