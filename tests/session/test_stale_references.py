"""Which references of memories are raised as stale: true ones, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reverie.session import LATE, Repository
from reverie.topics import find_claims

pytestmark = [pytest.mark.spec("B7")]

FILES = {
    "src/acme/ledger/close.py": "def close_ledger_for_month(): ...\nclass LedgerBook: ...\n",
    "src/acme/web/routes.py": "def list_all_routes(): ...\n",
    "packages/core/src/core/gateway/real.py": "def run_with_context(): ...\n",
    "tests/test_ledger.py": "def test_close(): ...\n",
    ".gitignore": "# made at run time\n/.acme/\nbuild/\n*.log\n",
    "Makefile": "all:\n",
}
GONE = [
    "The parser lives in `src/acme/ledger/parse.py`.",
    "Routes are registered in src/acme/web/register.py at the top.",
    "See `packages/core/src/core/gateway/fake.py` for tests of it.",
    "Helpers: `tests/helpers/ledger_helpers.py`.",
    "`reopen_ledger_for_month()` in `src/acme/ledger/close.py` takes a date.",
    "`LedgerPage` is defined in `src/acme/ledger/close.py`.",
    "Use `_sum_all_open_items()` to get the total.",
    "`src/acme/web/routes.py` has `drop_all_routes()`.",
    "The folder `src/acme/operations/` holds the jobs.",
    "| `src/acme/web/admin.py` | the admin pages |",
    "The script `mark_ledger_closed.py` closes a month.",
    "The limit stands in `src/acme/limits.toml`.",
    "`tests/test_routes.py` covers them all.",
]
THERE = [
    "It is `close_ledger_for_month()` in `src/acme/ledger/close.py`.",
    "The book is `LedgerBook`; routes come from `web/routes.py`.",
    "`core/gateway/real.py` and `gateway/real.py` are the same file.",
    "State is kept in `.acme/state/pool.json` and `build/out.js`.",
    "It writes `src/acme/report.json` for each run.",
    "An example: `src/acme/foo.py` calls `do_the_foo_thing()`.",
    "Put yours at `src/my_package/my_module.py`.",
    "Removed `src/acme/old_ledger.py` and `drop_the_old_table()`.",
    "`src/acme/ledger.py` was split into a package.",
    "There is no longer a `src/acme/queue.py`.",
    "## `src/acme/heading.py` and `a_heading_with_names()`",
    "```sh\ncat src/acme/in_code.py\nrun_the_thing_in_code()\n```",
    "`gh gist create --filename` names it; `--confirm` is gone there.",
    "Fixed upstream in commit 0123456789abcdef0123456789abcdef01234567.",
    "See commit 777e954dd of another repository.",
    "`numpy/core/multiarray.py` and `django/db/models.py` are not ours.",
    "Call `TaskOutput` with `run_in_background`, or `useState`.",
    "The tool reads `settings.json`, `plan.md` and `ref.json`.",
    "`CLAUDE.md/AGENTS.md` say so; `origin/` is a prefix.",
    "A decorator (to be built in `src/acme/json_output.py`) does it.",
    "`src/acme/a.py` -> `src/acme/b.py`",
    "Never put code into `src/acme/misc/util.py`.",
    "`~/.config/acme/config.toml` and `/etc/acme/acme.conf` hold settings.",
    "https://example.com/src/acme/page.py explains it.",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("repository")
    for name, text in FILES.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for args in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *args], cwd=base, check=True)
    return base


def raised(root: Path, text: str, seconds: float = 30.0) -> list[str]:
    stated = [one for one in find_claims(text) if one.stated]
    found = Repository(root, seconds=seconds).check(stated)
    return [one.claim.text for one in found if one.status == "gone"]


@pytest.mark.parametrize("text", GONE)
def test_what_the_repository_no_longer_has_is_raised(root: Path, text: str) -> None:
    assert len(raised(root, text)) == 1


@pytest.mark.parametrize("text", THERE)
def test_what_may_be_meant_otherwise_is_not(root: Path, text: str) -> None:
    assert raised(root, text) == []


def test_without_time_it_is_told_what_was_not_looked_for(root: Path) -> None:
    stated = [one for text in GONE for one in find_claims(text) if one.stated]
    found = Repository(root, seconds=0.0).check(stated)
    assert {one.status for one in found} <= {"unverifiable", "present"}
    assert [one.claim.text for one in found if one.why == LATE]
