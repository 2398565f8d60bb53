"""Rules of our own: every token they describe, the secrets people have, and no line of prose."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.secret_texts import shapes
from bench.secrets import prose
from reverie.secrets import TOKEN_FLOOR, TOKENS, likely, remove_secrets, scan
from tests.conftest import Scale
from tests.memory.test_secrets import CONTEXTS
from tests.memory.test_secrets_generator import Rule, positives

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]


def test_each_token_is_found_in_prose(scale: Scale) -> None:
    count = scale.pick(2, 40)
    tried = 0
    missed: list[tuple[str, str]] = []
    for rule, pattern, words in TOKENS:
        for secret in positives(Rule(rule, pattern, tuple(words.split(" ")), TOKEN_FLOOR), count):
            for context, put in CONTEXTS.items():
                tried += 1
                if not scan(put(secret)):
                    missed.append((rule, context))
    assert tried == len(TOKENS) * len(CONTEXTS) * count
    assert len(missed) <= 0.005 * tried, missed


def test_secrets_people_have_are_found(scale: Scale) -> None:
    tried = 0
    missed: list[tuple[str, str]] = []
    for shape in shapes():
        for seed in range(scale.pick(1, 20)):
            for context, text in shape.texts(seed):
                tried += 1
                if not scan(text):
                    missed.append((shape.name, context))
    assert len(shapes()) >= 120
    assert len({shape.name for shape in shapes()}) == len(shapes())
    assert len(missed) <= 0.05 * tried, missed


def test_one_line_of_prose_in_a_thousand_at_most_is_refused(shared: Path) -> None:
    lines = false = 0
    for text in prose(shared):
        lines += text.count("\n") + 1
        false += len({hit.line for hit in scan(text)})
    assert lines > 70_000
    assert false <= 0.001 * lines


@pytest.mark.parametrize(
    "text",
    [
        "The password is required.",
        "The password is hashed with sha256 and a salt.",
        "password: str = Field(min_length=8)",
        "password = config.database.password2",
        "Reset the password after step-2.",
        "Passwort: siehe Tresor",
        "密码是必填项。",
        "postgres://user:password@localhost/app",
        "postgres://postgres:postgres@localhost:5432/app",
        "https://${USER}:${TOKEN}@git.example.com/app.git",
        "Authorization: Bearer <token>",
        "Authorization: Bearer your_access_token_here",
        "X-Api-Key: your-api-key-goes-here",
        "machine example.com login user password secret",
        "docker login -u kim --password-stdin",
        "A key begins with sk-ant-api03- and goes on for a while.",
        "the task-runner and the risk-assessment-of-every-single-change-that-we-make",
    ],
)
def test_words_about_secrets_pass(text: str) -> None:
    assert scan(text) == ()


@pytest.mark.parametrize("value", ["Sommer4711!", "k3Vx!pq9", "tiger4711", "WqLzTrYpKd", "4711081"])
def test_what_people_take_for_a_password_is_one(value: str) -> None:
    assert likely("password", value)


def test_a_text_goes_on_without_its_secrets() -> None:
    secret = "gsk" + "_" + "aB3dE5gH7j" * 5
    text, rules = remove_secrets(f"Deploys use {secret}, from Kim.\nThe build takes a minute.")
    assert text == "Deploys use [secret removed: groq-key], from Kim.\nThe build takes a minute."
    assert rules == ("groq-key",)
    assert remove_secrets("The build takes a minute.\r\n") == ("The build takes a minute.\r\n", ())


def test_a_disguised_secret_takes_its_lines_with_it() -> None:
    secret = "gsk" + "_" + "aB3dE5gH7j" * 5
    text, rules = remove_secrets(
        f"before\n{secret[:30]}\n{secret[30:]}\nafter\n%67{secret[1:]}\nend"
    )
    assert rules
    assert "before" in text
    assert not any(secret[at : at + 6] in text for at in range(len(secret) - 6))
    assert scan(text) == ()
