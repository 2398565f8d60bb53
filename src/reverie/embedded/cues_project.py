"""What English sentences tell about the project and outside systems.

Due dates, owners, reasons that lie outside the code, places where things are looked up. What must
be so in the program is no fact of this kind; the code will say it.
"""

from __future__ import annotations

from reverie.embedded.cues_orders import CALLED, HERE
from reverie.embedded.sentences import SentenceRule, pattern

_EVENT = (
    r"(?:due|deadline|releas\w+|launch\w*|ship\w*|demo\w*|freez\w+|code freeze|review|meeting"
    r"|exams?|interview|conference|tournament|wedding|presentation|deliver\w*|go(?:es|ing)? live"
    r"|deploy\w*|vacation|holiday|out of office|on leave|mov(?:e|es|ing)|starts?|starting|leav(?:e"
    r"|es|ing)|hand(?:s|ing)? over|takes? over|taking over|migrat\w+|retir\w+|expires?|appointment"
    r"|surgery|flight|competition|performance|submit\w*|submission|sprint|milestone|audit|handover"
    r"|cutover|offsite|onboarding|graduat\w+|marathon|recital|concert|trip|pilot|(?:be |are "
    r"|is )(?:done"
    r"|finished|ready|out|complete|live|frozen|gone)|switched off|shut down|runs? out|ends?|frozen"
    r"|phased out|end of life|deprecated|effective)"
)
# Whoever asks for something to be done now gives no date to remember.
_ASKED = pattern(
    r"\b(?:won|was|were|went|did|finished|attended|took|has been|have been|had|failed|broke)\b"
    r"|^you(?:'ve|'re)?\b|\b(?:can|could|would|will) (?:you|we)\b|\blet's\b|\S/\S+\d{4}-\d\d-\d\d"
    r"|^(?:please )?(?:sort|list|show|filter|find|check|look|deploy|ship|release|push|merge"
    r"|schedule"
    r"|move|set|add|make|send|book|plan|prepare|write|update|change|fix|finish|submit|start|follow"
    r"|create|build|implement|generate|draft|design|run|rerun|use|read|give|tell|continue)\b|\?"
    r"|^i (?:want|wanted|need|would like|'d like)(?:ed)? to\b|\btouch base\b"
)
_SYSTEM = (
    r"(?:https?://\S+|linear|jira|slack|notion|confluence|grafana|datadog|sentry|google (?:docs?"
    r"|drive|sheets?)|figma|trello|asana|pagerduty|the (?:wiki|runbook|help ?desk|share|dashboard"
    r"|board|tracker|intranet)|zendesk|airtable|miro|discord|kibana|bugzilla|redmine|sharepoint"
    r"|metabase|looker|bigquery|mixpanel|posthog|amplitude|hubspot|salesforce|#[a-z][\w-]+"
    r"|a (?:slack )?channel)"
)
_KEPT = (
    r"(?:bugs?|issues?|tickets?|incidents?|docs?|documentation|designs?|mock-?ups?|specs?|roadmap"
    r"|metrics|logs|alerts|dashboards?|runbooks?|on-?call|latenc\w+|reports?|requirements?"
    r"|feedback|customers?|style guide|guidelines?|meeting notes|decisions|contracts?|schedules?"
    r"|feature requests?|test accounts|accounts|passwords policy|on-?call schedule|api (?:docs?"
    r"|reference)|credentials policy|data dictionary|brand \w+"
    r"|releases?|questions|support|what (?:the|our|we) .+)"
)
_OWNER = (
    r"(?:(?-i:[A-Z][a-z]+)(?: (?:and (?-i:[A-Z][a-z]+)|from \w+))?|the \w+ team|legal|security"
    r"|compliance|marketing|our \w+ team)"
)

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
DEADLINES = (
    SentenceRule(
        "deadline",
        pattern(
            rf"^(?!(?:you|if|when)\b)(?=.*\b(?:is|are|will|goes|go|has to|have to|must|may|opens?"
            rf"|closes?"
            rf"|starts?|ends?|begins?|comes?|takes?|expires?|changes?|needs?|'s)\b)"
            rf".*(?:\b\d{{4}}-\d\d-\d\d\b|\b{_MONTH} \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd"
            rf"|th)?(?: of)? {_MONTH}\b)"
        ),
        unless=pattern(
            rf"{_ASKED.pattern}|{CALLED}|\b(?:format\w*|pars\w+|e\.g|examples?|input|output"
            rf"|returns?|shows?"
            r"|displays?|prints?|timestamps?|tests?|logs?|rows?|values?|says?|date|commit|version"
            r"|file"
            r"|today|bug|error|instead of)\b"
        ),
    ),
    SentenceRule(
        "deadline",
        pattern(rf"\b{_EVENT}\b"),
        unless=_ASKED,
    ),
)

# Where programs keep things, and people do not look them up.
_PLACED = (
    r"\b(?:database|db|tables?|folder|director(?:y|ies)|files?|memory|cache|array|list|state|store"
    r"|class|function|variable|redis|s3|bucket|column|json|code|repo|branch|module|log file|object"
    r"|html|dom|page|header|response|browser|but)\b|[\w.-]+/(?!/)|\w+\.\w{1,4}\b|\w+\(\)"
)
POINTERS = (
    SentenceRule(
        "pointer",
        pattern(
            rf"^(?:(?:all|our|the|any|my) )*(?:\w+ ){{0,2}}{_KEPT} (?:for [\w ]{{2,30}} )?(?:live"
            rf"|lives"
            rf"|are|is|get|gets|go|goes|sit|sits)(?: all)?(?: (?:kept|tracked|filed|documented"
            rf"|reported"
            rf"|listed|found|posted|discussed|collected|managed|recorded|stored))? (?:in|on|at"
            rf"|under|to) .{{3,}}"
        ),
        unless=pattern(
            rf"{_PLACED}|^(?:the|this|that) (?:bugs?|issues?|tickets?|questions?|reports?"
            rf"|releases?)\b"
            r"|\b(?:should|must|will be|not|still|now|already|today|failing|broken|progress|order"
            r"|place)\b"
            r"|\b(?:in|on) (?:this|that|these|my|your|it|line|production|prod|staging|general|both"
            r"|each"
            r"|time|track|hold|purpose|every|all|a|an)\b|/(?:pull|issues)/\d+"
        ),
    ),
    SentenceRule(
        "pointer",
        pattern(
            r"^(?:the |our |my )?(?:[\w-]+ ){1,4}(?:is|are|lives?|sits?)(?: (?:at|here|on|under"
            r"|in))?:?"
            r" https?://\S+.*|^for (?:questions|anything|issues|help|problems)\b.{0,30}?,? (?:ask"
            r"|contact"
            r"|ping|write to|talk to) .{2,}"
        ),
        unless=pattern(
            r"/(?:pull|issues|commit|blob|tree)/|localhost|127\.0\.0\.1|\b(?:this|that|error|bug"
            r"|broken"
            r"|down|failing|wrong|404|500|result|output|problem|endpoint)\b"
        ),
    ),
    SentenceRule(
        "pointer",
        pattern(
            rf"^(?:ask|post|report|look|check) (?:it |them )?(?:in|on|at) .{{0,20}}?{_SYSTEM}.*"
        ),
        unless=pattern(r"\bthis\b|/(?:pull|issues)/\d+"),
    ),
    SentenceRule(
        "pointer",
        pattern(
            r"https?://[^\s)]*(?:\bdocs?\b|documentation|reference|wiki|/guides?/|handbook|runbook"
            r"|developers?\.|/specs?/|/api/)[^\s)]*"
        ),
        asks=True,
        unless=pattern(r"/(?:pull|issues|commit|blob|tree)/|localhost|127\.0\.0\.1"),
    ),
    SentenceRule(
        "pointer",
        pattern(
            r"\bhere(?:'s| is| are) (?:the |some |our |their )?(?:\w+ ){0,3}(?:docs?|documentation"
            r"|reference|spec|guide|wiki|dashboard|board|schema)\b.{0,60}https?://\S+"
        ),
        unless=pattern(r"/(?:pull|issues)/\d+"),
    ),
    SentenceRule(
        "pointer",
        pattern(
            rf"\b{_KEPT}\b.{{0,40}}?\b(?:is|are|live|lives|get|gets|kept|tracked|filed|documented"
            rf"|reported|listed|found|posted|discussed|arrive|come in|go(?:es)?)\b.{{0,30}}\b(?:in"
            rf"|on|at|under|to|through|via|here:?) .{{0,30}}?{_SYSTEM}"
        ),
        unless=pattern(
            r"^(?:can|could|please|let's|look at|review|read|open|fix|fetch|check out|implement"
            r"|see)\b|\bthis (?:pr|issue|ticket|bug)\b|/(?:pull|issues)/\d+|\b(?:should|must"
            r"|will be|but|can't)\b"
        ),
    ),
    SentenceRule(
        "pointer",
        pattern(
            rf"^(?:the |our )?(?:\w+ ){{0,4}}?(?:dashboard|board|wiki|runbook|tracker|channel"
            rf"|style guide|docs?|documentation|spec|handbook|playbook"
            rf"|status page)\b.{{0,40}}?\b(?:is|are|lives?|sits?)\b.{{0,20}}?(?:\bat\b|\bin\b"
            rf"|\bon\b|\bunder\b|:)? ?{_SYSTEM}"
        ),
        unless=pattern(
            r"^(?:can|could|please|let's)\b|/(?:pull|issues)/\d+|\b(?:should|must|will be|down"
            r"|broken|slow|wrong|failing|empty)\b"
        ),
    ),
    SentenceRule(
        "pointer",
        pattern(
            rf"^(?:for|to (?:find|see|look up|check)) .{{3,60}}?,? (?:always )?(?:look|check|see"
            rf"|search|ask|go|use) (?:in |at |on |to )?.{{0,30}}?{_SYSTEM}"
        ),
        unless=pattern(r"/(?:pull|issues)/\d+|\bthis (?:pr|issue|ticket|bug|one)\b"),
    ),
)

FACTS = (
    SentenceRule(
        "project_fact",
        pattern(
            r"^we(?:'ve| have)? (?:dropped|decided|chose|chosen|picked|moved|switched|stopped"
            r"|stayed"
            r"|rejected|abandoned|migrated|left) .{3,80}\b(?:because|since|due to|after)\b.{6,}"
        ),
        unless=pattern(
            rf"{CALLED}|{HERE.pattern}|\b(?:functions?|methods?|class|variables?|files?|tests?|code"
            r"|components?|buttons?|pages?|query|endpoints?|config|logic|call)\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^the (?:only |main )?reason (?:that |why )?we .{3,60} is .{4,}"
            r"|^our (?:clients|customers|users|audience|readers|students|patients) (?:are|use|work"
            r"|live"
            r"|have|don't|can't|sit|come) .{3,}|^we have (?:about |around |over |only "
            r"|some )?\d[\d,.]*k? "
            r"(?:\w+ )?(?:users|customers|clients|students|employees|people|developers"
            r"|subscribers)\b.*"
            r"|^(?:the|our) (?:designers|devs|developers|editors|translators|testers|ops people"
            r"|\w+ team)"
            r" (?:use|uses|work|works|prefer|prefers) .{2,40}"
        ),
        unless=pattern(rf"{CALLED}|{HERE.pattern}|\b(?:complain\w*|see|seeing|getting|errors?)\b"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?-i:[A-Z])\w+ (?:decides|signs off|has the last word|is the one who|has to (?:agree"
            r"|sign))"
            r"\b.{4,}"
        ),
        unless=pattern(r"^(?:we|i|you|they|this|that|it|there|he|she|who|what|everyone|nobody)\b"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^\w+ (?:is|will be|'s) (?:out|away|off|on (?:vacation|leave|holiday|parental leave))"
            r"(?: of office)? (?:until|till|from|through) .{3,}"
        ),
        unless=pattern(
            r"^(?:it|this|that|server|api|everything|nothing|there|he|she)\b|\bbecause\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"\b(?:is|are|it's|its) (?:spelled|spelt|called|named|written|pronounced) .{1,40}?,?"
            r" (?:not|never) .{1,40}"
        ),
        unless=pattern(
            r"\b(?:functions?|methods?|class|variables?|fields?|columns?|tables?|files?|props?"
            r"|keys?"
            r"|endpoints?|params?|arguments?|flags?|components?|this|that)\b|\w+\(\)|\w+_\w+"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^our (?:[\w-]+ ){1,3}(?:starts?|ends?|closes?|opens?|begins?|happens?) (?:in|on|at"
            r"|every)"
            r" .{2,}|^we(?:'re| are) an? (?:[\w-]+ ){0,2}team of \w+.*|^we(?:'re"
            r"| are) an? (?:[\w-]+ ){0,3}(?:company|startup|agency|nonprofit|school"
            r"|hospital|university|bank|lab|shop|studio|charity)\b.*"
        ),
        unless=pattern(r"\b(?:loop|function|program|app|script|server|index|array|string)\b"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"\b(?:is|are) (?:owned|maintained|run|handled|looked after) by (?:the )?(?:team [\w-]+"
            r"|[\w-]+ team|(?-i:[A-Z]\w+))|^(?!(?:who|it|this|that|nobody|everyone|class|he|she"
            r"|they"
            r"|git|docker|root|which|the|process|each|one)\b)[a-z]+ (?:owns|maintains"
            r"|is responsible for)"
            r" the .{4,}"
        ),
        unless=pattern(r"\b(?:process|thread|pointer|object|lock|file|memory|root|parent)\b"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:our |some |many |most )?(?:users|customers|people|developers|clients|teams"
            r"|colleagues) (?:here )?(?:often|usually|sometimes|regularly|tend to|frequently"
            r"|rarely|never) .{6,}"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"\b(?:nobody|no ?one|no customers?|no users?) (?:is |are |really "
            r"|actually )?(?:us(?:es?|ing)|on)\b.{2,}|\b(?:we|it|this|that) (?:have ?n[o']t"
            r"|has ?n[o']t|is ?n[o']t|have not|has not|is not)(?: been)? (?:released?|shipped"
            r"|launched|public|in production|live)\b|\bno (?:users|customers) yet\b"
        ),
        unless=pattern(r"^(?:can|could|do|does|did|is|are|if|why|when)\b"),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:(?-i:[A-Z][a-z]+)|(?:my|our) (?:colleague|coworker|co-worker|teammate|boss"
            r"|manager|designer|team lead)) (?:is (?:already |currently |now )?(?:working on"
            r"|handling|taking care of|in charge of|responsible for)|will (?:take|handle|review"
            r"|own|do)|owns|wants us to|asked (?:me|us) (?:to|not to)) .{4,}"
        ),
        unless=pattern(
            r"^(?:we|i|you|they|this|that|it|there|he|she|claude|gemini|copilot|codex|cursor|git"
            r"|github|docker|python|everyone|everything|nothing|someone|who|what|which|the|now"
            r"|then|life|mom|dad)\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"\bwe (?:\w+ ){0,2}?\w+(?:ed|t|ept|ook|uilt|ut)\b.*\b(?:on purpose|intentionally"
            r"|deliberately)\b|\bwe (?:on purpose|intentionally|deliberately) \w+"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"\b(?:is|are|should be|stays?|remains?) (?:the |our "
            r"|a )?(?:single )?source of truth\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            rf"^{_OWNER} (?:owns|maintains?|leads|is responsible for|are responsible for"
            rf"|is in charge of|takes? over|handles?|looks? after|approves?|signs? off(?: on)?"
            rf"|has to approve|must approve) .{{4,}}"
        ),
        unless=pattern(
            r"^(?:this|that|it|there|claude|gemini|copilot|codex|git|github|docker|python)\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^we(?:'ve| have)? (?:decided|agreed|chose|chosen|stay|are staying|can't|cannot"
            r"|must not|won't|are not allowed to|may not)\b.{6,}\b(?:because|since|due to|as"
            r"|after)\b.{0,60}\b(?:legal|compliance|contract\w*|customers?|clients?|licen[cs]\w+"
            r"|vendors?|supplier|budget|regulat\w+|gdpr|hipaa|auditors?|partners?|outage|incident"
            r"|bankrupt|lawyers?|investors?|board|management|security team)\b"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:legal|compliance|security|our (?:customers?|clients?|lawyers?|auditors?)"
            r"|the (?:customer|client|auditor|vendor|board)s?) (?:requires?|wants?|demands?"
            r"|insists?|asked|forbids?|won't allow|does not allow|doesn't allow|needs?)\b.{6,}"
        ),
    ),
    SentenceRule(
        "project_fact",
        pattern(
            r"^(?:last (?:week|month|quarter|year)|in (?:january|february|march|april|may|june"
            r"|july|august|september|october|november|december)),? (?:we had|there was|we lost"
            r"|a) .*\b(?:outage|incident|data loss|breach|rollback)\b.*"
        ),
    ),
)
