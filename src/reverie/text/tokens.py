"""Terms of a text, content words, Chinese variants.

A text as the terms it is found by.

Words are folded (case, width, accents) and stemmed. An identifier gives its parts and itself:
`currentSessionID`, `current_session_id` and "current session id" meet. Scripts written without
spaces give pairs of neighbouring characters. Signs, emoji and query syntax give nothing, so a
term is letters and digits only and can stand in any query language as it is.
Total and bounded: any text has terms, at most as many as it has characters, and none is long.

A stem is a word brought to one form (`stems`); in a German text a word may have two. Traditional
Chinese characters are read as the simplified ones.

Some words say nothing of what a text is about. `FUNCTION` words are left out of texts and queries
alike. `ASKING` words and all Chinese ones are left out of queries alone: they belong to the asking
(`what kind of`, `do you remember`), and may matter in a text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from reverie.light import dataclass, pattern
from reverie.text.safety import strip
from reverie.text.stems import GERMAN_TERMS, german, is_german, stem

FUNCTION = frozenset(
    """
    a about above after again against all also am an and any are arent as at be because been
    before being below between both but by can cannot cant could couldnt did didnt do does doesnt
    doing done dont down during each either else ever every few for from further had hadnt has
    hasnt have havent having he hed her here hers herself hes him himself his how however i
    if im in into is isnt it itd itll its itself ive just least let lets like many me
    might more most much must my myself neither no nor not of off often on once only onto or other
    others our ours ourselves out over own per rather same shall she shes should shouldnt
    since so some such than that thatll thats the their theirs them themselves then there theres
    these they theyd theyll theyre theyve this those though through thus to too toward towards
    under until up upon us very via was wasnt we were werent weve what whatever whats when
    whenever where wheres whether which while who whom whos whose why will with within without wont
    would wouldnt yes yet you youd youll your youre yours yourself yourselves youve
    """.split()  # noqa: SIM905
)
ASKING = frozenset(
    """
    actually anyone anything anybody ask asked asking away certain describe else everything
    everyone exactly example explain find give happen happened happening hello help hey hi kind
    kinda kinds know known likely look maybe mean mention mentioned name need ok okay one ones
    particular perhaps please possibly previously probably question really recall reason regarding
    related remember remind say says show someone something sort sorts still stuff tell thank
    thanks thing things think trying type types understand understanding use used using want wanted
    wants way ways well
    """.split()  # noqa: SIM905
)
CHINESE = tuple(
    sorted(
        """
        请问 请告诉 告诉 请帮 帮我 我们 你们 他们 她们 它们 咱们 自己 这个 那个 这些 那些
        这里 那里 这样 那样 什么时候 什么 怎么样 怎么 怎样 如何 为什么 为何 哪里 哪儿 哪个
        哪些 哪天 多少 几个 多久 时候 还记得 记得 知道 有没有 是不是 能不能 可不可以 是否
        可以 能够 应该 需要 想要 一下 一个 一些 没有 以及 或者 还是 但是 而且 因为 所以 如果
        关于 对于 为了 上次 之前 以前 曾经 已经 现在 哪 谁 吗 呢 吧 啊 呀 嘛 么 的 了 是 在
        我 你 他 她 它 们 这 那 和 与 及 或 但 而 就 都 也 还 很 太 把 被 让 给 从 到 向 于
        由 以 之 其 请 会 要 想 着 过 得 个 几 有
        """.split(),  # noqa: SIM905
        key=len,
        reverse=True,
    )
)
"""Taken out of a query only, the longest first; a text keeps every pair of its characters."""
COMMON = frozenset(
    """
    able access action active actual add allow amount answer app apply area available back bad base
    basic become begin behavior best better big bit block book break bring build bug buy call care
    case change check child choose class clean clear close code come command comment common complete
    config consider contain content continue control convert correct cost create current data date
    day deal debug decide default define design detail develop different difficult direct document
    doc early easy edit email end enjoy enough entry error event example exist expect experience
    extra face fact fail false family far fast favorite feature feel field file final fine first fix
    follow food force form format forward free friend fun function game general generate get go
    good great group grow guide half hand handle hard have head hear high hold home hope hour house
    idea implement implementation important improve include info information input inside instead
    interest internal issue item job join keep key kid large last late learn leave left level life
    line link list listen live load local long lose lot love low main make manage manual match
    matter meet member message method minute miss mode model modify moment money month morning move
    multiple music name near new next nice night note number object old open operation option order
    output page parent part pass path pattern people place plan play point possible practice prefer
    prepare present pretty previous problem process product project provide public pull push put
    quick quite reach read ready real receive recent record reference relate release remove replace
    report request require response rest result return review right rule run safe same save school
    script search second section see select send separate server service set setting setup several
    share short should side simple single sit size small software source special specific spend
    stand standard start state status stay step stop store story string structure style success
    suggest support sure system table take talk target task team template test text thought time
    title today together tomorrow tool top topic total track travel true try turn two update user
    value various version view visit wait walk watch week whole wide win wish wonder word work
    workflow world worry write wrong year young
    """.split()  # noqa: SIM905
)
"""Words found in a tenth of all that people write at work and at home: what an index of few
texts cannot tell by counting."""

TRADE = frozenset(
    """
    add agent api branch bug build call change check claude ci class cli close code command comment
    commit config continue create data default delete deploy diff directory doc docs draft error
    feature field file files fix flag folder function git github hook id implement install
    integration issue json key line lint linter list log main master merge message method mode
    model move name open option output package path plan pr project prompt pull push readme rebase
    refactor release remove rename repo repository request revert review run script server session
    setting status step string summarize summary task test todo tool type undo unit update user
    value version
    """.split()  # noqa: SIM905
)
"""Words of what people ask an agent for in any project: they say what to do, seldom about what."""


LONGEST = 40
"""Characters of a term; what is longer is no word, and its beginning stands for it."""

# Han, kana, Hangul, Thai, Lao, Khmer, Burmese: written without spaces that part words.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_RUN = pattern(f"[{_DENSE}]+|[^\\W{_DENSE}]+(?:['’][^\\W_{_DENSE}]+)*")
_ASCII_RUN = pattern(r"\w+(?:'[^\W_]+)*", re.ASCII)
_HAN = pattern("[\u3400-\u4dbf\u4e00-\u9fff]")
_IS_DENSE = pattern(f"[{_DENSE}]")
_PART = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SHORT = pattern("(?:['’](?:s|d|m|ll|re|ve)|n['’]t)$", re.IGNORECASE)
_APOSTROPHE = pattern("['’]")
_PLAIN = pattern(r"[^\W\d_][^\W\d_A-Z]*")  # a word, capital or not: no identifier
_MARKS = pattern("[\u0300-\u036f]")


def has_chinese(text: str) -> bool:
    """Whether a text has a Han character."""
    return not text.isascii() and _HAN.search(text) is not None


def terms(text: str) -> list[str]:
    """The terms of a text in their order, function words left out."""
    plain = list(_terms(fold_accents(text)))
    return list(_german(plain)) if is_german(text) else plain


def word_forms(text: str, *, is_german: bool) -> dict[str, tuple[str, ...]]:
    """The words of a query, each by its term, with the others that texts may have it by."""
    found = dict.fromkeys(_terms(fold_accents(text)), ())
    if not is_german:
        return found
    words = ((term, german(term)) for term in found if term not in GERMAN_TERMS)
    return {stemmed: () if stemmed == term else (term,) for term, stemmed in words}


def _german(found: list[str]) -> Iterator[str]:
    for term in found:
        if term not in GERMAN_TERMS:
            yield term
            other = german(term)
            if other != term:
                yield other


def fold_accents(text: str) -> str:
    """The text with compatible forms and accents made one; its case stays, for identifiers."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFC", _apart(unicodedata.normalize("NFKC", text)))
    return _MARKS.sub("", plain).translate(SIMPLIFIED)


def _apart(text: str) -> str:
    """Accents of Latin letters off; Hangul and others keep what makes them up."""
    return "".join(
        unicodedata.normalize("NFD", one)[0] if "\u00c0" <= one <= "\u024f" else one for one in text
    )


def _terms(text: str) -> Iterator[str]:
    for run in (_ASCII_RUN if text.isascii() else _RUN).findall(text):
        if not run.isascii() and _IS_DENSE.match(run):
            yield from pairs(run)
        else:
            yield from _word(run)


@lru_cache(maxsize=1 << 16)
def _word(run: str) -> tuple[str, ...]:
    """A word, or the parts of an identifier and the identifier without its joints."""
    plain = (
        _SHORT.sub("", run).replace("'", "").replace("’", "") if _APOSTROPHE.search(run) else run
    )
    lower = plain.casefold()
    if (lower != plain or not plain.isalpha()) and not _PLAIN.fullmatch(plain):
        parts = [part.casefold() for part in _PART.findall(plain)]
        if len(parts) > 1:
            stems = [stem(part[:LONGEST]) for part in parts if _tells(part)]
            return (*stems, lower.replace("_", "")[:LONGEST])
        lower = lower.strip("_")
    return (stem(lower[:LONGEST]),) if _tells(lower) else ()


def _tells(word: str) -> bool:
    return word not in FUNCTION and (len(word) > 1 or word.isdigit())


def pairs(run: str) -> Iterator[str]:
    """A run of a script without spaces: each two neighbours, or the one there is."""
    if len(run) == 1:
        yield run
    for n in range(len(run) - 1):
        yield run[n : n + 2]


def query_text(text: str) -> str:
    """A query's text with the Chinese words of asking made spaces, where more than one sign of
    what they stood between is left."""
    if text.isascii():
        return text
    return _RUN.sub(
        lambda run: _strip_question_words(run[0]) if _IS_DENSE.match(run[0]) else run[0], text
    )


def _strip_question_words(run: str) -> str:
    pieces = [piece for piece in _STOPS.split(run) if piece]
    if any(len(piece) == 1 for piece in pieces):
        pieces = [piece for piece in _LONG_STOPS.split(run) if piece]
    return " ".join(pieces)


_STOPS = pattern("|".join(CHINESE))
_LONG_STOPS = pattern("|".join(one for one in CHINESE if len(one) > 1))


# --- Traditional Chinese characters and the simplified ones that stand for the same words.
#
# The commonest few hundred, for comparing: a text in either is found by the other. Where several
# traditional characters have one simplified form they meet in it.


_TRADITIONAL = (
    "們個來這說時為會對過還後裡裏發經開學種現樣點動機實問題關應當從沒無見長間門頭電話東車"
    "馬魚鳥龍書寫讀請誰讓給統設計資訊數據庫網絡頁檔夾檢測試驗錯誤執運環變碼編譯輯輸傳遞連"
    "線結構組織類別屬選擇項單雙條歸節報務業產員團隊專戶號鎖權證認識記憶錄備註釋標準確僅與"
    "於將並兩幾萬億歲廣場圖畫視聽觀覽顯響達進遠邊樓層級歷曆內處裝製複復雜簡舊親愛歡樂難離"
    "轉換陳張劉國臺灣區縣鄉鎮島語詞課論議討訴訪診詢該詳談調講謝護貝負財貨費買賣貴質購贊趕"
    "跡躍軟輕較載農辦邏郵釘鈕銀銷鍵鏈閉閱隨際雖雲靜韓順須預領額願顧風飛飯館驅體鬥鮮麗麥黃"
    "齊齡優傷價儀儲兒創劃劇勞勝勢協衛參吳啟喚嘗嚴圍園壓壞夢獎媽婦孫寧寶審寬尋導屆岡幣幫廠"
    "彈徑態慣懷戰戲拋掃採損搖擁擊擔擴擺攝敗敵斷暫極榮橋檯歐殘殺氣決況淨滿漢潛澤濟災煩熱燈"
    "營爭狀獨獲畢異療盡監盤礎稱穩積窮競筆範築籤簽糾紀約紅純紙細終絕絲維綠緊緒緩練縮總續繼"
    "罰習聯職腦腳膚臨舉華葉藍藝藥蘇術衝補規覺觸訂訓託許評詩誠誌諾謂謙譜豐貼賴賽輔輪轟遊違"
    "遲適遷遺醫鐘鋼錢鐵閃陣陽階險隱雞霧頂頓頻顏飲養餘駐騎驚鬆鹽麼齒"
)
_SIMPLIFIED = (
    "们个来这说时为会对过还后里里发经开学种现样点动机实问题关应当从没无见长间门头电话东车"
    "马鱼鸟龙书写读请谁让给统设计资讯数据库网络页档夹检测试验错误执运环变码编译辑输传递连"
    "线结构组织类别属选择项单双条归节报务业产员团队专户号锁权证认识记忆录备注释标准确仅与"
    "于将并两几万亿岁广场图画视听观览显响达进远边楼层级历历内处装制复复杂简旧亲爱欢乐难离"
    "转换陈张刘国台湾区县乡镇岛语词课论议讨诉访诊询该详谈调讲谢护贝负财货费买卖贵质购赞赶"
    "迹跃软轻较载农办逻邮钉钮银销键链闭阅随际虽云静韩顺须预领额愿顾风飞饭馆驱体斗鲜丽麦黄"
    "齐龄优伤价仪储儿创划剧劳胜势协卫参吴启唤尝严围园压坏梦奖妈妇孙宁宝审宽寻导届冈币帮厂"
    "弹径态惯怀战戏抛扫采损摇拥击担扩摆摄败敌断暂极荣桥台欧残杀气决况净满汉潜泽济灾烦热灯"
    "营争状独获毕异疗尽监盘础称稳积穷竞笔范筑签签纠纪约红纯纸细终绝丝维绿紧绪缓练缩总续继"
    "罚习联职脑脚肤临举华叶蓝艺药苏术冲补规觉触订训托许评诗诚志诺谓谦谱丰贴赖赛辅轮轰游违"
    "迟适迁遗医钟钢钱铁闪阵阳阶险隐鸡雾顶顿频颜饮养余驻骑惊松盐么齿"
)

SIMPLIFIED = str.maketrans(_TRADITIONAL, _SIMPLIFIED)


# --- The words of a passage that carry what it says.
#
# Hard terms are what no paraphrase changes: numbers, names, identifiers, paths. Soft terms are the
# other words, by their stem, without those that only join. Whether a passage denies is kept beside
# them, since one word turns its meaning. A script without spaces gives a term a pair of signs. The
# same text gives the same terms in any case, Markdown or white space.


_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+")
_TOKEN = re.compile(
    r"[^\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]"
    r"(?:[^\W\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]|[./:@+'’#-](?=\w))*"
    "|[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+"
)
_LINK = re.compile(r"\]\((?:(?![A-Za-z][\w+.-]*:)[^()\s]*\.md(?:#[^()\s]*)?|([^()\s]*))\)")
"""Where a link leads; to another memory, that is no word of the text."""
_INSIDE = re.compile(r"[_/.:@#+]|[a-z][A-Z]|\d")
_TERMS_PART = re.compile(r"[^\W_]+")
SMALL = frozenset(
    re.findall(
        r"\S+",
        """
        a an the this that these those there here it its it's is are was were be been being am
        i me my we us our you your he him his she her they them their who whom which what
        and or but nor so if then than as at by for from in into of off on onto out over to up
        upon with within via per about above below under between through during while when where
        why how has have had having do does did done doing will would shall should can could may
        might must need also just only very too more most much many some any each every both all
        such same other another own one ones well even still yet already again
        because since though although however therefore thus hence
        """,
    )
)
DENIALS = frozenset(
    re.findall(
        r"\S+",
        """not no never none neither nor without cannot can't don't doesn't didn't isn't aren't
        wasn't weren't won't wouldn't shouldn't mustn't hasn't haven't hadn't couldn't nothing
        nobody nowhere""",
    )
)
_NO_WIDE = re.compile("不|没|無|无|未|勿|别|禁止|非")
_SINCE = frozenset(
    ("today", "yesterday", "tomorrow", "tonight", "now", "currently", "recently", "ago", "next")
)
"""Words that tell a time from where they were written; a date in their place says more."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a passage says, as sets that can be compared."""

    hard: frozenset[str]
    soft: frozenset[str]
    denies: bool
    numbers: frozenset[str] = frozenset()  # those of the hard terms that are amounts or dates

    @property
    def all(self) -> frozenset[str]:
        return self.hard | self.soft

    def __len__(self) -> int:
        return len(self.hard) + len(self.soft)


def tokens(text: str) -> Iterator[str]:
    """The words as they are written, without marks around them."""
    seen = strip(text)
    if not seen.isascii():
        seen = unicodedata.normalize("NFKC", seen).replace("’", "'")
    for found in _TOKEN.finditer(_LINK.sub(_target, seen)):
        yield found[0].strip("_") or found[0]


def _target(found: re.Match[str]) -> str:
    return f"] {found[1] or ''} "


def plain(text: str) -> str:
    """The words in a row, lower case and one space apart: what is compared word by word."""
    return " ".join(token.lower() for token in _parts(text))


def _parts(text: str) -> Iterator[str]:
    for token in tokens(text):
        yield from _TERMS_PART.findall(token)


def split_terms(text: str, *, titled: bool = False) -> Terms:
    """The terms of a passage; in one that is `titled`, a capital letter makes no name."""
    hard: set[str] = set()
    soft: set[str] = set()
    numbers: set[str] = set()
    denies = False
    for at, token in enumerate(tokens(text)):
        low = token.lower()
        if _WIDE.match(token):
            soft.update(token[n : n + 2] for n in range(max(1, len(token) - 1)))
            denies = denies or _NO_WIDE.search(token) is not None
        elif low in DENIALS and token != "None":
            denies = True
        elif _INSIDE.search(token) and "'" not in token:
            hard.add(low)
            if token[0].isdigit():
                numbers.add(low)
        elif "-" in token or "'" in token:
            soft.update(stem(p) for p in _TERMS_PART.findall(low) if len(p) > 1 and p not in SMALL)
        elif (token.isupper() and len(token) > 1) or (token[0].isupper() and at and not titled):
            hard.add(stem(low) if low not in SMALL else "")
        elif low not in SMALL and low not in _SINCE and len(low) > 1:
            soft.add(stem(low))
    hard.discard("")
    return Terms(frozenset(hard), frozenset(soft - hard), denies, frozenset(numbers))
