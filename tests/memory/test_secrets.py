"""Secrets are found in prose, in disguise and in names; clean text passes; the value is never told.

Every secret here is made from a published pattern while the test runs.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import ScanFailed, SecretFound, StoreError
from reverie.secrets import (
    AFTER_SECRET,
    GITLEAKS,
    SecretHit,
    check_clean,
    entropy,
    rules,
    scan,
    secret_error,
    widen_pattern,
)
from tests.conftest import Scale
from tests.memory.test_secrets_generator import CORE, Rule, one, positives, upstream

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]

CONTEXTS: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: f"We use {secret}\nfor now",
    "comma": lambda secret: f"The old one, {secret}, was revoked",
    "full stop": lambda secret: f"It was {secret}. Ask before use.",
    "bracket": lambda secret: f"the staging one ({secret}) works",
    "square bracket": lambda secret: f"see [{secret}] for it",
    "bold": lambda secret: f"use **{secret}** here",
    "table": lambda secret: f"| who | {secret} | today |",
    "address": lambda secret: f"https://example.com/?q={secret}&page=2",
    "JSON": lambda secret: json.dumps({"note": secret}),
    "fence": lambda secret: f"```\n{secret}\n```\n",
    "quoted": lambda secret: f'say "{secret}" twice',
    "CRLF": lambda secret: f"one\r\n{secret}\r\ntwo\r\n",
    "end of file": lambda secret: f"at last {secret}",
    "after _": lambda secret: f"my_{secret} it is",
    "between _": lambda secret: f"_{secret}_ in italics",
}


@pytest.fixture(scope="module")
def published(shared: Path) -> dict[str, Rule]:
    return {rule.id: rule for rule in upstream(shared)}


def named(text: str | bytes, name: str = "") -> set[str]:
    return {hit.rule for hit in scan(text, name)}


# -- the rules -----------------------------------------------------------------------


def test_the_rules_are_the_published_ones(shared: Path) -> None:
    ours = [Rule(*row) for row in GITLEAKS]
    assert ours == upstream(shared)


def test_every_end_is_widened() -> None:
    demanding = [row for row in GITLEAKS if AFTER_SECRET in row[1]]
    assert len(demanding) == 151
    assert not any(AFTER_SECRET in rule.pattern for rule in rules())


def test_a_rule_that_changed_under_a_widening_is_noticed() -> None:
    with pytest.raises(ValueError, match="openai-api-key"):
        widen_pattern("openai-api-key", "sk-[a-z]{20}")


# -- row 54: every shape in every context --------------------------------------------


def test_row_54_each_shape_is_found_in_prose(published: dict[str, Rule], scale: Scale) -> None:
    count = scale.pick(1, 40)
    tried = 0
    missed: list[tuple[str, str]] = []
    for rule in published.values():
        for secret in positives(rule, count):
            for context, put in CONTEXTS.items():
                tried += 1
                if rule.id not in named(put(secret)):
                    missed.append((rule.id, context))
    assert tried == 221 * len(CONTEXTS) * count
    assert len(missed) <= 0.005 * tried, missed


@pytest.mark.parametrize("rule", CORE)
def test_row_54_no_core_secret_is_missed(
    published: dict[str, Rule], scale: Scale, rule: str
) -> None:
    for secret in positives(published[rule], scale.pick(10, 300), "core"):
        for context, put in CONTEXTS.items():
            assert rule in named(put(secret)), context


def test_row_54_a_hit_names_rule_and_line_and_nothing_else(published: dict[str, Rule]) -> None:
    secret = one(published["github-pat"])
    hits = scan(f"---\nname: x\n---\n\r\nfine\r\nhere: {secret}.\n")
    assert hits == (SecretHit("github-pat", 6),)
    assert secret not in repr(hits)
    assert set(SecretHit.__slots__) == {"rule", "line"}


@pytest.mark.parametrize(
    ("vendor", "rule", "size"),
    [
        ("adafruit", "adafruit-api-key", 32),
        ("zendesk", "zendesk-secret-key", 40),
        ("discord", "discord-api-token", 64),
    ],
)
def test_a_name_and_its_value_are_seen_through_markdown(vendor: str, rule: str, size: int) -> None:
    value = ("0123456789abcdef" * 4)[:size]
    for text in (
        f"`{vendor}_key`: `{value}`",
        f"| {vendor} key | {value} |",
        f"**{vendor}**: **{value}**",
        f"The {vendor} key is {value}.",
        f"[{vendor}]: <{value}>",
    ):
        assert rule in named(text), text


# -- row 56: what would excuse a secret elsewhere ------------------------------------


@pytest.mark.parametrize("remark", ["# gitleaks:allow", "<!-- gitleaks:allow -->", "EXAMPLE"])
def test_row_56_no_remark_excuses(published: dict[str, Rule], remark: str) -> None:
    for rule in CORE:
        assert rule in named(f"{one(published[rule])} {remark}\n")


def test_row_56_a_word_inside_excuses_nothing(published: dict[str, Rule]) -> None:
    for rule in ("github-pat", "stripe-access-token", "gcp-api-key"):
        for word in ("false", "null", "true"):
            secret = one(published[rule])
            assert rule in named(secret[:12] + word + secret[12 + len(word) :])


def test_row_56_the_alphabet_inside_excuses_nothing() -> None:
    assert "github-pat" in named("ghp" + "_" + "abcdefghijklmnopqrstuvwxyz" + "0123456789")


def test_row_56_a_private_key_without_its_end(published: dict[str, Rule]) -> None:
    begin = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n"
    body = base64.encodebytes(one(published["jwt"]).encode() * 3).decode()
    for text in (begin + body, begin + body[:70], begin.replace("OPENSSH ", "") + body):
        assert named(f"it begins\n{text}") >= {"private-key"}
        assert scan(f"it begins\n{text}")[0].line in (2, 3)
    assert not scan(f"A file that begins with `{begin.strip()}` is private; never commit one.")


def test_row_56_in_a_file_name(published: dict[str, Rule]) -> None:
    for rule in ("aws-access-token", "github-pat", "slack-bot-token"):
        secret = one(published[rule])
        hits = scan(b"nothing in here\n", f"notes/{secret}.md")
        assert SecretHit(rule, 0) in hits
        with pytest.raises(SecretFound) as caught:
            check_clean(b"nothing in here\n", f"notes/{secret}.md")
        assert secret not in str(caught.value) + repr(caught.value) + repr(vars(caught.value))
    assert SecretHit("pkcs12-file", 0) in scan(b"", "keys/server.P12")


def test_row_56_in_frontmatter(published: dict[str, Rule]) -> None:
    secret = one(published["huggingface-access-token"])
    text = f"---\nname: {secret}\ndescription: d\nmetadata:\n  k: v\n---\nbody\n"
    assert SecretHit("huggingface-access-token", 2) in scan(text)


# -- row 58: it fails closed ---------------------------------------------------------


class Broken(str):
    """A text that cannot be read, and whose error tells what is in it."""

    __slots__ = ()

    def replace(self, *args: object, **kwargs: object) -> str:
        raise RuntimeError(str(self))


def test_row_58_what_cannot_be_searched_is_refused(
    published: dict[str, Rule], caplog: pytest.LogCaptureFixture
) -> None:
    secret = one(published["github-pat"])
    with caplog.at_level(logging.DEBUG), pytest.raises(ScanFailed) as caught:
        scan(Broken(secret))
    assert isinstance(caught.value, StoreError)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert secret not in told + repr(caught.value)
    assert not scan("fine")


@pytest.mark.parametrize("data", [None, 3, ["x"], object()])
def test_row_58_neither_is_what_is_no_text(data: object) -> None:
    with pytest.raises(ScanFailed):
        scan(data)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"\x80\x81", bytes(range(256)), "\ud800"])
def test_row_58_any_bytes_are_searched(data: bytes | str) -> None:
    assert scan(data) == ()


# -- row 59: what was searched is what is sent ---------------------------------------


def test_row_59_the_bytes_searched_are_the_bytes_given_back(published: dict[str, Rule]) -> None:
    buffer = bytearray("nothing here, né\n".encode())
    clean = check_clean(buffer, "a.md")
    buffer[:0] = one(published["github-pat"]).encode()
    assert clean == "nothing here, né\n".encode()
    assert type(clean) is bytes
    assert check_clean("nothing here, né\n") == clean
    with pytest.raises(SecretFound):
        check_clean(buffer, "a.md")


def test_the_refusal_says_where_and_never_what(published: dict[str, Rule]) -> None:
    secret = one(published["gitlab-pat"])
    with pytest.raises(SecretFound) as caught:
        check_clean(f"one\ntwo {secret}\n".encode(), "notes/deploy.md")
    told = str(caught.value)
    assert "gitlab-pat in line 2" in told
    assert "notes/deploy.md" in told
    assert secret not in told + repr(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == told
    many = secret_error(tuple(SecretHit("jwt", n) for n in range(1, 9)), "a.md")
    assert "and 3 more" in str(many)


# -- any text ------------------------------------------------------------------------


@given(st.one_of(st.text(), st.binary()), st.text(max_size=40))
def test_any_text_has_an_answer(data: str | bytes, name: str) -> None:
    assert scan(data, name) == scan(data, name)


@given(st.lists(st.text(), max_size=8), st.lists(st.text(), max_size=3))
def test_a_secret_is_found_in_its_line_whatever_is_around(
    published: dict[str, Rule], before: list[str], after: list[str]
) -> None:
    secret = f"see {one(published['github-pat'])}, please"
    text = "\n".join([*before, "", secret, "", *after]).replace("\r", " ")
    assert SecretHit("github-pat", text[: text.index(secret)].count("\n") + 1) in scan(text)


# -- clean text ----------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, str]]:
    with gzip.open(path) as file:
        return [json.loads(line) for line in file]


def test_no_memory_document_is_refused(shared: Path) -> None:
    documents = lines(shared / "data" / "memory_docs_dev.jsonl.gz")
    assert len(documents) == 642
    refused = [row["path"] for row in documents if scan(row["body"].encode(), row["path"])]
    assert refused == []


def test_no_instruction_file_is_refused(shared: Path) -> None:
    files = lines(shared / "data" / "instruction_files_dev.jsonl.gz")
    assert len(files) == 47
    assert [row["path"] for row in files if scan(row["text"], row["path"])] == []


@pytest.mark.parametrize(
    "text",
    [
        "export API_KEY=$ANTHROPIC_API_KEY",
        "api_key: ${{ secrets.DEPLOY_TOKEN_2 }}",
        "token = settings.background_tokens_per_day_v2",
        "The key is `compute_lifecycle_display2(entry)`.",
        "password: YOUR_PASSWORD_HERE_12345",
        "curl -u user:password https://example.com",
        'curl -H "Authorization: Bearer YOUR_ACCESS_TOKEN" https://example.com',
        "secret: xxxxxxxxxxxxxxxxxxxxxxxx",
        "primary key: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "the cache key = 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "auth, docs/learned/architecture/claude-cli-integration.md",
        "s.getSessionsBranchEntries(ctx)",
        "commit 356a192b7913b04c54574d18c28d46e6395428ab",
    ],
)
def test_what_only_looks_like_one_passes(text: str) -> None:
    assert scan(text) == ()


def test_entropy_must_be_above_the_floor_not_at_it() -> None:
    at_floor = "01234567" * 4  # eight signs, each as often: three bits, as the rule's floor
    assert entropy(at_floor) == 3
    assert "facebook-secret" not in named(f"facebook: {at_floor}")
    assert "facebook-secret" in named(f"facebook: {at_floor[:-1]}8")
