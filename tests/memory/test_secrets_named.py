"""Secrets that are known by what is said before them, in whatever language and form.

The wordings here are not those of the lists in `bench`.
"""

from __future__ import annotations

import random
import re
import string

import pytest

from reverie.secrets import remove_secrets, scan

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]

HEX = string.digits + "abcdef"
BASE64 = string.ascii_letters + string.digits + "+/"
SIGNS = string.ascii_letters + string.digits
BASE32 = string.ascii_uppercase + "234567"

PASSWORDS = ("velvet-moose41", "Velvet.moose41", "Sommer4711!", "tiger4711", "Tr0ub4dor&3")
SAID = (
    "The wifi password is {}.",
    "Das Passwort lautet {}, bitte merken",
    "Kennwort: {}",
    "La contraseña del router es: {}",
    "la clave del servidor es `{}`",
    "Le mot de passe du wifi : {}",
    "mdp: {}",
    "Пароль от базы — {}",
    "密码是{}",
    "パスワードは{}です",
    "비밀번호는 {}",
    "a senha do wifi é {}",
    "het wachtwoord is {}",
    "Set `DB_PASSWORD` to `{}`",
    "export SMTP_PASS={}",
    "docker run -e POSTGRES_PASSWORD={} postgres",
    "log in with user kim and password {}",
    "use {} as the password",
    "Password for staging → {}",
    "<password>{}</password>",
    '<add key="DbPassword" value="{}" />',
    "- name: DB_PASSWORD\n  value: {}",
    "define('DB_PASSWORD', '{}');",
    "ALTER USER kim WITH PASSWORD '{}';",
    "CREATE USER kim IDENTIFIED BY '{}';",
    "sshpass -p '{}' ssh root@host",
    "echo '{}' | sudo -S ls",
    "Server=db;User Id=sa;Password={};",
    'psk="{}"',
    "password:\n{}\n",
)
NAMES = (
    "Deepgram API key",
    "clé API",
    "API-Schlüssel",
    "токен",
    "token de acceso",
    "chave da API",
    "密钥",
    "webhook signing secret",
    "DEEPGRAM_API_KEY",
    "refreshToken",
    "x-api-key",
)
JOINTS = (
    "The {} is {}.",
    "{}: {}",
    '{} = "{}"',
    "{} → `{}`",
    "Set `{}` to `{}`.",
    "| {} | {} |",
    "our {} for staging is now {}, keep it",
    "{} ({})",
    "{}\n{}\n",
)
KEYS = ((HEX, 32), (HEX, 64), (SIGNS, 24), (string.ascii_lowercase + string.digits, 32))


def drawn(alphabet: str, count: int, seed: object = 7) -> str:
    chance = random.Random(f"{seed}{alphabet}{count}")
    return "".join(chance.choice(alphabet) for _ in range(count))


def left(text: str, secret: str) -> list[str]:
    """The pieces of the secret that stay when it is taken out of the text."""
    clean = re.sub(r"\[secret removed: [\w-]+\]", "", remove_secrets(text)[0])
    size = min(6, len(secret))
    return [
        part for at in range(len(secret) - size + 1) if (part := secret[at : at + size]) in clean
    ]


@pytest.mark.parametrize("said", SAID)
def test_a_password_after_any_usual_word(said: str) -> None:
    for password in PASSWORDS:
        text = said.format(password)
        assert scan(text), password
        assert left(text, password) == []


@pytest.mark.parametrize("joint", JOINTS)
def test_a_key_after_any_usual_name(joint: str) -> None:
    for name in NAMES:
        for alphabet, count in KEYS:
            secret = drawn(alphabet, count, name)
            text = joint.format(name, secret)
            assert scan(text), (name, count)
            assert left(text, secret) == []


WORDS = re.findall(
    r"\w+", "acid acoustic actor admit album alarm amber anchor apple arrow atom axis"
)
LINES = "\n".join(drawn(BASE64, 64, line) for line in range(5))
PLACES = {
    "cookie": f"Cookie: theme=dark; session=«{drawn(SIGNS, 40)}»",
    "set-cookie": f"Set-Cookie: sid=«s%3A{drawn(SIGNS, 60)}»; Path=/",
    "signed address": f"at «https://b.s3.io/a?X-Amz-Date=1&X-Amz-Signature={drawn(HEX, 64)}» now",
    "reset link": f"«https://app.io/reset?token={drawn(SIGNS, 43)}»",
    "htpasswd": f"kim:«$apr1${drawn(SIGNS, 8)}${drawn(SIGNS, 22)}»",
    "shadow": f"root:«$6${drawn(SIGNS, 16)}${drawn(SIGNS, 86)}»:19000:0:99999:7:::",
    "bcrypt": f"«$2b$12${drawn(SIGNS, 53)}»",
    "putty": f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 5\n«{LINES}»\nPrivate-MAC: 1",
    "key": f"-----BEGIN RSA PRIVATE KEY-----\n«{LINES}»\n-----END RSA PRIVATE KEY-----",
    "key without an end": f"-----BEGIN OPENSSH PRIVATE KEY-----\n«{LINES}»\n\nAsk Kim.",
    "key of another program": f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n«{LINES}»",
    "web key": f'{{"kty":"RSA","e":"AQAB","d":"«{drawn(SIGNS, 200)}»"}}',
    "extended key": f"«xprv9s21ZrQH143K{drawn('abcdefghijkmnpqrstuvwxyz123456789', 95)}»",
    "wallet": f"Seed phrase: «{' '.join(WORDS)}»",
    "wallet, a word a line": "Recovery phrase:\n«"
    + "\n".join(f"{number}. {word}" for number, word in enumerate(WORDS, 1))
    + "»",
    "passphrase": "the passphrase for the backup key is «copper falcon amber raven»",
    "app password": "Gmail app password: «xkqd wzpf bvnt hjrk»",
    "pin": "The door code is «773141»",
    "one-time seed": f"2FA secret: «{drawn(BASE32, 32)}»",
    "recovery codes": "Recovery codes: «x7k2p-9qm4t, b8w3z-5rt6y, n4v9c-2hj7k»",
    "header": f"Authorization: «{drawn(SIGNS, 40)}»",
    "wireless network": "WIFI:T:WPA;S:home;P:«Velvet_moose41»;;",
    "vendor of no list": f"«acme_live_{drawn(SIGNS, 32)}»",
}


@pytest.mark.spec("7.secrets-whole")
@pytest.mark.parametrize("place", PLACES)
def test_nothing_stays_of_what_stands_in_its_place(place: str) -> None:
    before, _, rest = PLACES[place].partition("«")
    secret, _, after = rest.partition("»")
    text = before + secret + after
    assert scan(text)
    assert left(text, secret) == []


@pytest.mark.parametrize(
    "text",
    [
        "The password is stored hashed using bcrypt.",
        "password: read-from-vault",
        "Passwords go to OpenSSL as they are.",
        "contraseña: obligatoria",
        "Le mot de passe est obligatoire.",
        "пароль: обязательно",
        "Set `DB_PASSWORD` to `<your-password>`",
        "token = b64encode(userpass).decode()",
        "max_tokens: 128000",
        "gpg --recv-keys 5BE8A3F6C8A5C01D106C0AD820B1A390B168D356",
        "The key's fingerprint is SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
        "Cookie: theme=dark; lang=en-US",
        "https://example.com/search?key=value&token=example-token-here",
        'Boundaries are identified by `type: "summary"` entries.',
        "Our recovery phrase for outages is that nobody deploys alone and all who can help do help",
        "pin: 1.2.3",
        "The exit code is 137001",
        "partition key: 550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_what_only_speaks_of_secrets_passes(text: str) -> None:
    assert scan(text) == ()


@pytest.mark.parametrize("sign", ["*", "x", "x.", "user "])
def test_a_long_row_of_stand_ins_takes_no_longer(sign: str) -> None:
    # Tried in every way to cut it up, this would not end.
    assert scan(f"password: {sign.strip() * 40}!a1") is not None
