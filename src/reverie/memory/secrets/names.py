"""What says that a secret follows: names in many languages, what joins them to it, and the value.

Parts of patterns and nothing else. A name is found wherever it ends, so `DB_PASSWORD`,
`smtpPasswd` and `x-api-key` need no entry of their own.
"""

from __future__ import annotations

from reverie.memory.secrets.signs import DASH, spelt

_PASSWORDS = (
    *("kennwort", "losungswort", "contrasen[ay]a?", r"\bclave", "mot[ _-]de[ _-]passe", r"\bmdp"),
    *("senha", "palavra[ _-]passe", "wachtwoord", "losenord", "adgangskode", "kodeord", "passord"),
    *("salasana", r"\bhaslo", r"\bheslo", r"\bparola", r"\bsifre", "jelsz", "mat[ _]khau"),
    *(
        "kata[ _]sandi",
        "парол(?:ь|я|ем|и)",
        "密[码碼]",
        "口令",
        "パスワード",
        "비밀번호",
        "暗証番号",
    ),
    *("lozink", "лозинк", r"\bgeslo", "slaptazod", "parool", "nenosiri", "wagwoord"),
    *("κωδικο[ςσυ]", "كلمة (?:ال)?(?:مرور|سر)", "رمز (?:ال)?(?:مرور|عبور)", "סיסמ[הא]"),
    *("पासवर्ड", "পাসওয়ার্ড", "รหัสผ่าน", "비번", r"пасс"),
)
_KEYS = (
    *("schlussel", "geheimnis", "jeton", r"\bclef?", r"\bllave", r"\bclave", r"\bchave", "sleutel"),
    *("chiave", "ключ", "токен", "секрет", "密[钥鑰]", "秘[钥鑰]", "令牌"),
    *("nyckel", "nokkel", "nogle", "klucz", r"\bklic", "kulcs", "anahtar", "kunci", "토큰", "キー"),
)
PASSWORD = (
    rf"(?:pass[ _-]?(?:wor[dt]|wd|phrase|code)|pas+w(?:or)?d|\bpsw|pswd|pwd|\bpw|[_.-]pw"
    rf"|[_.-]pass|\bpsk|community[ _-]string"
    rf"|{spelt('|'.join(_PASSWORDS))})(?:s|en|es)?"
)
KEY = (
    r"(?:(?:api|access|auth|secret|private|sign(?:ing)?|encrypt(?:ion)?|master|account|shared"
    r"|service|storage|subscription|license|app|admin|client|deploy|webhook|hmac|aes|jwt|host)"
    r"[ _.-]?keys?|token|secret|(?:php|j)sess(?:ion)?id|credential|\bcreds|keys?"
    rf"|{spelt('|'.join(_KEYS))})s?"
)
_TAIL = (
    r"(?:[ _.-]?(?:prod(?:uction)?|dev(?:el)?|stag(?:e|ing)|test|root|admin|user|db|live|new|old"
    r"|value|string|text|base|base64|b64|\d{1,2}))?"
)
PASSWORD_WORDS = spelt(
    "pass pwd pw psk community pswd psw paswd kennwort losungswort contrase clave "
    "mdp senha palavra wachtwoord "
    "losenord adgangskode kodeord salasana haslo heslo parola sifre jelsz khau sandi "
    "парол 密码 密碼 口令 パスワード 비밀번호 暗証番号 lozink лозинк geslo slaptazod parool "
    "nenosiri wagwoord κωδικο كلمة رمز סיסמ पासवर्ड পাসওয়ার্ড รหัสผ่าน 비번 пасс"
)
KEY_WORDS = spelt(
    "key token secret sessid sessionid credential creds schlussel geheimnis jeton "
    "cle llave clave chave sleutel "
    "chiave ключ токен секрет 密钥 密鑰 秘钥 秘鑰 令牌 "
    "nyckel nokkel nogle klucz klic kulcs anahtar kunci 토큰 キー"
)

# What closes a name, what joins it to a value, and what opens that, on one line.
_CLOSES = rf"""{_TAIL}["'\x60*_)\]\\]{{0,4}}[ \t]{{0,3}}(?:\([^()\n]{{1,30}}\)[ \t]{{0,2}})?"""
_IS = spelt("[是为為は는은]")
_TYPE = r":[ \t]?[&*]?(?:'\w{1,12}[ \t])?[\w.<>\[\]?]{1,24}(?:[ \t]\|[ \t]\w{1,12})?[ \t]?="
_SIGN = (
    rf"(?::=|=>|->|==?|:|\||>|{DASH}|{_IS}|{_TYPE}"
    r"""|["'][ \t]{1,3}(?:value|content)[ \t]?=|["'],[ \t]?["'])"""
)
_SAYS = (
    r"(?:is|was|are|to|lautet|ist|war|heisst|auf|es|est|era|e|eh|sera|sono|jest"
    r"|is\ now|now|as|als"
    r"|como|comme|value|wert|currently|c'est|it's|that's)"
)
_OPENS = r"""[ \t*_(\[\\]{0,5}"""
_VALUE = (
    r"""(?:[bruf]{0,2}["'\x60]{1,3}([^\s"'\x60<>\x00-\x1f\x7f-\xff]{6,120})["'\x60]"""
    r"""|["'\x60*_(\[\\ \t]{0,8}(?:([^\s"'\x60<>(){}\[\]|,;\x00-\x1f\x7f-\xff]{6,200})"""
    r"""|([^\s"'\x60<>|\x00-\x1f\x7f-\xff]{8,60})))"""
)
VALUE = r"""([^\s"'\x60<>(){}\[\]|,;\x00-\x1f\x7f-\xff]{6,120})"""
AFTER_SIGN = rf"{_CLOSES}{_SIGN}(?:[ \t]{{0,2}}(?:[|>][+-]?)?\n)?{_OPENS}{_VALUE}"
"""`name: value`, `name = "value"`, `| name | value |`, `<name>value`."""
AFTER_WORDS = (
    rf"(?:'s)?{_CLOSES}(?:[ \t]?[^\s:=.|]{{1,20}}){{0,6}}?"
    rf"(?:[ \t]{{1,3}}{_SAYS}[ \t]?:?[ \t]{{1,3}}"
    rf"|[ \t]{{0,2}}(?::|=>?|->|>|\||{DASH})[ \t]{{1,3}}){_OPENS}{_VALUE}"
)
"""`the name for staging is now value`."""
BESIDE = rf"""[ \t]{{1,3}}{_OPENS}{_VALUE}"""
"""`name value`."""
NEXT_LINE = rf"""{_TAIL}["']?,?\s{{1,14}}["']?value["']?[ \t]?[:=][ \t]?["']?{VALUE}"""
"""`name: NAME`, and `value: value` in the line after it."""
