"""Rules from their sentence: every row of the tables fires, and "not A, use B" forbids no B."""

from __future__ import annotations

import pytest

from reverie.rules import (
    CallContext,
    RuleSet,
    clause_tokens,
    compile_sentence,
    final_calls,
    is_irrevocable,
    parse,
    table,
)

pytestmark = pytest.mark.spec("B20.sentence")
ROOT = "/home/user/project"


def held(says: str, line: str) -> bool:
    rule = compile_sentence(says)
    if rule is None:
        return False
    return bool(RuleSet([rule]).look("Bash", {"command": line}, cwd=ROOT, root=ROOT))


# --- the tables


@pytest.mark.parametrize("name", ["words", "programs", "irrevocable"])
def test_a_table_has_a_source_and_rows_as_wide_as_its_header(name: str) -> None:
    from importlib.resources import files

    text = files("reverie.rules").joinpath("data", f"{name}.tsv").read_text("utf-8")
    source, header, *rows = text.splitlines()
    assert source.startswith("# Source: ")
    width = len(header.split("\t"))
    assert {len(row.split("\t")) for row in rows} == {width}


@pytest.mark.parametrize("row", table("words"), ids=lambda row: f"{row[0]}-{row[1]}")
def test_every_word_is_found_as_what_its_row_says(row: list[str]) -> None:
    kind, _, words = row
    lost = [
        word
        for word in (one.partition("=")[0] for one in words.split("|"))
        if not any(kind in token.kinds for token in clause_tokens(word))
    ]
    programs = {name for one in table("programs") for name in " ".join(one[1:3]).split()}
    assert set(lost) <= programs | {"n'"}, lost


@pytest.mark.parametrize("row", table("programs"), ids=lambda row: row[0])
def test_every_program_is_known_by_its_name(row: list[str]) -> None:
    _, programs, ordinary, verbs = row
    for name in [*programs.split(), *ordinary.split()]:
        line = f"{name} {(verbs.split() or [''])[0]}".strip()
        assert held(f"Never run {line}.", f"{line} x"), line
    for name in ordinary.split():
        assert compile_sentence(f"Never {name}.") is None


@pytest.mark.spec("B20.irrevocable")
@pytest.mark.parametrize("row", table("irrevocable"), ids=lambda row: row[0])
def test_every_call_that_cannot_be_taken_back_is_known(row: list[str]) -> None:
    _, commands, tools = row
    place = CallContext(ROOT)
    for line in commands.split("|"):
        call = parse("Bash", {"command": f"cd x && {line} y"}, place)
        assert is_irrevocable(call, final_calls()), line
    for tool in tools.split("|"):
        call = parse(f"mcp__x__{tool.replace('*', 'a')}", {}, place)
        assert is_irrevocable(call, final_calls()), tool
    for line in ("git status", "git log --grep push", "ls", "npm test", "echo git push"):
        assert not is_irrevocable(parse("Bash", {"command": line}, place), final_calls())


# --- what a clause forbids


@pytest.mark.parametrize(
    ("says", "line"),
    [
        ("Never push to `release`.", "git push origin HEAD:release"),
        ("Push auf main ist verboten.", "git push origin main"),
        ("Always run tests with `uv run pytest`.", "pytest -q"),
        ("Never run pytest without `uv run`.", "pytest -q"),
        ("`docker run` only with `--rm`.", "docker run alpine"),
        ("Always use `--dry-run` with kubectl apply.", "kubectl apply -f a.yaml"),
        ("Never use docker run without --rm.", "docker run alpine"),
        ("docker run without --rm is forbidden.", "docker run alpine"),
        ("Never run eslint with --fix.", "npx eslint --fix src"),
        ("eslint without --fix please.", "npx eslint --fix src"),
        ("Never commit with --no-verify.", "git commit -n -m x"),
        ("Nie mit --no-verify committen.", "git commit --no-verify -m x"),
        ("Never push without --follow-tags.", "git push"),
        ("Use `uv add`, never `pip install`.", "pip install requests"),
        ("terraform apply is mine.", "terraform apply"),
        ("Never edit files in vendor/.", "rm vendor/a.c"),
        ("No `console.log` in app/.", "echo 'console.log(1)' > app/a.ts"),
        ("Use docker compose instead of docker-compose.", "docker-compose up"),
        ("Instead of `npm install` use `pnpm add`.", "npm install zod"),
        ("`npm install` ではなく `pnpm add` を使って", "npm install zod"),
        ("Leave git push to me.", "git push"),
        ("terraform apply is done by CI.", "terraform apply"),
    ],
)
def test_a_literal_beside_a_word_that_forbids_is_a_rule(says: str, line: str) -> None:
    assert held(says, line)


# --- what is recommended is never forbidden


@pytest.mark.parametrize(
    ("says", "forbidden", "recommended"),
    [
        ("不要用 `npm install`,用 `pnpm add`。", "npm install zod", "pnpm add zod"),
        ("不要用 npm,用 pnpm", "npm ci", "pnpm install"),
        ("不要用 `npm install`，用 `pnpm add`。", "npm install zod", "pnpm add zod"),
        ("请使用 pnpm 而不是 npm", "npm ci", "pnpm install"),
        ("`npm install` ではなく `pnpm add` を使って", "npm install zod", "pnpm add zod"),
        ("Don't use npm, use pnpm.", "npm ci", "pnpm install"),
        ("Use pnpm not npm", "npm ci", "pnpm install"),
        ("Use pnpm (not npm)", "npm ci", "pnpm install"),
        ("Nicht `npm install`, sondern `pnpm add`", "npm install zod", "pnpm add zod"),
        ("Statt npm bitte pnpm", "npm ci", "pnpm install"),
        ("No uses npm, usa pnpm", "npm ci", "pnpm install"),
        ("En vez de npm usa pnpm", "npm ci", "pnpm install"),
        ("N'utilise pas `npm`, utilise `pnpm`", "npm ci", "pnpm install"),
        ("Не используй `npm`, используй `pnpm`", "npm ci", "pnpm install"),
        ("Não use `npm`, use `pnpm`", "npm ci", "pnpm install"),
        ("`uv run pytest`, never plain pytest", "pytest -q", "uv run pytest -q"),
        ("Never plain pytest. Use `uv run pytest`.", "python -m pytest", "uv run pytest -q"),
        ("Always run tests with `uv run pytest`.", "pytest -q", "uv run pytest -q"),
        (
            "Never pod install, use bundle exec pod install.", "pod install",
            "bundle exec pod install",
        ),
        ("npm ci, not npm install", "npm i", "npm ci"),
        ("Use `poetry run pytest`, never bare `pytest`.", "pytest -q", "poetry run pytest -q"),
        ("Always `bundle exec rspec`, never plain rspec.", "rspec a", "bundle exec rspec a"),
        ("Always `bundle exec rake`, never naked rake", "rake a", "bundle exec rake a"),
        ("Use `uv run python`, never plain python.", "python a.py", "uv run python a.py"),
        ("Always use `uv run`, never bare pytest.", "pytest", "uv run pytest"),
        ("Use `npx prisma`, never plain prisma", "prisma generate", "npx prisma generate"),
        (
            "Use `docker compose exec app php`, never plain php.", "php a.php",
            "docker compose exec app php a.php",
        ),
        ("Use `devbox run zig`, never bare zig.", "zig build", "devbox run zig build"),
        (
            "`nix develop -c cargo build`, never plain cargo build", "cargo build",
            "nix develop -c cargo build",
        ),
        ("Immer `poetry run pytest`, nie nacktes pytest", "pytest", "poetry run pytest"),
        ("Always use `bin/rails` rather than bare `rails`.", "rails c", "bin/rails c"),
        ("Use go get with a version, no go get -u.", "go get -u x", "go get x@1"),
    ],
)  # fmt: skip
def test_not_a_but_b_forbids_a_and_never_b(says: str, forbidden: str, recommended: str) -> None:
    assert held(says, forbidden)
    assert not held(says, recommended)


@pytest.mark.parametrize(
    "text",
    [
        "不要忘记 `git push`",
        "不仅 `npm test`,还要 `npm run lint`",
        "不是 npm 而是 pnpm",
        "Vergiss nicht `git push`",
        "No olvides `npm test`",
        "N'oublie pas `npm test`",
        "Не забудь `git push`",
        "`git push` を忘れないで",
        "My colleague says never use `npm`.",
        "Never merge without tests (`npm test`)",
        "Fix src/app.py, don't touch anything",
        "Look at src/app.py, don't change anything else",
        "Always run `npm test`, never skip it.",
        "Don't only run `pytest`, run `mypy` too",
        "Not only `npm test`, also `npm run lint`",
        "Do not add dependencies to package.json without asking",
        "Instead of guessing read src/app.py",
        "I use npm instead of yarn",
        "The old `docker-compose` did not work, `docker compose` does",
        "Never stop `docker compose up`",
        "Don't hesitate to push to `main`",
        "Can't you push to `main`?",
        "It is not `npm`",
        "Nothing in `src/app.py` changed",
        "`+01:00` instead of `Z`",
        "Never run `pytest` src/tests/",
        "I never commit with --no-verify",
        "Never commit with a dirty tree",
        "Always `make test`, never test by hand",
        "The plain pytest run is slower than `uv run pytest`",
    ],
)
def test_in_doubt_there_is_no_rule(text: str) -> None:
    assert compile_sentence(text) is None


@pytest.mark.parametrize(
    ("says", "breaks", "keeps"),
    [
        ("Never delete `tests/a.json`", "rm tests/a.json", "touch tests/a.json"),
        ("Never commit `.env` files", "git add .env", "cat .env"),
        ("No `--no-verify`.", "git commit --no-verify -m x", "grep -e --no-verify docs"),
        ("Never push to main.", "git push origin HEAD:main", "git push origin main:fix"),
        ("Never push to main.", "git push origin +main", "git push origin main-2"),
        ("Never push to main.", "git push origin HEAD:refs/heads/main", "git log main"),
        ("Never run `pytest`.", "pytest -q", "pytest --version"),
        ("Never run `pytest`.", "cd a && pytest", "grep -rn pytest ."),
        ("Never git push --force", "git push -uf origin x", "git push origin x"),
        ("From now on never push to main, it deploys.", "git push origin main", "git push"),
        ("Never push to `rc/2.x`, ask me instead.", "git push origin HEAD:rc/2.x", "git push"),
        ("Do not push to the `stable` branch.", "git push origin stable", "git push origin x"),
        ("Bitte nie direkt auf `live` pushen.", "git push origin live", "git push origin x"),
        ("Never commit to `live` or `next`.", "git push origin next", "git push origin x"),
        ("Don't commit to `live`.", "git push origin live", "git commit -m live"),
        ("No hagas push a `live`.", "git push origin live", "git push origin x"),
        ("不要推送到 `live`。", "git push origin live", "git push origin x"),
        ("Never commit with --no-verify.", "git commit -nm x", "git push --no-verify"),
        ("Don't push with --force", "git push -f", "git push"),
        ("Never install with --force.", "npm install --force", "git push --force"),
        ("Never push without --follow-tags.", "git push", "git push --follow-tags"),
        ("Never run pytest without `uv run`.", "pytest", "uv run pytest"),
    ],
)
def test_a_sentence_holds_what_it_names_and_nothing_beside(
    says: str, breaks: str, keeps: str
) -> None:
    assert held(says, breaks)
    assert not held(says, keeps)


@pytest.mark.parametrize(
    "line",
    [
        "echo --no-verify",
        "printf '%s' --no-verify",
        "rg -- --no-verify",
        "git log --grep --no-verify",
        "git -C a log -S --no-verify",
        "git grep -e --no-verify",
        "find . -name --no-verify",
        "[ $1 = --no-verify ]",
        "git commit -m 'drop --no-verify'",
    ],
)
def test_a_program_that_prints_or_searches_text_uses_no_option_of_others(line: str) -> None:
    assert not held("Never use `--no-verify`.", line)
    assert held("Never use `--no-verify`.", f"{line}; git push --no-verify")
