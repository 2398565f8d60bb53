"""Secrets that are known by their place: what is said before them, a header, an address, a block.

Beside the names there are places that hold nothing else: an address with a login or a signature,
a cookie, a hash of a password, a block with a private key. Commands and files stand in
`commands`. Nothing here searches a text.
"""

from __future__ import annotations

from reverie.secrets.names import (
    AFTER_SIGN,
    AFTER_WORDS,
    BESIDE,
    KEY,
    KEY_WORDS,
    NEXT_LINE,
    PASSWORD,
    PASSWORD_WORDS,
    VALUE,
    SecretKind,
    spelt,
)

_H = "[0-9a-f]"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_BASE64 = "[A-Za-z0-9+/]"
_HASH = "[A-Za-z0-9./+]"
_PHRASE = (
    r"(?:(?:seed|recovery|mnemonic|wallet|backup|secret)[ _-]{0,2}(?:phrase|words?|mnemonic)"
    r"|mnemonic|seed|wiederherstellungs(?:phrase|worter)|phrase[ ]de[ ]recuperation"
    r"|frase[ ](?:semilla|de[ ]recuperacion)|" + spelt("(?:сид|seed)[ -]фраз.|助[记記][词詞]") + ")"
)
_CODE = (
    r"(?:\bpin|\bpuk|\bcvv|\bcvc|\bpasscode|\bpin[ _-]?code|(?:door|gate|alarm|entry|access"
    r"|security|safe|locker|unlock|pairing|keypad|building|tur|zugangs)[ _-]?code)"
)
# Beside the names of passwords: what is said or called where somebody signs in.
_SIGN_IN = (
    r"\bwi-?fi|\bwlan|\blog[ -]?in|\bcred(?:ential)?s?\b|credential[(]|zugangsdaten|securestring"
    r"|connect(?:ion)?[(]|mysqli[(]|pdo[(]|\bsign[(]|\bverify[(]|hmac[(]|cipher\w{0,4}[(]"
    r"|\bnet[ ]use|\bpass\b|auth[(]|authenticate[(]|\bsign(?:ed|s)?[ -]in"
    r"|\busers?\b|\broot\b|\badmin\b"
)
_SIGN_IN_WORDS = (
    "wifi wi-fi wlan login log cred zugangsdaten securestring connect mysqli pdo( sign( verify( "
    "hmac( cipher net auth( sign user root admin"
)

PLACES: tuple[tuple[str, str, str, SecretKind], ...] = (
    ("password", rf"(?i)(?:{PASSWORD}|\bpass){AFTER_SIGN}", PASSWORD_WORDS, "password"),
    ("password-in-prose", rf"(?i){PASSWORD}{AFTER_WORDS}", PASSWORD_WORDS, "password"),
    ("password-beside-its-word", rf"(?i){PASSWORD}{BESIDE}", PASSWORD_WORDS, "strict"),
    (
        "password-before-its-word",
        (
            rf"(?i){VALUE}['\"\x60*_]{{0,4}}[ \t]{{1,2}}(?:is|as|ist|als|es|como|est"
            rf"|comme|e)[ \t]"
            rf"(?:[^\s:=.]{{1,12}}[ \t]){{0,3}}{PASSWORD}"
        ),
        PASSWORD_WORDS,
        "strict",
    ),
    (
        "password-near-its-word",
        rf"(?i)(?:{PASSWORD}|{_SIGN_IN})([^\n]{{1,160}}(?:\n[^\n]{{0,100}}){{0,2}})",
        f"{PASSWORD_WORDS} {_SIGN_IN_WORDS}",
        "near",
    ),
    (
        "password-in-a-column",
        (
            rf"(?i)(?:^|[\n|,;\t])[ \t*_]{{0,3}}[\w -]{{0,20}}{PASSWORD}[ \t*_]{{0,3}}"
            r"(?:[|,;\t][^\n]*)?\n((?:[^\n|,;\t]*[|,;\t][^\n]*(?:\n|$))+)"
        ),
        PASSWORD_WORDS,
        "near",
    ),
    (
        "passphrase",
        (
            rf"(?i){PASSWORD}['\"\x60*]{{0,3}}(?:[ \t][^\s:=.]{{1,12}}){{0,6}}?[ \t]{{0,2}}"
            r"(?:[:=]|\b(?:is|was|ist|lautet|es|est|e):?|[ \t]['\"\x60])[ \t]{0,2}['\"\x60*]{0,3}"
            r"((?:[a-z]{3,9}[ \t]){3,7}?[a-z]{3,9}\d{0,4})"
            r"(?:['\"\x60*.,;!()]|[ \t]*(?:\n|$)|[ \t](?:for|on|in|to|and|fur|para|pour|[(]))"
        ),
        PASSWORD_WORDS,
        "words",
    ),
    (
        "password-in-next-line",
        rf"(?i){PASSWORD}[^\n]{{0,80}}:[ \t]*(?:\n[ \t>\x60]*){{1,3}}{VALUE}[ \t\x60]*(?:\n|$)",
        PASSWORD_WORDS,
        "password",
    ),
    ("password-in-next-line", rf"(?i){PASSWORD}{NEXT_LINE}", PASSWORD_WORDS, "password"),
    ("named-secret", rf"(?i){KEY}{AFTER_SIGN}", KEY_WORDS, "key"),
    ("named-secret", rf"(?i){KEY}{AFTER_WORDS}", KEY_WORDS, "key"),
    ("named-secret", rf"(?i){KEY}{NEXT_LINE}", KEY_WORDS, "key"),
    (
        "secret-beside-its-name",
        (
            rf"(?i){KEY}(?:[ \t](?:de|da|do|del)[ \t][^\s:=]{{2,12}}"
            rf"|[ _-]api)?['\"\x60*_)]{{0,3}}"
            r"(?:[ \t(\[]{1,3}|\n)['\"\x60*(]{0,3}([\w.+/=~-]{16,200})"
        ),
        KEY_WORDS,
        "beside",
    ),
    (
        "secret-beside-its-name",
        (
            r"(?i)(?:^|[\s'\"\x60*(])([\w.+/=~-]{16,200})['\"\x60*]{0,4}[ \t]{1,2}"
            rf"(?:is|as|ist|als|es|como|est|comme|e)[ \t](?:[^\s:=.]{{1,20}}[ \t]){{0,3}}"
            rf"[^\s:=.]{{0,24}}?{KEY}"
        ),
        KEY_WORDS,
        "beside",
    ),
    (
        "secret-variable",
        rf"(?i)(?:secret|secret[_-]?key|[_-](?:token|salt|pepper|auth|credentials)){AFTER_SIGN}",
        "secret _token -token _salt _pepper _auth -auth _credentials",
        "strict",
    ),
    (
        "login-in-prose",
        (
            r"(?i)(?:credentials?|creds|logins?|log[ -]?in|sign[ -]in|zugangsdaten"
            r"|anmeldung|accesos?"
            r"|identifiants?|wi-?fi|wlan|ssid)(?:[ \t][^\s:=./]{1,12}){0,3}?"
            r"[ \t]?(?::|=|[ \t]as|are|is|sind|son|sont|[ \t])[ \t]{0,3}['\"\x60]?[\w.@+-]{2,40}"
            rf"['\"\x60]?(?:[ \t]?[/:,|]|[ \t](?:with|mit|con|avec))[ \t]?['\"\x60]?{VALUE}"
        ),
        (
            "credential creds login log wifi wi-fi wlan ssid sign zugangsdaten anmeldung "
            "acceso identifiant"
        ),
        "strict",
    ),
    (
        "address-with-password",
        (
            r"(?i)\b[a-z][a-z0-9+.-]{1,30}://"
            r"([^\s/@:'\"\x60<>]{0,80}:[^\s/@'\"\x60<>]{3,200})@[\w\[]"
        ),
        "://",
        "address",
    ),
    ("address-with-token", r"(?i)\bhttps?://([\w.~%-]{20,200})@[\w\[]", "://", "key"),
    (
        "signed-address",
        (
            r"(?i)[?&#;][\w.-]{0,40}(?:sig|signature|token|key|secret|passw(?:or)?d|pwd|auth|hmac"
            r"|jwt|credential|hash|sid|magic|ticket|invite)=([^\s&\"'\x60<>()\[\]{},;]{12,})"
        ),
        (
            "sig= signature= token= key= secret= passwd= password= pwd= auth= hmac= "
            "jwt= credential= "
            "hash= sid= magic= ticket= invite="
        ),
        "key",
    ),
    (
        "address-with-token",
        (
            r"(?i)https?://[^\s\"'\x60<>]{0,200}[/_-](?:private|secret|token|key)s?[-_/]"
            r"([\w-]{20,})"
        ),
        "private secret token key",
        "key",
    ),
    (
        "key-in-address",
        r"(?i)\b(?:https?|wss?)://[\w.:-]{3,100}/(?:[a-z]{2,12}/)?v\d{1,2}/([\w-]{20,200})(?:[^\w-]|$)",
        "/v1/ /v2/ /v3/ /v4/ /v5/ /v6/",
        "beside",
    ),
    (
        "key-in-address",
        (
            r"(?i)\b(?:https?|wss?)://[\w.-]{0,80}(?:mainnet|testnet|devnet|sepolia|holesky|rpc|quiknode"
            r"|p2pify|getblock|nodereal|rivet|dwellir)[\w.-]{0,60}/(?:[a-z0-9]{2,12}/){0,2}"
            r"([1-9A-Za-z][\w-]{19,200}|0[^x\W][\w-]{18,200})(?:[^\w-]|$)"
        ),
        "mainnet testnet devnet sepolia holesky rpc quiknode p2pify getblock nodereal rivet dwellir",
        "key",
    ),
    (
        "webhook-address",
        r"(?i)https?://[\w./-]{0,100}hooks?[\w./-]{0,100}/([\w-]{24,})",
        "hook",
        "key",
    ),
    (
        "key-in-address",
        (
            r"(?i)https?://[\w./-]{0,100}(?:pipedream|heartbeat|integration|inputs|receiver|ingest|intake"
            r"|incoming)[\w./-]{0,60}/([\w-]{24,})"
        ),
        "pipedream heartbeat integration inputs receiver ingest intake incoming",
        "beside",
    ),
    (
        "cookie",
        (
            r"""(?i)\b(?:set-)?cookies?["']?[ \t]{0,3}[:=][ \t]{0,3}["'\x60]?"""
            r"""([^\s"'\x60=:;]{1,80}=[^\n"'\x60]{8,900})"""
        ),
        "cookie",
        "cookie",
    ),
    (
        "cookie",
        (
            r"(?i)\b((?:\w+[._-]?)?(?:sess(?:ion)?[._-]?(?:id|token)?|\.sid|csrftoken"
            r"|remember_token)"
            r"=[\w%.~+/:-]{20,})"
        ),
        "sess .sid csrftoken remember_token",
        "cookie",
    ),
    (
        "authorization-header",
        (
            r"""(?i)authorization["'\\]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}["'\\f\x60]{0,3}"""
            r"(?:[a-z][a-z0-9-]{2,20}[ \t]{1,3})?([\w.~+/=:-]{12,})"
        ),
        "authorization",
        "key",
    ),
    ("bearer-token", r"(?i)\bbearer[ \t]{1,3}([\w.~+/=-]{20,})", "bearer", "token"),
    (
        "key-header",
        (
            r"""(?i)\bx-[a-z-]{0,30}(?:key|token|secret"""
            r"""|auth)["'\\]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}"""
            r"""["'\\]{0,3}([\w.~+/=-]{12,})"""
        ),
        "x-",
        "token",
    ),
    (
        "key-header",
        (
            r"""(?i)\bx-[a-z-]{0,30}(?:team|session|jwt|pass|pat|licen[cs]e)["'\\]{0,3}[ \t]{0,3}"""
            r"""[:=, ][ \t]{0,3}["'\\]{0,3}([\w.~+/=-]{16,})"""
        ),
        "x-",
        "beside",
    ),
    (
        "named-hex",
        (
            rf"(?i){KEY}['\"\x60*_)\]]{{0,4}}[ \t]{{0,3}}(?:[:=|]|=>|(?:is|ist|to|auf)[ \t])"
            rf"[ \t'\"\x60*(\[]{{0,6}}((?:0x)?{_H}{{32,128}}|{_UUID})(?:[^\w-]|$)"
        ),
        KEY_WORDS,
        "key",
    ),
    (
        "connection-string",
        (
            r"(?i)(?:accountkey|sharedaccesskey|accesskey|sharedaccesssignature)[ \t]?=[ \t]?"
            rf"({_BASE64}{{40,}}={{0,2}})"
        ),
        "accountkey sharedaccess accesskey",
        "token",
    ),
    (
        "login-in-prose",
        (
            rf"(?i)\bu(?:ser)?[ \t]?[:=][ \t]?\S{{1,40}}[ \t,/]{{1,3}}p(?:w"
            rf"|ass)?[ \t]?[:=][ \t]?{VALUE}"
        ),
        "u: u= user",
        "password",
    ),
    (
        "password-hash",
        (
            r"(\$(?:1|5|6|7|y|gy|apr1|2[abxy]|sha1|md5|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]*)\$"
            rf"(?:[\w=,-]{{1,40}}\$){{0,3}}{_HASH}{{1,64}}\$?{_HASH}{{18,128}}={{0,2}})"
        ),
        "$1$ $5$ $6$ $7$ $y$ $gy$ $apr1$ $2 $sha1$ $md5$ $argon2 $scrypt$ $pbkdf2",
        "token",
    ),
    (
        "password-hash",
        (
            rf"(?i)(\{{S?(?:SHA|MD5)\d{{0,3}}\}}{_BASE64}{{20,}}={{0,2}}"
            rf"|pbkdf2_sha\d+\$\d+\$\w+\${_BASE64}{{30,}}={{0,2}})"
        ),
        "{sha {ssha {md5 {smd5 pbkdf2_",
        "token",
    ),
    (
        "putty-key",
        r"(?i)Private-Lines:[ \t]*\d+(?:\s|\\n){1,4}([A-Za-z0-9+/=]{16,})",
        "private-lines",
        "token",
    ),
    ("json-web-key", r'"d"[ ]?:[ ]?"([\w-]{40,})"', '"kty"', "token"),
    (
        "wireguard-key",
        rf"(?i)(?:private|preshared)[ _-]?key[ \t]{{0,3}}[=:][ \t]{{0,3}}({_BASE64}{{43}}=)",
        "private preshared",
        "token",
    ),
    (
        "seed-phrase",
        (
            rf"(?i){_PHRASE}[^\n]{{0,60}}?(?:[:=|\"'\x60]|\b(?:is|are|ist|lautet|es|est)\b)"
            r"[\s\"'\x60*>-]{0,8}((?:(?:\d{1,2}[.):]?[ \t]?)?[a-z]{3,8}[ \t,]{0,2}\s){11,23}"
            r"(?:\d{1,2}[.):]?[ \t]?)?[a-z]{3,8})"
        ),
        spelt("seed mnemonic phrase backup recovery frase wiederherstellungs фраз 助记词 助記詞"),
        "words",
    ),
    (
        "app-password",
        (
            rf"(?i)(?:{PASSWORD}|\bpass\b|totp|2fa|mfa|otp)[^\n]{{0,40}}?[ \t:=\"'\x60*|]{{1,6}}"
            r"((?:[a-z0-9]{4}[ -]){3,15}[a-z0-9]{4})(?:[^\w-]|$)"
        ),
        PASSWORD_WORDS + " totp 2fa mfa otp",
        "groups",
    ),
    (
        "one-time-seed",
        (
            r"(?i:totp|\botp|2fa|mfa|authenticator|two-factor)[^\n]{0,40}?[ \t:=\"'\x60*|]{1,6}"
            r"([A-Z2-7]{16,64})(?:[^\w-]|$)"
        ),
        "totp otp 2fa mfa authenticator two-factor",
        "token",
    ),
    (
        "backup-codes",
        (
            r"(?i)(?:backup|recovery|rescue|scratch|wiederherstellungs)[ _-]?codes?[^\n:=]{0,40}"
            r"[:=][\s\"'\x60*-]{0,6}((?:[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,3}[\s,;/]{1,3}){0,15}"
            r"[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,3})"
        ),
        "code",
        "groups",
    ),
    (
        "pin",
        (
            rf"(?i){_CODE}['\"\x60*]{{0,3}}(?:[ \t][^\s:=.\d]{{1,20}}){{0,5}}?[ \t]{{0,2}}"
            r"(?:[:=#]|\b(?:is|was|ist|lautet|to|es|est|e))[ \t]{0,2}['\"\x60*]{0,3}(\d{4,8})"
            r"(?:[^\w.-]|\.(?:\s|$)|$)"
        ),
        "pin puk cvv cvc code",
        "alone",
    ),
    (
        "prefixed-token",
        (
            r"\b([A-Za-z][a-z]{1,11}\d{0,2}(?:[_-][a-z]{1,8}){0,2}[_-](?:[A-Za-z0-9]{10,20}_)?"
            r"[A-Za-z0-9][\w-]{29,200})"
        ),
        "_ -",
        "drawn",
    ),
    (
        "prefixed-token",
        (
            r"\b((?:[a-z0-9]{1,16}[_-]){0,3}(?:sk|rk|pat|key|apikey|api|tok|token"
            r"|secret|sec|seckey"
            r"|auth|oauth|live|prod|test|oat|access|refresh|sess|svc|whsec|personal)"
            r"(?:[_-]?v?\d{1,2})?[_.-][A-Za-z0-9]{20,200})(?:[^\w-]|$)"
        ),
        (
            "sk_ sk- rk_ pat_ pat- key_ key- api_ api- tok_ token_ token- secret_ "
            "secret- sec_ seckey "
            "auth_ live_ live- prod_ prod- test_ test- oat_ access_ refresh_ sess_ svc_ personal_"
        ),
        "key",
    ),
)
"""Id, pattern, the words of which one stands in every such text, and how its value is judged."""

SPANS_LINES = (
    "netrc",
    "terraform-default",
    "putty-key",
    "pgpass",
    "password-in-next-line",
    "seed-phrase",
    "backup-codes",
    "password-near-its-word",
    "password-in-a-column",
)
"""Rules that reach over line ends by themselves."""
