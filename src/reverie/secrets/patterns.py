"""The patterns of secrets: rules for source code made to see one in prose, matched by RE2.

gitleaks wants a quote, a space, a semicolon or an end after most secrets; Markdown puts a
comma, a full stop, a bracket, `**`, `|` or `_` there, and back-ticks between a name and its
value. Each change below widens: whatever a pattern of gitleaks matches, ours does too (but
for the lazy run of letters before a name, which only lengthens the match). What is in `rules`
stays a copy.

Everything is matched in time linear in the text, whatever the text is; that is why it is RE2
and not `re`. Texts are bytes, one for each character (`signs`). It never logs: a line of RE2's own
about a pattern that is too large would end up beside the text on somebody's screen. The
package `google-re2` carries no types; this is the one place that knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from reverie.light import dataclass
from reverie.secrets.contexts import PLACES, SPANS_LINES
from reverie.secrets.gitleaks import GITLEAKS
from reverie.secrets.names import COMMANDS, SecretKind

MatchSpan = tuple[int, int]


class Match(Protocol):
    """Where a pattern and its groups matched; (-1, -1) for a group that took no part."""

    def span(self, group: int = 0) -> MatchSpan: ...


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


class PatternEngineFailed(RuntimeError):
    """RE2 did not answer as it must."""


@cache
def _re2() -> Any:
    return import_module("re2")


def _options(**changed: Any) -> Any:
    options = _re2().Options()
    options.encoding = options.Encoding.LATIN1
    options.log_errors = False
    for name, value in changed.items():
        setattr(options, name, value)
    return options


@cache
def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to search; an invalid one raises."""
    return _re2().compile(pattern.encode("latin-1"), _options())


class WordFinder:
    """Finds which of many words stand in a text, in one pass, whatever their case."""

    # Added to every text: where even this is not found, "nothing found" means nothing.
    _CANARY = b"\x01canary\x01"

    def __init__(self, words: Sequence[str]) -> None:
        self._count = len(words)
        self._set = _re2().Set.SearchSet(_options(case_sensitive=False, max_mem=64 << 20))
        for word in (*(word.encode("latin-1") for word in words), self._CANARY):
            self._set.Add(_re2().escape(word))
        self._set.Compile()

    def among(self, text: bytes) -> frozenset[int]:
        """The positions, in the list given, of the words that stand in the text."""
        found: frozenset[int] = frozenset(self._set.Match(text + self._CANARY) or ())
        if self._count not in found:
            raise PatternEngineFailed("RE2 gave up on the keywords")
        return found - {self._count}


def matches(pattern: Pattern, text: bytes, *, again: bool) -> Iterator[Match]:
    """Every match from left to right.

    With `again`, the search goes on inside a match, at its first group: for patterns whose
    value may itself begin with what another value is named by. No part is matched a third time.
    """
    at = reach = 0
    while (found := pattern.search(text, at)) is not None:
        yield found
        start, end = found.span()
        groups = range(1, pattern.groups + 1 if again and start >= reach else 1)
        inner = (first for first, _ in map(found.span, groups) if first > start)
        at = max(next(inner, end), start + 1)
        reach = max(reach, end)


BEFORE_NAME = r"[\w.-]{0,50}?"
AFTER_NAME = r"""[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
AFTER_NAME_IN_GROUP = AFTER_NAME.replace("{0,3}(?:", "{0,3})(?:")
AFTER_SECRET = r"""(?:[\x60'"\s;]|\\[nr]|$)"""

# A name, then a back-tick, bracket or bold; a column of a table; "is" in a sentence.
_NAME_CLOSES = r"""[\s'"\x60*_)\]\\]{0,5}"""
_GIVES = r"(?:=|>|:{1,3}=|\|{1,2}|:|=>|\?=|,|(?:\bis|\bwas)[ \t])"
_VALUE_OPENS = r"""[\x60'"\s=*_(\[<\\]{0,6}"""
# Whatever cannot go on a word; an underscore or dash that ends one.
END = r"(?:[^\w-]|[_-]+(?:[^\w-]|$)|$)"
END_BUT_BASE64 = END.replace(r"[^\w-]|", r"[^\w+/-]|", 1)
# A word's start; also after `_` and after an escape of JSON, whose letter is no word's.
START = r"(?:\b|_|\\[nrt])"

# Changes that one rule alone needs: what stands in the pattern, and what is put there.
_OWN: dict[str, tuple[tuple[str, str], ...]] = {
    "azure-ad-client-secret": (
        (r"""(?:^|[\\'"\x60\s>=:(,)])""", ""),
        (r"""(?:$|[\\'"\x60\s<),])""", END),
    ),
    "curl-auth-header": ((r"(?:\B|\s|\z)", r"(?:\B|\s|_|\z)"),),
    "curl-auth-user": ((r"(?:\s|\z)", r"(?:\W|_|\z)"),),
    # Wider ends must not cut a value short that goes on in the other alphabet.
    "generic-api-key": (
        (
            r"([\w.=-]{10,150}|[a-z0-9][a-z0-9+/]{11,}={0,3})" + AFTER_SECRET,
            rf"(?:([\w.=-]{{10,150}}){END_BUT_BASE64}|([a-z0-9][a-z0-9+/]{{11,}}={{0,3}}){END})",
        ),
    ),
    "kubernetes-secret-yaml": (
        (r"(?:\bkind:", rf"(?:{START}kind:"),
        (
            r"""(?s:.){0,200}?\bkind:[ \t]*["']?\bsecret\b["']?)""",
            r"""(?s:.){0,200}?\bkind:[ \t]*["']?\bsecret(?:\b|_)["']?)""",
        ),
        (r"|\bdata:(?s:.){0,100}?\s+", rf"|{START}data:(?s:.){{0,100}}?\s+"),
    ),
    # A key of `-` at its end has no word boundary there.
    "openai-api-key": ((r"[A-Za-z0-9_-]{58})\b|sk-", r"[A-Za-z0-9_-]{58})|sk-"),),
    "openshift-user-token": ((r"(?:[^\w-]|\z)", END),),
    "perplexity-api-key": ((r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", END),),
    "sentry-org-token": ((r"(?:[^a-zA-Z0-9+/]|\z)", r"(?:[^a-zA-Z0-9+]|\z)"),),
    "sidekiq-sensitive-url": ((r"(?:[\/|\#|\?|:]|$)", r"(?:[^\w-]|_|$)"),),
    "sourcegraph-access-token": ((r"(\b(sgp_", "((sgp_"), (r"{40})\b)", "{40}))")),
}

TOKEN_FLOOR = 2.5
"""Below it a token is a row of signs that stands for one."""

_PEM = r"(?i)-{4,5} ?BEGIN[ A-Z0-9_-]{0,100}(?:PRIVATE|STATIC) KEY[ A-Z0-9]{0,10} ?-{4,5}"

# Patterns of our own beside those of gitleaks, under the same ids.
_MORE: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    # A key that is cut off before its last line.
    ("private-key", _PEM + r"(?s:.){0,300}?([A-Za-z0-9+/]{24,})", ("---begin", "--- begin"), 3.0),
)

KEYSTORE = re.compile(r"[^/]\.p(?:12|fx)$", re.IGNORECASE)
"""The one rule that goes by the file's name: `pkcs12-file`."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A rule as it is applied."""

    id: str
    pattern: str
    keywords: tuple[str, ...]
    floor: float
    named: bool = False
    """The secret is known by the name before it, not by its own shape."""
    spans_lines: bool = False
    """The pattern itself reaches over line ends; joining lines would only blur it."""
    kind: SecretKind = ""
    """How `own` judges the value; empty for a rule of gitleaks."""


def widen_pattern(rule: str, pattern: str) -> str:
    """The pattern, seeing secrets in prose as well."""
    for old, new in _OWN.get(rule, ()):
        if old not in pattern:
            raise ValueError(f"{rule}: a pattern that is to be widened has changed")
        pattern = pattern.replace(old, new, 1)
    pattern = re.sub(r"(^(?:\(\?i\))?|\|)\\b(?=[(A-Za-z0-9])", lambda m: m[1] + START, pattern)
    pattern = re.sub(r"\\b$", r"(?:\\b|_)", pattern)
    pattern = pattern.replace(BEFORE_NAME, "").replace(AFTER_SECRET, END)
    pattern = pattern.replace(AFTER_NAME, _NAME_CLOSES + _GIVES + _VALUE_OPENS)
    return pattern.replace(AFTER_NAME_IN_GROUP, _NAME_CLOSES + ")" + _GIVES + _VALUE_OPENS)


def _rule(rule: str, pattern: str, keywords: tuple[str, ...], floor: float) -> SecretRule:
    named = AFTER_NAME in pattern or AFTER_NAME_IN_GROUP in pattern
    spans = rule in ("generic-api-key", "kubernetes-secret-yaml", "private-key")
    wide = widen_pattern(rule, pattern)
    return SecretRule(rule, wide, keywords, floor, named, spans or rule.startswith("curl-"))


@cache
def rules() -> tuple[SecretRule, ...]:
    """Every rule that has a pattern."""
    return (*(_rule(*one) for one in (*GITLEAKS, *_MORE)), *_own_rules())


def _own_rules() -> Iterator[SecretRule]:
    for rule, pattern, words in TOKENS:
        whole = f"{START}({pattern}){END}"
        yield SecretRule(rule, whole, tuple(words.split(" ")), TOKEN_FLOOR, kind="token")
    for rule, pattern, words, kind in (*PLACES, *COMMANDS):
        spans = rule in SPANS_LINES
        named = kind in ("password", "strict", "key", "beside", "near")
        yield SecretRule(rule, pattern, tuple(words.split(" ")), 0.0, named, spans, kind)


@cache
def keywords() -> tuple[str, ...]:
    """Every keyword of every rule, once, in a fixed order."""
    return tuple(sorted({word for rule in rules() for word in rule.keywords}))


# --- Tokens that gitleaks' list does not have, or expects in source code only.
#
# Written from what the vendors publish. A token is known by its first letters and its length, and
# by nothing that may stand around it. Nothing here searches a text.


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
    ("telegram-bot-token", rf"(?:bot)?\d{{8,10}}:AA{_W}{{32,}}", ":aa"),
    ("discord-bot-token", rf"[MNO]{_A}{{23,27}}\.{_W}{{6}}\.{_W}{{27,45}}", "."),
    ("discord-webhook", rf"api/webhooks/\d{{16,20}}/{_W}{{50,}}", "api/webhooks/"),
    ("slack-token", rf"(?:xox[abceoprs](?:\.xox[bp])?|xapp)-{_W}{{24,}}", "xox xapp-"),
    ("slack-cookie", r"xoxd-[\w%+/=-]{40,}", "xoxd-"),
    ("zapier-hook", r"hooks\.zapier\.com/hooks/catch/\d+/\w{6,}", "hooks.zapier.com"),
    ("loggly-token", rf"loggly\.com/(?:inputs|bulk)/{_UUID}", "loggly.com"),
    ("sumologic-address", r"sumologic\.com/receiver/v1/http/[\w+/=-]{40,}", "sumologic.com"),
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
    ("tencent-secret-id", rf"AKID{_A}{{32}}", "akid"),
    ("volcengine-key", rf"AKLT{_A}{{40,}}", "aklt"),
    ("baidu-key", rf"bce-v3/ALTAK-{_A}{{16,}}/{_H}{{40}}", "bce-v3/"),
    ("google-hmac-key", r"GOOG1E[A-Z0-9]{50,}", "goog1e"),
    (
        "azure-service-key",
        r"[A-Za-z0-9+/]{30,80}(?:AzFu|AzSe|AzCa|ACDb|AIoT|APIM|ACOG|\+A(?:CR|St|Sb|Eh))[\w+/]{3,8}={0,2}",
        "azfu azse azca acdb aiot apim acog +acr +ast +asb +aeh",
    ),
    ("scaleway-key", r"SCW[A-Z0-9]{17}", "scw"),
    ("docker-swarm-token", r"SWMTKN-1-[a-z0-9]{40,}-[a-z0-9]{20,}", "swmtkn-"),
    ("k3s-token", rf"K10{_H}{{40,}}::\w+:{_H}{{20,}}", "k10"),
    ("portainer-token", r"ptr_[A-Za-z0-9+/]{40,}={0,2}", "ptr_"),
    ("mongodb-atlas-secret", rf"mdb_sa_sk_{_W}{{36,}}", "mdb_sa_sk_"),
    ("cockroach-key", rf"CCDB1_{_A}{{20,}}_{_A}{{36,}}", "ccdb1_"),
    ("honeycomb-key", rf"hc[abx]ik_{_A}{{40,}}", "hcaik_ hcbik_ hcxik_"),
    ("axiom-token", rf"xa[ap]t-{_UUID}", "xaat- xapt-"),
    ("launchdarkly-key", rf"(?:sdk|api|mob|rel)-{_UUID}", "sdk- api- mob- rel-"),
    ("octopus-key", r"API-[A-Z0-9]{25,40}", "api-"),
    (
        "jetbrains-token",
        r"perm[:-][A-Za-z0-9+/=]{6,}\.[A-Za-z0-9+/=]{2,}\.[A-Za-z0-9+/=_-]{20,}",
        "perm",
    ),
    ("dropbox-token", rf"sl\.(?:u\.)?{_W}{{60,}}", "sl."),
    ("facebook-token", rf"EAA{_A}{{40,}}", "eaa"),
    ("instagram-token", rf"IG(?:QV|AA){_W}{{60,}}", "igqv igaa"),
    ("twitter-bearer", r"A{18,}[A-Za-z0-9%]{60,}", "aaaaaaaaaaaaaaaaaa"),
    ("linkedin-secret", r"WPL_AP1\.[\w+/.=-]{16,}", "wpl_ap1"),
    ("twitch-token", r"oauth:[a-z0-9]{30}", "oauth:"),
    ("yandex-token", rf"y[0-3]_[Aa]{_W}{{50,}}", "y0_ y1_ y2_ y3_"),
    ("crates-io-token", rf"cio{_A}{{32}}", "cio"),
    ("nuget-key", r"oy2[a-z0-9]{43}", "oy2"),
    ("terraform-cloud-token", rf"{_A}{{14}}\.atlasv1\.{_W}{{60,}}", "atlasv1"),
    ("trello-token", rf"ATTA{_H}{{60,}}", "atta"),
    ("atlassian-token", r"AT(?:ATT3|CTT3)[\w=-]{60,}", "atatt3 atctt3"),
    (
        "braintree-token",
        rf"access_token\$(?:production|sandbox)\${_A}{{16}}\${_H}{{32}}",
        "access_token$",
    ),
    ("mailchimp-key", rf"{_H}{{32}}-us\d{{1,2}}", "-us"),
    ("mandrill-key", rf"md-{_W}{{22}}", "md-"),
    ("mailersend-token", rf"mlsn\.{_H}{{60,}}", "mlsn."),
    ("brevo-key", rf"x(?:key|smtp)sib-{_H}{{64}}-{_A}{{16}}", "xkeysib- xsmtpsib-"),
    ("klaviyo-key", rf"pk_{_H}{{34}}", "pk_"),
    ("flutterwave-key", rf"FLWSECK(?:_TEST)?-{_A}{{12,}}(?:-X)?", "flwseck"),
    (
        "new-relic-licence",
        rf"(?:{_H}{{32,36}}(?:FFFF)?NRAL|NR(?:II|IQ|JS|BR|SP)-{_W}{{19,}})",
        "nral nrii nriq nrjs nrbr nrsp",
    ),
    ("telnyx-key", rf"KEY[0-9A-F]{{32}}_{_W}{{22}}", "key0"),
    ("pubnub-secret", rf"sec-c-{_W}{{36,}}", "sec-c-"),
    ("onesignal-key", r"os_v2_(?:app|org)_[a-z0-9]{40,}", "os_v2_"),
    ("matrix-token", rf"(?:syt|mct)_{_W}{{20,}}", "syt_ mct_"),
    ("amazon-mws-token", rf"amzn\.mws\.{_UUID}", "amzn.mws"),
    (
        "amazon-login-secret",
        rf"amzn1\.(?:oa2-cs|application-oa2-client)\.(?:v1\.)?{_H}{{32,}}",
        "amzn1.",
    ),
    ("amazon-login-token", r"Atz[ar]\|[\w+/=-]{40,}", "atza| atzr|"),
    ("firebase-messaging-key", rf"AAAA{_W}{{7}}:APA91b{_W}{{100,}}", ":apa91b"),
    ("proxmox-token", rf"PVEAPIToken=\S{{3,60}}={_UUID}", "pveapitoken"),
    ("netlify-hook", rf"api\.netlify\.com/build_hooks/{_H}{{20,}}", "build_hooks"),
    (
        "vendor-token",
        (
            r"(?:jina|rpa|apify_api|crsr|chpt|pdl_(?:live|sdbx)_apikey|polar_(?:oat|pat)|xau|essu"
            r"|snyk_uat|jca|dbt[cu]|depot_(?:project|org)|wandb_v1|cal_live|retool|bb_live|unkey"
            r"|novu|infisical|hcp|cnvca|shpsec|lsk|apikey|ctx7sk|tk_prod|signkey-prod|llx|m0|luma"
            rf"|ste|sk-lf|st|secret-(?:live|test|prod))[_.-]{_W}{{24,}}"
        ),
        (
            "jina_ rpa_ apify_ crsr_ chpt_ pdl_ polar_ xau_ essu_ snyk_uat jca_ dbtc_ dbtu_ depot_ "
            "wandb_ cal_live retool_ bb_live unkey_ novu_ infisical hcp. cnvca shpsec lsk_ apikey "
            "ctx7sk tk_prod signkey- llx- m0- luma- ste- sk-lf st. secret-"
        ),
    ),
    ("bip32-key", r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{90,}", "prv"),
    ("nostr-key", r"nsec1[a-z0-9]{58}", "nsec1"),
    ("age-key", rf"AGE-SECRET-KEY-1{_A}{{58}}", "age-secret-key-1"),
)
"""Id, pattern, and the words of which one stands in every text that holds such a token."""
