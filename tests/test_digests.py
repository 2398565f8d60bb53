"""The requests of recorded sessions, and of transcripts an older version wrote, to the byte.

A change that moves one of these digests sends other bytes than the version before it: every
resumed session would miss its prompt cache. Where that is meant, `python -m scripts.digests
--write` and say why.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.digests import DIGESTS, FORMATS, POLICIES, recorded, written_by_old
from tests.conftest import Scale

pytestmark = pytest.mark.spec("1")
KNOWN = json.loads(DIGESTS.read_text(encoding="utf-8"))


def requests(session: str) -> tuple[int, str]:
    return int(KNOWN["recorded"][f"{session} collapse"].partition(" ")[0]), session


def test_transcripts_written_by_an_older_version_send_the_same_bytes(tmp_path: Path):
    assert written_by_old(tmp_path) == KNOWN["written_by_0.1.0"]


def test_recorded_sessions_send_the_same_bytes(shared: Path, scale: Scale):
    sessions = sorted({name.partition(" ")[0] for name in KNOWN["recorded"]}, key=requests)
    for session in scale.pick(sessions[10:26:5], sessions):  # neither tiny nor long
        path = shared / f"data/sessions_dev/{session}.jsonl.gz"
        for policy in POLICIES:
            name = f"{session} {policy}"
            wire = {form: KNOWN["wire"][f"{name} {form}"] for form in FORMATS}
            assert recorded(path, policy) == {"": KNOWN["recorded"][name], **wire}, name
