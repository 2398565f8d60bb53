"""The OpenAPI document against the server, by schemathesis: what it says is what is done.

Examples are drawn from the document for every operation, good and bad ones, and along its links;
an answer must be one that the document names, in the form that it gives.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.apps.team import app
from reverie.http_server import serving
from reverie.team import Database, TeamStore
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("11.schema"), pytest.mark.integration]


def test_every_operation_answers_as_the_document_says(
    database: Database, tmp_path: Path, scale: Scale
) -> None:
    pytest.importorskip("schemathesis", reason="needs schemathesis: not installed")
    store = TeamStore(database, now=time.time, tombstones=True)
    text, _ = store.create_token(org="acme", repo="*", author="ines")
    program = Path(sys.executable).with_name("schemathesis")
    with serving(app(store)) as url:
        done = subprocess.run(
            [
                *(program, "run", f"{url}/openapi.json", "--seed", str(scale.seed + 1)),
                *("--max-examples", str(scale.pick(300, 1_000)), "--mode", "all"),
                *("--phases", "examples,coverage,fuzzing,stateful", "--no-color"),
                *("--checks", "all", "--exclude-checks", "ignored_auth,positive_data_acceptance"),
                *("-H", f"Authorization: Bearer {text}", "--generation-database", "none"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    cases = re.search(r"([\d,]+) generated", done.stdout)
    assert cases is not None, done.stdout[-2000:]
    assert int(cases[1].replace(",", "")) >= 300 * 5
