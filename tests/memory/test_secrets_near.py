"""A password is known near the word for it, whatever joins the two: in many languages, in calls,
in columns, in the line after. Secrets here are made at run time."""

from __future__ import annotations

import pytest

from bench.secret_texts import harmless, planted
from reverie.secrets import certain, remove_secrets, scan, spelt, words

pytestmark = pytest.mark.spec("11.secrets")
WORDS_NUMBER = "Moun" + "tain1974^"
DRAWN = "ySMXjYpd" + "grtmsx7aK"
PHRASE = "otter-lemon-" + "kettle-tiger47"


@pytest.mark.parametrize("secret", [WORDS_NUMBER, DRAWN, PHRASE, "z7NZ" + "GsiZUKu%4k"])
@pytest.mark.parametrize(
    "before",
    [
        "Ο κωδικός του διακομιστή είναι ",
        "كلمة المرور لخادم الاختبار هي ",
        "הסיסמה לשרת הבדיקות היא ",
        "টেস্ট সার্ভারের পাসওয়ার্ড হল ",
        "รหัสผ่านของเซิร์ฟเวอร์ทดสอบคือ ",
        "Testipalvelimen salasana on ",
        "数据库root密码改成",
        'new NetworkCredential("joe", "',
        "const token = jwt.sign(payload, '",
        "auth-user-pass file:\njoe\n",
        "password: >-\n    ",
    ],
)
def test_a_password_near_its_word_needs_no_joint(before: str, secret: str) -> None:
    text = before + secret
    assert scan(text)
    assert secret not in remove_secrets(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        'const API_KEY: &str = "K9jJMjKuNLcC1lB7" "4DxY2N5ihyLvbfjF";'.replace('" "', ""),
        "app.secret_key = b'" + "vZ8t5zLnccaOFx14iRxdRosP'",
        "bind_pw = " + WORDS_NUMBER,
        "az login -u http://ci -p " + "5S9Ia6rIWACfx66WNqT9CDRM --tenant acme.io",
        "vercel_blob_rw_" + "x8wpp5XIFoZWWLbY_wkKMyFn1p6FvcpbuAx2MjXx3CLYv0O",
        "https://cal.io/ical/private-" + "3443083ea05f8454e68ab199b5a1d6eb/basic.ics",
        "Please use the following password:\n\n" + "d50f09c022f7329ed7b3365838ce5de3\n",
    ],
)
def test_other_places_that_a_list_written_without_the_rules_showed(text: str) -> None:
    assert scan(text)


@pytest.mark.parametrize("sign", ["|", ",", ";", "\t"])
def test_every_row_of_a_column_of_passwords_is_found(sign: str) -> None:
    secrets = [WORDS_NUMBER, DRAWN, "Glac" + "ier2001!", "N33" + "dl3%5x"]
    rows = [sign.join(("", f"host{n}", "root", one, "")) for n, one in enumerate(secrets)]
    head = sign.join(("", "host", "user", "password", ""))
    clean, rules = remove_secrets("\n".join((head, *rows, "", "That is all.")))
    assert rules
    assert not [one for one in secrets if one in clean]
    assert "That is all." in clean


@pytest.mark.parametrize(
    "text",
    [
        "The password policy of Windows2000 and RFC2119 holds for user 4711.",
        "Users sign in at https://acme.io/login?next=%2Forders%2F2026",
        "The password field of `maxSessionLanes*2+1` columns",
        "com.acme.security.PasswordEncoder$$SpringCGLIB$$0",
        "password reset: feature/SHOP-4711-reset, released 2026-03-13T10:00:00Z",
        "login fails on iPhone15 since commit 4f9c2a7b",
        "the call toolu_01A09q90qw90lq917835lq9 of msg_01XFDUDYJgAACzvnptvVoYEL",
        "sha512-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2 + "==",
        "| user | password |\n|---|---|\n| joe | in the vault |\n| ana | see 1Password |",
    ],
)
def test_what_only_stands_near_such_a_word_is_let_through(text: str) -> None:
    assert scan(text) == ()


def test_a_word_is_looked_at_with_and_without_what_closes_it() -> None:
    found = [text[start:end] for text in ["(Otter1996*)"] for start, end in words(text, 0, 12)]
    assert found == ["Otter1996*", "Otter1996"]
    assert certain("Otter" + "1996*")
    assert not certain("Otter1996")


def test_a_letter_that_no_byte_stands_for_is_an_error_and_not_a_rule_that_finds_nothing() -> None:
    with pytest.raises(UnicodeEncodeError):
        spelt("գաղտնաբառ")


@pytest.mark.parametrize(
    ("texts", "least"),
    [
        (planted("second"), 0.99),
        (planted("third"), 0.95),
        (planted("fourth"), 0.88),
    ],
)
def test_what_the_lists_of_others_gave_is_kept(texts: object, least: float) -> None:
    every = list(texts)  # type: ignore[call-overload]
    assert sum(bool(scan(one.text)) for one in every) >= least * len(every)


def test_no_look_alike_is_refused() -> None:
    assert [text for text in harmless("second") if scan(text)] == []
