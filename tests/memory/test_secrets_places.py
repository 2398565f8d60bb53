"""Every row of the tables fires; what everybody may know passes; keys in unusual places do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from bench.secret_texts import harmless, planted, shapes
from reverie.secrets import (
    SecretRule,
    compile_pattern,
    matches,
    one_byte_each,
    plausible,
    rows,
    rules,
    scan,
    words,
)

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]

HEX32 = "9b2c4d7e1f60" + "83a5c2d4e6f708192a3b"
MIXED = "kT4vQ9zL2m" + "X7bR1nW8cY5d"
UUID = "3f2b8c1d-" + "9e4a-4c7b-8d21-5a6f0e9b7c34"
BASE64 = "q8R2tV5x" + "Zb1Nc4Md7Kf0Lg3Hj6Pw9Sy2Ua5Xe8Ci1O+"
# For the rows that no text of the lists in `bench` needs.
TEXTS = (
    f"- name: API_TOKEN\n  value: {MIXED}\n",
    f"{MIXED} is our deploy token",
    f"https://{MIXED}@git.acme.io/acme/shop.git",
    "userPassword: {SSHA}" + "q8R2tV5xZb1Nc4Md7Kf0Lg3Hj6Pw9Sy2",
    '{"kty": "EC", "d": "' + "q8R2tV5xZb1Nc4Md7Kf0Lg3Hj6Pw9Sy2Ua5Xe8Ci1Ob" + '"}',
    "lftp -u joe,Velvet4711x sftp.acme.io",
    "CREATE USER joe IDENTIFIED BY 'Velvet4711x';",
)


def _texts() -> Iterator[str]:
    yield from TEXTS
    for name in ("first", "second", "third", "fourth", "fifth"):
        yield from (one.text for one in planted(name))
    for shape in shapes():
        yield from (text for _, text in shape.texts(0))


def _fires(rule: SecretRule, text: str) -> bool:
    raw, compiled = one_byte_each(text), compile_pattern(rule.pattern)
    for match in matches(compiled, raw, again=rule.named):
        span = max(map(match.span, range(1, compiled.groups + 1)), key=lambda at: at[1] - at[0])
        spans = words(text, *span) if rule.kind == "near" else (span,)
        if any(plausible(rule, text, match.span(), one) for one in spans):
            return True
    return False


def test_every_place_fires() -> None:
    texts = [(text, one_byte_each(text).lower()) for text in _texts()]
    places = [rule for rule in rules() if rule.kind][-len(list(rows("places"))) :]
    for rule in places:
        calls = [word.encode("latin-1").lower() for word in rule.keywords]
        called = (text for text, raw in texts if any(word in raw for word in calls))
        assert any(_fires(rule, text) for text in called), (rule.id, rule.pattern)


def _example(cue: str) -> str:
    """A text that a cue matches: the first of each choice."""
    cue = re.sub(r"\(\?:([^()|]*)(?:\|[^()]*)?\)", r"\1", cue.replace(r"\b", ""))
    cue = re.sub(r"\(\?:([^()|]*)(?:\|[^()]*)?\)", r"\1", cue)
    return re.sub(r"[?+]", "", re.sub(r"\[(.)[^\]]*\]", r"\1", cue))


@pytest.mark.parametrize(("kind", "cue"), [(row[0], row[2]) for row in rows("names")])
def test_every_name_says_that_a_secret_follows(kind: str, cue: str) -> None:
    value = "Tr0ub4dor&3x" if kind == "password" else MIXED
    assert scan(f"{_example(cue)}: {value}")


def test_of_the_fifth_list_nearly_all_is_found_and_nearly_nothing_refused() -> None:
    texts, clean = list(planted("fifth")), harmless("fifth")
    missed = [text.shape for text in texts if not scan(text.text)]
    refused = [text for text in clean if scan(text)]
    assert len(clean) >= 300
    assert len(missed) <= 0.05 * len(texts), missed
    assert len(refused) <= 0.01 * len(clean), refused


# The wordings below are not those of the lists in `bench`.
@pytest.mark.parametrize(
    "text",
    [
        f"upload_key: media/{UUID}/photo.heic",
        f"The key of the export is exports/2026/{UUID}.csv.",
        f"aws s3api head-object --bucket acme --key scans/{UUID}/page-1.tif",
        f"cache key web-{UUID}",
        f"The new host key has the fingerprint SHA256:{BASE64}",
        f"host key: SHA256:{BASE64} (ED25519)",
        f"deploy key = ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{BASE64} ci",
        f"PUBLIC_KEY={BASE64}=",
        f"publishable key: pk_live_{MIXED}",
        f"site key {MIXED}",
        f"client id: {MIXED}",
        f"Spotify Client-ID: {HEX32}",
        f"https://{HEX32}@o4711.ingest.sentry.io/4711",
        f"https://api.acme.io/v2/{UUID}",
        f"https://sepolia.etherscan.io/tx/0x{HEX32}{HEX32}",
        "The password is in 1Password, item Grafana2.",
        "Das Passwort steht in 1Password unter Infra2.",
        "Le mot de passe est dans 1Password.",
        "パスワードは1Passwordを見てください。",
        "비밀번호는 1Password에 저장했습니다.",
        "密码见1Password。",
    ],
)
def test_what_everybody_may_know_passes(text: str) -> None:
    assert scan(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        f"web3 = Web3('https://mainnet.infura.io/v3/{HEX32}')",
        f"wss://base-mainnet.g.alchemy.com/v2/{MIXED}",
        f"https://rpc.acme.io/eth/{HEX32}",
        f"https://api.acme.io/v1/{HEX32}/latest",
        f'{{"X-Honeycomb-Team": "{MIXED}"}}',
        f"https://hooks.zapier.com/hooks/catch/4711/{MIXED[:7].lower()}/",
        f"https://uptime.acme.io/heartbeat/{MIXED}{MIXED}",
        f"https://acme.io/sign-in?magic={MIXED}",
        "/var/run/postgresql:5432:shop:app:velvetmoose",
        "[::1]:15432:*:app:Velvet4711x",
        f"access key: media/{MIXED}",
        f"my public-facing API secret is {MIXED}",
        f"API key: {UUID}",
        "The master password of 1Password is Tr0ub4dor&3x",
        "the root password in Vault is Tr0ub4dor&3x",
        "Password in 1Password: Tr0ub4dor&3x",
    ],
)
def test_a_key_in_an_unusual_place_is_found(text: str) -> None:
    assert scan(text)
