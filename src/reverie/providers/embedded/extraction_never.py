"""What is never saved, asked for or not, and what has been said already.

What the code or git can tell, debugging recipes, the state of the work in hand, lists and
records, verdicts on people, secrets; and what an instruction file, something recalled into this
conversation or an existing memory says. Judged by fixed words, in English and Chinese; in doubt
a thing is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from reverie.errors import ReverieError
from reverie.memory.echo import negates
from reverie.memory.recall.stems import stem
from reverie.memory.secrets import scan
from reverie.providers.embedded.extraction_found import Found, pattern
from reverie.providers.embedded.phrases import is_chinese
from reverie.providers.embedded.recollections import STOP, STOP_ZH

SAME = 0.8
"""Share of a text's words that another must have to say the same."""
MOST_COMPARED = 200_000  # characters of instructions and recalled text that are looked at

_CODE = pattern(
    r"\b(?:is|are|was|were|lives?|sits?|gets?) (?:\w+ )?(?:defined"
    r"|implemented|located|stored|declared|called|imported|handled"
    r"|set|configured|registered|in|under|at|inside)"
    r" .{0,30}(?:\b[\w.-]+/[\w./-]+|\b\w+\.(?:py|go|ts|tsx|js|rs|java"
    r"|c|h|cpp|md|json|toml|ya?ml|sh|sql|rb)\b|\b\w+\(\)|\bmodule\b"
    r"|\bpackage\b|\bclass\b|\bfolder\b|\bdirectory\b)"
    r"|\b(?:function|method|class|struct|module|package|endpoint|table"
    r"|schema|interface|service|handler|component|config(?:uration)?"
    r"|variable|repo(?:sitory)?|codebase|project|app|backend|frontend"
    r"|api)s?\b"
    r".{0,40}\b(?:returns?|calls?|inherits?|extends?|imports?|takes?"
    r"|implements?|contains?|consists?|uses?|is (?:written|built|called"
    r"|named|structured|split)|are (?:written|built|called|named)|follows?"
    r"|depends?|lives?|exports?)\b"
    r"|^we (?:use|follow|have) .{0,40}\b(?:pattern|architecture|convention"
    r"|framework|orm|monorepo|modules?|layers?|folders?|structure|microservices?)\b"
    r"|(?:定义|实现|位于|放)在\s*\S*[/.]\S+|(?:函数|方法|类|模块|接口|组件|代码库|仓库).{0,20}"
    r"(?:返回|调用|继承|导入|位于|使用|叫做|包含|依赖)|项目(?:采用|使用).{0,20}(?:架构|模式|框架"
    r"|结构)"
)
_GIT = pattern(
    r"\bcommit [0-9a-f]{6,40}\b|\b[0-9a-f]{12,40}\b|\b(?:wrote|authored"
    r"|committed|merged|reverted|refactored|introduced) (?:this|that"
    r"|the|it|in)\b.{0,40}\b(?:code|file|function|module|commit|pr"
    r"|branch|line|feature|module)?"
    r"|\b(?:last|previous|latest) commit\b|\b(?:pr|pull request|mr)"
    r" ?#?\d+\b|提交\s*[0-9a-f]{6,}|(?:写|提交|合并|重构)了(?:这|那|该)"
)
_RECIPE = pattern(
    r"\b(?:the (?:fix|root cause|bug|problem|crash|error|workaround"
    r"|solution) (?:is|was|here)|fixed (?:it )?by|caused by|(?:^|,"
    r" )to (?:fix|debug|reproduce|work around|solve) (?:it|this|that"
    r"|the|an?)\b|work-?around|stack ?trace|clear(?:ing)? the cache"
    r"|restart(?:ing)? the|re-?install(?:ing)?|rm -rf)"
    r"|\bif (?:it|the|you (?:see|get|hit)).{0,60}\b(?:fails?|crashes?"
    r"|hangs?|errors?|breaks?|exception|segfault)\b"
    r"|(?:修复|解决|排查|调试)(?:方法|办法|的?步骤)|(?:原因|问题|错误)(?:是|在于).{0,20}(?:缓存"
    r"|端口|版本|空指针|配置)|如果(?:报错|失败|崩溃|卡住)|重启一下|清(?:除|空|理)?缓存"
)
_STATE = pattern(
    r"\b(?:we(?:'re| are) (?:on|at|now|currently|still|halfway|almost)"
    r"|i(?:'m| am) (?:on|at|halfway|still|currently|now) (?!an?\b|based)"
    r"|next step|to-?do\b|so far|wip|in progress|current(?:ly)? (?:task"
    r"|branch|step|working)"
    r"|step \d|phase \d|for (?:this|the current) (?:task|pr|branch"
    r"|change|session|ticket|one)|(?:this|the current) (?:pr|branch"
    r"|task|ticket|session|conversation|refactor\w*)|(?:tests?|build"
    r"|ci) (?:is|are) (?:failing|passing|green|red|broken)|left to"
    r" do|done with|half ?way"
    r"|where we (?:left off|stopped|are))\b"
    r"|目前(?:进度|做到|在做)|当前(?:任务|分支|步骤)|下一步"
    r"|待办|做到一半|还剩|这个(?:任务|分支|PR|需求)"
    r"|本次(?:任务|修改|会话)|(?:测试|构建)(?:失败|通过)了"
)
_LIST = pattern(
    r"^(?:(?:this|the|these|following|all(?: of)?(?: the)?) )+(?:list"
    r"|items?|files?|prs?|commits?|tickets?|links?|names?|steps?|todos?"
    r"|changes)\s*(?:[:：,]|$)|^(?:everything|all of (?:this|it|that)"
    r"|this|that|it|the following)$"
    r"|^(?:这些|以下|这个)(?:列表|清单|文件|步骤|名单)"
)
_VERDICT = pattern(
    r"\b(?:idiots?|stupid|lazy|incompetent|dumb|morons?|useless|hopeless"
    r"|terrible at|bad at|suck(?:s)? at|clueless|annoying|toxic|liar"
    r"|crazy|insane|arrogant)\b"
    r"|笨|懒|蠢|白痴|无能|差劲|废物|讨厌鬼|骗子"
)
# A credential named as such, in words that no scanner for formats would find.
_NAMED = pattern(
    r"\b(?:password|passphrase|passcode|pin|api[ _-]?key|secret|token"
    r"|login)s?\b.{0,20}?(?:\bis\b|=|:)\s*\S{4,}"
    r"|(?:密码|口令|密钥|令牌|验证码)\s*(?:是|为|：|:|=)\s*\S{4,}"
)
_WORD = re.compile(r"\d+(?:[-.:/]\d+)*|[^\W_]+(?:['’][a-z]+)?")


def never(found: Found) -> str:
    """Why a thing is never saved, in a word; nothing where it may be."""
    rule = found.rule.strip()
    fact = found.type in ("project", "user") or found.kind == "request"
    checks = (
        ("list", _LIST, True),
        ("verdict", _VERDICT, found.type != "feedback"),
        ("state", _STATE, found.kind != "deadline"),
        ("recipe", _RECIPE, found.kind != "correction"),
        ("code", _CODE, fact),
        ("git", _GIT, True),
    )
    for why, words, applies in checks:
        if applies and words.search(rule):
            return why
    return "secret" if _NAMED.search(found.text) or _is_secret(found.text) else ""


def _is_secret(text: str) -> bool:
    """Whether a text holds a credential; where that cannot be told, it does."""
    try:
        return bool(scan(text))
    except ReverieError:
        return True


def terms(text: str) -> frozenset[str]:
    """The words of a text that say something, by their stems; of Chinese, pairs of signs."""
    found: set[str] = set()
    for match in _WORD.finditer(text.lower()):
        word = match.group()
        if any(map(is_chinese, word)):
            kept = [c for c in word if c not in STOP_ZH]
            found.update(a + b for a, b in pairwise(kept))
        elif word not in STOP and len(word) > 1:
            found.add(stem(word))
    return frozenset(found)


def says(other: str, text: str) -> bool:
    """Whether a passage says what a text says, in the same or other words."""
    mine, theirs = terms(text), terms(other)
    if not mine or len(mine & theirs) < SAME * len(mine):
        return False
    if any(word[0].isdigit() for word in mine - theirs):
        return False  # a number or a date has no other words
    return negates(other) == negates(text)


def said_already(found: Found, texts: Iterable[str]) -> bool:
    """Whether any passage of some texts says it."""
    left = MOST_COMPARED
    for text in texts:
        part = text[:left]
        left -= len(part)
        for passage in re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", part):
            if passage and says(passage, found.rule):
                return True
    return False
