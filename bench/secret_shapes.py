"""Secrets that people have, and the sentences they stand in: what the scanner is judged by.

Written from what is known of the vendors' tokens, not from the scanner's rules, and before those
it now has beside gitleaks'; but by the same author, so it is no blind judge. Each secret is made while it runs, from alphabets and
lengths; none is kept. It reads nothing and judges nothing.

In a template `{w40}` stands for forty signs of the alphabet `w`, `{w20-40}` for twenty to forty.
"""

# ruff: noqa: E501 - one shape a line

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_LOW, _UP, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHABETS = {
    "d": _DIGITS,
    "h": _DIGITS + "abcdef",
    "l": _LOW + _DIGITS,
    "u": _UP + _DIGITS,
    "a": _LOW + _UP + _DIGITS,
    "c": _LOW + _UP,
    "w": _LOW + _UP + _DIGITS + "_-",
    "b": _LOW + _UP + _DIGITS + "+/",
    "t": _UP + "234567",
    "p": _LOW + _UP + _DIGITS + "!#%^*?+=",  # a password as a manager makes it
    "q": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_PART = re.compile(r"\{([a-z])(\d+)(?:-(\d+))?\}")

Put = Callable[[str, str], str]
"""A sentence from the name of a secret and its value."""

NAMED: dict[str, Put] = {
    "export": lambda name, value: f"export {name}='{value}'",
    "JSON": lambda name, value: json.dumps({"env": {name: value}, "debug": False}, indent=2),
    "YAML": lambda name, value: f"services:\n  web:\n    environment:\n      {name}: {value}\n",
    ".env": lambda name, value: f"# staging\n{name}={value}\nPORT=8080\n",
    "named in prose": lambda name, value: f"For CI the {name} is {value}, ask Kim for a new one.",
}
ALONE: dict[str, Put] = {
    "prose": lambda _, value: f"For the demo we use {value}. It runs out in May.",
    "list": lambda _, value: f"- staging: `{value}`\n- prod: ask ops\n",
    "brackets": lambda _, value: f"the shared one (**{value}**), until it is rotated",
    "URL": lambda _, value: f"https://api.example.com/v1/items?access={value}&page=2",
    "log": lambda _, value: (
        f"2026-03-02T10:11:12Z WARN client: rejected {value}: 401 after 3 tries"
    ),
    "quoted": lambda _, value: f'He wrote "{value}", then left.',
}
WHOLE: dict[str, Put] = {
    "plain": lambda _, value: value,
    "after prose": lambda _, value: f"What works on staging:\n\n{value}\n\nDo not change it.\n",
    "fence": lambda _, value: f"Run it like this:\n\n```\n{value}\n```\n",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret: how it is made, how it is called, what it stands in."""

    name: str
    template: str
    called: str
    contexts: tuple[str, ...]

    def texts(self, seed: int) -> Iterator[tuple[str, str]]:
        """Each context with a text of its own secret."""
        puts = NAMED | ALONE | WHOLE
        for context in self.contexts:
            chance = random.Random(f"{self.name}/{context}/{seed}")
            yield context, puts[context](self.called, made(self.template, chance))


def made(template: str, chance: random.Random) -> str:
    """A string of the template's shape."""

    def part(found: re.Match[str]) -> str:
        least, most = int(found[2]), int(found[3] or found[2])
        return "".join(chance.choices(ALPHABETS[found[1]], k=chance.randint(least, most)))

    for name, make in _MADE.items():
        while name in template:
            template = template.replace(name, make(chance), 1)
    return _PART.sub(part, template)


def _letters(chance: random.Random, size: int) -> str:
    return base64.b64encode(chance.randbytes(size)).decode()


def _jwt(chance: random.Random) -> str:
    def pack(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"sub": str(chance.randrange(10**9)), "iat": 1_760_000_000, "role": "service_role"}
    signed = base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    return f"{pack({'alg': 'HS256', 'typ': 'JWT'})}.{pack(claims)}.{signed}"


def _lines(chance: random.Random) -> str:
    body = _letters(chance, 240)
    return "\n".join(body[at : at + 64] for at in range(0, len(body), 64))


def _phrase(chance: random.Random) -> str:
    """A password as people make it up: a word, digits, a sign."""
    words = ("Sommer", "Falcon", "tiger", "Winter", "Dragon", "blue", "Rocket", "monkey", "Kaffee")
    return f"{chance.choice(words)}{chance.randint(10, 9999)}{chance.choice('!?#$%&*+')}"


_MADE: dict[str, Callable[[random.Random], str]] = {
    "<jwt>": _jwt,
    "<lines>": _lines,
    "<line>": lambda chance: _letters(chance, 45),
    "<phrase>": _phrase,
    "<pair>": lambda chance: base64.b64encode(f"deploy:{_letters(chance, 12)}".encode()).decode(),
    "<uuid>": lambda _: "{h8}-{h4}-4{h3}-a{h3}-{h12}",
    "<PEM>": lambda _: "PRIVATE " + "KEY-----",
}

# Known by their own shape, whatever stands around them.
_ALONE = """
Anthropic API key|sk-ant-api03-{w93}AA|ANTHROPIC_API_KEY
Anthropic admin key|sk-ant-admin01-{w93}AA|ANTHROPIC_ADMIN_KEY
Anthropic OAuth access|sk-ant-oat01-{w86}-{w6}AA|CLAUDE_CODE_OAUTH_TOKEN
Anthropic OAuth refresh|sk-ant-ort01-{w86}-{w6}AA|refreshToken
Anthropic session|sk-ant-sid01-{w86}-{w6}AA|sessionKey
OpenAI key, old|sk-{a20}T3BlbkFJ{a20}|OPENAI_API_KEY
OpenAI project key|sk-proj-{w74}T3BlbkFJ{w74}|OPENAI_API_KEY
OpenAI project key, short|sk-proj-{a20}T3BlbkFJ{a20}|OPENAI_API_KEY
OpenAI service account|sk-svcacct-{w74}T3BlbkFJ{w74}|OPENAI_API_KEY
OpenAI admin key|sk-admin-{w58}T3BlbkFJ{w58}|OPENAI_ADMIN_KEY
OpenRouter|sk-or-v1-{h64}|OPENROUTER_API_KEY
Groq|gsk_{a52}|GROQ_API_KEY
xAI|xai-{a80}|XAI_API_KEY
Google API key, Gemini|AIza{w35}|GEMINI_API_KEY
Google OAuth client secret|GOCSPX-{w28}|GOOGLE_CLIENT_SECRET
Google OAuth refresh|1//0{d1}{w60-98}|GOOGLE_REFRESH_TOKEN
Google OAuth access|ya29.a0{w120-200}|ACCESS_TOKEN
Azure AD client secret|{a3}8Q~{w34}|AZURE_CLIENT_SECRET
Azure DevOps token|{a76}AZDO{a4}|AZURE_DEVOPS_EXT_PAT
Telegram bot|{d9-10}:AA{w33}|TELEGRAM_BOT_TOKEN
Discord bot|MT{a24}.G{a5}.{w38}|DISCORD_TOKEN
Discord bot, old|N{a23}.X{a5}.{w27}|DISCORD_TOKEN
Docker Hub personal|dckr_pat_{w27}|DOCKERHUB_TOKEN
Docker Hub organisation|dckr_oat_{w32}|DOCKERHUB_TOKEN
Supabase personal|sbp_{h40}|SUPABASE_ACCESS_TOKEN
Supabase secret key|sb_secret_{w22}_{w8}|SUPABASE_SECRET_KEY
Supabase service role|<jwt>|SUPABASE_SERVICE_ROLE_KEY
Vercel personal|vcp_{a56}|VERCEL_TOKEN
Vercel AI gateway|vck_{a56}|AI_GATEWAY_API_KEY
Figma personal|figd_{w40}|FIGMA_TOKEN
Tailscale auth key|tskey-auth-{a11}CNTRL-{a32}|TS_AUTHKEY
Tailscale API key|tskey-api-{a11}CNTRL-{a32}|TAILSCALE_API_KEY
Tailscale client|tskey-client-{a11}CNTRL-{a32}|TS_CLIENT_SECRET
Cloudflare origin CA|v1.0-{h24}-{h146}|CLOUDFLARE_ORIGIN_CA_KEY
Fly access token|fo1_{w43}|FLY_API_TOKEN
Fly macaroon|fm2_lJPE{b400-600}|FLY_API_TOKEN
Netlify personal|nfp_{a36}|NETLIFY_AUTH_TOKEN
Linear API key|lin_api_{a40}|LINEAR_API_KEY
Linear OAuth|lin_oauth_{h64}|LINEAR_TOKEN
Notion, old|secret_{a43}|NOTION_TOKEN
Notion|ntn_{d11}{a35}|NOTION_TOKEN
Sentry user token|sntryu_{h64}|SENTRY_AUTH_TOKEN
PostHog personal|phx_{a43-47}|POSTHOG_PERSONAL_API_KEY
Replicate|r8_{a37}|REPLICATE_API_TOKEN
Hugging Face|hf_{c34}|HF_TOKEN
Perplexity|pplx-{a48}|PERPLEXITY_API_KEY
npm|npm_{a36}|NPM_TOKEN
PyPI|pypi-AgEIcHlwaS5vcmc{w150-180}|TWINE_PASSWORD
TestPyPI|pypi-AgENdGVzdC5weXBpLm9yZw{w150-180}|TWINE_PASSWORD
RubyGems|rubygems_{h48}|GEM_HOST_API_KEY
GitHub classic|ghp_{a36}|GITHUB_TOKEN
GitHub OAuth|gho_{a36}|GH_TOKEN
GitHub app, user|ghu_{a36}|GH_TOKEN
GitHub app, server|ghs_{a36}|GH_TOKEN
GitHub refresh|ghr_{a76}|GH_REFRESH
GitHub fine-grained|github_pat_{a22}_{a59}|GITHUB_TOKEN
GitLab personal|glpat-{w20}|GITLAB_TOKEN
GitLab personal, routable|glpat-{w27}.01.{l9}|GITLAB_TOKEN
GitLab deploy|gldt-{w20}|CI_DEPLOY_PASSWORD
GitLab runner|glrt-{w20}|RUNNER_TOKEN
GitLab runner, routable|glrt-t{d1}_{w27}.01.{l9}|RUNNER_TOKEN
GitLab runner registration|GR1348941{w20}|REGISTRATION_TOKEN
GitLab job|glcbt-{h2}_{w20}|CI_JOB_TOKEN
GitLab trigger|glptt-{h40}|TRIGGER_TOKEN
GitLab feed|glft-{w20}|FEED_TOKEN
GitLab mail|glimt-{w25}|MAIL_TOKEN
GitLab agent|glagent-{w50}|AGENT_TOKEN
GitLab OAuth application|gloas-{h64}|GITLAB_APP_SECRET
GitLab SCIM|glsoat-{w20}|SCIM_TOKEN
Stripe live|sk_live_{a24}|STRIPE_SECRET_KEY
Stripe live, long|sk_live_51{a97}|STRIPE_SECRET_KEY
Stripe test|sk_test_51{a97}|STRIPE_SECRET_KEY
Stripe restricted|rk_live_{a24-99}|STRIPE_KEY
Stripe webhook|whsec_{a32}|STRIPE_WEBHOOK_SECRET
Twilio API key|SK{h32}|TWILIO_API_KEY
SendGrid|SG.{w22}.{w43}|SENDGRID_API_KEY
Mailgun, old|key-{h32}|MAILGUN_API_KEY
Shopify access|shpat_{h32}|SHOPIFY_ACCESS_TOKEN
Shopify shared secret|shpss_{h32}|SHOPIFY_API_SECRET
Shopify custom app|shpca_{h32}|SHOPIFY_TOKEN
Square access|EAAA{w60}|SQUARE_ACCESS_TOKEN
Square access, old|sq0atp-{w22}|SQUARE_ACCESS_TOKEN
Square secret|sq0csp-{w43}|SQUARE_APPLICATION_SECRET
Slack bot|xoxb-{d12}-{d13}-{a24}|SLACK_BOT_TOKEN
Slack user|xoxp-{d12}-{d12}-{d13}-{h32}|SLACK_USER_TOKEN
Slack app level|xapp-1-A{u10}-{d13}-{h64}|SLACK_APP_TOKEN
Slack configuration|xoxe.xoxp-1-{a166}|SLACK_CONFIG_TOKEN
Slack configuration refresh|xoxe-1-{a146}|SLACK_CONFIG_REFRESH
Slack webhook|https://hooks.slack.com/services/T{u8}/B{u10}/{a24}|SLACK_WEBHOOK
Discord webhook|https://discord.com/api/webhooks/{d18}/{w68}|DISCORD_WEBHOOK
Teams webhook|https://acme.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/{h32}/<uuid>|HOOK
AWS access key|AKIA{t16}|AWS_ACCESS_KEY_ID
AWS temporary access key|ASIA{t16}|AWS_ACCESS_KEY_ID
AWS Bedrock key|ABSKQmVkcm9ja0FQSUtleS{b80-110}|AWS_BEARER_TOKEN_BEDROCK
JWT|<jwt>|ID_TOKEN
age|AGE-SECRET-KEY-1{q58}|SOPS_AGE_KEY
Databricks|dapi{h32}|DATABRICKS_TOKEN
DigitalOcean|dop_v1_{h64}|DIGITALOCEAN_TOKEN
Doppler|dp.pt.{a43}|DOPPLER_TOKEN
Doppler service|dp.st.prd.{a43}|DOPPLER_TOKEN
Vault service|hvs.{w90}|VAULT_TOKEN
Terraform Cloud|{a14}.atlasv1.{w67}|TFE_TOKEN
Heroku|HRKU-AA{w58}|HEROKU_API_KEY
Grafana service account|glsa_{a32}_{h8}|GRAFANA_TOKEN
New Relic user|NRAK-{u27}|NEW_RELIC_API_KEY
Pulumi|pul-{h40}|PULUMI_ACCESS_TOKEN
PlanetScale token|pscale_tkn_{w43}|PLANETSCALE_SERVICE_TOKEN
PlanetScale password|pscale_pw_{w43}|DATABASE_PASSWORD
Postman|PMAK-{h24}-{h34}|POSTMAN_API_KEY
Airtable|pat{a14}.{h64}|AIRTABLE_TOKEN
Asana|2/{d16}/{d16}:{h32}|ASANA_TOKEN
Atlassian|ATATT3xFfGF0{w180}={u8}|JIRA_API_TOKEN
Bitbucket app password|ATBB{a32}|BITBUCKET_PASSWORD
Contentful|CFPAT-{w43}|CONTENTFUL_TOKEN
ClickUp|pk_{d8}_{u32}|CLICKUP_TOKEN
Brevo|xkeysib-{h64}-{a16}|BREVO_API_KEY
Resend|re_{a8}_{a24}|RESEND_API_KEY
Together|tgp_v1_{w43}|TOGETHER_API_KEY
Cerebras|csk-{l48}|CEREBRAS_API_KEY
NVIDIA|nvapi-{w64}|NVIDIA_API_KEY
ElevenLabs|sk_{h48}|ELEVENLABS_API_KEY
Fireworks|fw_{a24}|FIREWORKS_API_KEY
Voyage|pa-{w43}|VOYAGE_API_KEY
Tavily|tvly-dev-{a32}|TAVILY_API_KEY
LangSmith|lsv2_pt_{h32}_{h10}|LANGSMITH_API_KEY
Langfuse|sk-lf-<uuid>|LANGFUSE_SECRET_KEY
Pinecone|pcsk_{a6}_{a63}|PINECONE_API_KEY
Firecrawl|fc-{h32}|FIRECRAWL_API_KEY
E2B|e2b_{h40}|E2B_API_KEY
Neon|napi_{l64}|NEON_API_KEY
Render|rnd_{a28}|RENDER_API_KEY
SonarQube|squ_{h40}|SONAR_TOKEN
CircleCI|CCIPAT_{a22}_{h40}|CIRCLE_TOKEN
Buildkite|bkua_{h40}|BUILDKITE_TOKEN
HubSpot|pat-na1-<uuid>|HUBSPOT_TOKEN
Mapbox secret|sk.eyJ1Ijoi{a60}.{w22}|MAPBOX_SECRET
Alibaba|LTAI{a20}|ALIBABA_ACCESS_KEY
Razorpay|rzp_live_{a14}|RAZORPAY_KEY
1Password service account|ops_eyJ{a300}|OP_SERVICE_ACCOUNT_TOKEN
one-time password|otpauth://totp/Acme:kim?secret={t32}&issuer=Acme|OTP
"""

# Known by the name before them.
_NAMED = """
Azure OpenAI|{h32}|AZURE_OPENAI_API_KEY
Vercel, old|{a24}|VERCEL_TOKEN
Cloudflare API token|{w40}|CLOUDFLARE_API_TOKEN
Cloudflare global key|{h37}|CLOUDFLARE_API_KEY
Railway|<uuid>|RAILWAY_TOKEN
Mistral|{a32}|MISTRAL_API_KEY
Cohere|{a40}|COHERE_API_KEY
DeepSeek|sk-{h32}|DEEPSEEK_API_KEY
Twilio auth token|{h32}|TWILIO_AUTH_TOKEN
Mailgun|{h32}-{h8}-{h8}|MAILGUN_API_KEY
AWS secret key|{b40}|AWS_SECRET_ACCESS_KEY
AWS session token|IQoJb3JpZ2lu{b300}|AWS_SESSION_TOKEN
Datadog|{h32}|DD_API_KEY
Weights & Biases|{h40}|WANDB_API_KEY
Exa|<uuid>|EXA_API_KEY
Deepgram|{h40}|DEEPGRAM_API_KEY
Auth0|{w64}|AUTH0_CLIENT_SECRET
Okta|00{w40}|OKTA_API_TOKEN
Snyk|<uuid>|SNYK_TOKEN
Django|{p50}|DJANGO_SECRET_KEY
Rails|{h128}|SECRET_KEY_BASE
Ethereum|0x{h64}|DEPLOYER_PRIVATE_KEY
database password|{p16}|DB_PASSWORD
made-up password|<phrase>|POSTGRES_PASSWORD
Redis password|{a32}|REDIS_PASSWORD
session secret|{h64}|SESSION_SECRET
"""

# A whole line or block, the secret inside it.
_WHOLE = r"""
Azure SAS|https://acme.blob.core.windows.net/files/a.csv?sp=r&st=2026-01-20T14:54:52Z&se=2027-01-20T22:54:52Z&spr=https&sv=2022-11-02&sr=b&sig={a20}%2F{a20}%3D
Azure storage connection|DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={b86}==;EndpointSuffix=core.windows.net
Azure Service Bus|Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={b43}=
Azure Cosmos|AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey={b86}==;
npmrc|//npm.example.com/:_authToken=<uuid>
RSA key|-----BEGIN RSA <PEM>\n<lines>\n-----END RSA <PEM>
EC key|-----BEGIN EC <PEM>\n<lines>\n-----END EC <PEM>
PKCS8 key|-----BEGIN <PEM>\n<lines>\n-----END <PEM>
encrypted PKCS8 key|-----BEGIN ENCRYPTED <PEM>\n<lines>\n-----END ENCRYPTED <PEM>
OpenSSH key|-----BEGIN OPENSSH <PEM>\n<lines>\n-----END OPENSSH <PEM>
PGP key|-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n<lines>\n=aB3x\n-----END PGP PRIVATE KEY BLOCK-----
service account|{"type": "service_account", "private_key": "-----BEGIN <PEM>\\n<line>\\n<line>\\n-----END <PEM>\\n"}
PuTTY key|PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\n<line>\nPrivate-MAC: {h64}
WireGuard|[Interface]\nPrivateKey = {b42}E=\nAddress = 10.0.0.2/32
PostgreSQL URL|postgres://app:{a16}@db.example.com:5432/app
MySQL URL|DATABASE_URL=mysql://root:{a12}@127.0.0.1:3306/shop
MongoDB URL|mongodb+srv://admin:{a16}@cluster0.ab1cd.mongodb.net/test?retryWrites=true
Redis URL|redis://:{a24}@cache.example.com:6379/0
Redis URL, TLS|rediss://default:{a36}@eu1-fit-cat-1234.upstash.io:6379
AMQP URL|amqps://guest:{a20}@mq.example.com/vhost
HTTPS URL|https://kim:{a14}@files.example.com/report.pdf
FTP URL|ftp://backup:<phrase>@ftp.example.com/daily
SMTP URL|smtps://robot%40example.com:{a18}@smtp.example.com:465
Git URL|git clone https://oauth2:{a26}@git.example.com/acme/app.git
SQLAlchemy URL|postgresql+asyncpg://svc_app:{a18}@10.0.0.5/app
Bearer header|Authorization: Bearer {w40}
Bearer in curl|curl -H "Authorization: Bearer {a48}" https://api.example.com/v1/me
Basic header|Authorization: Basic <pair>
token header|Authorization: token {h40}
X-Api-Key header|X-Api-Key: {a32}
x-api-key in curl|curl https://api.example.com/v1 -H 'x-api-key: {w36}'
Proxy header|Proxy-Authorization: Basic <pair>
headers in code|headers = {"Authorization": "Bearer {a36}"}
X-Auth-Token header|X-Auth-Token: {h32}
netrc, one line|machine api.example.com login kim password {a16}
netrc, lines|machine git.example.com\n  login deploy\n  password {a20}
password in prose|The admin password is {p14}.
password in prose, made up|Note: the password for the staging box is <phrase> and it does not expire.
login in prose|Log in as kim with password <phrase>, then open the menu.
passwd|passwd: {a12}
pw|user = kim, pw = {a12}
pwd|pwd={p16}
password in Markdown|- **Password:** `{p16}`
passphrase|The passphrase of the key is "{p20}".
PIN of SIM|credentials: kim / {p16}
German password|Das Passwort lautet {p14}.
German password is|Das Passwort für den Server ist <phrase>, bitte nicht weitergeben.
German Kennwort|Kennwort: {a12}
German Zugangsdaten|Zugangsdaten: Benutzer kim, Passwort: <phrase>
Chinese password|密码是{a14}。
Chinese password, colon|数据库密码：{a12}
Chinese password, is|管理员的密码为 <phrase>，请保密。
Chinese token|口令: {a16}
ADO.NET|Server=tcp:db.example.com,1433;Database=app;User Id=sa;Password={a16};Encrypt=True;
ODBC|Driver={SQL Server};Server=db1;Uid=app;Pwd={a14};
JDBC|jdbc:mysql://db.example.com:3306/app?user=root&password={a14}
JDBC Oracle|jdbc:oracle:thin:scott/{a12}@//db.example.com:1521/ORCL
libpq|psql "host=db.example.com user=app password={a16} dbname=app"
PGPASSWORD|PGPASSWORD={a14} psql -h db.example.com -U app
pgpass|db.example.com:5432:app:svc:{a18}
mysql command|mysql -h db.example.com -u root -p{a14} shop
sshpass|sshpass -p '{p14}' ssh root@10.0.0.8
docker login|docker login -u kim -p {a20} registry.example.com
curl user|curl -u kim:{a16} https://api.example.com/
docker config|{"auths": {"registry.example.com": {"auth": "<pair>"}}}
Kubernetes secret|apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: <pair>
Terraform variable|variable "db_password" {\n  default = "{a18}"\n}
Python setting|DATABASES = {"default": {"USER": "app", "PASSWORD": "{a16}"}}
YAML password|database:\n  user: app\n  password: <phrase>
Spring|spring.datasource.password={a14}
command option|backup --user root --password={a14} --all
"""


def _rows(table: str) -> Iterator[list[str]]:
    return (line.split("|") for line in table.strip().splitlines())


def shapes() -> tuple[Shape, ...]:
    """Every shape of the list."""
    everywhere = (*NAMED, *ALONE)
    return (
        *(Shape(*row, everywhere) for row in _rows(_ALONE)),  # pyright: ignore[reportCallIssue]
        *(Shape(*row, tuple(NAMED)) for row in _rows(_NAMED)),  # pyright: ignore[reportCallIssue]
        *(
            Shape(name, template.replace("\\n", "\n").replace("\\\n", "\\n"), "", tuple(WHOLE))
            for name, template in _rows(_WHOLE)
        ),
    )
