"""Rules as people word them: what is found, what is left alone, what a sentence alone tells.

The two tables and the rules of other projects were written by somebody who did not write the
matcher; the second was judged before it was read. `bench.rules` judges, and shares no code.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.rules import FALSE, FOUND, TABLES, figures, foreign, share
from reverie.rules import compile_sentence

RULES = (
    "Please don't run `python manage.py migrate` yourself.",
    "Use `uv add`, never `pip install`.",
    "Never run `npm audit fix --force`.",
    "No sudo, ever.",
    "Don't install global packages: no npm install -g",
    "make deploy belongs to me",
    "Only I run make release.",
    "Leave git push to me.",
    "No `--amend`.",
    "git add by name, no `git add -A` or `git add .`",
    "Always use `--dry-run` with kubectl apply.",
    "cargo test needs --workspace.",
    "npm ci, not npm install",
    "Use ripgrep (rg) rather than grep.",
    "docker-compose is gone, use docker compose",
    "Run mypy with --strict.",
    "Don't touch anything under infra/.",
    "never modify files in vendor/",
    "config/prod.yml stays as it is.",
    "Keep your hands off terraform/",
    "package-lock.json: hands off.",
    "Never open .env",
    "Never commit node_modules/ or dist/.",
    "Don't write `except Exception:`",
    "No `# type: ignore`",
    "No TODOs in the code",
    "Use logger.info, not print()",
    "不要使用 npm",
    "不要修改 miniprogram/config.js。",
    "不要在 src/ 里用 console.log",
    "git push は禁止",
    "Ne touche pas à config/prod.yml",
    "N'utilise jamais npm",
    "N'exécute pas `docker system prune`",
    "No uses npm, usa pnpm",
    "No toques config/prod.yml",
    "Nie `git push --force` ausführen.",
    "Bitte kein sudo.",
    "package-lock.json nicht anfassen",
    "Kein docker run ohne --rm",
    "Никогда не запускай terraform apply",
    "Nunca use npm",
    "Non usare npm",
    "Never edit files in migrations/ by hand",
)
NO_RULES = (
    "No force pushes.",
    "Never push without asking me.",
    "Don't commit unless I ask.",
    ".unwrap() stays out of src.",
    "Don't add yourself as co-author",
    "Don't use the Task tool",
    "Don't fetch pages from stackoverflow.com.",
    "Don't forget git push at the end.",
    "Never skip `npm test`.",
    "Don't put secrets into config.py",
    "Don't rename `user_id`.",
    "Never run pytest on the whole repo.",
    "Don't import from src/legacy.",
    "Don't use sed or awk to edit files.",
    "Always run `make lint` before pushing.",
    "Never commit directly, open a PR.",
    "Don't hold back on docs/ changes",
    "Never delete tests to make CI green.",
    "Don't use docker for local runs",
    "I don't use npm, I use yarn",
    "There is no docker here",
    "git is not installed on prod",
    "The script deploy.sh is not ready yet",
    "No need to run npm install",
    "not sure whether pytest is set up",
    "`npm test` does not work here, use `npm run test:ci`",
    "docker is not here",
    "src/legacy.py is not used any more",
    "Config is in config/app.yml, not in settings.py",
    "Tests live in tests/, not in src/",
    "package.json has no scripts",
    "The API returns user.name, not user.email",
    "Never trust user.input",
    "Migrations are in db/migrate, never edit old ones",
    "Never merge without running npm test",
    "I ran pytest with -x",
    "CI runs pytest with -n 4",
    "kubectl delete is off limits in prod",
    "Never use npm in docs-site",
    "git push only after the tests are green",
    "Don't stop at the first failing pytest",
    "Don't break src/api.ts",
    "Never leave src/a.py half done",
    "We don't test src/legacy/",
    "Not everything in docs/ is true",
    "Use pytest, it is faster",
    "Don't run two cargo builds at once",
    "Never use git push in scripts",
    "Don't use rm on directories",
    "No more than one commit per PR",
    "The flag --force does not exist any more",
    "Do not rely on package.json for versions",
    "Don't mention CLAUDE.md in commit messages",
    "Don't document print() calls",
    "Don't remove console.log from scripts/",
    "Avoid long functions",
    "README.md is not up to date",
    "Don't commit without running `make test`",
    "Never amend published commits",
)


@pytest.mark.spec("B20.table")
def test_calls_that_break_a_rule_are_found_and_others_let_go() -> None:
    rows = 0
    for name in ("first", "second"):
        told, _ = figures(TABLES / f"{name}.json")
        rows += told["literal"]
        assert share(told["found"], told["broken"]) >= FOUND
        assert share(told["false"], told["fine"]) <= FALSE
    assert rows >= 80


@pytest.mark.spec("B20.sentence")
def test_a_sentence_alone_tells_of_two_rules_in_five_and_of_none_wrongly() -> None:
    both = [figures(TABLES / f"{name}.json")[1] for name in ("first", "second")]
    assert [one["false"] for one in both] == [0, 0]
    assert all(share(one["compiled"], one["literal"]) >= 0.4 for one in both)


@pytest.mark.spec("B20.sentence")
@pytest.mark.parametrize("text", [*RULES, *NO_RULES])
def test_what_names_a_call_to_the_letter_is_a_rule_and_in_doubt_is_none(text: str) -> None:
    assert (compile_sentence(text) is not None) is (text in RULES)


@pytest.mark.spec("B20.scope")
def test_rules_of_another_project_hold_nothing(shared: Path) -> None:
    rows = json.loads((TABLES / "other_projects.json").read_text("utf-8"))
    got = foreign(rows, shared / "data" / "sessions_dev")
    assert (got["rules"], got["calls"], got["held"]) == (100, 3_965, 0)
