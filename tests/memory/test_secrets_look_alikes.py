"""A hundred texts of public formats that look like secrets and are none, drawn at run time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest

from reverie.secrets import scan

pytestmark = pytest.mark.spec("11.secrets")
HEX, DIGITS = "0123456789abcdef", "0123456789"
LOWER = "abcdefghijklmnopqrstuvwxyz"
MIXED = LOWER.upper() + LOWER + DIGITS
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BEGIN = "-----BEGIN"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
chance = Random(20261118)


def of(signs: str, count: int) -> str:
    return "".join(chance.choice(signs) for _ in range(count))


def b64(count: int) -> str:
    return base64.b64encode(chance.randbytes(count)).decode()


def uuid() -> str:
    return str(UUID(bytes=chance.randbytes(16), version=4))


def pairs(count: int, sign: str = ":") -> str:
    return sign.join(of(HEX, 2) for _ in range(count))


# One row for each format, as its own program or page prints it.
TEXTS: tuple[Callable[[], str], ...] = (
    lambda: f"commit {of(HEX, 40)}\nAuthor: Ana <ana@example.org>",
    lambda: f"Merge: {of(HEX, 7)} {of(HEX, 7)}",
    lambda: f"index {of(HEX, 10)}..{of(HEX, 10)} 100644",
    lambda: f"git bisect says {of(HEX, 40)} is the first bad commit",
    lambda: f"uses: actions/checkout@{of(HEX, 40)} # v4.2.2",
    lambda: f'"integrity": "sha512-{b64(64)}",',
    lambda: f'"resolved": "https://registry.example.org/lodash/-/lodash-4.17.21.tgz#{of(HEX, 40)}"',
    lambda: f"golang.org/x/text v0.14.0 h1:{b64(32)}",
    lambda: f'checksum = "{of(HEX, 64)}"',
    lambda: f"    --hash=sha256:{of(HEX, 64)} \\",
    lambda: f"FROM python:3.12-slim@sha256:{of(HEX, 64)}",
    lambda: f"Digest: sha256:{of(HEX, 64)}\nStatus: Image is up to date for redis:7",
    lambda: f"/nix/store/{of(BASE32, 32)}-openssl-3.0.13",
    lambda: f"sha256 = \"sha256-{b64(32)}\";",
    lambda: f"SHA256:{b64(32).rstrip('=')} ana@laptop (ED25519)",
    lambda: f"MD5:{pairs(16)} (RSA)",
    lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{of(MIXED, 43)} ana@laptop",
    lambda: f"Key fingerprint = {' '.join(of('0123456789ABCDEF', 4) for _ in range(10))}",
    lambda: f"pub   ed25519 2026-01-02 [SC]\n      {of('0123456789ABCDEF', 40)}",
    lambda: f"serial={of('0123456789ABCDEF', 36)}",
    lambda: f"SHA1 Fingerprint={pairs(20).upper()}",
    lambda: f"{BEGIN} CERTIFICATE-----\nMII{of(MIXED, 61)}\n{of(MIXED, 64)}\n-----END CERTIFICATE",
    lambda: f"{BEGIN} PUBLIC KEY-----\nMII{of(MIXED, 61)}\n-----END PUBLIC KEY-----",
    lambda: f'"v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEB{of(MIXED, 120)}IDAQAB"',
    lambda: f'{{"kty": "RSA", "e": "AQAB", "kid": "{of(MIXED, 20)}", "n": "{of(MIXED, 86)}"}}',
    lambda: f"script-src 'self' 'sha256-{b64(32)}'",
    lambda: f"Content-Security-Policy: script-src 'nonce-{b64(16)}'",
    lambda: f'<script integrity="sha384-{b64(48)}" crossorigin="anonymous"></script>',
    lambda: f'ETag: W/"{of(HEX, 32)}"',
    lambda: f"x-amz-request-id: {of(MIXED.upper(), 16)}",
    lambda: f"x-amz-id-2: {b64(57)}",
    lambda: f"CF-Ray: {of(HEX, 16)}-FRA",
    lambda: f"traceparent: 00-{of(HEX, 32)}-{of(HEX, 16)}-01",
    lambda: f"X-Request-Id: {uuid()}",
    lambda: f"correlation id {uuid()} failed twice",
    lambda: f"uid: {uuid()}\n  resourceVersion: \"{of(DIGITS, 8)}\"",
    lambda: f"pod/checkout-{of(HEX, 10)}-{of(LOWER, 5)} restarted",
    lambda: f"arn:aws:iam::{of(DIGITS, 12)}:role/deploy-{of(LOWER, 8)}",
    lambda: f"arn:aws:secretsmanager:eu-west-1:{of(DIGITS, 12)}:secret:prod/db-{of(MIXED, 6)}",
    lambda: f"ami-0{of(HEX, 16)} in eu-central-1",
    lambda: f"subnet-0{of(HEX, 16)}, sg-0{of(HEX, 16)}",
    lambda: f"s3://logs-prod/2026/11/18/{uuid()}/part-00000-{uuid()}.snappy.parquet",
    lambda: f"gs://backups/{of(HEX, 32)}/dump.sql.gz",
    lambda: f"projects/acme/secrets/db-password/versions/{of(DIGITS, 2)}",
    lambda: f"/subscriptions/{uuid()}/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/kv",
    lambda: f"keyVaultId: /subscriptions/{uuid()}/secrets/db-password",
    lambda: f"cus_{of(MIXED, 14)} pays with pm_{of(MIXED, 24)}",
    lambda: f"price_1{of(MIXED, 23)} and prod_{of(MIXED, 14)}",
    lambda: f"evt_1{of(MIXED, 23)} was delivered twice",
    lambda: f"slack channel C0{of(MIXED.upper(), 9)}, thread 17{of(DIGITS, 8)}.{of(DIGITS, 6)}",
    lambda: f"https://docs.google.com/document/d/1{of(MIXED + '-_', 43)}/edit",
    lambda: f"https://youtu.be/{of(MIXED + '-_', 11)}?t=42",
    lambda: f"https://www.figma.com/file/{of(MIXED, 22)}/Checkout?node-id=12%3A345",
    lambda: f"https://app.asana.com/0/{of(DIGITS, 16)}/{of(DIGITS, 16)}",
    lambda: f"https://notion.so/acme/Runbook-{of(HEX, 32)}",
    lambda: f"https://gist.github.com/ana/{of(HEX, 32)}",
    lambda: f"https://sentry.io/organizations/acme/issues/{of(DIGITS, 10)}/events/{of(HEX, 32)}/",
    lambda: f"0x{of(HEX, 64)} was mined in block {of(DIGITS, 8)}",
    lambda: f"contract 0x{of(HEX, 40)}",
    lambda: f"bc1q{of(BASE32, 38)}",
    lambda: f"1{of(BASE58, 33)} received 0.2 BTC",
    lambda: f"ipfs://bafybei{of(BASE32, 52)}/readme.md",
    lambda: f"ipfs://Qm{of(BASE58, 44)}",
    lambda: f"order 01{of(CROCKFORD, 24)} was shipped",
    lambda: f"job 2{of(MIXED, 26)} ended with code 3",
    lambda: f"ObjectId('{of(HEX, 24)}')",
    lambda: f"nanoid {of(MIXED + '-_', 21)} collides",
    lambda: f"tweet {of(DIGITS, 19)} was deleted",
    lambda: f"IBAN DE{of(DIGITS, 20)}",
    lambda: f"VIN WVWZZZ1JZ{of('ABCDEFGHJKLMNPRSTUVWXYZ' + DIGITS, 8)}",
    lambda: f"link/ether {pairs(6)} brd ff:ff:ff:ff:ff:ff",
    lambda: f"inet6 2001:db8:{of(HEX, 4)}:{of(HEX, 4)}:{of(HEX, 4)}:{of(HEX, 4)}:{of(HEX, 4)}:1/64",
    lambda: f"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b64(60)}",
    lambda: f"UUID=\"{uuid()}\" TYPE=\"ext4\" PARTUUID=\"{of(HEX, 8)}-01\"",
    lambda: f"Linux buildid sha1={of(HEX, 40)}, stripped",
    lambda: f"core dumped at 0x{of(HEX, 12)} in libc.so.6+0x{of(HEX, 5)}",
    lambda: f"TLS session resumed, cipher TLS_AES_256_GCM_SHA384, id {of(HEX, 32)}",
    lambda: f"toolu_01{of(MIXED, 22)} returned an error",
    lambda: f"chatcmpl-{of(MIXED, 29)} took 3 s",
    lambda: f"run_{of(MIXED, 24)} of thread_{of(MIXED, 24)}",
    lambda: f"G-{of(MIXED.upper(), 10)} is the measurement id of GTM-{of(MIXED.upper(), 7)}",
    lambda: "password: ${DB_PASSWORD:?must be set}",
    lambda: "password: <your-database-password>",
    lambda: "DB_PASSWORD=$(op read op://prod/db/password)",
    lambda: 'api_key = os.environ["PAYMENTS_API_KEY"]',
    lambda: "token: ${{ secrets.GITHUB_TOKEN }}",
    lambda: "Authorization: Bearer $TOKEN",
    lambda: 'curl -H "Authorization: Bearer <token>" https://api.example.org/v1/me',
    lambda: "secretKeyRef:\n  name: db-credentials\n  key: password",
    lambda: "spring.datasource.password=${vault.db.password}",
    lambda: "password = var.database_admin_password",
    lambda: "max_tokens=4096, thinking budget 16000 tokens, password length 24",
    lambda: "resetPasswordTokenExpiresInMinutes: 30",
    lambda: "the password is stored in Vault under kv/prod/orders/db",
    lambda: "Das Passwort liegt in 1Password im Tresor Plattform",
    lambda: "el token caduca a los 15 minutos y se renueva solo",
    lambda: "API key rotation happens every 90 days, owner: team-payments@example.org",
    lambda: "class PasswordResetTokenGeneratorFactory2: ...",
    lambda: "AWS_SECRET_ACCESS_KEY is set by the role arn, see terraform/iam.tf line 214",
    lambda: f"encrypted: ENC[AES256_GCM,data:{b64(18)},iv:{b64(32)},tag:{b64(16)},type:str]",
)  # fmt: skip


def test_of_a_hundred_look_alikes_one_is_refused_at_most() -> None:
    assert len(TEXTS) >= 100
    refused = [text for make in TEXTS if scan(text := make())]
    assert len(refused) <= 1, refused


LABELLED = (
    lambda: f'checksum = "{of(HEX, 64)}"',
    lambda: f"serial: {of(MIXED, 24)}",
    lambda: f"traceparent: 00-{of(HEX, 32)}-{of(HEX, 16)}-01",
    lambda: f"CF-Ray: {of(HEX, 16)}-FRA",
    lambda: f"x-amz-id-2: {b64(57)}",
    lambda: f"uid: {uuid()}",
    lambda: f"{BEGIN} CERTIFICATE-----\nMII{of(MIXED, 61)}\n{of(MIXED, 64)}\n-----END CERTIFICATE",
)


@pytest.mark.parametrize("make", LABELLED)
@pytest.mark.parametrize("before", ["The key rotation job logged", "login failed,"])
def test_a_value_is_what_its_own_label_says(make: Callable[[], str], before: str) -> None:
    """A word for secrets somewhere before it counts for less."""
    assert scan(f"{before} {make()}") == ()


@pytest.mark.parametrize("label", ["password", "token", "api_key", "secret", "key"])
def test_a_label_of_a_secret_is_no_such_label(label: str) -> None:
    assert scan(f"checksum = 12\n{label} = {of(MIXED, 32)}")
