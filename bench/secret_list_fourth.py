"""A fourth list of secrets: programs, machines and tests that the other three do not speak of.

Written after the rules were changed a last time with the third in view, and measured once; its
figure is the one nothing was fitted to.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.secret_list import Planted
from bench.secret_list_second import drawn

SEED = 90_411
DRAWS = 3
SHAPES: dict[str, str] = {
    "arduino": 'const char* ssid = "Attic";\nconst char* password = "«<pp>»";',
    "esphome": "wifi:\n  ssid: Attic\n  password: «<pp>»\napi:\n  encryption:\n    key: abc",
    "zigbee": "advanced:\n  network_key: «<hex:32>»\n  pan_id: 6754",
    "mqtt command": "mosquitto_sub -h broker -u sensor -P «<pp>» -t 'home/#'",
    "home assistant": "mqtt_password: «<pp>»\nlatitude: 48.1",
    "router": "/user add name=ops group=full password=«<pp>»",
    "juniper": 'set system root-authentication encrypted-password "«$6$<an:8>$<an:86>»"',
    "snmp": "snmp-server community «<an:14>» RO",
    "radius": "client office {\n  ipaddr = 10.0.0.1\n  secret = «<pp>»\n}",
    "sip": "[6001]\ntype=friend\nusername=6001\nsecret=«<pp>»",
    "vnc": "x11vnc -passwd «<pp>» -display :0",
    "ipmi": "ipmitool -I lanplus -H 10.0.0.9 -U admin -P «<pp>» power status",
    "stream key": "OBS stream key: «live_<dig:9>_<an:30>»",
    "haproxy": "userlist ops\n  user joe insecure-password «<pp>»",
    "grafana ini": "[security]\nadmin_user = admin\nadmin_password = «<pp>»",
    "elastic": "elasticsearch.username: kibana\nelasticsearch.password: «<pp>»",
    "elastic setup": "Password for the elastic user (reset with bin/reset): «<an:8>+<an:5>*<an:6>»",
    "rabbit definitions": '{"name": "app", "password_hash": "«<b64:48>»", "tags": ""}',
    "keycloak": '"credentials": [{"type": "password", "value": "«<pp>»"}]',
    "vault unseal": "Unseal Key 1: «<b64:44>»\nInitial Root Token: hvs.x",
    "restic": "RESTIC_PASSWORD=«<pp>» restic -r sftp:backup:/srv snapshots",
    "borg": "export BORG_PASSPHRASE='«<phrase>»'",
    "gpg": "gpg --batch --passphrase '«<pp>»' -c archive.tar",
    "luks": "echo -n «<pp>» | cryptsetup open /dev/sda2 root -",
    "bitlocker": "BitLocker recovery key: «<dig:6>-<dig:6>-<dig:6>-<dig:6>-<dig:6>-<dig:6>»",
    "fastlane": "FASTLANE_APPLE_APPLICATION_SPECIFIC_PASSWORD=«<az:4>-<az:4>-<az:4>-<az:4>»",
    "cloudinary": "CLOUDINARY_URL=cloudinary://<dig:15>:«<url:27>»@acme",
    "reddit": 'praw.Reddit(client_id="x", client_secret="«<url:27>»", user_agent="a")',
    "discord js": "client.login('«MT<an:24>.G<an:5>.<url:38>»');",
    "imap": "imap.login('joe@acme.io', '«<pp>»')",
    "selenium": 'driver.find_element(By.ID, "password").send_keys("«<pp>»")',
    "cypress": "cy.get('#password').type('«<pp>»')",
    "playwright": "await page.getByLabel('Password').fill('«<pp>»');",
    "postman environment": '{"key": "admin_password", "value": "«<pp>»", "enabled": true}',
    "http file": "POST /token\nContent-Type: application/x-www-form-urlencoded\n\n"
    "grant_type=password&username=joe&password=«<safe>»",
    "vba": 'conn.Open "Provider=SQLOLEDB;User ID=sa;Password=«<pp>»;"',
    "sql user": "CREATE USER shop WITH ENCRYPTED PASSWORD '«<pp>»';",
    "oracle user": 'ALTER USER scott IDENTIFIED BY "«<pp>»";',
    "ci masked wrongly": "+ docker login -u ci --password «<pp>» registry.acme.io",
    "mail": "Your account has been created.\nUsername: joe\nTemporary password: «<pp>»\nSign in at",
    "slack": "@ana prod vpn: joe.miller / «<pp>» / token from the app",
    "comment": "# TODO remove before release, pw is «<pp>»",
    "chat correction": "no, the password isn't changeme any more, it is «<pp>» now",
    "chat typed wrongly": "passwort für jenkins ist jetzt «<pp>» (alt geht nicht mehr)",
    "chat spanish": "el pass del admin ahora es «<pp>»",
    "chat french": "connecte-toi avec admin et «<pp>»",
    "chat portuguese": "usuário admin, senha «<pp>»",
    "chat italian": "utente: admin\npassword: «<pp>»",
    "chat polish": "login admin hasło «<pp>»",
    "chat chinese": "登录用户名admin，密码«<pp>»",
}


def planted(seed: int = SEED) -> Iterator[Planted]:
    """Every shape, drawn several times."""
    return drawn(SHAPES, DRAWS, random.Random(seed))
