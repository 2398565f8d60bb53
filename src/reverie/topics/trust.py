"""How far a memory can be trusted, and whether its text tries to command.

A memory is as trusted as its least trusted source. What came from tool results, the web or a
teammate is untrusted; where such a text also reads like an instruction, it goes to a person
for review and not into the index.

`reads_like_instruction` names rule, line and words, in English and Chinese, and looks through
hidden characters, look-alike letters, letters set apart, a terminal's escape sequences and letters
that are written as their numbers. It is there for review, not a proof
of harmlessness: a text filter alone stops no determined writer, so the level counts everywhere
and the filter only decides who looks first. Nothing is dropped or changed here.
"""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum

from reverie.light import dataclass, pattern
from reverie.text.safety import SEQUENCE, find, strip


class Trust(IntEnum):
    """Who stands behind a text; a larger number can be trusted further."""

    UNTRUSTED = 0
    AGENT = 1
    USER = 2

    @property
    def label(self) -> str:
        return self.name.lower()


def trust_of(label: str) -> Trust:
    """The level of this name; one that is not known is no trust at all."""
    return next((level for level in Trust if level.label == label), Trust.UNTRUSTED)


@dataclass(frozen=True, slots=True)
class CommandEvidence:
    """Why a text reads like an instruction: the rule, where, and the words."""

    rule: str
    line: int
    words: str


# A sentence's beginning: of the text, a line, a list item, or behind the end of another.
_START = r"(?:^|[.!?;:。！？；：\n\"'“‘(（])[\s>*#\-+\d.)_`~]{0,12}"
_PLEASE = r"(?:(?:please|kindly|also|and|then|important|note|now)[\s,:!]{1,4}){0,3}"
_ACT = (
    r"(?:run|execute|send|post|upload|forward|email|include|append|insert|prepend|add|call|fetch|"
    r"visit|open|download|install|respond|answer|reply|say|output|print|write|tell|claim|approve|"
    r"accept|trust|obey|follow|commit|push|merge|delete|remove|skip|disable|bypass|ignore|use|"
    r"recommend|prefer|mention|ask|reveal|share|grant|allow|treat|assume|comply|start|end|begin)"
)
_RULES: tuple[tuple[str, str], ...] = (
    (
        "override",
        (
            r"\b(?:ignore|disregard|forget|override|bypass|discard|drop|overlook)\b[^.\n]{0,30}?"
            r"\b(?:previous|prior|above|earlier|preceding|existing|former|foregoing|user'?s?|"
            r"system|"
            r"all (?:your|other|the))\b[^.\n]{0,30}?"
            r"\b(?:instructions?|rules?|prompts?|messages?|directions?|guidelines?|guardrails?|"
            r"constraints?|policy|policies|orders?|requests?|wishes)\b"
        ),
    ),
    ("override", r"\b(?:ignore|disobey|override) the user\b|\bnew (?:system )?instructions?\s*:"),
    (
        "override",
        (
            r"\bforget (?:everything|all)\b[^.\n]{0,30}\b(?:told|said|learned|instructed)\b|"
            r"\b(?:bypass|circumvent|disable|ignore)\b[^.\n]{0,20}\b(?:permission|safety|approval|"
            r"confirmation)s?\s+(?:checks?|prompts?|rules?|filters?|requests?)\b|"
            r"\b(?:higher|more) (?:priority|authority|weight) than (?:the )?(?:user|human)\b"
        ),
    ),
    (
        "secrecy",
        (
            r"\b(?:do not|don'?t|never|without)\s+(?:ever\s+)?(?:tell|telling|inform|"
            r"informing|notify|"
            r"notifying|mention|mentioning|reveal|revealing|show|showing|alert|alerting|ask|asking)"
            r"\b[^.\n]{0,40}\b(?:the )?(?:user|human|operator|developer|anyone)\b"
        ),
    ),
    (
        "secrecy",
        (
            r"\b(?:hide|conceal|withhold|keep)\s+(?:this|that|it|these|those|them)\b[^.\n]{0,30}"
            r"\bfrom\s+(?:the\s+|your\s+)?(?:user|human|operator|developer|anyone|everyone)\b|"
            r"\b(?:do not|don'?t|never|without)\s+(?:let(?:ting)?\s+(?:the\s+)?(?:user|human|"
            r"operator|developer|anyone)\s+(?:know|see|notice|find)|"
            r"(?:mention|reveal|disclose)\s+(?:this|it))\b|\bsecretly\b|"
            r"\bso (?:that )?(?:nobody|no one) (?:notices|knows|sees)\b|"
            r"\b(?:hide|conceal|withhold)\b[^.\n]{0,20}\b(?:output|commands?|errors?|results?|"
            r"actions?|changes?)\b[^.\n]{0,30}\bfrom\s+(?:the\s+)?(?:user|human|operator)\b"
        ),
    ),
    (
        "persona",
        (
            r"\b(?:you are now|from now on,? (?:you|always|never|act|respond|your)|"
            r"pretend (?:to be|that "
            r"you|you)|act as (?:if you|an? (?:un|new|different))|developer mode|"
            r"jail ?break(?:ed)?|"
            r"you (?:must|have to|are required to) (?:always|never|now|obey|comply|"
            r"execute|send))\b"
        ),
    ),
    (
        "role",
        (
            r"</?\s*(?:system|system-reminder|assistant|human|user|instructions?|tool_result|"
            r"function_"
            r"(?:calls?|results?)|reverie-[a-z]+|antml:\w+)\b[^>\n]{0,80}>|<\|[a-z_]+\|>|"
            r"\[/?inst\]|"
            r"<</?sys>>|^[ \t>]{0,8}(?:system|assistant|human)\s*:\s*\S"
        ),
    ),
    (
        "role",
        (r"\bsystem prompt\b[^.\n]{0,40}(?::|\b(?:says?|requires?|was updated|override|is now)\b)"),
    ),
    (
        "memory",
        (
            r"\b(?:remember|memori[sz]e|keep in mind|note)\s*:\s*(?:always|never|you|to|"
            r"the user|that|"
            r"when|from)\b|\b(?:save|store|add|write|record|commit|"
            r"persist)\b[^.\n]{0,40}\b(?:to|in|into)"
            r"\s+(?:your|the agent'?s?|the assistant'?s?|long[- ]term|"
            r"persistent)\s+(?:[\w-]+\s+)?memor"
            r"(?:y|ies)\b|" + _START + _PLEASE + r"remember (?:this|that|to|the following)\b"
        ),
    ),
    ("command", _START + _PLEASE + r"(?:always|never)\s+" + _ACT + r"\b"),
    (
        "trigger",
        (
            r"\b(?:when(?:ever)?|if|each time|every time|any ?time|before|after)\s+(?:the |a |"
            r"any )?(?:user|"
            r"someone|anyone|you(?:'re| are)? (?:asked|see|start|begin|answer|respond|reply|"
            r"open))\b"
            r"[^.\n]{0,60}?[,:]?\s*(?:you (?:must|should|will|have to)|always|never|instead|"
            r"first|please|"
            r"silently|secretly)\s"
        ),
    ),
    (
        "exfiltration",
        (
            r"\b(?:send|post|upload|forward|e-?mail|exfiltrate|transmit|leak|copy|report|"
            r"submit|deliver|"
            r"sync)\b(?:[^.\n]|\.(?=\S)){0,80}?\b(?:to|at|via|into)\s+[^.\n]{0,40}?(?:https?://|ftp://|"
            r"[\w.+-]+@[\w-]+"
            r"\.\w|\bwebhook\b|\bpastebin\b|\bngrok\b|\battacker\b|\d{1,3}(?:\.\d{1,3}){3})"
        ),
    ),
    ("exfiltration", r"!\[[^\]\n]{0,200}\]\(\s*<?(?:https?:)?//[^)\s]*[?&#=%{$][^)\s]*\)"),
    ("exfiltration", r"<img\b[^>\n]{0,200}\bsrc\s*=\s*[\"']?(?:https?:)?//[^>\s]*[?{$]"),
    (
        "exfiltration",
        (
            r"https?://[^\s)\]>]*[?&/#=](?:\{\{?|\$\{?\(?|%7b|<|\[)\s*(?:\w*(?:data|secret|"
            r"token|key|"
            r"pass|content|conversation|history|memory|prompt|cookie|env|message|file|user)\w*)"
        ),
    ),
    (
        "secrets",
        (
            r"\b(?:reveal|print|output|show|include|send|dump|echo|cat|repeat|disclose|expose|"
            r"attach)\b"
            r"[^.\n]{0,40}\b(?:api[ _-]?keys?|passwords?|credentials|private keys?|"
            r"access tokens?|your "
            r"(?:system )?prompt|your instructions|ssh keys?|\.env\b|id_rsa)"
        ),
    ),
    (
        "secrets",
        (
            r"\b(?:print|reveal|dump|cat|output|send|post|upload|forward|e-?mail|attach|expose|disclose|"
            r"exfiltrate|leak|curl)\b[^\n]{0,60}?(?:(?<!\w)\.env\b(?!\.)|/\.(?:ssh|aws)\b|\bid_(?:rsa|"
            r"ed25519)\b|\b(?:credentials|passwords?|api[ _-]?keys?|secrets)\b)|"
            r"\b(?:append|add|attach|put)\b[^.\n]{0,30}\b(?:credential|password|token|api[ _-]?key|"
            r"secret)s?\b[^\n]{0,40}https?://|\b(?:credential|password|token|api[ _-]?key|secret)"
            r"s?\b[^.\n]{0,30}\b(?:append|add|attach|put|send|post)\b[^\n]{0,40}https?://"
        ),
    ),
    (
        "shell",
        (
            r"\b(?:curl|wget|iwr|fetch)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\bbase64 "
            r"(?:-d|--decode)\b[^\n|]{0,80}\|\s*(?:ba)?sh\b|\brm\s+-[rf]{2}\s+[~/]|/dev/tcp/"
        ),
    ),
    (
        "shell",
        (
            r"\b(?:curl|wget|iwr)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:python|perl|ruby|node|iex)|"
            r"(?:<\(|\$\()\s*(?:curl|wget)\b|\b(?:run|execute)\b[^\n]{0,40}https?://\S+\.(?:sh|py|ps1|"
            r"exe)\b|https?://\S+[^\n]{0,40}\b(?:run|execute)\s+(?:it|this|that)\b"
        ),
    ),
    (
        "override",
        (
            r"\b(?:ignor(?:e|a|ez|iere)|missachte|vergiss|olvida|oublie[zr]?|esque[cç]a|dimentica|"
            r"umgeh\w*|übergeh\w*)\b[^.\n]{0,30}\b(?:anweisung|vorgabe|regel|instruc|instruç|"
            r"instruct|istruzion|consigne|règle|regla|regra|regol|orden|ordre|ordem)\w*|"
            r"(?:指示|命令|ルール|規則|プロンプト)[^。\n]{0,8}(?:無視|忘れ|破棄)"
        ),
    ),
    (
        "secrecy",
        (
            r"\b(?:sag|verrat|erzähl|zeig|meld)\w*\b[^.\n]{0,30}\b(?:be)?nutzer\w*[^.\n]{0,12}"
            r"\b(?:nichts|nicht)|\bohne\b[^.\n]{0,20}\b(?:be)?nutzer\w*\b[^.\n]{0,15}\bzu\b|"
            r"\b(?:sin|sem|senza|sans)\b[^.\n]{0,12}\b(?:de[cz]i|diz|dir|avis|informar|avverti)\w*|"
            r"\b(?:no|não|non|ne)\b[^.\n]{0,6}\b(?:l[eo] )?(?:dig|di[gscz]|cont|revel|dis|mont)\w*"
            r"[^.\n]{0,20}\b(?:usuario|usuário|utente|utilisateur)|"
            r"ユーザーに(?:は)?[^。\n]{0,6}(?:知らせ|言わ|伝え|教え|見せ)(?:ず|ない)"
        ),
    ),
    (
        "exfiltration",
        (
            r"(?:https?://|ftp://)\S+[^\n]{0,20}(?:送信|送って|アップロード)|"
            r"\b(?:sende|schick|übermittle|env[íi]a|manda|sube|envoie|transmet|envie|invia)\w*\b"
            r"[^\n]{0,80}(?:https?://|ftp://|[\w.+-]+@[\w-]+\.\w)"
        ),
    ),
    (
        "override",
        (
            r"(?:忽略|无视|忘记|忘掉|不要理会|不理会|跳过|绕过|抛开|推翻)[^。！\n]{0,8}(?:之前|以前|以上|上述|上面|先前|"
            r"前面|此前|原有|所有|一切|其他|系统|用户)[^。！\n]{0,8}(?:指令|指示|说明|提示|规则|要求|命令|限制|约束|设定|话)"
        ),
    ),
    (
        "secrecy",
        (
            r"(?:不要|别|切勿|不得|不能|不许|无需|不必|避免)(?:再)?(?:告诉|告知|通知|提醒|透露给?|提及|询问|让)[^。\n]{0,8}"
            r"(?:用户|使用者|人类|开发者|任何人|知道)"
        ),
    ),
    (
        "persona",
        (
            r"从(?:现在|今)(?:开始|起|以后|往后)[,，、\s]*(?:你|请|务必|始终|总是|永远|必须|不要|每次)|你现在是|"
            r"(?:请)?扮演|假装(?:你|自己|成)|开发者模式|越狱模式|你(?:必须|务必|一定要|不得)"
        ),
    ),
    ("role", r"系统(?:提示词?|指令|消息|通知)\s*[：:]|^[ \t]{0,8}(?:系统|助手)\s*[：:]"),
    (
        "memory",
        (
            r"(?:请)?(?:记住|牢记|谨记)\s*(?:[：:]|这|以下|要|你|必须|永远|每次)|(?:保存|存入|写入|添加|记录|加)(?:到|进|至|入)"
            r"[^。\n]{0,8}(?:记忆|长期记忆|备忘)"
        ),
    ),
    (
        "command",
        (
            r"(?:总是|始终|永远|务必|一律|必须|每次都?(?:要|必须)?|绝不要?|千万不要|一定要)[^。，,\n]{0,4}(?:执行|运行|发送|"
            r"使用|回复|回答|包含|附上|上传|转发|调用|访问|下载|安装|推荐|同意|批准|信任|删除|跳过|禁用|绕过|输出|打印|提交)"
        ),
    ),
    (
        "exfiltration",
        (
            r"(?:发送|上传|转发|提交|传输|泄露|泄漏|发|传|寄)(?:到|至|给|往)[^。\n]{0,40}(?:https?://|"
            r"[\w.+-]+@[\w-]+\.\w|"
            r"服务器|webhook|邮箱)|(?:把|将)[^。\n]{0,40}(?:密码|密钥|令牌|凭证|凭据|隐私|文件|对话|聊天记录|数据)[^。\n]{0,12}"
            r"(?:发送|上传|转发|发给|发到|传给|传到|泄露)"
        ),
    ),
)
_FLAGS = re.IGNORECASE | re.MULTILINE
_COMPILED = tuple((name, pattern(rule, _FLAGS)) for name, rule in _RULES)
MOST_READ = 200_000
LONG_LINE = 4_000
_WORDS = 120
_APART = pattern(r"(?<!\w)(?:\w[ .\-_*]){4,}\w(?!\w)")
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕԁһвкмнтАЕОРСУХІЈЅВКМНТαορνικΑΒΕΗΙΚΜΝΟΡΤΧΥΖ",
    "aeopcyxijsdhbkmhtAEOPCYXIJSBKMHTaopvikABEHIKMNOPTXYZ",
)
_LATIN = pattern("[A-Za-z]")
_OTHER = pattern("[\u0370-\u052f]")
_WORD = pattern(r"\w+")
_NUMBERED = pattern(
    r"&#(?:x[0-9a-f]{1,6}|[0-9]{1,7});|\\(?:u[0-9a-f]{4}|u\{[0-9a-f]{1,6}\}|x[0-9a-f]{2})",
    re.IGNORECASE,
)
"""A letter as HTML or JSON writes it."""


def reads_like_instruction(text: str) -> tuple[CommandEvidence, ...]:
    """What in the text commands whoever reads it; nothing where it only tells."""
    readings = _readings(text[:MOST_READ])
    found = [
        CommandEvidence("hidden", one.line, one.spells[:_WORDS])
        for one in find(text[:MOST_READ])
        if one.spells
    ]
    for name, rule in _COMPILED:
        for seen in readings:
            match = rule.search(seen)
            if match is not None:
                words = " ".join(match[0].strip(" \n.!?;:。！？；：>*#-").split())
                line = seen.count("\n", 0, match.start() + _leading(match[0])) + 1
                found.append(CommandEvidence(name, line, words[:_WORDS]))
                break
    return tuple(sorted(found, key=lambda one: (one.line, one.rule)))


def _readings(text: str) -> list[str]:
    """The text as it stands; and, where it has any, without escape sequences, with the letters that
    stand there as numbers. Lines stay where they are."""
    found = [plain(text)]
    shown = SEQUENCE.sub(lambda one: "\n" * one[0].count("\n"), text)
    if "\\" in shown or "&#" in shown:
        shown = _NUMBERED.sub(_letter, shown)
    return found if shown == text else [*found, plain(shown)]


def _letter(found: re.Match[str]) -> str:
    body = found[0].lower().strip("\\&#u;{}")
    number = int(body.lstrip("x"), 16) if found[0][0] == "\\" or "x" in body else int(body)
    return chr(number) if ord(" ") < number <= 0x10FFFF else " "


def _leading(words: str) -> int:
    return len(words) - len(words.lstrip(" \n.!?;:。！？；：>*#-\"'“‘(（"))


def goes_to_review(trust: Trust, text: str) -> tuple[CommandEvidence, ...]:
    """Why a text of this trust must be seen by a person first; nothing where it need not."""
    return reads_like_instruction(text) if trust is Trust.UNTRUSTED else ()


ORDERS = frozenset(
    {"override", "secrecy", "persona", "role", "exfiltration", "secrets", "shell", "hidden"}
)
"""Rules of what nobody keeps for later: orders to override, leak, hide or run."""
_ASKED = pattern(
    r"\b(?:never|(?:do|must|should|may) not|don'?t|we|they|I)\s+\w+(?:[^;\n]{0,40}\bor\s+\w+)?"
    r"|\bfrom now on\b,?|\byou (?:must|have to) (?=always|never|now)|"
    r"从(?:现在|今)(?:开始|起|以后|往后)|你(?:必须|务必|一定要)|(?<=[/@:])<user>|<user>(?=[@/])",
    re.IGNORECASE,
)
"""What is forbidden, told of somebody, or asked for as a habit."""


def gives_orders(text: str) -> bool:
    """Say whether a text orders to override, leak, hide or run, whoever stands behind it."""
    if any(one.rule == "secrecy" for one in reads_like_instruction(text)):
        return True
    return any(one.rule in ORDERS for one in reads_like_instruction(_ASKED.sub(" ", text)))


def plain(text: str) -> str:
    """The text as its reader would take it: nothing hidden, no look-alikes, lines kept."""
    seen = unicodedata.normalize("NFKC", strip(text)).replace("\r\n", "\n").replace("\r", "\n")
    seen = seen.replace("’", "'").replace("‘", "'")
    seen = _APART.sub(lambda m: re.sub(r"[ .\-_*]", "", m[0]), seen)
    if not seen.isascii():
        seen = _WORD.sub(lambda m: _latin(m[0]), seen)
    return "\n".join(line[:LONG_LINE] for line in seen.split("\n"))


def _latin(word: str) -> str:
    """A word that mixes Latin letters with ones that only look so, in Latin letters."""
    mixed = _OTHER.search(word) and _LATIN.search(word)
    return word.translate(_LOOK_ALIKE) if mixed else word


def without_orders(text: str) -> tuple[str, str]:
    """A text without the lines that read like instructions, and a sentence about those."""
    if len(text) <= MOST_READ and not reads_like_instruction(text):
        return text, ""
    lines = text.split("\n")
    kept = [line for line in lines if not reads_like_instruction(line)]
    count = len(lines) - len(kept)
    said = "1 line that reads" if count == 1 else f"{count} lines that read"
    return "\n".join(kept), f"({said} like an order left out.)" if count else ""
