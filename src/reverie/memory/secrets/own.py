"""Rules of our own beside gitleaks': tokens its list does not have, and secrets told in prose.

Written from what the vendors publish. A token is known by its first letters and its length, and
by nothing that may stand around it. A password is known by what is said before it, in English,
German and Chinese, or by its place: an address, a header, a command, a connection string.
Nothing here searches a text.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

SecretKind: TypeAlias = Literal["", "token", "password", "strict", "address"]
"""How a value is told from what only stands in its place; `strict` where hardly anything was
said before it, `address` for `user:password`."""

_W, _A, _H = r"[\w-]", "[A-Za-z0-9]", "[0-9a-f]"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

TOKENS: tuple[tuple[str, str, str], ...] = (
    # Models
    ("anthropic-token", rf"sk-ant-[a-z0-9]{{3,12}}-{_W}{{40,}}", "sk-ant-"),
    ("openai-compatible-key", rf"sk-{_W}{{32,}}", "sk-"),
    ("openrouter-key", rf"sk-or-(?:v\d-)?{_H}{{40,}}", "sk-or-"),
    ("groq-key", rf"gsk_{_A}{{40,}}", "gsk_"),
    ("xai-key", rf"xai-{_A}{{40,}}", "xai-"),
    ("google-api-key", rf"AIza{_W}{{35}}", "aiza"),
    ("google-auth-key", rf"AQ\.Ab{_W}{{30,}}", "aq.ab"),
    ("replicate-token", rf"r8_{_A}{{30,}}", "r8_"),
    ("hugging-face-token", rf"(?:hf|api_org)_{_A}{{30,}}", "hf_ api_org_"),
    ("perplexity-key", rf"pplx-{_A}{{32,}}", "pplx-"),
    ("together-key", rf"tgp_v1_{_W}{{32,}}", "tgp_v1_"),
    ("cerebras-key", rf"csk-{_A}{{32,}}", "csk-"),
    ("nvidia-key", rf"nvapi-{_W}{{40,}}", "nvapi-"),
    ("elevenlabs-key", rf"sk_{_H}{{40,}}", "sk_"),
    ("fireworks-key", rf"fw_{_A}{{20,}}", "fw_"),
    ("voyage-key", rf"(?:pa|al)-{_W}{{40,}}", "pa- al-"),
    ("tavily-key", rf"tvly-(?:[a-z]+-)?{_A}{{24,}}", "tvly-"),
    ("langsmith-key", rf"ls(?:v\d_[ps][tk]|__)_{_H}{{32}}(?:_{_H}{{6,}})?", "lsv ls__"),
    ("pinecone-key", rf"pcsk_{_A}{{3,10}}_{_A}{{40,}}", "pcsk_"),
    ("firecrawl-key", rf"fc-{_H}{{32}}", "fc-"),
    ("e2b-key", rf"e2b_{_H}{{32,}}", "e2b_"),
    ("aws-bedrock-key", r"ABSK[A-Za-z0-9+/]{60,}={0,2}", "absk"),
    # Clouds and hosts
    ("google-oauth-secret", rf"GOCSPX-{_W}{{20,}}", "gocspx-"),
    ("google-oauth-refresh", rf"1//0{_W}{{38,}}", "1//0"),
    ("google-oauth-access", rf"ya29\.{_W}{{30,}}", "ya29."),
    ("azure-sas", r"sig=[A-Za-z0-9%+/]{30,}={0,2}", "sig="),
    ("azure-devops-token", rf"{_A}{{70,80}}AZDO{_A}{{4}}", "azdo"),
    ("supabase-token", rf"(?:sbp_(?:v0_)?{_H}{{40}}|sb_secret_{_W}{{20,}})", "sbp_ sb_secret_"),
    ("vercel-token", rf"vc[pkcira]_{_A}{{24,}}", "vcp_ vck_ vcc_ vci_ vcr_ vca_"),
    ("tailscale-key", rf"tskey-[a-z]+-{_A}{{6,}}-{_A}{{16,}}", "tskey-"),
    ("fly-token", rf"(?:fo1_{_W}{{40,}}|fm[12][ar]?_[A-Za-z0-9+/=_,-]{{60,}})", "fo1_ fm1 fm2"),
    ("netlify-token", rf"nf[pcoub]_{_A}{{30,}}", "nfp_ nfc_ nfo_ nfu_ nfb_"),
    ("render-key", rf"rnd_{_A}{{20,}}", "rnd_"),
    ("neon-key", rf"napi_{_A}{{40,}}", "napi_"),
    ("cloudflare-token", rf"cf(?:ut|at|k)_{_A}{{40,}}", "cfut_ cfat_ cfk_"),
    ("cloudflare-origin-key", rf"v1\.0-{_H}{{24}}-{_H}{{100,}}", "v1.0-"),
    ("docker-hub-token", rf"dckr_[op]at_{_W}{{24,}}", "dckr_"),
    ("doppler-token", rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]+\.)?{_A}{{40,}}", "dp."),
    # Code and packages
    ("github-token", rf"gh[pousr]_{_A}{{36,}}", "ghp_ gho_ ghu_ ghs_ ghr_"),
    ("github-fine-grained-token", r"github_pat_\w{60,}", "github_pat_"),
    (
        "gitlab-token",
        r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[\w.-]{20,}",
        "glpat- gldt- glrt glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
    ),
    ("pypi-token", rf"pypi-AgE{_W}{{50,}}", "pypi-age"),
    ("rubygems-token", rf"rubygems_{_H}{{40,}}", "rubygems_"),
    ("npm-token", rf"npm_{_A}{{36}}", "npm_"),
    ("sonar-token", rf"sq[uap]_{_H}{{40}}", "squ_ sqa_ sqp_"),
    ("circleci-token", rf"CCIP(?:AT|RJ)_{_A}{{16,}}_{_H}{{40}}", "ccip"),
    ("buildkite-token", rf"bk(?:ua|at|ct|pt)_{_A}{{32,}}", "bkua_ bkat_ bkct_ bkpt_"),
    ("bitbucket-password", rf"ATBB{_A}{{28,}}", "atbb"),
    ("new-relic-key", rf"NRA[KLA]-{_A}{{24,}}", "nra"),
    ("sentry-token", rf"sntry[us]_{_W}{{40,}}", "sntry"),
    ("posthog-key", rf"ph[xs]_{_A}{{32,}}", "phx_ phs_"),
    # Services
    ("telegram-bot-token", rf"\d{{8,10}}:AA{_W}{{32,}}", ":aa"),
    ("discord-bot-token", rf"[MNO]{_A}{{23,27}}\.{_W}{{6}}\.{_W}{{27,45}}", "."),
    ("discord-webhook", rf"api/webhooks/\d{{16,20}}/{_W}{{50,}}", "api/webhooks/"),
    ("slack-token", rf"(?:xox[abceoprs](?:\.xox[bp])?|xapp)-{_W}{{24,}}", "xox xapp-"),
    (
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{40,}",
        "hooks.slack.com",
    ),
    ("figma-token", rf"fig[dour]h?_{_W}{{36,}}", "figd_ figo_ figu_ figr_ figoh_"),
    ("linear-token", rf"lin_(?:api|oauth|wh)_{_A}{{32,}}", "lin_"),
    ("notion-token", rf"(?:ntn|secret)_{_A}{{40,}}", "ntn_ secret_"),
    ("airtable-token", rf"pat{_A}{{14}}\.{_H}{{64}}", "pat"),
    ("asana-token", rf"[12]/\d{{12,20}}(?:/\d{{12,20}})?:{_H}{{32}}", "1/ 2/"),
    ("contentful-token", rf"CFPAT-{_W}{{40,}}", "cfpat-"),
    ("clickup-token", rf"pk_\d{{6,10}}_{_A}{{32}}", "pk_"),
    ("hubspot-token", rf"pat-(?:na|eu|ap)\d-{_UUID}", "pat-"),
    ("mapbox-secret", rf"[st]k\.eyJ{_W}{{40,}}\.{_W}{{20,}}", "k.eyj"),
    (
        "stripe-key",
        r"(?:[rs]k_(?:live|test|prod)|whsec)_[A-Za-z0-9+/]{16,}",
        "k_live_ k_test_ k_prod_ whsec_",
    ),
    ("square-token", rf"(?:sq0[a-z]{{3}}-{_W}{{22,}}|EAAA[lE]?{_W}{{56,}})", "sq0 eaaa"),
    ("shopify-token", rf"shp(?:at|ca|pa|ss|tka|ua)_{_H}{{32}}", "shp"),
    ("razorpay-key", rf"rzp_(?:live|test)_{_A}{{14,}}", "rzp_"),
    ("resend-key", rf"re_{_A}{{6,10}}_{_A}{{20,}}", "re_"),
    ("mailgun-key", rf"(?:key-{_H}{{32}}|{_H}{{32}}-{_H}{{8}}-{_H}{{8}})", "key- mailgun"),
    ("sendgrid-key", rf"SG\.{_W}{{20,}}\.{_W}{{40,}}", "sg."),
    ("twilio-key", rf"SK{_H}{{32}}", "sk"),
    (
        "aws-session-token",
        r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/%]{100,}={0,2}",
        "iqojb3 fwogzx",
    ),
    ("jwt-token", rf"eyJ{_W}{{10,}}\.eyJ{_W}{{10,}}\.{_W}{{20,}}", "eyj"),
    ("age-key", rf"AGE-SECRET-KEY-1{_A}{{58}}", "age-secret-key-1"),
)
"""Id, pattern, and the words of which one stands in every text that holds such a token."""

# What stands between a name and its value: as `patterns` has it, on one line.
_CLOSES = r"""["'\x60*_)\]\\]{0,4}[ \t]{0,3}"""
_GIVES = r"""(?::=|=>|==?|:|\||\x06)"""
_OPENS = r"""[ \t"'\x60*_(\[\\]{0,8}"""
_VALUE = r"""([^\s"'\x60<>(){}\[\]|,;\x00-\x1f]{6,100})"""
# The Chinese words stand in a text's bytes as two signs of their own: see `views`.
_PASSWORD = r"(?:passwor[dt]|passwd|passphrase|kennwort|pwd|\bpw|_pass|\x02\x03|\x04\x05)s?"
_SAYS = r"(?:is|was|lautet|ist|war|heisst|to)"
_PASSWORD_WORDS = "password passwort passwd passphrase kennwort pwd pw _pass \x02\x03 \x04\x05"
_SECRET_NAME = r"(?:api_?key|token|secret(?:_key(?:_base)?)?|access_?key|auth_?key|private_?key)"

PLACES: tuple[tuple[str, str, str, SecretKind], ...] = (
    (
        "password",
        rf"(?i){_PASSWORD}{_CLOSES}{_GIVES}{_OPENS}{_VALUE}",
        _PASSWORD_WORDS,
        "password",
    ),
    (
        "password-in-prose",
        (
            rf"(?i){_PASSWORD}{_CLOSES}(?:[ \t][^\s:=.]{{1,20}}){{0,6}}?"
            rf"[ \t]{{1,3}}{_SAYS}[ \t]{{1,3}}{_OPENS}{_VALUE}"
        ),
        _PASSWORD_WORDS,
        "password",
    ),
    (
        "password-beside-its-word",
        rf"(?i)(?:password|passwort|kennwort|passphrase|pw)[ \t]{{1,3}}{_OPENS}{_VALUE}",
        _PASSWORD_WORDS,
        "strict",
    ),
    (
        "login-in-prose",
        (
            r"(?i)(?:credentials?|creds|logins?|zugangsdaten)[ \t]?(?::|=|are|is|sind)"
            rf"[ \t]{{0,3}}[\w.@+-]{{2,40}}[ \t]?[/:,|][ \t]?{_VALUE}"
        ),
        "credential creds login zugangsdaten",
        "strict",
    ),
    (
        "address-with-password",
        r"(?i)\b[a-z][a-z0-9+.-]{1,30}://([^\s/@:'\"\x60<>]{0,80}:[^\s/@'\"\x60<>]{3,200})@[\w\[]",
        "://",
        "address",
    ),
    (
        "authorization-header",
        (
            r"""(?i)authorization["'\\]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}["'\\f]{0,3}"""
            r"(?:bearer|basic|token|apikey|api-key|digest|bot)[ \t]{1,3}([\w.~+/=:-]{12,})"
        ),
        "authorization",
        "token",
    ),
    (
        "bearer-token",
        r"(?i)\bbearer[ \t]{1,3}([\w.~+/=-]{20,})",
        "bearer",
        "token",
    ),
    (
        "key-header",
        (
            r"""(?i)\bx-[a-z-]{0,30}(?:key|token|secret)["'\\]{0,3}[ \t]{0,3}[:=,][ \t]{0,3}"""
            r"""["'\\]{0,3}([\w.~+/=-]{16,})"""
        ),
        "x-",
        "token",
    ),
    (
        "netrc",
        (
            r"(?i)\bmachine\s{1,4}\S{1,100}\s{1,8}login\s{1,4}\S{1,100}\s{1,8}"
            r"password\s{1,4}(\S{4,100})"
        ),
        "machine",
        "address",
    ),
    (
        "named-hex",
        (
            rf"(?i)\b[a-z][a-z0-9]*_(?:[a-z0-9]+_)*{_SECRET_NAME}{_CLOSES}"
            rf"(?:{_GIVES}|{_SAYS}[ \t]){_OPENS}((?:0x)?{_H}{{32,}}|{_UUID})"
        ),
        "key token secret",
        "token",
    ),
    (
        "named-secret",
        (
            rf"(?i){_SECRET_NAME}{_CLOSES}(?:{_GIVES}|{_SAYS}[ \t]){_OPENS}"
            r"""([^\s"'\x60<>(){}\[\]|,;]{24,200})"""
        ),
        "key token secret",
        "strict",
    ),
    (
        "connection-string",
        (
            r"(?i)(?:accountkey|sharedaccesskey|accesskey|sharedaccesssignature)[ \t]?=[ \t]?"
            r"([A-Za-z0-9+/]{40,}={0,2})"
        ),
        "accountkey sharedaccess accesskey",
        "token",
    ),
    (
        "registry-auth",
        r"""(?i)(?:^|[\s:/])_(?:authtoken|auth|password)[ \t]?=[ \t]?["']?([\w.+/=-]{16,})""",
        "_auth _password",
        "token",
    ),
    (
        "registry-auth",
        r'(?i)"auth"\s{0,3}:\s{0,3}"([A-Za-z0-9+/]{12,}={0,2})"',
        '"auth"',
        "token",
    ),
    (
        "password-of-a-command",
        (
            r"(?i)\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker|podman|helm|redis-cli)\b"
            rf"[^\n]{{0,120}}?[ \t](?:-p|-a|--password|--pass)[ =]?['\"]?{_VALUE}"
        ),
        "mysql mariadb sshpass docker podman helm redis-cli",
        "password",
    ),
    (
        "password-of-a-command",
        rf"(?i)--(?:\w+-)?pass(?:word|wd|phrase)?[ =]['\"]?{_VALUE}",
        "--",
        "password",
    ),
    (
        "pgpass",
        (
            r"(?m)^[ \t>\x60]{0,4}[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*.-]{1,60}:[\w*.-]{1,60}:"
            rf"{_VALUE}"
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
    (
        "putty-key",
        r"(?i)PuTTY-User-Key-File-\d:(?s:.){0,900}?Private-Lines:[ \t]*\d+\s+([A-Za-z0-9+/=]{20,})",
        "putty-user-key-file",
        "token",
    ),
    (
        "wireguard-key",
        r"(?i)(?:private|preshared)key[ \t]{0,3}=[ \t]{0,3}([A-Za-z0-9+/]{43}=)",
        "privatekey presharedkey",
        "token",
    ),
)
"""Id, pattern, words as above, and how its value is judged."""

SPANS_LINES = ("netrc", "terraform-default", "putty-key", "pgpass")
