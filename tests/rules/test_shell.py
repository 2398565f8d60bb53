"""What a shell line does, as far as it can be told."""

from __future__ import annotations

import pytest

from reverie.text import MAX_COMMANDS, commands

pytestmark = pytest.mark.spec("B20.match")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("git push", ["git push"]),
        ("cd x && FOO=1 git push --force", ["cd x", "git push --force"]),
        ("bash -c 'npm run build; rm -rf dist'", ["npm run build", "rm -rf dist"]),
        ("bash -lc \"sh -c 'rm a'\"", ["rm a"]),
        ("(cd a && make) | tee out", ["make", "tee out"]),
        ("sudo -u bob env A=1 git push", ["git push"]),
        ("echo $(git push)", ["git push"]),
        ("echo `git push`", ["git push"]),
        ("diff <(git log) b", ["git log"]),
        ("if true; then npx tsc; fi", ["npx tsc", "tsc"]),
        ("find . -name x -exec rm -rf {} +", ["rm -rf {}"]),
        ("ls | xargs -n 1 rm -rf", ["rm -rf"]),
        ("timeout 5 pytest -q", ["pytest -q"]),
        ("uv run python -m pytest -q", ["pytest -q"]),
        ("bash <<'EOF'\ngit push\nEOF", ["git push"]),
        ("eval 'git push'", ["git push"]),
        ("nohup npm run dev > log 2>&1 &", ["npm run dev"]),
    ],
)
def test_a_command_is_seen_through_what_runs_it(line: str, seen: list[str]) -> None:
    found = [" ".join(view) for one in commands(line) for view in one.views]
    assert set(seen) <= set(found)


@pytest.mark.parametrize(
    "line",
    ["echo 'git push'", 'git commit -m "git push; git push"', "# git push", "cat <<E\ngit push\nE"],
)
def test_words_that_only_name_a_command_are_none(line: str) -> None:
    assert not [v for one in commands(line) for v in one.views if v[:2] == ["git", "push"]]


def test_where_a_command_runs_and_what_it_writes() -> None:
    first, second = commands("cd a/b && sed -i s/x/y/ c.txt > log")
    assert (first.cwd, second.cwd) == ("", "a/b")
    assert {"c.txt", "log"} <= set(second.writes)
    (_, inside, after) = commands("(cd a; ls) ; pwd")
    assert (inside.cwd, after.cwd) == ("a", "")


@pytest.mark.parametrize(
    "piece", ["$(", "`", "'", '"', "(", "<<E\n", "|", "bash -c '", "\\", "& ", "sudo "]
)
def test_no_line_makes_it_run_away(piece: str) -> None:
    assert len(commands(piece * 3_000)) <= MAX_COMMANDS
