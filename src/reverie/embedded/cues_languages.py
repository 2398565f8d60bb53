"""What Chinese sentences are worth keeping: the same kinds as in English.

A standing instruction is about the agent's steps and what it writes for people, not about the
program, and needs a word that reaches beyond this change. In doubt, nothing.
"""

from __future__ import annotations

from reverie.embedded.sentences import Sentence, SentenceRule, pattern

_PAIRS = (
    "後后這这個个們们沒没為为麼么嗎吗時时說说讓让請请對对錯错還还從从開开應应該该總总過过會会測测試试運运執执檢检認认證证確确驗验記记錄录寫写讀读問问題题複复覆复釋释"
    "結结並并檔档註注庫库補补動动單单負负責责經经歷历師师學学習习慣惯歡欢長长簡简體体語语專专業业發发佈布線线據据頁页鈕钮欄栏數数終终於于許许絕绝務务須须隨随亂乱編编"
    "輯辑刪删"
)
TRADITIONAL = str.maketrans(dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)))
"""Signs of the other script, read as those of this one."""

LEAD = pattern(
    r"(?:(?:好的?|嗯+|对了?|是的|不是?|行|可以|谢谢你?|不错|哦|啊|喂|你好|那|但)[\s,，、:：!！。]+"
    r"|(?:另外|还有|而且|但是|所以|那么|请|麻烦你?|顺便(?:说一下)?|首先|最后|其实"
    r"|最好)[\s,，、:：]*)*"
)
_WORK = (
    r"(?:测试|单元测试|用例|提交(?:信息|说明|记录)?|分支(?:名)?|注释|文档|代码|格式化?|变更日志"
    r"|评审|回答|回复|解释|总结|答案|依赖|库|合并请求|PR|lint|commit|补丁|改动|说明|行号|链接"
    r"|emoji|表情|计划|方案)"
)
_STEP = (
    r"(?:运行|跑|执行|检查|确认|验证|提交|推送|合并|问我?|询问|阅读|读完?|回答|回复|解释|格式化"
    r"|评审|猜测?|假设|等我?|先写|写|用|使用|加|添加|更新|修改|删除|改|保持|说明|告诉我?|拆分|附上"
    r"|给出)"
)
_PRODUCT = pattern(
    r"\u00b7|按钮|页面|界面|弹窗|字段|接口返回|用户(?:点击|登录|输入)|数据库表|函数|参数|服务端"
    r"|客户端|[a-z]+_[a-z]+|(?-i:[a-z]+[A-Z]\w+)|\(\)"
)
_PASSING = pattern(
    r"今天|这次|这个方案|这个想法|这样|那个|目前|暂时|方案[一二三ABC\d]|第[一二三\d]"
)
_JOB = (
    r"(?:工程师|程序员|开发者?|设计师|产品经理|经理|老师|教师|教授|讲师|学生|医生|护士|律师|作家"
    r"|记者|架构师|科学家|研究员|研究生|博士生?|分析师|顾问|创始人|运维|测试|会计|新手|初学者|专家"
    r"|负责人|实习生|自由职业者|数据科学家|美工|翻译|编辑|摄影师)"
)
_WHEN = (
    r"(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]|\d{1,2}号|(?:下|这|本)?(?:个)?(?:周|星期"
    r"|礼拜)[一二三四五六日天末]|下(?:个)?(?:周|星期|月|季度)|明天|后天|今天|月底|年底|月末"
    r"|[一二两三四五六七八九十\d]+(?:天|周|个月)后|\d{4}-\d\d-\d\d"
)
_SYSTEM = (
    r"(?:https?://\S+|Linear|Jira|JIRA|Slack|Notion|Confluence|Grafana|Datadog|Sentry|飞书|钉钉"
    r"|语雀|石墨|腾讯文档|禅道|TAPD|企业微信|Figma|Trello|wiki|Wiki|看板|共享盘|知识库|内网"
    r"|#[\w-]+)"
)


STANDING = (
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^我们(?:都|一直|只|一般)?(?:用|叫|写).{1,20}?[，,]?(?:不用|不叫|不写|而不是|别用).{1,20}"
        ),
        unless=pattern(rf"{_PRODUCT.pattern}|这里|这个|这次"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(r"^(?:你)?(?:从(?:现在|今)(?:开始|起|往后)|以后|今后|往后|下次|将来)[，,]?.{4,}"),
        unless=pattern(r"以后再(?:说|做|看|改|议)|可能|也许|要不要"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:你)?(?:必须|务必|一定要|应该|要)?(?:总是|始终|永远|一律|一直|绝不|绝对不要"
            r"|永远不要|千万"
            rf"(?:不要|别)).{{0,6}}{_STEP}.{{2,}}"
        ),
        unless=pattern(rf"{_PRODUCT.pattern}|^你一直"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^(?:每次|每个|每一?次|所有的?|任何){_STEP}?.{{0,12}}?{_WORK}.{{0,12}}?(?:都|必须|要"
            rf"|应该|需要|不要|先).{{2,}}"
        ),
        unless=_PRODUCT,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:每次|每当|在)?.{0,4}(?:提交|推送|合并|修改|写|改|开始|动手|发布)(?:代码|测试"
            r"|分支|文档|PR)?(?:之前|以前|前|之后|后)[，,]?(?:都|必须|先|要|一定|务必|请"
            r"|应该).{2,}"
        ),
        unless=_PRODUCT,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:不要|别|不许|禁止).{0,20}(?:除非|没有我的?(?:同意|允许|确认)|未经(?:我)?(?:同意"
            r"|允许|确认)).{0,20}"
        ),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:除非|没有我的?(?:同意|允许)|未经(?:我)?(?:同意|允许|确认)).{0,20}(?:不要|别|不许"
            r"|不得).{2,}"
        ),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:凡是|只要|每当|一旦|如果)(?:你)?(?:改|修改|新增|加|删|碰|动|不确定|拿不准|不清楚"
            r"|测试(?:失败|没过)).{0,20}(?:都要|都得|就要|必须|先问|问我|告诉我|停下|不要"
            r"|别).{0,20}|^(?:不确定|拿不准|不清楚|有疑问)(?:的时候|时|的话|就)?[，,]?(?:都|要|请"
            r"|先)*问(?:一下)?我?.{0,20}"
        ),
        unless=_PRODUCT,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^.{{0,6}}{_WORK}(?:一律|统一|都必须|都要|全部|全都)(?:用|写|保持|是|使用|先|跑|经过).{{1,}}"
        ),
        unless=_PRODUCT,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            rf"^.{{0,4}}(?:每次|每改一?次|改完|写完|做完).{{0,8}}(?:都要|都得|必须|记得"
            rf"|一定要).{{0,4}}{_STEP}.{{0,8}}{_WORK}"
        ),
        unless=_PRODUCT,
    ),
)

PREFERENCES = (
    SentenceRule(
        "preference",
        pattern(
            r"^我(?:个人)?(?:更|比较|最|很|非常|特别|一直|一向|向来|总是|从小就)?(?:喜欢|偏好|偏爱"
            r"|讨厌|不喜欢|习惯(?:用|于)?|热爱|受不了|倾向于?)(?!你|这|那|它|他|她|了|吗|上).{2,}"
        ),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(r"^我(?:最喜欢|最爱|常用|平时用|主要用)的?.{1,12}是.{1,}"),
        unless=_PASSING,
    ),
    SentenceRule(
        "preference",
        pattern(r"^我(?:平时|一般|通常|主要|日常)(?:都)?(?:用|使用|写).{2,}"),
        unless=_PASSING,
    ),
)

ROLES = (
    SentenceRule(
        "role",
        pattern(r"^我是(?:做|搞|学|负责).{1,12}的|^我(?:不太|不怎么|完全不)(?:懂|熟悉|会).{2,}"),
    ),
    SentenceRule(
        "role",
        pattern(
            rf"^我(?:现在|目前|以前|之前)?(?:是|做|当|在做)(?:了)?(?:一?[名个位])?.{{0,14}}?{_JOB}"
        ),
        unless=pattern(r"吗|是不是|如果|觉得"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^我(?:对.{1,12}过敏|是?色盲|住在|来自|毕业于|就职于|任职于|负责|刚(?:接触|入职"
            r"|开始学)|不(?:太)?(?:懂|熟悉)|做了?.{1,3}年|有.{1,3}年.{0,12}经验|从事|教|学的是"
            r"|专业是|是素食|吃素|怀孕).{0,}"
        ),
        unless=pattern(r"负责(?:这个|检查|看一下)|这个(?:函数|报错|错误|问题)"),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^我(?:结婚|订婚|离职|升职|换工作|搬家|搬到|生(?:了)?(?:孩子|宝宝)|有.{1,2}个(?:孩子"
            r"|女儿|儿子|兄弟|姐妹)|养了?.{1,4}(?:猫|狗|只)).{0,}"
        ),
    ),
)

DEADLINES = (
    SentenceRule(
        "deadline",
        pattern(
            rf"(?:{_WHEN}).{{0,16}}(?:发布|上线|截止|到期|交付|提交"
            r"|演示|冻结|开会|考试|面试|答辩|评审|搬家|出发|休假|请假|离职|入职|接手|交接|迁移"
            r"|下线|结束|开始|完成|婚礼|手术|比赛|验收)|(?:截止|到期|发布|上线|交付|演示|冻结|验收"
            rf"|答辩|考试).{{0,10}}(?:{_WHEN})"
        ),
        unless=pattern(r"^(?:帮我|查|找|列出|显示|看)|吗$|日志|记录"),
    ),
)

POINTERS = (
    SentenceRule(
        "pointer",
        pattern(
            r"(?:文档|设计稿?|需求|问题|缺陷|bug|Bug|工单|任务|指标|监控|日志|报警|告警|反馈"
            r"|会议纪要|规范|接口说明|排班"
            rf"|值班表|路线图|数据字典|客户反馈|手册).{{0,12}}(?:都"
            r"|统一)?(?:在|放在|记录在|跟踪在|提到|见|看|发在|发到"
            rf"|写在|维护在|存在).{{0,10}}{_SYSTEM}"
        ),
        unless=pattern(r"^(?:帮我|请?看一下|打开|修复|实现)|这个(?:问题|工单|bug|PR)"),
    ),
    SentenceRule(
        "pointer",
        pattern(
            rf"{_SYSTEM}.{{0,12}}(?:里|上|中)?(?:有|记录(?:着|了)?|存放|维护(?:着)?|能查到"
            rf"|可以查到|是).{{0,20}}(?:文档"
            r"|设计|需求|问题|缺陷|工单|指标|监控|日志|反馈|纪要|规范|排班|手册|路线图|看板|频道)"
        ),
        unless=pattern(r"这个(?:问题|工单|bug|PR)|坏了|打不开|挂了"),
    ),
)

FACTS = (
    SentenceRule(
        "project_fact",
        pattern(
            r"我们.{0,16}(?:故意|特意|有意)|(?:故意|特意|有意).{0,12}(?:去掉|删掉|删除|不做|不用"
            r"|保留|留着)的?$"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(r"(?:为准|唯一(?:的)?(?:事实|数据)?来源|以.{1,16}为准)"),
        unless=_PRODUCT,
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:[\u4e00-\u9fff]{2,3}|[A-Z][a-z]+|\S{1,6}团队|\S{1,4}部)(?:负责|接手|接管|主管"
            r"|审批|维护)(?!一下).{2,}"
        ),
        unless=pattern(r"^(?:我|你|谁|这个|那个|它|代码|函数|模块|服务)"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:因为|由于)?(?:法务|合规|客户|甲方|监管|审计|安全(?:部|团队)|供应商|合同"
            r"|老板).{0,10}(?:要求|规定|不允许|不让|禁止|坚持|希望).{4,}"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^我们(?:决定|定了|商量好|不能|不会).{3,30}[，,](?:因为|由于).{0,20}(?:法务|合规|客户"
            r"|甲方|监管|审计|合同|许可证|供应商|预算|事故|故障).{0,}"
        ),
    ),
)

ASKED = pattern(
    r"^(?:你)?(?:要)?(?:记住|牢记|谨记|记下来?|记一下|记好|记得)(?P<list>这(?:个|些|份)(?:列表"
    r"|清单|文件))?[：:，,\s]*(?P<what>.{4,})$|^(?:把)?(?P<what2>.{4,}?)(?:这一点|这件事"
    r"|这个)?(?:记到|存到|写进|加到|保存到|记在)(?:你的)?(?:长期)?记忆(?:里|中)?$"
)
ONCE = pattern(r"^(?:待会儿?|等下|一会儿?|回头|稍后)|(?:这个|当前)(?:任务|分支|PR|需求|文件)")


# --- What German, Spanish and French sentences are worth keeping: the plainest of each kind.
#
# The same kinds as in English, in far fewer wordings: what is asked to be remembered, orders for
# good, who a person is, due days, and places to look things up. In doubt, nothing.


_DAY = (
    r"(?:\b\d{4}-\d\d-\d\d\b|\b\d{1,2}\.\d{1,2}\.(?:\d{4})?|\b\d{1,2}\.? (?:de )?[a-zäéûô]{3,10}\b)"
)
_TONGUE = (
    r"(?:deutsch|englisch|spanisch|französisch|italienisch|inglés|español|alemán|francés|anglais"
    r"|allemand|français|espagnol|chinesisch|polnisch|português|italiano)"
)
_CODE = (
    r"\w+\(\)|\w+_\w+|(?-i:\b[a-z]+[A-Z]\w*)|\w+\.(?:py|tsx?|jsx?|go|rs|java|md|json|css|html)\b"
)
_HERE_DE = r"\b(?:diese[rsnm]?|hier|jetzt mal|das da|diesmal)\b"
_HERE_ES = r"\b(?:est[aeo]s?|aquí|es[ae]|esta vez)\b"
_HERE_FR = r"\b(?:cette?|ces|ici|cette fois)\b"

EUROPEAN_ASKED = pattern(
    r"^(?:(?:bitte|por favor|stp|s'il te plaît|und|y|et|ok),? )*(?:merk(?:e)? dir"
    r"|denk(?:e)?(?: bitte)?"
    r" (?:dran|daran)|vergiss (?:bitte )?nicht|notiere? dir|behalte? im (?:kopf|hinterkopf)"
    r"|recuerda|acu[eé]rdate(?: de)?|ten en cuenta|no (?:te )?olvides|toma nota(?: de)?|apunta"
    r"|souviens-toi|rappelle-toi|n'oublie pas|note bien|retiens|garde en tête)"
    r"(?: bitte)?(?:[,:]? (?:dass|daß|que)\b|[,:])? (?P<what>.{8,})$"
)

# What is asked about, or asked of a program: "merk dir, wo ich zuletzt war".
_REMINDED = pattern(
    r"(?:(?:immer|siempre|toujours),? )?(?:wo|wie|was|wann|wer|welche\w*|ob|dónde|cómo|cuándo"
    r"|qué|où|comment|quand|quel\w*|ce qu)\b"
)

RULES: tuple[SentenceRule, ...] = (
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?=.*\b(?:ab jetzt|ab sofort|von nun an|künftig|in zukunft|nie wieder"
            r"|in hinkunft)\b).{12,}"
            r"|^(?:bitte )?(?:immer|nie|niemals|grundsätzlich)\b.{8,}"
            r"|^(?:jedes mal,? wenn|immer wenn) du .{8,}|^vor jede[mr] .{8,}"
            r"|^wir (?:nutzen|verwenden|benutzen|nehmen|sagen|schreiben|arbeiten mit) .{2,60}?"
            r"(?:,? nicht|,? statt|,? und nicht|,? kein\w*|,? nie)\b.{2,}"
            rf"|^(?:bitte )?(?:schreib|antworte|erklär|kommentier"
            rf"|sprich)\w* .{{0,40}}\bauf {_TONGUE}\b.*"
            r"|^du (?:darfst|kannst) .{4,}\b(?:selbst|selber|ohne zu fragen|ohne rückfrage"
            r"|jederzeit)\b.*"
        ),
        unless=pattern(rf"{_CODE}|{_HERE_DE}|^(?:immer noch|nie mehr als)\b"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?=.*\b(?:a partir de ahora|de ahora en adelante|en (?:el )?futuro"
            r"|nunca más)\b).{12,}"
            r"|^(?:por favor,? )?(?:siempre|nunca|jamás)\b.{8,}|^cada vez que .{8,}"
            r"|^antes de cada .{8,}"
            r"|^(?:nosotros )?(?:usamos|utilizamos|decimos|escribimos|trabajamos con) .{2,60}?"
            r"(?:,? no|,? en (?:lugar|vez) de|,? nunca)\b.{2,}"
            rf"|^(?:por favor,? )?(?:escribe|responde|contesta|comenta|explica"
            rf"|háblame)\w* .{{0,40}}\ben"
            rf" {_TONGUE}\b.*"
            r"|^puedes .{4,}\b(?:sin preguntar(?:me)?|tú mismo|por tu cuenta)\b.*"
        ),
        unless=pattern(rf"{_CODE}|{_HERE_ES}"),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?=.*\b(?:à partir de maintenant|désormais|dorénavant|à l'avenir"
            r"|plus jamais)\b).{12,}"
            r"|^(?:toujours|jamais|ne \w+ jamais)\b.{8,}|^(?:chaque|à chaque) fois que .{8,}"
            r"|^(?:on|nous) (?:utilise|utilisons|dit|disons|écrit|écrivons) .{2,60}?"
            r"(?:,? pas|,? au lieu de|,? jamais)\b.{2,}"
            rf"|^(?:écris|réponds|commente|explique)\w* .{{0,40}}\ben {_TONGUE}\b.*"
            r"|^tu peux .{4,}\b(?:sans (?:me )?demander|toi-même|tout seul)\b.*"
        ),
        unless=pattern(rf"{_CODE}|{_HERE_FR}"),
    ),
    SentenceRule(
        "pointer",
        pattern(
            r"\b(?:bugs|tickets|fehler|doku|dokumentation|entwürfe|anforderungen|spezifikation\w*"
            r"|logs)\b"
            r".{0,30}\b(?:liegen|liegt|stehen|steht|sind|werden|wird|findest du|landen"
            r"|kommen)\b.{0,20}"
            r"\b(?:im?|auf|bei|unter|ins?)\b .{3,}"
            r"|\b(?:bugs|errores|incidencias|tickets|documentación|diseños"
            r"|especificaciones)\b.{0,30}"
            r"\b(?:está|están|se (?:guardan|registran|reportan)|viven|van)\b.{0,20}\ben .{3,}"
            r"|\b(?:bugs|tickets|documentation|maquettes|spécifications?)\b.{0,30}\b(?:est|sont"
            r"|se trouvent?"
            r"|vont|vivent)\b.{0,20}\b(?:dans|sur|à) .{3,}"
        ),
        unless=pattern(
            rf"{_CODE}|{_HERE_DE}|{_HERE_ES}|{_HERE_FR}|[\w.-]+/|\b(?:ordner|datei|carpeta|archivo"
            rf"|dossier"
            r"|fichier|code|código|produktion|producción|production)\b"
        ),
    ),
    SentenceRule(
        "role",
        pattern(
            r"^ich bin (?:hier )?(?:(?:ein|eine|der|die|von beruf"
            r"|gelernte[r]?) )?[a-zäöüß-]*(?:entwickler"
            r"|manager|designer|ingenieur|lehrer|ärzt|arzt|student|analyst|admin|architekt|forscher"
            r"|berater"
            r"|autor|anfänger|leiter|tester|redakteur|buchhalter|juristi?n?|programmierer)\w*.*"
            r"|^ich (?:arbeite (?:als|bei|in)|studiere|leite|komme aus|wohne in) .{3,}"
            r"|^(?:yo )?soy (?:(?:un|una|el|la) )?(?:\w+ )?(?:analista|desarrollador|programador"
            r"|diseñador"
            r"|ingenier|profesor|estudiante|médic|enfermer|abogad|gerente|jef[ea]|principiante"
            r"|investigador"
            r"|director|consultor|arquitect|contador)\w*.*|^(?:trabajo (?:como|en|de)"
            r"|estudio) .{3,}"
            r"|^je suis (?:(?:un|une|le|la) )?(?:développeu|ingénieur|designer|professeur|étudiant"
            r"|médecin"
            r"|analyste|chef|débutant|chercheu|directeu|avocat|architecte|infirmi)\w*.*"
            r"|^je travaille (?:comme|chez|dans) .{3,}"
        ),
        unless=pattern(r"\b(?:gerade|ahora mismo|en ce moment)\b"),
    ),
    SentenceRule(
        "deadline",
        pattern(
            rf"{_DAY}.*\b(?:ist|sind|wird|geht|beginnt|startet|endet|kommt|muss|es|son|sale|empieza"
            rf"|termina"
            rf"|hay|entregamos|publicamos|est|sont|sort|commence|finit|doit)\b"
            rf"|\b(?:ist|sind|wird|geht|beginnt|startet|endet|kommt|muss|es|son|sale|empieza"
            rf"|termina|hay"
            rf"|entregamos|publicamos|est|sont|sort|commence|finit|doit)\b.*{_DAY}"
        ),
        unless=pattern(rf"{_CODE}|\b(?:log|fehler|error|erreur|version|datei)\b"),
    ),
)


def european_request(sentence: Sentence) -> str | None:
    """What a sentence asks to be kept."""
    found = None if sentence.asks else EUROPEAN_ASKED.search(sentence.masked)
    if found is None or _REMINDED.match(found["what"]):
        return None
    return sentence.text[found.start("what") : found.end("what")]
