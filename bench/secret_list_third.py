"""A third list of secrets: what other people's scanners are tried on, and are told to have missed.

Written after the rules had last been changed, by the same hand, and for that reason from foreign
material: files of programs that hold logins, reports about tokens that a scanner did not see. It
is measured as it is; nothing was changed for it, in the rules or in the list.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.secret_list import Planted
from bench.secret_list_second import drawn

SEED = 77_003
DRAWS = 2
SHAPES: dict[str, str] = {
    # files of programs
    "esmtp": 'hostname smtp.acme.io:587\nusername "joe"\npassword "«<weak>»"\nstarttls required',
    "atom ftp": '{"host": "acme.io", "user": "root", "pass": "«<weak>»", "promptForPass": false}',
    "atom ftp passphrase": '{"privatekey": "", "passphrase": "«<pp>»", "hosthash": ""}',
    "ide web server": '<fileTransfer host="acme.io" port="21" password="«<hex:72>»">',
    "tugboat": "authentication:\n  client_key: abc\n  api_key: «<hex:32>»\nssh:\n  ssh_user: admin",
    "heroku json": '{"heroku": {"HEROKU_EMAIL": "j@acme.io", "HEROKU_API_KEY": "«<hex:32>»"}}',
    "database tool": '<connection host="localhost" port="1521" user="shop" password="«<weak>»"/>',
    "mongo tool": '{"userName" : "mongo", "userPassword" : "«<weak>»"}',
    "mongo tool ssh": '"sshPassphrase" : "«<pp>»",\n"sshPort" : 22,',
    "mongoid": 'default:\n  uri: "mongodb://shop:«<safe>»@ds048537.mongolab.com:48537/main"',
    "file transfer": "<User>root</User>\n<Pass>«<pp>»</Pass>\n<Logontype>4</Logontype>",
    "file transfer base64": '<Pass encoding="base64">«<b64pw>»</Pass>',
    "hub": '---\ngithub.com:\n- user: joe\n  oauth_token: "«<hex:40>»"',
    "voice server": "Auth=1\nAdminPassword=«<pp>»\nPassword=\nSendBuffer=0",
    "salesforce": "conn.login('joe@acme.io', '«<pp>»', function(err, res) {",
    "kucoin": "KUCOIN_API_SECRET = '«<uuid>»'",
    "kucoin token": 'kucoin_api_token = "«<hex:24>»"',
    "firefox logins": '"encryptedPassword": "«MDoEEPgAAAAAAAAAAAAAAAAAAAEwFAYI<b64:60>»"',
    "ftp daemon": "root:«$6$<an:16>$<an:86>»:3044:3045::/home/root:/bin/ftpsh",
    "irc": "IRC_NICK=joe\nIRC_PASS=«<weak>»",
    "forum config": "$dbuser = 'forum';\n$dbpasswd = '«<weak>»';",
    "s3cmd": "secret_key = «<an:38>»\nhost_base = s3.us-west-1.amazonaws.com",
    "git credentials": "https://joe:«<hex:40>»@github.com",
    "bash profile": "export HOMEBREW_GITHUB_API_TOKEN='«<hex:40>»'",
    "pypirc": "[global]\nusername = someuser\npassword = «<drawnsign>»",
    "app settings": '"DbConnString": "user=shop&password=«<pp>»"',
    "dump": "INSERT INTO `users` (`name`, `password`) VALUES ('joe', '«<pp>»');",
    "sublime sftp": '    "user": "joe",\n    "password": "«<pp>»",\n    //"port": "22",',
    "tomcat users": '<user username="tomcat" password="«<pp>»" roles="manager-gui"/>',
    "squirrelmail": "$imap_pass = '«<pp>»';",
    "sentry cli": "[auth]\ntoken=«sntrys_eyJ<an:80>_<an:43>»",
    "travis": "env:\n  global:\n    - GH_TOKEN=«<hex:40>»",
    "gem credentials": "---\n:rubygems_api_key: «rubygems_<hex:48>»",
    "cargo credentials": '[registry]\ntoken = "«cio<an:32>»"',
    "composer auth": '{"http-basic": {"repo.acme.io": {"user": "ci", "password": "«<hex:40>»"}}}',
    "nuget config": '<add key="ClearTextPassword" value="«<pp>»" />',
    "jenkins xml": "<passwordHash>#jbcrypt:«$2a$10$<an:53>»</passwordHash>",
    "rdp file": "username:s:joe\npassword 51:b:«<HEX:80>»",
    "teamcity": "teamcity.password=«<pp>»",
    "cisco": "enable secret 5 «$1$<an:4>$<an:22>»",
    "cisco plain": "username admin privilege 15 password 0 «<pp>»",
    # tokens that scanners were told to have missed
    "gitlab dotted": 'gitlab_token ="«<an:32>.01.<low:9>»"',
    "alchemy": "alchemy: «alcht_<an:30>»",
    "sourcegraph gateway": "cody gateway «slk_<hex:64>»",
    "heroku second": "export HEROKU=«HRKU-<uuid>»",
    "shopify app": "«shptka_<hex:32>» goes into the app's settings",
    "buildkite": "BUILDKITE_TOKEN «bkua_<hex:40>»",
    "doppler service": "«dp.st.prd.<an:43>»",
    "openai admin": "«sk-admin-<url:58>T3BlbkFJ<url:58>»",
    # words
    "handover": "Hi Ana, for the Grafana on prod: user admin, «<pp>» (please change it after).",
    "sticky note": "DB prod!! root / «<pp>»",
    "minutes": "Agreed: new password of the shared mailbox will be «<pp>» from Monday.",
    "ticket": "Customer cannot sign in. He uses joe@acme.io and «<pp>» and gets 401.",
    "readme": "Default credentials are `admin` and `«<pp>»`.",
    "question": "why does `mysql -uroot -p«<pp>»` say access denied?",
    "norwegian": "Passordet til testserveren er «<pp>»",
    "danish": "Adgangskoden til testserveren er «<pp>»",
    "romanian": "Parola serverului de test este «<pp>»",
    "hungarian": "A tesztszerver jelszava: «<pp>»",
    "thai": "รหัสผ่านของเซิร์ฟเวอร์ทดสอบคือ «<pp>»",
    "persian": "رمز عبور سرور آزمایشی «<pp>» است",
    "bengali": "টেস্ট সার্ভারের পাসওয়ার্ড হল «<pp>»",
    "catalan": "La contrasenya del servidor de proves és «<pp>»",
    "chinese colloquial": "数据库root密码改成«<pp>»了",
    "japanese colloquial": "DBのパスワード、«<pp>» に変えました",
    "korean colloquial": "디비 비번 «<pp>» 이에요",
    "russian colloquial": "логин admin, пасс «<pp>»",
    "german colloquial": "PW fürs WLAN ist «<pp>»",
}


def planted(seed: int = SEED) -> Iterator[Planted]:
    """Every shape, drawn twice."""
    return drawn(SHAPES, DRAWS, random.Random(seed))
