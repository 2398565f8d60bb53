"""A blind list of secrets and of things that are none.

Written without knowledge of the rules: the shapes are what vendors publish, as the list's author
knew it, and the sentences are how people hand such things around. Figures from this list are the
blind ones; it is not to be changed to please the rules, nor the rules read to extend it.

Nothing here is a key. A shape is a template; `<an:36>` stands for 36 signs of the alphabet `an`,
drawn at run time, and `«…»` marks the part that must not be kept.
"""

import base64
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_ALPHABETS = {
    "an": _LOWER + _UPPER + _DIGITS, "low": _LOWER + _DIGITS, "up": _UPPER + _DIGITS,
    "az": _LOWER, "dig": _DIGITS, "hex": _DIGITS + "abcdef", "HEX": _DIGITS + "ABCDEF",
    "b64": _LOWER + _UPPER + _DIGITS + "+/", "url": _LOWER + _UPPER + _DIGITS + "-_",
    "b32": _UPPER + "234567", "b32c": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}  # fmt: skip
_WORDS = re.findall(
    r"\w+",
    "amber birch copper dahlia ember falcon garnet harbor indigo juniper kestrel lantern marble "
    "nectar orchid pepper quartz raven saffron thistle umber violet walnut yarrow",
)
_SLOT = re.compile(r"<([A-Za-z0-9]+)(?::(\d+))?>")


@dataclass(frozen=True)
class Planted:
    """A text with a secret in it: the shape's name, the text, and the part that is secret."""

    shape: str
    text: str
    secret: str


def _password(rng: random.Random) -> str:
    # What a person makes up: a word or two, digits, a sign.
    word = rng.choice(_WORDS).capitalize()
    return rng.choice(
        [
            f"{word}{rng.randrange(1950, 2026)}{rng.choice('!#$%?*')}",
            f"{word}{rng.choice('-_.')}{rng.choice(_WORDS)}{rng.randrange(10, 99)}",
            "".join(rng.choices(_ALPHABETS["an"], k=14)) + rng.choice("!#$%*"),
        ]
    )


def _lines(rng: random.Random, count: int) -> str:
    rows = ["".join(rng.choices(_ALPHABETS["b64"], k=64)) for _ in range(count)]
    return "\n".join([*rows, "".join(rng.choices(_ALPHABETS["b64"], k=30)) + "=="])


def fill(template: str, rng: random.Random) -> str:
    """The template with every slot drawn anew."""

    def draw(slot: re.Match[str]) -> str:
        kind, size = slot[1], int(slot[2] or 0)
        if kind == "pw":
            return _password(rng)
        if kind == "pem":
            return _lines(rng, size)
        if kind == "basic":
            login = f"{rng.choice(_WORDS)}:{_password(rng)}"
            return base64.b64encode(login.encode()).decode()
        if kind == "words":
            return " ".join(rng.choices(_WORDS, k=size))
        if kind == "uuid":
            return "-".join("".join(rng.choices(_ALPHABETS["hex"], k=k)) for k in (8, 4, 4, 4, 12))
        return "".join(rng.choices(_ALPHABETS[kind], k=size))

    return _SLOT.sub(draw, template)


# Tokens that say themselves what they are: they stand in sentences that do not name them.
TOKENS: dict[str, str] = {
    "aws access key id": "AKIA<b32:16>", "aws temporary key id": "ASIA<b32:16>",
    "aws bedrock long key": "ABSK<b64:128>=", "google api key": "AIza<url:35>",
    "google oauth client secret": "GOCSPX-<url:28>",
    "google oauth access token": "ya29.a0<url:160>", "google refresh token": "1//0<dig:1><url:98>",
    "azure entra client secret": "<an:3>8Q~<url:34>", "azure devops pat": "<an:76>AZDO<an:4>",
    "digitalocean pat": "dop_v1_<hex:64>", "digitalocean oauth": "doo_v1_<hex:64>",
    "alibaba access key id": "LTAI5t<an:18>", "tencent secret id": "AKID<an:32>",
    "fly.io token": "fm2_lJPE<b64:180>", "cloudflare origin ca key": "v1.0-<hex:24>-<hex:146>",
    "supabase secret key": "sb_secret_<url:22>_<an:8>", "supabase pat": "sbp_<hex:40>",
    "planetscale password": "pscale_pw_<url:43>", "planetscale token": "pscale_tkn_<url:43>",
    "neon api key": "napi_<low:64>", "render api key": "rnd_<an:28>", "netlify pat": "nfp_<an:36>",
    "heroku api key": "HRKU-AA<url:58>", "openai legacy key": "sk-<an:20>T3BlbkFJ<an:20>",
    "openai project key": "sk-proj-<url:74>T3BlbkFJ<url:74>",
    "openai service account key": "sk-svcacct-<url:74>T3BlbkFJ<url:74>",
    "anthropic api key": "sk-ant-api03-<url:93>AA",
    "anthropic oauth token": "sk-ant-oat01-<url:93>AA", "openrouter key": "sk-or-v1-<hex:64>",
    "deepseek key": "sk-<hex:32>", "hugging face token": "hf_<an:34>", "groq key": "gsk_<an:52>",
    "replicate token": "r8_<an:37>", "perplexity key": "pplx-<an:48>", "xai key": "xai-<an:80>",
    "fireworks key": "fw_<an:24>", "nvidia nim key": "nvapi-<url:64>",
    "langsmith key": "lsv2_pt_<hex:32>_<hex:10>", "langfuse secret key": "sk-lf-<uuid>",
    "tavily key": "tvly-dev-<an:32>", "pinecone key": "pcsk_<an:6>_<an:63>",
    "elevenlabs key": "sk_<hex:48>", "github classic pat": "ghp_<an:36>",
    "github fine-grained pat": "github_pat_<an:22>_<an:59>", "github oauth token": "gho_<an:36>",
    "github server token": "ghs_<an:36>", "github refresh token": "ghr_<an:76>",
    "gitlab pat": "glpat-<url:20>", "gitlab routable pat": "glpat-<url:27>.01.<low:9>",
    "gitlab runner token": "glrt-<url:20>", "gitlab deploy token": "gldt-<url:20>",
    "gitlab trigger token": "glptt-<hex:40>",
    "atlassian api token": "ATATT3xFfGF0<url:171>=<HEX:8>",
    "bitbucket app password": "ATBB<an:32>", "circleci pat": "CCIPAT_<an:22>_<hex:40>",
    "buildkite token": "bkua_<hex:40>", "npm token": "npm_<an:36>",
    "pypi token": "pypi-AgEIcHlwaS5vcmc<url:150>", "rubygems key": "rubygems_<hex:48>",
    "crates.io token": "cio<an:32>", "docker hub pat": "dckr_pat_<url:27>",
    "nuget key": "oy2<low:43>", "jfrog api key": "AKCp8<an:68>",
    "slack bot token": "xoxb-<dig:12>-<dig:13>-<an:24>",
    "slack user token": "xoxp-<dig:12>-<dig:12>-<dig:13>-<hex:32>",
    "slack app token": "xapp-1-A<up:10>-<dig:13>-<hex:64>",
    "slack config token": "xoxe.xoxp-1-<an:163>",
    "slack webhook": "https://hooks.slack.com/services/«T<up:10>/B<up:10>/<an:24>»",
    "discord bot token": "MT<an:24>.G<an:5>.<url:38>",
    "discord webhook": "https://discord.com/api/webhooks/<dig:19>/«<url:68>»",
    "telegram bot token": "<dig:10>:AA<url:33>", "stripe live secret key": "sk_live_51<an:97>",
    "stripe restricted key": "rk_live_51<an:97>", "stripe webhook secret": "whsec_<an:32>",
    "square access token": "EAAA<url:60>", "square oauth secret": "sq0csp-<url:43>",
    "paypal braintree token": "access_token$production$<low:16>$<hex:32>",
    "shopify admin token": "shpat_<hex:32>", "shopify shared secret": "shpss_<hex:32>",
    "mollie live key": "live_<an:30>",
    "flutterwave key": "FLWSECK-<hex:32>-X", "sendgrid key": "SG.<url:22>.<url:43>",
    "mailgun key": "key-<hex:32>", "brevo key": "xkeysib-<hex:64>-<an:16>",
    "resend key": "re_<an:8>_<an:24>", "mailchimp key": "<hex:32>-us14",
    "twilio api key sid": "SK<hex:32>", "postman key": "PMAK-<hex:24>-<hex:34>",
    "notion token": "ntn_<dig:11><an:35>", "notion legacy token": "secret_<an:43>",
    "linear key": "lin_api_<an:40>", "figma pat": "figd_<url:40>",
    "airtable pat": "pat<an:14>.<hex:64>", "asana pat": "2/<dig:16>/<dig:16>:<hex:32>",
    "hubspot private app token": "pat-na1-<uuid>", "dropbox token": "sl.u.<url:130>",
    "facebook access token": "EAA<an:180>", "sentry org token": "sntrys_eyJ<an:120>_<b64:43>",
    "sentry user token": "sntryu_<hex:64>", "grafana service account": "glsa_<an:32>_<hex:8>",
    "grafana cloud token": "glc_eyJ<an:110>=", "new relic user key": "NRAK-<up:27>",
    "new relic licence": "<hex:36>FFFFNRAL", "dynatrace token": "dt0c01.<b32:24>.<b32:64>",
    "posthog personal key": "phx_<an:43>", "doppler token": "dp.pt.<an:43>",
    "vault service token": "hvs.<url:95>", "terraform cloud token": "<an:14>.atlasv1.<an:67>",
    "pulumi token": "pul-<hex:40>", "1password service token": "ops_eyJ<an:250>",
    "databricks pat": "dapi<hex:32>", "tailscale auth key": "tskey-auth-<an:11>CNTRL-<an:32>",
    "age secret key": "AGE-SECRET-KEY-1<b32c:58>",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI<an:60>.<url:43>",
    "mapbox secret token": "sk.eyJ1Ijoi<an:70>.<url:22>", "sonarqube token": "squ_<hex:40>",
    "bitcoin extended private key": "xprv9s21ZrQH143K<b58:95>",
    "teams webhook": "https://acme.webhook.office.com/webhookb2/<uuid>@<uuid>/"
    "IncomingWebhook/«<hex:32>»/<uuid>",
}  # fmt: skip

# Values that mean nothing alone: the sentence names them.
NAMED: dict[str, tuple[str, str]] = {
    "aws secret access key": ("AWS_SECRET_ACCESS_KEY", "<b64:40>"),
    "aws session token": ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2Vj<b64:300>=="),
    "azure storage key": ("AZURE_STORAGE_KEY", "<b64:86>=="),
    "azure openai key": ("AZURE_OPENAI_API_KEY", "<hex:32>"),
    "cloudflare api token": ("CLOUDFLARE_API_TOKEN", "<url:40>"),
    "vercel token": ("VERCEL_TOKEN", "<an:24>"),
    "railway token": ("RAILWAY_TOKEN", "<uuid>"),
    "mistral key": ("MISTRAL_API_KEY", "<an:32>"),
    "cohere key": ("COHERE_API_KEY", "<an:40>"),
    "together key": ("TOGETHER_API_KEY", "<hex:64>"),
    "wandb key": ("WANDB_API_KEY", "<hex:40>"),
    "datadog api key": ("DD_API_KEY", "<hex:32>"),
    "twilio auth token": ("TWILIO_AUTH_TOKEN", "<hex:32>"),
    "codecov token": ("CODECOV_TOKEN", "<uuid>"),
    "pagerduty key": ("PAGERDUTY_API_KEY", "u+<an:18>"),
    "okta token": ("OKTA_API_TOKEN", "00<url:40>"),
    "django secret key": ("DJANGO_SECRET_KEY", "<low:20>$<low:12>@<low:8>#<low:7>"),
    "jwt signing secret": ("JWT_SECRET", "<hex:64>"),
    "nextauth secret": ("NEXTAUTH_SECRET", "<b64:43>="),
    "rails master key": ("RAILS_MASTER_KEY", "<hex:32>"),
    "database password": ("DB_PASSWORD", "<pw>"),
    "postgres password": ("POSTGRES_PASSWORD", "<low:16>"),
    "smtp password": ("SMTP_PASSWORD", "<pw>"),
    "wireguard private key": ("WG_PRIVATE_KEY", "<b64:42>E="),
    "ethereum private key": ("ETH_PRIVATE_KEY", "0x<hex:64>"),
    "restic password": ("RESTIC_PASSWORD", "<words:1>-<words:1>-<words:1>-<dig:2>"),
    "totp seed": ("TOTP_SECRET", "<b32:32>"),
}

_RSA, _EC, _SSH, _PK8 = ("RSA PRIVATE", "EC PRIVATE", "OPENSSH PRIVATE", "PRIVATE")
_PEM = "-----BEGIN {0} KEY-----\n«<pem:%d>»\n-----END {0} KEY-----"

# Texts that are whole in themselves; several ways of saying each.
WHOLE: dict[str, tuple[str, ...]] = {
    "rsa private key": ((_PEM % 12).format(_RSA), "key:\n```\n" + (_PEM % 12).format(_RSA)),
    "ec private key": ((_PEM % 2).format(_EC),),
    "openssh private key": ((_PEM % 5).format(_SSH), "cat id_ed25519\n" + (_PEM % 5).format(_SSH)),
    "pkcs8 private key": ((_PEM % 12).format(_PK8),),
    "encrypted pkcs8 key": ((_PEM % 12).format("ENCRYPTED PRIVATE"),),
    "pgp private key": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n«<pem:9>»\n-----END PGP PRIVATE KEY BLOCK-----",
    ),
    "google service account": (
        ('{"type": "service_account", "private_key_id": "<hex:40>", "private_key": '
        '"-----BEGIN PRIVATE KEY-----\\n«<b64:64>\\n<b64:64>\\n<b64:64>»\\n'
        '-----END PRIVATE KEY-----\\n", "client_email": "ci@acme.iam.gserviceaccount.com"}'),
    ),
    "putty key": ("Private-Lines: 2\n«<b64:64>\n<b64:40>»\nPrivate-MAC: <hex:64>",),
    "wireguard config": ("[Interface]\nAddress = 10.0.0.2/32\nPrivateKey = «<b64:42>E=»\n",),
    "postgres url": (
        "DATABASE_URL=postgres://app:«<pw>»@db.internal:5432/app",
        "psql postgresql://admin:«<an:20>»@10.1.2.3/prod then run the migration",
        "We connect with `postgresql+asyncpg://svc:«<an:16>»@pg/main`.",
    ),
    "mysql url": ('url = "mysql://root:«<an:12>»@mysql:3306/shop"',),
    "mongodb url": ("mongosh 'mongodb+srv://app:«<an:16>»@cluster0.x1y2z.mongodb.net/app'",),
    "redis url": (
        "REDIS_URL=redis://:«<an:24>»@cache:6379/0",
        "rediss://default:«<an:32>»@eu1.upstash.io:6379",
    ),
    "amqp url": ("broker: amqps://worker:«<an:18>»@mq.acme.dev/vhost",),
    "git url with login": (
        "git clone https://deploy:«<an:20>»@git.acme.dev/team/app.git",
        "remote: https://oauth2:«<an:26>»@git.acme.dev/team/app.git (fetch)",
    ),
    "smtp url": ("MAILER_DSN=smtp://bot%40acme.dev:«<an:16>»@smtp.acme.dev:587",),
    "ftp url": ("ftp://backup:«<pw>»@ftp.acme.dev/nightly",),
    "proxy url": ("export HTTPS_PROXY=http://jo:«<an:10>»@proxy.acme.dev:3128",),
    "sql server string": (
        "Server=tcp:acme.database.windows.net;Database=app;User ID=sa;Password=«<an:16>»;",
        '"Default": "Server=db;Uid=web;Pwd=«<an:14>»;Encrypt=true"',
    ),
    "libpq string": ('psycopg.connect("host=db user=app password=«<an:15>» dbname=app")',),
    "jdbc string": ("jdbc:postgresql://db/app?user=app&password=«<an:16>»&ssl=true",),
    "azure storage string": (
        ("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«<b64:86>==»;"
        "EndpointSuffix=core.windows.net"),
    ),
    "azure service bus string": (
        "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=R;SharedAccessKey=«<b64:43>=»",
    ),
    "azure sas url": (
        "https://acme.blob.core.windows.net/b/x?sv=2024-11-04&se=2026-01-01&sp=r&sig=«<an:42>%3D»",
    ),
    "aws presigned url": (
        "https://b.s3.amazonaws.com/x?X-Amz-Expires=3600&X-Amz-Signature=«<hex:64>»",
    ),
    "bearer header": (
        'curl -H "Authorization: Bearer «<an:40>»" https://api.acme.dev/v1/me',
        "> authorization: Bearer «<url:64>»",
        'headers = {"Authorization": "Bearer «<hex:48>»"}',
    ),
    "basic header": ("Authorization: Basic «<basic>»", "-H 'Authorization: Basic «<basic>»'"),
    "api key header": ("curl -H 'X-API-Key: «<an:32>»' acme.dev", "x-api-key: «<hex:40>»"),
    "private token header": ('curl --header "PRIVATE-TOKEN: «<url:20>»" https://g.acme.dev/api',),
    "curl login": ("curl -u admin:«<pw>» https://jenkins.acme.dev/job/x/build",),
    "mysql flag": ("mysql -h db -u root -p«<an:14>» shop < dump.sql",),
    "sshpass": ("sshpass -p '«<pw>»' ssh root@10.0.0.5",),
    "docker login": ("docker login -u acme -p «<an:24>» registry.acme.dev",),
    "pgpassword": ("PGPASSWORD=«<an:12>» psql -h db -U app",),
    "password flag": ("./deploy --user ops --password «<pw>» --env prod",),
    "netrc": (
        "machine api.acme.dev login jo password «<an:16>»",
        "machine git.acme.dev\n  login jo\n  password «<pw>»\n",
    ),
    "pgpass": ("~/.pgpass:\ndb.acme.dev:5432:app:app_user:«<an:16>»",),
    "npmrc": ("//registry.acme.dev/:_authToken=«<uuid>»", "_auth=«<basic>»"),
    "docker config": ('{"auths": {"ghcr.io": {"auth": "«<basic>»"}}}',),
    "kubeconfig": (
        "users:\n- name: admin\n  user:\n    client-key-data: «LS0tLS1CRUdJTi<b64:300>»",
        "  user:\n    token: «<url:80>»",
    ),
    "kubernetes secret": ("kind: Secret\ndata:\n  password: «<b64:22>==»",),
    "htpasswd": ("admin:$apr1$<an:8>$«<an:22>»",),
    "shadow line": ("root:$6$<an:16>$«<an:86>»:19800:0:99999:7:::",),
    "session cookie": (
        "Cookie: theme=dark; sessionid=«<low:32>»",
        "Set-Cookie: connect.sid=«s%3A<url:32>.<an:43>»; Path=/; HttpOnly",
        "curl -b 'JSESSIONID=«<HEX:32>»' https://acme.dev",
    ),
    "query token": ("GET /v1?access_token=«<an:40>» 200 12ms", "wss://acme.dev/s?token=«<an:32>»"),
    "seed phrase": ("seed phrase: «<words:12>»", "My wallet's recovery phrase is «<words:12>»."),
    "wifi password": ("Wifi is AcmeGuest, the password is «<pw>».", "WIFI:T:WPA;S:Acme;P:«<pw>»;;"),
    "gmail app password": (
        'GMAIL_APP_PASSWORD="«<az:4> <az:4> <az:4> <az:4>»"',
        "The gmail app password is «<az:4> <az:4> <az:4> <az:4>».",
    ),
    "pin in prose": ("The alarm PIN is «<dig:6>», do not tell anyone.",),
    "password in english": (
        "my password is «<pw>»",
        "The root password for the staging box is «<pw>», please remember it.",
        "login with admin / «<pw>»",
        "Use jo@acme.dev, password: «<pw>».",
        "I changed the passphrase to «<words:4>».",
        "creds for jenkins: user ci, pass «<pw>»",
    ),
    "password in german": (
        "Mein Passwort ist «<pw>».",
        "Das Kennwort für den Server lautet «<pw>», bitte merken.",
        "Zugangsdaten: Benutzer jo, Passwort: «<pw>»",
    ),
    "password in spanish": (
        "Mi contraseña es «<pw>».",
        "La contraseña del servidor es «<pw>», no la olvides",
        "usuario: jo, clave: «<pw>»",
    ),
    "password in french": (
        "Mon mot de passe est «<pw>».",
        "Le mot de passe du serveur, c'est «<pw>»",
        "identifiant : jo, mot de passe : «<pw>»",
    ),
    "password in chinese": (
        "我的密码是«<pw>»。", "服务器密码：«<pw>»，请记住", "账号 admin 密码 «<pw>»",
    ),
}  # fmt: skip

_AROUND_TOKENS = (
    "Here it is: {0}.",
    "Please use `{0}` from now on, the old one is gone.",
    "export ACME={0}",
    '{{"name": "prod", "value": "{0}"}}',
    "config:\n  value: {0}\n",
    "ACME='{0}'",
    "2025-03-04T10:11:12Z WARN rejected {0} (401)",
    "jo: hey, try ({0}), it worked for me!",
)
_AROUND_NAMED = (
    "export {1}={0}",
    '{1}="{0}"',
    '{{"{1}": "{0}", "debug": true}}',
    "env:\n  {2}: {0}\n",
    "{3}: {0}",
    "The {3} is {0}.",
    "Set `{1}` to `{0}` and restart.",
    '{2} = "{0}"',
)

HARMLESS: tuple[str, ...] = (
    "Fixed in commit <hex:40>.", "git show <hex:7>", "index <hex:7>..<hex:7> 100644",
    "request id <uuid> took 20 ms", "session_id: <uuid>", "trace_id=<hex:32> span_id=<hex:16>",
    '"integrity": "sha512-<b64:86>=="', "sha256:<hex:64>", "FROM python@sha256:<hex:64>",
    "h1:<b64:43>= go.sum", "md5 <hex:32>  release.tar.gz", 'ETag: "<hex:32>"',
    "--hash=sha256:<hex:64>", "Set OPENAI_API_KEY=sk-... before you start.",
    "OPENAI_API_KEY=your-api-key-here", "export GITHUB_TOKEN=<YOUR_TOKEN>", "api_key: ${API_KEY}",
    'password = os.environ["DB_PASSWORD"]', "token: {{ secrets.GITHUB_TOKEN }}",
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}", "password: changeme", "DB_PASSWORD=",
    "AWS_SECRET_ACCESS_KEY=xxxxxxxxxxxxxxxxxxxx", "password: ********",
    "postgres://user:password@localhost:5432/db", "https://user:pass@example.com/",
    "Authorization: Bearer <token>", 'curl -H "Authorization: Bearer $TOKEN" https://api.acme.dev',
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "The example key is AKIAIOSFODNN7EXAMPLE.",
    "def reset_password(user: User, token: str) -> None:",
    "const accessToken = await getAccessToken();", "password_hash = hash_password(password)",
    "if not verify_token(request.headers):", "secret_name = 'prod/db'",
    "tokenizer = AutoTokenizer.from_pretrained(model)", "max_tokens: 4096", "token_count=183422",
    "Rotate passwords every ninety days and never reuse them.",
    "The password is stored in 1Password, ask Jo.", "My password is too weak, says the form.",
    "Das Passwort ist abgelaufen, bitte zurücksetzen.", "La contraseña es obligatoria.",
    "Le mot de passe est incorrect.", "密码是必填项。", "The API key is read from the keychain.",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA<b64:80>", "2026-01-31T23:59:59.123456+00:00",
    "/home/alice/.ssh/id_ed25519 has the wrong mode", "src/auth/password_reset/token_store.py",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA<b64:43> jo@laptop",
    "-----BEGIN PUBLIC KEY-----\n<pem:2>\n",
    "-----BEGIN CERTIFICATE-----\n<pem:10>\n-----END CERTIFICATE-----", "pk_test_ keys are public",
    "https://github.com/acme/app/blob/<hex:40>/README.md",
    "https://docs.google.com/document/d/<url:44>/edit", "https://www.youtube.com/watch?v=<url:11>",
    "arn:aws:iam::<dig:12>:role/deploy", "docker ps: <hex:12>", "ghcr.io/acme/app:sha-<hex:7>",
    "node_modules/.pnpm/react-dom@18.3.1_react@18.3.1", "sk-learn-pipeline-v2",
    "Host key fingerprint is SHA256:<b64:43>", "0x<hex:40> is the contract's address",
    "call_<an:24>", "toolu_01<an:22>", "msg_01<an:22>", "chatcmpl-<an:29>",
    "The passphrase is optional.", "01J<up:23>", "the private key never leaves the machine",
    "cookie: SameSite=Lax; HttpOnly", "+49 30 <dig:8>", "password: str = Field(min_length=12)",
    '<input type="password" name="password">', "kid: <url:43>",
)  # fmt: skip


def _cut(name: str, text: str) -> Planted:
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return Planted(name, before + secret + after, secret)


def planted(seed: int = 7) -> Iterator[Planted]:
    """Every shape in every sentence it stands in, each time a new secret."""
    rng = random.Random(seed)
    for name, template in TOKENS.items():
        marked = template if "«" in template else f"«{template}»"
        for around in _AROUND_TOKENS:
            yield _cut(name, around.format(fill(marked, rng)))
    for name, (variable, template) in NAMED.items():
        words = variable.lower().replace("_", " ")
        for around in _AROUND_NAMED:
            value = fill(f"«{template}»", rng)
            yield _cut(name, around.format(value, variable, variable.lower(), words))
    for name, texts in WHOLE.items():
        for text in texts:
            for _ in range(3):
                yield _cut(name, fill(text, rng))


def harmless(seed: int = 7) -> list[str]:
    """Texts that hold no secret."""
    rng = random.Random(seed)
    return [fill(text, rng) if "<token>" not in text else text for text in HARMLESS]
