"""A second blind list of secrets, and of things that look like one and are none.

Written after the rules had been changed with the first list (`secret_list`) in view, by somebody
who had not opened them. Its weight is on the places where secrets stand: settings, commands, logs,
chat in many languages. It is not to be changed to please the rules.

Nothing here is a key: slots are drawn at run time from a seed, `«…»` marks what must not be kept.
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable, Iterator, Mapping

from bench.secret_list import Planted, fill
from bench.secret_look_alikes import HARMLESS

SEED = 20_261
DRAWS = 3
_NOUNS = re.findall(
    r"\w+",
    "Anchor Biscuit Canyon Dolphin Engine Feather Glacier Hammer Island Jacket Kettle Lemon "
    "Mountain Needle Otter Pirate Quiver Rocket Summer Tiger Umbrella Velvet Winter Yellow Zebra",
)
_SIGNS = "!#$%*+-=?@^_"
_SLOT = re.compile(r"<(pp|weak|drawnsign|safe|phrase|seed|b64pw|totp|uuid|[A-Za-z0-9]+:[0-9]+)>")
_SEED_WORDS = re.findall(
    r"\w+",
    "abandon ability absent acoustic adjust airport almost anchor apology balance bamboo basket "
    "blossom bracket cabbage canvas ceiling cherry cousin crystal dolphin dragon eager elbow "
    "fabric famous gadget garlic harvest hidden icon jacket kangaroo ladder lizard mango",
)
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_OTHERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def _two_words(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)}{rng.choice(_NOUNS)}{rng.randrange(10, 10_000)}{rng.choice('!?#')}"


def _word_and_year(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)}{rng.randrange(1970, 2027)}{rng.choice(_SIGNS)}"


def _leet(rng: random.Random) -> str:
    word = rng.choice([noun for noun in _NOUNS if len(noun) > 5])
    changed = word.translate(str.maketrans("aeiot", "@3107"))
    return f"{changed}{rng.choice(_SIGNS)}{rng.randrange(100)}"


def _drawn(rng: random.Random) -> str:
    return "".join(rng.choices(_OTHERS, k=11)) + rng.choice(_SIGNS) + rng.choice("0123456789") + "k"


def _plain(rng: random.Random) -> str:
    return "".join(rng.choices(_OTHERS, k=14)) + rng.choice("23456789") + "aK"


def _joined(rng: random.Random) -> str:
    words = [noun.lower() for noun in rng.choices(_NOUNS, k=4)]
    return "-".join(words) + str(rng.randrange(10, 100))


_MADE: tuple[Callable[[random.Random], str], ...] = (
    _two_words, _word_and_year, _leet, _drawn, _plain, _joined,
)  # fmt: skip


def _weak(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS).lower()}{rng.randrange(10, 10_000)}"


_OF_A_PASSWORD: dict[str, Callable[[str], str]] = {
    "pp": str,
    "safe": lambda password: re.sub(r"[^\w-]", "", password),  # in an address
    "b64pw": lambda password: base64.b64encode(password.encode()).decode(),
}
_OTHER: dict[str, Callable[[random.Random], str]] = {
    "weak": _weak,
    "drawnsign": lambda rng: _drawn(rng) + _drawn(rng),
    "phrase": lambda rng: " ".join(noun.lower() for noun in rng.choices(_NOUNS, k=5)),
    "seed": lambda rng: " ".join(rng.choices(_SEED_WORDS, k=12)),
    "totp": lambda rng: "".join(rng.choices(_BASE32, k=32)),
}


def _filled(template: str, rng: random.Random) -> str:
    def draw(slot: re.Match[str]) -> str:
        kind = slot[1]
        if kind == "uuid" or ":" in kind:
            return fill(slot[0], rng)
        password = rng.choice(_MADE)(rng)
        return _OTHER[kind](rng) if kind in _OTHER else _OF_A_PASSWORD[kind](password)

    return _SLOT.sub(draw, template)


# --- secrets, each where it is found

SHAPES: dict[str, str] = {
    # settings files
    "dotenv database": "DB_HOST=db.internal\nDB_USER=shop\nDB_PASSWORD=«<pp>»\nDB_NAME=shop",
    "dotenv smtp": "SMTP_HOST=mail.acme.io\nSMTP_PORT=587\nSMTP_PASS=«<pp>»",
    "dotenv cohere": "COHERE_API_KEY=«<an:40>»",
    "dotenv mistral": "MISTRAL_API_KEY=«<an:32>»",
    "dotenv together": "TOGETHER_API_KEY=«<hex:64>»",
    "dotenv exa": "EXA_API_KEY=«<uuid>»",
    "dotenv datadog": "DD_API_KEY=«<hex:32>»\nDD_SITE=datadoghq.eu",
    "dotenv datadog app": "DD_APP_KEY: «<hex:40>»",
    "dotenv twilio": "TWILIO_ACCOUNT_SID=AC00\nTWILIO_AUTH_TOKEN=«<hex:32>»",
    "dotenv cloudflare": "CLOUDFLARE_API_TOKEN=«<url:40>»",
    "dotenv upstash": 'UPSTASH_REDIS_REST_TOKEN="«AX<an:58>=»"',
    "dotenv algolia": "ALGOLIA_ADMIN_KEY=«<hex:32>»",
    "dotenv scaleway": "SCW_ACCESS_KEY=SCWXXX\nSCW_SECRET_KEY=«<uuid>»",
    "dotenv nextauth": "NEXTAUTH_SECRET=«<b64:43>=»",
    "dotenv auth0": "AUTH0_CLIENT_SECRET='«<url:64>»'",
    "dotenv encryption key": "ENCRYPTION_KEY=«<hex:64>»",
    "dotenv pepper": "PASSWORD_PEPPER=«<an:32>»",
    "dotenv razorpay": "RAZORPAY_KEY_ID=rzp_live_x\nRAZORPAY_KEY_SECRET=«<an:24>»",
    "dotenv plaid": "PLAID_SECRET=«<hex:30>»",
    "dotenv woocommerce": "WC_CONSUMER_SECRET=«cs_<hex:40>»",
    "dotenv airtable old": "AIRTABLE_API_KEY=«key<an:14>»",
    "laravel app key": "APP_ENV=production\nAPP_KEY=base64:«<b64:43>=»",
    "rails key base": "production:\n  secret_key_base: «<hex:128>»",
    "rails master key": "The content of config/master.key is «<hex:32>»",
    "django secret": "SECRET_KEY = 'django-insecure-«<low:50>»'",
    "flask secret": "app.secret_key = b'«<an:24>»'",
    "spring datasource": "spring.datasource.username=shop\nspring.datasource.password=«<pp>»",
    "spring mail": "spring.mail.password=«<pp>»",
    "gradle signing": "storeFile=release.jks\nstorePassword=«<pp>»\nkeyAlias=upload",
    "maven settings": "<server><id>nexus</id><username>ci</username>"
    "<password>«<pp>»</password></server>",
    "npmrc token": "//registry.acme.io/:_authToken=«<uuid>»",
    "npmrc basic": "//nexus.acme.io/repository/npm/:_auth=«<b64pw>»",
    "pip conf": "[global]\nextra-index-url = https://ci:«<safe>»@pypi.acme.io/simple",
    "netrc": "machine git.acme.io\n  login joe\n  password «<pp>»",
    "netrc one line": "machine api.heroku.com login joe@acme.io password «<uuid>»",
    "pgpass": "db.acme.io:5432:shop:joe:«<pp>»",
    "my.cnf": "[client]\nuser=backup\npassword=«<pp>»\nhost=127.0.0.1",
    "docker config auth": '{"auths": {"ghcr.io": {"auth": "«<b64pw>»"}}}',
    "compose environment": "    environment:\n      - POSTGRES_USER=app\n"
    "      - POSTGRES_PASSWORD=«<pp>»",
    "compose mapping": "    environment:\n      MYSQL_ROOT_PASSWORD: «<pp>»",
    "kubernetes data": "kind: Secret\ndata:\n  username: YWRtaW4=\n  password: «<b64pw>»",
    "kubernetes string data": "kind: Secret\nstringData:\n  api-token: «<an:32>»",
    "helm values": "postgresql:\n  auth:\n    postgresPassword: «<pp>»",
    "terraform variable": 'resource "aws_db_instance" "main" {\n  username = "app"\n'
    '  password = "«<pp>»"\n}',
    "tfvars": 'db_admin_password = "«<pp>»"',
    "ansible become": "ansible_user: deploy\nansible_become_pass: «<pp>»",
    "ansible inventory": "web1 ansible_host=10.0.0.4 ansible_ssh_pass=«<pp>»",
    "aws credentials": "[default]\naws_access_key_id = AKIAEXAMPLE\n"
    "aws_secret_access_key = «<b64:40>»",
    "aws session token": "aws_session_token=«IQoJb3JpZ2luX2Vj<b64:300>==»",
    "service account json": '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY'
    '-----\\n«<b64:64>\\n<b64:64>»\\n-----END PRIVATE KEY-----\\n"}',
    "azure storage": "DefaultEndpointsProtocol=https;AccountName=shopdata;"
    "AccountKey=«<b64:86>==»;EndpointSuffix=core.windows.net",
    "azure service bus": "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;"
    "SharedAccessKey=«<b64:43>=»",
    "sql server": "Server=tcp:db.acme.io,1433;Database=shop;User Id=sa;Password=«<pp>»;",
    "jdbc": "jdbc:mysql://db.acme.io:3306/shop?user=app&password=«<safe>»&useSSL=true",
    "toml": '[smtp]\nhost = "mail.acme.io"\nuser = "noreply"\npass = "«<pp>»"',
    "ini pwd": "[ldap]\nbind_dn = cn=reader,dc=acme\nbind_pw = «<pp>»",
    "json camel case": '{"userName": "svc-build", "passWord": "«<pp>»", "retries": 3}',
    "json client secret": '{"client_id": "web-1", "client_secret": "«<url:40>»"}',
    "json refresh token": '{"access_token": "…", "refresh_token": "«<url:64>»", "expires": 3600}',
    "yaml block": "mail:\n  user: noreply\n  password: >-\n    «<pp>»",
    "xml attribute": '<add name="Main" connectionString="Data Source=db;Uid=app;Pwd=«<pp>»" />',
    "wordpress": "define( 'DB_PASSWORD', '«<pp>»' );",
    "wordpress salt": "define('AUTH_KEY', '«<an:40><b64:24>»');",
    "wpa supplicant": 'network={\n  ssid="Office"\n  psk="«<pp>»"\n}',
    "wireguard": "[Interface]\nAddress = 10.8.0.2/24\nPrivateKey = «<b64:43>=»",
    "openvpn auth file": "auth-user-pass file:\njoe\n«<pp>»",
    "shadow": "root:«$6$<an:16>$<an:86>»:19700:0:99999:7:::",
    "htpasswd": "admin:«$apr1$<an:8>$<an:22>»",
    "bcrypt row": "INSERT INTO users VALUES (1, 'joe', '«$2b$12$<an:53>»');",
    "putty key": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n«<b64:48>»\n",
    "openssh key": "-----BEGIN OPENSSH PRIVATE KEY-----\n«<b64:70>\n<b64:70>»\n"
    "-----END OPENSSH PRIVATE KEY-----",
    "encrypted pem": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n«<b64:64>\n<b64:64>»\n"
    "-----END ENCRYPTED PRIVATE KEY-----",
    # programs
    "java connection": 'DriverManager.getConnection(url, "root", "«<pp>»");',
    "python keyword": 'conn = psycopg2.connect(host="db", user="app", password="«<pp>»")',
    "go assignment": 'dbPassword := "«<pp>»"',
    "node jwt sign": "const token = jwt.sign(payload, '«<an:32>»');",
    "node constant": "const STRIPE_SECRET = '«<an:32>»';",
    "c sharp credential": 'new NetworkCredential("joe", "«<pp>»");',
    "php mysqli": '$db = new mysqli("localhost", "root", "«<pp>»", "shop");',
    "ruby hash": "  password: '«<pp>»',\n  database: 'shop'",
    "python headers": 'headers = {"X-API-Key": "«<an:32>»"}',
    "javascript bearer": "fetch(url, { headers: { Authorization: `Bearer «<an:40>»` } })",
    "rust constant": 'const API_KEY: &str = "«<an:32>»";',
    "swift let": 'let apiSecret = "«<hex:40>»"',
    # commands
    "mysql short flag": "mysql -h db.acme.io -u root -p«<pp>» shop < dump.sql",
    "pgpassword": "PGPASSWORD='«<pp>»' psql -h db.acme.io -U shop",
    "sshpass": "sshpass -p '«<pp>»' ssh deploy@10.0.0.7",
    "redis cli": "redis-cli -h cache.acme.io -a «<pp>» ping",
    "curl user": "curl -u joe:«<pp>» https://jira.acme.io/rest/api/2/myself",
    "curl zendesk": "curl -u joe@acme.io/token:«<an:40>» https://acme.zendesk.com/api/v2/users.json",
    "curl apikey header": "curl -H 'apikey: «<an:32>»' https://gateway.acme.io/orders",
    "curl okta": "curl -H 'Authorization: SSWS «00<url:40>»' https://acme.okta.com/api/v1/users",
    "curl opsgenie": "curl -H 'Authorization: GenieKey «<uuid>»' https://api.opsgenie.com/v2/alerts",
    "curl pagerduty": "curl -H 'Authorization: Token token=«<an:20>»' https://api.pagerduty.com/users",
    "curl splunk": "curl -H 'Authorization: Splunk «<uuid>»' https://splunk:8088/services/collector",
    "curl rapidapi": "curl -H 'X-RapidAPI-Key: «<hex:10>msh<low:15>p1<hex:6>jsn<hex:12>»' https://x.io",
    "curl fastly": "curl -H 'Fastly-Key: «<url:32>»' https://api.fastly.com/service",
    "curl azure": "curl -H 'Ocp-Apim-Subscription-Key: «<hex:32>»' https://westeurope.api.cognitive",
    "curl data login": "curl -d 'username=joe&password=«<safe>»' https://acme.io/login",
    "curl json login": 'curl -d \'{"email":"joe@acme.io","password":"«<pp>»"}\' https://acme.io/login',
    "wget": "wget --user=joe --password='«<pp>»' https://files.acme.io/a.zip",
    "docker run": "docker run -e POSTGRES_PASSWORD=«<pp>» -p 5432:5432 postgres:16",
    "docker login": "docker login registry.acme.io -u ci -p «<pp>»",
    "git clone token": "git clone https://oauth2:«<hex:40>»@git.acme.io/shop/web.git",
    "kubectl literal": "kubectl create secret generic db --from-literal=password=«<pp>»",
    "helm set": "helm upgrade shop ./chart --set auth.rootPassword=«<pp>»",
    "az login": "az login --service-principal -u http://ci -p «<an:34>» --tenant acme.io",
    "heroku config": "heroku config:set SESSION_SECRET=«<hex:48>» -a shop",
    "vercel flag": "vercel deploy --prod --token «<an:24>»",
    "snyk auth": "snyk auth «<uuid>»",
    "net use": r"net use Z: \\files\share «<pp>» /user:ACME\joe",
    "powershell secure string": '$p = ConvertTo-SecureString "«<pp>»" -AsPlainText -Force',
    "setx": 'setx OPENAI_TOKEN "«<an:48>»"',
    "export fish": "set -x GITEA_TOKEN «<hex:40>»",
    "openssl pass": "openssl enc -d -aes-256-cbc -in a.enc -pass pass:«<pp>»",
    "zip": "7z x backup.7z -p«<pp>»",
    "ldapsearch": "ldapsearch -x -D cn=admin,dc=acme -w «<pp>» -b dc=acme",
    "useradd chpasswd": "echo 'deploy:«<pp>»' | sudo chpasswd",
    "keytool": "keytool -list -keystore release.jks -storepass «<pp>»",
    "rclone": "rclone config create box webdav user joe pass «<pp>»",
    "mongosh": "mongosh 'mongodb+srv://shop:«<safe>»@cluster0.ab1cd.mongodb.net/shop'",
    "vault write": "vault kv put secret/shop password=«<pp>»",
    # addresses
    "amqp": "broker: amqp://worker:«<safe>»@mq.acme.io:5672/jobs",
    "redis url no user": "REDIS_URL=redis://:«<safe>»@cache:6379/0",
    "ftp": "ftp://joe:«<an:14>»@files.acme.io/in",
    "proxy": "export https_proxy=http://joe:«<an:12>»@proxy.acme.io:3128",
    "reset link": "Open https://acme.io/reset-password?token=«<url:43>» within an hour.",
    "query api key": "GET https://api.acme.io/v1/geo?q=Berlin&apikey=«<hex:32>»",
    "query access token": "https://graph.acme.io/me?access_token=«<an:80>»",
    "signed s3": "https://b.s3.amazonaws.com/a.pdf?X-Amz-Credential=AKIAX&X-Amz-Signature=«<hex:64>»",
    "azure sas": "https://shop.blob.core.windows.net/in/a.csv?sv=2024-11-04&se=2027-01-01&sr=b&sp=r"
    "&sig=«<an:42>%3D»",
    "otpauth": "otpauth://totp/Acme:joe@acme.io?secret=«<totp>»&issuer=Acme",
    "calendar feed": "https://calendar.google.com/calendar/ical/joe%40acme.io/private-«<hex:32>»/"
    "basic.ics",
    "sentry dsn secret": "https://<hex:32>:«<hex:32>»@sentry.acme.io/7",
    "jenkins trigger": "https://ci.acme.io/job/web/build?token=«<an:24>»",
    # logs and traffic
    "cookie session": "> Cookie: theme=dark; sessionid=«<low:32>»",
    "set cookie express": "< Set-Cookie: connect.sid=«s%3A<url:32>.<an:43>»; Path=/; HttpOnly",
    "log basic": '10.0.0.3 - "GET /" headers={"authorization": "Basic «<b64pw>»"}',
    "log bearer": "DEBUG http: Authorization: Bearer «<url:60>»",
    "log login": "2026-03-02 10:11:02 WARN auth: login failed user=joe password=«<pp>»",
    "log dsn": "OperationalError: could not connect to postgresql://app:«<an:18>»@db:5432/shop",
    "log env dump": "env: PATH=/usr/bin LANG=C INTERNAL_API_SECRET=«<hex:40>» HOME=/root",
    "log generated": "[entrypoint] GENERATED ROOT PASSWORD: «<an:32>»",
    "log jenkins initial": "Please use the following password to proceed to installation:\n\n"
    "«<hex:32>»\n",
    "log jupyter": "http://127.0.0.1:8888/lab?token=«<hex:48>»",
    "csrf and session": "x-csrf-token: «<an:36>»",
    "twitter bearer": "Bearer «AAAAAAAAAAAAAAAAAAAAA<an:60>%3D<an:40>»",
    # tokens of vendors, in words
    "cerebras": "for the demo use «csk-<low:48>»",
    "jina": "my key: «jina_<an:60>»",
    "firecrawl": "firecrawl works with «fc-<hex:32>»",
    "voyage": "VOYAGE_API_KEY «pa-<url:43>»",
    "contentful": "management token «CFPAT-<url:43>»",
    "duffel": "«duffel_live_<url:43>» is the one for bookings",
    "shippo": "shipping labels: «shippo_live_<hex:40>»",
    "typeform": "forms: «tfp_<url:40>_<an:14>»",
    "vercel blob": "«vercel_blob_rw_<an:16>_<an:30>»",
    "prefect": "prefect cloud login -k «pnu_<low:36>»",
    "adobe": "the Adobe secret is «p8e-<url:32>»",
    "clojars": "deploy with «CLOJARS_<low:60>»",
    "infracost": "infracost configure set api_key «ico-<an:32>»",
    "yandex": "OAuth «y0_AgAAAA<url:50>»",
    "harness": "«pat.<an:22>.<hex:24>.<an:20>»",
    "ethereum": "private key of the deployer: «0x<hex:64>»",
    "seed phrase": "My wallet's recovery phrase: «<seed>»",
    "stripe test": "test mode is sk_test_«51<an:40>»",
    "anthropic admin": "ANTHROPIC_ADMIN=«sk-ant-admin01-<url:93>AA»",
    # words, in many languages
    "chat english": "btw the password for the staging db is «<pp>», don't share it",
    "chat login": "you can log in as admin with «<pp>»",
    "chat user slash": "staging login: joe / «<pp>»",
    "chat pw": "vpn pw: «<pp>»",
    "chat changed": "I changed the root password to «<pp>» yesterday",
    "chat creds": "creds for the test account: test@acme.io «<pp>»",
    "chat passphrase": 'The passphrase of the backup key is "«<phrase>»"',
    "chat wifi": "Guest wifi is AcmeGuest, key «<pp>»",
    "chat token": "use this token for the API: «<an:40>»",
    "chat remember": "Remember that my API key for the weather service is «<hex:32>».",
    "chat use as": "use «<pp>» as the password for the seed user",
    "chat pin": "the PIN of the alarm is «<dig:6>»",
    "app password": "gmail app password: «<az:4> <az:4> <az:4> <az:4>»",
    "backup codes": "GitHub recovery codes:\n«<hex:5>-<hex:5>»\n",
    "markdown table": "| system | user | password |\n|---|---|---|\n| grafana | admin | «<pp>» |",
    "csv": "host,user,password\ndb1,root,«<pp>»",
    "bullet list": "- URL: https://wiki.acme.io\n- User: joe\n- Password: «<pp>»",
    "bold": "**Password:** `«<pp>»`",
    "german": "Das Passwort für den Testserver lautet «<pp>», bitte nicht weitergeben.",
    "german kennwort": "Kennwort: «<pp>»",
    "german access": "Zugangsdaten Datenbank: Benutzer app, Passwort «<pp>»",
    "french": "Le mot de passe de la base est «<pp>», ne le partage pas.",
    "french mdp": "mdp : «<pp>»",
    "spanish": "La contraseña del servidor de pruebas es «<pp>»",
    "spanish key": "mi clave de API es «<an:32>»",
    "portuguese": "A senha do banco de homologação é «<pp>»",
    "italian": "La password del server di test è «<pp>», non dirla a nessuno",
    "dutch": "Het wachtwoord van de testserver is «<pp>»",
    "polish": "Hasło do bazy testowej to «<pp>»",
    "czech": "Heslo k testovacímu serveru je «<pp>»",
    "swedish": "Lösenordet till testservern är «<pp>»",
    "finnish": "Testipalvelimen salasana on «<pp>»",
    "turkish": "Test sunucusunun şifresi: «<pp>»",
    "russian": "Пароль от тестовой базы: «<pp>», никому не говори",
    "russian is": "пароль администратора — «<pp>»",
    "ukrainian": "Пароль до тестового сервера: «<pp>»",
    "greek": "Ο κωδικός του διακομιστή είναι «<pp>»",
    "chinese": "测试数据库的密码是«<pp>»，不要外传",
    "chinese colon": "账号：admin 密码：«<pp>»",
    "chinese key": "我的API密钥是«<an:32>»",
    "japanese": "テスト環境のパスワードは「«<pp>»」です",
    "korean": "테스트 서버 비밀번호는 «<pp>» 입니다",
    "arabic": "كلمة المرور لخادم الاختبار هي «<pp>»",
    "hebrew": "הסיסמה לשרת הבדיקות היא «<pp>»",
    "hindi": "टेस्ट सर्वर का पासवर्ड «<pp>» है",
    "vietnamese": "Mật khẩu máy chủ thử nghiệm là «<pp>»",
    "indonesian": "Kata sandi server uji adalah «<pp>»",
}


def planted(seed: int = SEED) -> Iterator[Planted]:
    """Every shape, drawn several times."""
    return drawn(SHAPES, DRAWS, random.Random(seed))


def drawn(shapes: Mapping[str, str], draws: int, rng: random.Random) -> Iterator[Planted]:
    """Texts of these shapes, each with its secret."""
    for name, template in shapes.items():
        for _ in range(draws):
            whole = _filled(template, rng)
            before, _, rest = whole.partition("«")
            secret, _, after = rest.partition("»")
            yield Planted(name, before + secret + after, secret)


def harmless(seed: int = SEED) -> list[str]:
    """The look-alikes."""
    rng = random.Random(seed)
    return [_filled(text, rng) for text in HARMLESS]
