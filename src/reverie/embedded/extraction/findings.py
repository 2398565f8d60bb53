"""From a user's messages to what is worth keeping of them.

Each sentence is read by the rules of its language, the surest first; one that says several
things counts once. A reason given in the same or the next sentence is its why, a range given
in a sentence of its own its how; neither is ever made up. Nothing is guessed from what a person
complains of or an agent owns up to. Never kept, asked for or not, is what the code or git can
tell, debugging recipes, the state of the work in hand, lists, verdicts on people, secrets, and
what was said already. The same messages always give the same findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reverie.embedded.extraction import chinese, conventions, european, orders, people, project
from reverie.embedded.extraction.dates import is_ahead, made_absolute
from reverie.embedded.extraction.words import (
    TYPE_OF,
    FoundFact,
    Sentence,
    SentenceRule,
    UserTurn,
    is_brief,
    pattern,
    sentences,
)
from reverie.errors import ReverieError
from reverie.memory.echo import EchoMatch, Passages, content, is_said, negates
from reverie.memory.format.entry import Type
from reverie.memory.secrets import scan
from reverie.text.tokens import has_chinese

MAX = 6  # things kept of one message

ENGLISH: tuple[SentenceRule, ...] = (
    *orders.STANDING,
    *project.POINTERS,
    *project.FACTS,
    *project.DEADLINES,
    *people.ROLES,
    *people.PREFERENCES,
    *european.RULES,
)
CHINESE: tuple[SentenceRule, ...] = (
    *chinese.STANDING,
    *chinese.POINTERS,
    *chinese.FACTS,
    *chinese.DEADLINES,
    *chinese.ROLES,
    *chinese.PREFERENCES,
)
# Words that lead into a sentence and say nothing.
LEAD = pattern(
    r"(?:(?:ok(?:ay)?|yes|yeah|yep|yup|nope|nah|hmm+|no(?=\s*[,.!:–—-]|\s+(?:you|u|i|we|it|that"
    r"|this|do|don'?t|stop|use|never|always|the|just|please)\b)|also|and|but|so|well|please|pls|plz"
    r"|oh|ah|right|sure|great|thanks|thank you|btw|by the way|alright|all right|cool|nice"
    r"|wait(?=\s*[,.!:…–—-])|wtf|dude|man|bro|jesus|ffs|ugh|argh|gah|seriously|come on|lol|um|uh"
    r"|perfect|actually|anyway|like|or|just|then|because|one (?:more|last|other) thing|remember(?: that(?!'))?"
    r"|note(?: that(?!'))?|(?:keep|bear) in mind(?: that(?!'))?|heads up|ps"
    r"|p\.s|fyi|h(?:ey|i|ello)(?: (?!you|we|i\b)\w+)?|again|lastly|finally|first(?! things)|hm"
    r"|(?-i:[A-Z][a-z]+(?=[,!])))\b[\s,:!.–—-]*)*"
)
_WHY = pattern(
    r"[,;–—-]{0,3}\s{0,9}\b(?:because|since(?! (?:\d|last|we last|then|monday"
    r"|yesterday|i was))|so that|the reason (?:is|being)|otherwise"
    r"|as it|as they|due to)\b\s*(?P<why>.{6,})$"
    r"|[，,；]?\s*(?:因为|由于|否则|不然|免得|以免|原因是)(?P<wide>.{3,})$"
)
_BECAUSE = pattern(
    r"^(?:that's |it's |this is )?(?:because|the reason (?:is|being)"
    r"(?: that)?|otherwise|why:)\s*(?P<why>.{6,})$|^(?:因为|原因是|否则|不然)"
    r"(?P<wide>.{3,})$"
)
_RANGE = pattern(
    r"^(?:this|that|it|same) (?:applies|goes|holds|counts|is) (?:only"
    r" )?(?:for|to|when|in|if) .{3,}|^(?:only|except|unless|but not)"
    r" (?:for|in|when|if|where|on) .{3,}"
    r"|^(?:how to apply:|this is for|applies to) .{3,}|^(?:只|仅)?适用于.{2,}"
    r"|^(?:除了|仅限|只限).{2,}|^只有.{2,}时.{0,}"
)
_INSULT = re.compile(
    r"[,\s]{0,9}\b(?:you )?(?:idiot|moron|dummy|stupid|dumbass|fool)\b[\s.!]{0,9}", re.IGNORECASE
)
_TAIL = re.compile(
    r",?\s{0,9}(?:any other options?|right|no|ok(?:ay)?|please|thanks|got it|understood)\s{0,9}$"
    r"|[，,]?\s{0,9}(?:好吗|好不好|可以吗|行吗|谢谢|知道了吗)\s{0,9}$",
    re.IGNORECASE,
)
_ORDER_WIDE = pattern(r"^(?:不要|别|总是|始终|每次|必须|务必|一律|先|用|使用|要)")
_SELF = pattern(r"^(?:i|my|i'm|i've|me)\b|^我(?!们)")


def findings(turns: Sequence[UserTurn], known: Iterable[str] = ()) -> list[FoundFact]:
    """Everything worth keeping, in the order it was said; nothing that `known` says already."""
    talk = conventions.TalkSoFar()
    found: list[list[FoundFact]] = []
    for turn in turns:
        read, talk = _read(turn, talk)
        found.append([one for one in read if not never(one)])
    told = Passages(("", text) for text in known) if any(found) else Passages()
    out: list[FoundFact] = []
    for mine in found:
        kept: list[FoundFact] = []
        for one in mine:
            again = any(says(other.rule, one.rule) for other in (*out, *kept))
            if one.topic or (not again and not _is_told(one, told)):
                kept.append(one)
        out += kept[:MAX]
    return conventions.latest(out)


def _is_told(found: FoundFact, told: Passages) -> bool:
    """Whether some texts say it already."""
    about = content(found.rule)
    match = told.best(about)
    same = is_said(about, match) and match.negated == negates(found.rule)
    return same and told.has_numbers(about, about)


def _read(
    turn: UserTurn, talk: conventions.TalkSoFar
) -> tuple[list[FoundFact], conventions.TalkSoFar]:
    """What a message says, unjudged, and what the talk is about by then."""
    said = list(sentences(turn.text))
    brief = is_brief(turn.text)
    out: list[FoundFact] = []
    for place, sentence in enumerate(said):
        reasons = [one for one in said[place + 1 : place + 3] if not one.asks]
        rules = [] if brief else conventions.read(sentence, talk)
        talk = conventions.heard(talk, sentence)
        one = None if rules else _sentence(sentence, turn)
        if brief and one is not None and one.kind != "request" and not orders.FOR_GOOD.search(one.rule):
            one = None
        rules += [replace(one, said=sentence.text)] if one is not None else []
        out += [_finished(_reasoned(rule, reasons), turn) for rule in rules]
    return out, talk


def _sentence(sentence: Sentence, turn: UserTurn) -> FoundFact | None:
    """What one sentence says: asked to be kept, or by the first rule that fits."""
    wide = has_chinese(sentence.text)
    if wide:
        sentence = replace(sentence, masked=sentence.masked.translate(chinese.TRADITIONAL))
    asked = _asked_wide(sentence) if wide else orders.asked(sentence) or european.asked(sentence)
    if asked is not None:
        return _typed(asked, turn)
    lead = (chinese.LEAD if wide else LEAD).match(sentence.masked)
    seen = sentence.masked[lead.end() if lead else 0 :]
    frame = None if wide else orders.FRAME.match(seen)
    if frame is None:
        return _ruled(sentence, seen, turn)
    asked_of = replace(sentence, asks=sentence.asks and not frame["asks"])
    return _ruled(asked_of, seen[frame.end() :], turn) or _ruled(sentence, seen, turn)


def _ruled(sentence: Sentence, seen: str, turn: UserTurn) -> FoundFact | None:
    """What the first rule finds that fits; a day that has passed is no deadline."""
    for rule in CHINESE if has_chinese(sentence.text) else ENGLISH:
        found = rule.reads(sentence, seen)
        if found and (found.kind != "deadline" or is_ahead(sentence.text, turn.at)):
            return found
    return None


def _asked_wide(sentence: Sentence) -> str | None:
    lead = chinese.LEAD.match(sentence.masked)
    start = lead.end() if lead else 0
    found = chinese.ASKED.search(sentence.masked[start:])
    if found is None or sentence.asks or found["list"]:
        return None
    name = "what" if found["what"] else "what2"
    what = sentence.text[start + found.start(name) : start + found.end(name)]
    return None if chinese.ONCE.search(what) else what


def _typed(what: str, turn: UserTurn) -> FoundFact:
    """What was asked to be kept, with the type its content gives."""
    found = _ruled(Sentence(what, what), what, turn)
    if found is not None:
        return replace(found, kind="request")
    kind: Type = "project"
    if orders.ORDER.search(what) or _ORDER_WIDE.search(what):
        kind = TYPE_OF["standing_instruction"]
    elif _SELF.search(what):
        kind = TYPE_OF["role"]
    elif re.search(r"https?://", what):
        kind = TYPE_OF["pointer"]
    return FoundFact("request", kind, what)


def _reasoned(found: FoundFact, behind: Sequence[Sentence]) -> FoundFact:
    """The finding with the reason and the range that the same words or the next give."""
    rule, why, how = found.rule, "", ""
    inside = _WHY.search(rule)
    if inside and inside.start() > 8:
        why = inside["why"] or inside["wide"]
        rule = rule[: inside.start()]
    for sentence in behind:
        reason = _BECAUSE.search(sentence.text)
        if reason and not why:
            why = reason["why"] or reason["wide"]
        elif found.topic and not why and conventions.WHY.search(sentence.text):
            why = sentence.text
        elif _RANGE.search(sentence.text) and not how:
            how = sentence.text
        else:
            break
    return replace(found, rule=rule, why=why, how=how)


def _finished(found: FoundFact, turn: UserTurn) -> FoundFact:
    """The finding in whole sentences, its dates written out."""
    parts = {
        "rule": _closed(made_absolute(_bare(found.rule), turn.at)),
        "why": _closed(made_absolute(found.why, turn.at)),
        "how": _closed(made_absolute(found.how, turn.at)),
    }
    said = made_absolute(" ".join(found.said.split()), turn.at)
    return replace(found, **parts, said=said, turn=turn.id)


def _bare(text: str) -> str:
    """Words without insults and empty endings."""
    return _TAIL.sub("", _INSULT.sub(" ", text).strip().rstrip(" .…")).strip(" ,;:)，；：）–—-")


def _closed(text: str) -> str:
    """A sentence with a capital and an end."""
    text = " ".join(text.split()).strip(" ,;，；")
    text = text.capitalize() if text.isupper() and " " in text else text
    if not text:
        return ""
    if text[-1] not in ".!?。！？…":
        text += "。" if has_chinese(text) else "."
    return text[:1].upper() + text[1:]


# Never saved

_FRAGMENT = pattern(r"^(?:is|are|was|were|'s|s|it|they|this|these|that|he|she)\b(?!'s spelled)")
_EMPTY = frozenset(
    """a an the of to in on at by for and or but so is are was were be been am it its this that these
    those he she they them do does did as with from""".split()
)
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
    r"|halfway|still|currently|now) (?!an?\b|based|windows|linux|mac|arch|ubuntu|debian|fedora"
    r"|wsl|my phone|mobile)|next step|so far|wip|in progress"
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
# What only this task is about: a number, a place in a file, a ticket.
_TASK_ID = pattern(
    r"(?<![\w-])\d{6,}(?![\w-])|\S+:\d+(?::\d+)?\b(?<!\d:\d\d)|(?<!\w)#\d+\b|(?-i:\b[A-Z]{2,8}-\d{3,}\b)"
    r"|\bpull/\d+"
)
_PRIVATE = pattern(
    r"\b(?:divorc\w*|hospital|sick|surgery|cancer|pregnan\w+|affair|salary|fired|funeral|depress\w+"
    r"|therapy|drunk|arrested|broke up|dating|rehab|miscarriage|burn-?out|ill|illness)\b"
    r"|(?<![\w-])(?!\d{4}-\d\d)\+?\d[\d /-]{7,}\d(?![\w-])|离婚|住院|生病|怀孕|工资|被开除"
)
# A credential named as such, in words that no scanner for formats would find.
_NAMED = pattern(
    r"\b(?:password|passphrase|passcode|pin|api[ _-]?key|secret|token|login)s?\b.{0,20}?(?:\bis\b"
    r"|=|:)\s*\S{4,}|(?:密码|口令|密钥|令牌|验证码)\s*(?:是|为|：|:|=)\s*\S{4,}"
)


def never(found: FoundFact) -> str:
    """Why a thing is never saved, in a word; nothing where it may be."""
    rule = found.rule.strip()
    fact = found.type in ("project", "user") or found.kind == "request"
    if not found.topic and (_short(rule) or _is_cut(rule) or _FRAGMENT.search(rule)):
        return "fragment"
    checks = (
        ("task", _TASK_ID, not found.topic and found.type != "reference"),
        ("private", _PRIVATE, not _SELF.search(rule)),
        ("encouragement", orders.KIND_WORDS, not found.topic),
        ("announced", orders.TO_COME, found.type == "feedback" and not found.topic),
        ("list", _LIST, True),
        ("verdict", _VERDICT, found.type != "feedback"),
        ("state", _STATE, found.kind != "deadline"),
        ("state", _TODO, found.type != "feedback"),
        ("recipe", _RECIPE, found.kind != "standing_instruction"),
        ("code", _CODE, fact),
        ("git", _GIT, True),
    )
    for why, words, applies in checks:
        if applies and words.search(found.text if why == "private" else rule):
            return why
    return "secret" if _NAMED.search(found.text) or _is_secret(found.text) else ""


def _short(rule: str) -> bool:
    """Whether fewer than three words of it mean anything."""
    if has_chinese(rule):
        return len(rule) < 5
    words = re.findall(r"[^\W_][\w'./#@+-]*", rule.lower())
    return sum((word not in _EMPTY) + (word[:1].isdigit()) for word in words) < 3


def _is_cut(rule: str) -> bool:
    """Whether a bracket opens that does not close, or closes what is not open."""
    return any(rule.count(a) != rule.count(b) for a, b in ("()", "[]", "{}", "（）"))


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
