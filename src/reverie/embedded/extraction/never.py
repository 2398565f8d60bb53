"""What is never saved, asked for or not, and what has been said already.

What the code or git can tell, debugging recipes, the state of the work in hand, lists and
records, verdicts on people, secrets; and what an instruction file, something recalled into this
conversation or an existing memory says. Judged by fixed words, in English and Chinese; in doubt
a thing is left out. Pure.
"""

from __future__ import annotations

from reverie.embedded.extraction.found import Found, pattern
from reverie.errors import ReverieError
from reverie.memory.echo import EchoMatch, content, is_said, negates
from reverie.memory.secrets import scan

_CODE = pattern(
    r"\b(?:is|are|was|were|lives?|sits?|gets?) (?:\w+ )?(?:defined|implemented|located|stored"
    r"|declared|called|imported|handled|set|configured|registered|in|under|at"
    r"|inside) .{0,30}(?:\b[\w.-]+/[\w./-]+|\b\w+\.(?:py|go|ts|tsx|js|rs|java|c|h|cpp|md|json|toml"
    r"|ya?ml|sh|sql|rb)\b|\b\w+\(\)|\bmodule\b|\bpackage\b|\bclass\b|\bfolder\b|\bdirectory\b)"
    r"|\b(?:function|method|class|struct|module|package|endpoint|table|schema|interface|service"
    r"|handler|component|config(?:uration)?|variable|repo(?:sitory)?|codebase|project|app|backend"
    r"|frontend|api)s?\b.{0,40}\b(?:returns?|calls?|inherits?|extends?|imports?|takes?|implements?"
    r"|contains?|consists?|uses?|is (?:written|built|called|named|structured|split)|are (?:written"
    r"|built|called|named)|follows?|depends?|lives?|exports?)\b|^we (?:use|follow"
    r"|have) .{0,40}\b(?:pattern|architecture|convention|framework|orm|monorepo|modules?|layers?"
    r"|folders?|structure|microservices?)\b|(?:定义|实现|位于|放)在\s*\S*[/.]\S+|(?:函数|方法|类"
    r"|模块|接口|组件|代码库|仓库).{0,20}(?:返回|调用|继承|导入|位于|使用|叫做|包含|依赖)"
    r"|项目(?:采用|使用).{0,20}(?:架构|模式|框架|结构)"
)
_GIT = pattern(
    r"\bcommit [0-9a-f]{6,40}\b|\b[0-9a-f]{12,40}\b|\b(?:wrote|authored|committed|merged|reverted"
    r"|refactored|introduced) (?:this|that|the|it|in)\b.{0,40}\b(?:code|file|function|module"
    r"|commit|pr|branch|line|feature|module)?|\b(?:last|previous|latest) commit\b|\b(?:pr"
    r"|pull request|mr) ?#?\d+\b|提交\s*[0-9a-f]{6,}|(?:写|提交|合并|重构)了(?:这|那|该)"
)
_RECIPE = pattern(
    r"\b(?:the (?:fix|root cause|bug|problem|crash|error|workaround|solution) (?:is|was|here)"
    r"|fixed (?:it )?by|caused by|(?:^|, )to (?:fix|debug|reproduce|work around|solve) (?:it|this"
    r"|that|the|an?)\b|work-?around|stack ?trace|clear(?:ing)? the cache|restart(?:ing)? the"
    r"|re-?install(?:ing)?|rm -rf)|\bif (?:it|the|you (?:see|get|hit)).{0,60}\b(?:fails?|crashes?"
    r"|hangs?|errors?|breaks?|exception|segfault)\b|(?:修复|解决|排查|调试)(?:方法|办法|的?步骤)"
    r"|(?:原因|问题|错误)(?:是|在于).{0,20}(?:缓存|端口|版本|空指针|配置)|如果(?:报错|失败|崩溃"
    r"|卡住)|重启一下|清(?:除|空|理)?缓存"
)
_STATE = pattern(
    r"\b(?:we(?:'re| are) (?:on|at|now|currently|still|halfway|almost)|i(?:'m| am) (?:on|at"
    r"|halfway|still|currently|now) (?!an?\b|based)|next step|so far|wip|in progress"
    r"|current(?:ly)? (?:task|branch|step|working)|step \d|phase \d|for (?:this"
    r"|the current) (?:task|pr|branch|change|session|ticket|one)|(?:this|the current) (?:pr|branch"
    r"|task|ticket|session|conversation|refactor\w*)|(?:tests?|build|ci) (?:is|are) (?:failing"
    r"|passing|green|red|broken)|left to do|done with|half ?way|where we (?:left off|stopped"
    r"|are))\b|目前(?:进度|做到|在做)|当前(?:任务|分支|步骤)|下一步|待办|做到一半|还剩|这个(?:任务"
    r"|分支|PR|需求)|本次(?:任务|修改|会话)|(?:测试|构建)(?:失败|通过)了"
)
_TODO = pattern(r"\bto-?dos?\b")
_LIST = pattern(
    r"^(?:(?:this|the|these|following|all(?: of)?(?: the)?) )+(?:list|items?|files?|prs?|commits?"
    r"|tickets?|links?|names?|steps?|todos?|changes)\s*(?:[:：,]|$)|^(?:everything|all of (?:this"
    r"|it|that)|this|that|it|the following)$|^(?:这些|以下|这个)(?:列表|清单|文件|步骤|名单)"
)
_VERDICT = pattern(
    r"\b(?:idiots?|stupid|lazy|incompetent|dumb|morons?|useless|hopeless|terrible at|bad at"
    r"|suck(?:s)? at|clueless|annoying|toxic|liar|crazy|insane|arrogant)\b|笨|懒|蠢|白痴|无能|差劲"
    r"|废物|讨厌鬼|骗子"
)
# A credential named as such, in words that no scanner for formats would find.
_NAMED = pattern(
    r"\b(?:password|passphrase|passcode|pin|api[ _-]?key|secret|token|login)s?\b.{0,20}?(?:\bis\b"
    r"|=|:)\s*\S{4,}|(?:密码|口令|密钥|令牌|验证码)\s*(?:是|为|：|:|=)\s*\S{4,}"
)


def never(found: Found) -> str:
    """Why a thing is never saved, in a word; nothing where it may be."""
    rule = found.rule.strip()
    fact = found.type in ("project", "user") or found.kind == "request"
    checks = (
        ("list", _LIST, True),
        ("verdict", _VERDICT, found.type != "feedback"),
        ("state", _STATE, found.kind != "deadline"),
        ("state", _TODO, found.type != "feedback"),
        ("recipe", _RECIPE, found.kind not in ("correction", "standing_instruction")),
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


def says(other: str, text: str) -> bool:
    """Whether a passage says what a text says, in the same or other words."""
    mine, theirs = content(text), content(other)
    if not mine or any(word[0].isdigit() for word in mine - theirs):
        return False  # a number or a date has no other words
    share = len(mine & theirs) / len(mine)
    return is_said(mine, EchoMatch(share)) and negates(other) == negates(text)
