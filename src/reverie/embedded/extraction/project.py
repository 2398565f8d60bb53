"""What English sentences tell about the project and outside systems, and what is asked to be kept.

Due dates, owners, reasons that lie outside the code, places where things are looked up; standing
orders, and what is to be remembered by name. What must be so in the program is no fact and no
order of this kind; the code will say it.
"""

from __future__ import annotations

from reverie.embedded.extraction.words import SentenceRule, pattern

_EVENT = (
    r"(?:due|deadline|releas\w+|launch\w*|ship\w*|demo\w*|freez\w+|code freeze|review|meeting"
    r"|exams?|interview|conference|tournament|wedding|presentation|deliver\w*|go(?:es|ing)? live"
    r"|deploy\w*|vacation|holiday|out of office|on leave|mov(?:e|es|ing)|starts?|starting|leav(?:e"
    r"|es|ing)|hand(?:s|ing)? over|takes? over|taking over|migrat\w+|retir\w+|expires?|appointment"
    r"|surgery|flight|competition|performance|submit\w*|submission|sprint|milestone|audit|handover"
    r"|cutover|offsite|onboarding|graduat\w+|marathon|recital|concert|trip)"
)
# Whoever asks for something to be done now gives no date to remember.
_ASKED = pattern(
    r"\b(?:won|was|were|went|did|finished|attended|took|has been|have been|had|failed|broke)\b"
    r"|^you(?:'ve|'re)?\b|\b(?:can|could|would|will) (?:you|we)\b|\blet's\b|\S/\S+\d{4}-\d\d-\d\d"
    r"|^(?:sort|list|show|filter|find|check|look)\b|\?"
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
    r"|feature requests?|api (?:docs?|reference)|credentials policy|data dictionary|brand \w+"
    r"|releases?|questions|support|what (?:the|our|we) .+)"
)
_OWNER = (
    r"(?:(?-i:[A-Z][a-z]+)(?: (?:and (?-i:[A-Z][a-z]+)|from \w+))?|the \w+ team|legal|security"
    r"|compliance|marketing|our \w+ team)"
)

_NAMES = (
    r"\u00b7+|@\S+|https?://\S+|(?<!\w)--?[a-z][\w-]*|(?:\.{0,2}/)?[\w.-]+/[\w./-]+|\w+\(\)"
    r"|\w+(?:_\w+)+"
    r"|\w*\.(?:py|go|tsx?|jsx?|rs|java|cpp|md|json|toml|ya?ml|sh|sql|rb|vue|html|css)\b"
    r"|(?-i:[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)"
)
# A name in the code, quoted words, or what a program is or shows.
PROGRAM = pattern(
    rf"{_NAMES}"
    r"|\b(?:users?|customers?|buttons?|pages?|screens?|dialog|modal|menu|columns?|fields?|rows?"
    r"|endpoints?|hooks?|handlers?|flags?|params?|parameters?|query|queries|tables?|json|yaml"
    r"|metadata|payload|timestamp|token|checkpoints?|sessions?|list|values?|state|status|runner"
    r"|installer|ui|cli|app|server|client|functions?|method|class|command|agents?|parser|worker"
    r"|plugin|components?|api|database|db|schema|styles?|layout|images?|icon|forms?|inputs?|text"
    r"|labels?|url|routes?|features?|version|data|model|email|login|password|links?|window"
    r"|frontend|backend|services?|containers?|cache|config|settings|variables?|string|nodes?"
    r"|index|exception|website|jobs?|module)\b"
)
_STEP = (
    r"(?:commit|push|force-push|amend|rebase|squash|merge|refactor|reformat|mock|lint|test|verify"
    r"|double-check|look|ask|tell|explain|summari[sz]e|review|install|touch|revert|investigate"
    r"|research|document|rerun|re-run|read|cite|run|check|validate|confirm|format|answer|reply"
    r"|respond|wait|search|skip|guess|assume)"
)
_MAKING = r"(?:write|use|follow|keep|mention)"
ORDER = pattern(rf"^(?:please )?(?:always|never|do not|don't|stop|avoid|only|{_STEP}|{_MAKING})\b")

STANDING = (
    SentenceRule(
        "standing_instruction",
        pattern(
            r"^(?:from (?:now|here) on|going forward|in (?:the )?future|new rule(?=:))\b.{6,}"
            r"|^.{6,}\bfrom (?:now|here) on$"
        ),
        unless=PROGRAM,
    ),
    SentenceRule(
        "standing_instruction",
        pattern(rf"^(?:you (?:should|must) )?(?:always|never) {_STEP}\b.{{2,}}"),
        unless=pattern(_NAMES),
    ),
    SentenceRule(
        "standing_instruction",
        pattern(rf"^(?:you (?:should|must) )?(?:always|never) {_MAKING}\b.{{2,}}"),
        unless=PROGRAM,
    ),
)

DEADLINES = (
    SentenceRule(
        "deadline",
        pattern(rf"\b{_EVENT}\b"),
        unless=_ASKED,
    ),
)

POINTERS = (
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
            r"|will be)\b"
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

# Asked for by name: strong words, and words that are often said of the task at hand.
ASKED = pattern(
    r"^(?:(?:can|could|would|will) you )?(?:please )?(?P<strong>remember(?: this| that(?! time)"
    r"|,? ?:| for (?:later|next time|the future)[:,]?)|(?:save|store|add|put|write|note"
    r"|record) (?:this |that |it )?(?:down )?(?:in|into|to) (?:your "
    r"|the )?(?:long-term )?memory(?: that)?[:,]?|make a (?:mental )?note(?: that|:| of)"
    r"|memori[sz]e(?: this| that)?[:,]?|for the record,?|(?:please )?note for (?:later"
    r"|the future)[:,]?|don't (?:ever )?forget that)\s+(?P<what>.{6,})$"
)
WEAK = pattern(
    r"^(?:please )?(?P<weak>remember,? |note(?: that|:)|keep in mind(?: that|:)"
    r"|bear in mind(?: that|:)|(?:always )?remember to|don't forget(?: that"
    r"| to))\s*(?P<what>.{6,})$"
)
TELLS = pattern(
    r"\b(?:is|are|was|were|has|have|had|am|prefers?|likes?|hates?|uses?|wants?|should|must|will"
    r"|needs?|can|don't|doesn't|can't|won't|never|always|works?|lives?|starts?|ends?|owns?|goes|go"
    r"|comes?|ships?|happens?|takes?)\b|'(?:m|s|re|ve|ll)\b|https?://"
)
REMINDED = pattern(r"^(?:when|how|what|where|why|who|the time|if|last|we|you|i said)\b")
REACHES = pattern(
    r"\b(?:always|never|every|each|whenever|in general|from now on|in (?:the )?future|next time"
    r"|before (?:you|commit|push|merg)\w*)\b"
)
