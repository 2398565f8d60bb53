"""Secrets in commands, statements and files whose form says where they stand.

Nothing here searches a text.
"""

from __future__ import annotations

from reverie.memory.secrets.kinds import SecretKind
from reverie.memory.secrets.names import VALUE

_FLAG_KEY = r"(?:token|secret|api-?key|access-?key|secret-?key|auth-?key|account-?key|key)"
_QUOTED = r"""['"\x60]([^'"\x60\n]{4,120})['"\x60]"""

COMMANDS: tuple[tuple[str, str, str, SecretKind], ...] = (
    (
        "netrc",
        (
            r"(?i)\bmachine\s{1,4}\S{1,100}\s{1,8}login\s{1,4}\S{1,100}\s{1,8}"
            r"password\s{1,4}(\S{4,100})"
        ),
        "machine",
        "alone",
    ),
    (
        "registry-auth",
        r"""(?i)(?:^|[\s:/])_(?:authtoken|auth|password)[ \t]?=[ \t]?["']?([\w.+/=-]{16,})""",
        "_auth _password",
        "token",
    ),
    (
        "registry-auth",
        r'(?i)"(?:identity)?(?:auth|token)"\s{0,3}:\s{0,3}"([A-Za-z0-9+/]{12,}={0,2})"',
        '"auth" token"',
        "token",
    ),
    (
        "password-of-a-command",
        (
            r"(?i)\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker|podman|helm|redis-cli|psql"
            r"|mongo|mongosh|mongodump|sqlcmd|bcp|ldapsearch|7z|zip|unzip|ftp|lftp|kinit|cqlsh"
            r"|smbclient|htpasswd|influx|clickhouse-client|oc|az|nmcli|rabbitmqctl)\b"
            rf"[^\n]{{0,120}}?[ \t](?:-[paw]|(?-i:-U)|--password|--pass|password)[ =]?['\"]?{VALUE}"
        ),
        (
            "mysql mariadb sshpass docker podman helm redis-cli psql mongo sqlcmd bcp ldapsearch "
            "7z zip ftp kinit cqlsh smbclient htpasswd influx clickhouse oc az nmcli rabbitmqctl"
        ),
        "password",
    ),
    (
        "password-of-a-command",
        (
            r"(?i)(?:--?|/)(?:\w+-)?(?:pass(?:word|wd|phrase)?|storepass|keypass|pw|pwd)[ =:]"
            rf"['\"]?{VALUE}"
        ),
        "-pass -pw storepass keypass /pass",
        "password",
    ),
    ("token-of-a-command", rf"(?i)--(?:\w+-)*{_FLAG_KEY}[ =]['\"]?{VALUE}", "--", "key"),
    (
        "token-of-a-command",
        rf"(?i)\b[a-z][\w-]{{1,20}}[ \t](?:auth|login|add-authtoken|authtoken)[ \t]['\"]?{VALUE}",
        "auth login",
        "key",
    ),
    ("password-of-a-command", rf"(?i)(?:\bpass:|[ \t]/p:){VALUE}", "pass: /p:", "password"),
    ("password-of-a-command", rf"(?i)--(?:\w+-)?pass(?:word|wd|phrase)?={VALUE}", "--", "alone"),
    (
        "password-of-a-command",
        (
            r"(?i)\b(?:lftp[ \t][^\n]{0,60}?-u[ \t]\w{1,40},|wpa_passphrase[ \t]\S{1,40}[ \t])"
            rf"{VALUE}"
        ),
        "lftp wpa_passphrase",
        "alone",
    ),
    (
        "password-of-a-command",
        (
            rf"(?i)\becho[ \t]{{1,2}}(?:-n[ \t])?['\"]?(?:\w{{1,30}}:)?{VALUE}['\"]?[ \t]{{0,2}}\|"
            r"[ \t]{0,2}(?:sudo|docker|podman|passwd|chpasswd|gpg|cryptsetup|su|kinit|ssh-add)\b"
        ),
        "echo",
        "password",
    ),
    (
        "password-in-sql",
        (
            r"(?i)\bidentified[ \t](?:with[ \t]\w+[ \t])?by[ \t]{1,3}(?:password[ \t])?"
            r"'([^'\n]{4,120})'"
        ),
        "identified",
        "alone",
    ),
    (
        "password-in-sql",
        (
            r"(?i)\b(?:user|role|login)\b[^\n;]{0,100}?\bpassword[ \t]{0,2}[=(]?[ \t]{0,2}"
            rf"{_QUOTED}"
        ),
        "user role login",
        "password",
    ),
    (
        "wifi-code",
        r"(?i)\bWIFI:(?:[A-Z]:[^;\n]{0,64};){0,4}P:([^;\n]{6,64})",
        "wifi:",
        "alone",
    ),
    (
        "pgpass",
        (
            r"(?m)^[ \t>\x60]{0,4}[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*.-]{1,60}:[\w*.-]{1,60}:"
            rf"{VALUE}"
        ),
        ":5432: :5433: :6432: :6543: :*:",
        "password",
    ),
    (
        "oracle-login",
        r"(?i)(?:jdbc:oracle:\w{1,8}:|sqlplus[ \t]{1,3})(\w{1,40}/[^\s@/]{4,60})@",
        "jdbc:oracle sqlplus",
        "address",
    ),
    (
        "terraform-default",
        (
            r"""(?i)variable\s{1,3}"[^"\n]{0,60}(?:password|secret|token|key)[^"\n]{0,20}"\s{0,3}"""
            r"""\{[^}]{0,300}?default\s{0,3}=\s{0,3}"([^"\n]{6,200})["]"""
        ),
        "variable",
        "password",
    ),
)
"""Id, pattern, the words of which one stands in every such text, and how its value is judged."""
