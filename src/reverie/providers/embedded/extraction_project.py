"""What English sentences tell about the project and outside systems, and what is asked to be kept.

Due dates, owners, reasons that lie outside the code, places where things are looked up. What
must be so in the program is no fact of this kind; the code will say it.
"""

from __future__ import annotations

from reverie.providers.embedded.extraction_found import Rule, pattern

_EVENT = (
    r"(?:due|deadline|releas\w+|launch\w*|ship\w*|demo\w*|freez\w+"
    r"|code freeze|review|meeting|exams?|interview|conference"
    r"|tournament|wedding|presentation|deliver\w*|go(?:es|ing)? live"
    r"|deploy\w*|vacation|holiday|out of office|on leave"
    r"|mov(?:e|es|ing)|starts?|starting|leav(?:e|es|ing)|hand(?:s|ing)?"
    r" over|takes? over|taking over|migrat\w+|retir\w+|expires?|appointment"
    r"|surgery"
    r"|flight|competition|performance|submit\w*|submission|sprint|milestone"
    r"|audit|handover|cutover|offsite|onboarding|graduat\w+"
    r"|marathon|recital|concert|trip)"
)
# Whoever asks for something to be done now gives no date to remember.
_ASKED = pattern(
    r"\b(?:won|was|were|went|did|finished|attended|took|has been|have"
    r" been|had|failed|broke)\b|^you(?:'ve|'re)?\b|"
    r"\b(?:can|could|would|will) (?:you|we)\b|\blet's\b|^(?:sort|list"
    r"|show|filter|find|check|look)\b|\?"
)
_SYSTEM = (
    r"(?:https?://\S+|linear|jira|slack|notion|confluence|grafana|datadog"
    r"|sentry|google (?:docs?|drive|sheets?)|figma|trello|asana"
    r"|pagerduty|the (?:wiki|runbook|help ?desk|share|dashboard|board"
    r"|tracker|intranet)|zendesk|airtable|miro|discord|kibana"
    r"|bugzilla|redmine|sharepoint|metabase|looker|bigquery|mixpanel"
    r"|posthog|amplitude|hubspot|salesforce|#[a-z][\w-]+|a (?:slack"
    r" )?channel)"
)
_KEPT = (
    r"(?:bugs?|issues?|tickets?|incidents?|docs?|documentation|designs?"
    r"|mock-?ups?|specs?|roadmap|metrics|logs|alerts|dashboards?|runbooks?"
    r"|on-?call|latenc\w+|reports?|requirements?|feedback|customers?"
    r"|style guide|guidelines?|meeting notes|decisions|contracts?|schedules?"
    r"|feature requests?|api (?:docs?|reference)|credentials policy"
    r"|data dictionary|brand \w+|releases?|questions|support|what "
    r"(?:the|our|we) .+)"
)
_OWNER = (
    r"(?:(?-i:[A-Z][a-z]+)(?: (?:and (?-i:[A-Z][a-z]+)|from \w+))?|the"
    r" \w+ team|legal|security|compliance|marketing|our \w+ team)"
)

DEADLINES = (
    Rule(
        "deadline",
        pattern(rf"\b{_EVENT}\b"),
        unless=_ASKED,
    ),
)

POINTERS = (
    Rule(
        "pointer",
        pattern(
            r"https?://[^\s)]*(?:\bdocs?\b|documentation|reference|wiki"
            r"|/guides?/|handbook|runbook|developers?\.|/specs?/|/api/)[^\s)]*"
        ),
        asks=True,
        unless=pattern(r"/(?:pull|issues|commit|blob|tree)/|localhost|127\.0\.0\.1"),
    ),
    Rule(
        "pointer",
        pattern(
            r"\bhere(?:'s| is| are) (?:the |some |our |their )?(?:\w+ ){0,3}"
            r"(?:docs?|documentation|reference|spec|guide|wiki|dashboard"
            r"|board|schema)\b.{0,60}https?://\S+"
        ),
        unless=pattern(r"/(?:pull|issues)/\d+"),
    ),
    Rule(
        "pointer",
        pattern(
            rf"\b{_KEPT}\b.{{0,40}}?\b(?:is|are|live|lives|get|gets|kept"
            rf"|tracked|filed|documented|reported|listed|found|posted|discussed"
            rf"|arrive|come in|go(?:es)?)\b.{{0,30}}\b(?:in|on|at|under"
            rf"|to|through|via|here:?) .{{0,30}}?{_SYSTEM}"
        ),
        unless=pattern(
            r"^(?:can|could|please|let's|look at|review|read|open|fix|fetch"
            r"|check out|implement|see)\b|\bthis (?:pr|issue|ticket|bug)\b"
            r"|/(?:pull|issues)/\d+|\b(?:should|must|will be)\b"
        ),
    ),
    Rule(
        "pointer",
        pattern(
            rf"^(?:the |our )?(?:\w+ ){{0,4}}?(?:dashboard|board|wiki|runbook"
            rf"|tracker|channel|style guide|docs?|documentation|spec|handbook"
            rf"|playbook|status page)\b.{{0,40}}?\b(?:is|are|lives?|sits?)\b.{{0,20}}?"
            rf"(?:\bat\b|\bin\b|\bon\b|\bunder\b|:)? ?{_SYSTEM}"
        ),
        unless=pattern(
            r"^(?:can|could|please|let's)\b|/(?:pull|issues)/\d+|\b(?:should"
            r"|must|will be|down|broken|slow|wrong|failing|empty)\b"
        ),
    ),
    Rule(
        "pointer",
        pattern(
            rf"^(?:for|to (?:find|see|look up|check)) .{{3,60}}?,? (?:always"
            rf" )?(?:look|check|see|search|ask|go|use) (?:in |at |on |to"
            rf" )?.{{0,30}}?{_SYSTEM}"
        ),
        unless=pattern(r"/(?:pull|issues)/\d+|\bthis (?:pr|issue|ticket|bug|one)\b"),
    ),
)

FACTS = (
    Rule(
        "project_fact",
        pattern(
            r"^(?:our |some |many |most )?(?:users|customers|people|developers"
            r"|clients|teams|colleagues) (?:here )?(?:often|usually|sometimes"
            r"|regularly|tend to|frequently|rarely|never) .{6,}"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"\b(?:nobody|no ?one|no customers?|no users?) (?:is |are "
            r"|really |actually )?(?:us(?:es?|ing)|on)\b.{2,}|\b(?:we|it"
            r"|this|that) (?:have ?n[o']t|has ?n[o']t|is ?n[o']t|have not"
            r"|has not|is not)(?: been)? (?:released?|shipped|launched"
            r"|public|in production|live)\b|\bno (?:users|customers) yet\b"
        ),
        unless=pattern(r"^(?:can|could|do|does|did|is|are|if|why|when)\b"),
    ),
    Rule(
        "project_fact",
        pattern(
            r"^(?:(?-i:[A-Z][a-z]+)|(?:my|our) (?:colleague|coworker|co-worker"
            r"|teammate|boss|manager|designer|team lead)) (?:is (?:already"
            r" |currently |now )?(?:working on|handling|taking care of"
            r"|in charge of|responsible for)|will (?:take|handle|review"
            r"|own|do)|owns|wants us to|asked (?:me|us) (?:to|not to))"
            r" .{4,}"
        ),
        unless=pattern(
            r"^(?:this|that|it|there|he|she|claude|gemini|copilot|codex"
            r"|cursor|git|github|docker|python|everyone|everything|nothing"
            r"|someone|who|what|which|the|now|then|life|mom|dad)\b"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"\bwe (?:\w+ ){0,2}?\w+(?:ed|t|ept|ook|uilt|ut)\b.*\b(?:on"
            r" purpose|intentionally|deliberately)\b|\bwe (?:on purpose"
            r"|intentionally|deliberately) \w+"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"\b(?:is|are|should be|stays?|remains?) (?:the |our |a )?"
            r"(?:single )?source of truth\b"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            rf"^{_OWNER} (?:owns|maintains?|leads|is responsible for|are"
            rf" responsible for|is in charge of|takes? over|handles?|looks?"
            rf" after|approves?|signs? off(?: on)?|has to approve|must"
            rf" approve) .{{4,}}"
        ),
        unless=pattern(
            r"^(?:this|that|it|there|claude|gemini|copilot|codex|git|github"
            r"|docker|python)\b"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"^we(?:'ve| have)? (?:decided|agreed|chose|chosen|stay|are"
            r" staying|can't|cannot|must not|won't|are not allowed to|may"
            r" not)\b.{6,}\b(?:because|since|due to|as|after)\b.{0,60}\b"
            r"(?:legal|compliance|contract\w*|customers?|clients?|licen[cs]\w+"
            r"|vendors?|supplier|budget|regulat\w+|gdpr|hipaa|auditors?"
            r"|partners?|outage|incident|bankrupt|lawyers?|investors?|board"
            r"|management|security team)\b"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"^(?:legal|compliance|security|our (?:customers?|clients?"
            r"|lawyers?|auditors?)|the (?:customer|client|auditor|vendor"
            r"|board)s?) (?:requires?|wants?|demands?|insists?|asked|forbids?"
            r"|won't allow|does not allow|doesn't allow|needs?)\b.{6,}"
        ),
    ),
    Rule(
        "project_fact",
        pattern(
            r"^(?:last (?:week|month|quarter|year)|in (?:january|february"
            r"|march|april|may|june|july|august|september|october|november"
            r"|december)),? (?:we had|there was|we lost|a) .*\b(?:outage"
            r"|incident|data loss|breach|rollback)\b.*"
        ),
    ),
)

# Asked for by name: strong words, and words that are often said of the task at hand.
ASKED = pattern(
    r"^(?:(?:can|could|would|will) you )?(?:please )?(?P<strong>remember"
    r"(?: this| that(?! time)|,? ?:| for (?:later|next time|the future)[:,]?)"
    r"|(?:save|store|add|put|write|note|record) (?:this |that |it )?"
    r"(?:down )?(?:in|into|to) (?:your |the )?(?:long-term )?memory"
    r"(?: that)?[:,]?|make a (?:mental )?note(?: that|:| of)"
    r"|memori[sz]e(?: this| that)?[:,]?|for the record,?|(?:please"
    r" )?note for (?:later|the future)[:,]?|don't (?:ever )?forget"
    r" that)\s+(?P<what>.{6,})$"
)
WEAK = pattern(
    r"^(?:please )?(?P<weak>remember,? |note(?: that|:)|keep in mind"
    r"(?: that|:)|bear in mind(?: that|:)|(?:always )?remember to|don't"
    r" forget(?: that| to))\s*(?P<what>.{6,})$"
)
TELLS = pattern(
    r"\b(?:is|are|was|were|has|have|had|am|prefers?|likes?|hates?|uses?"
    r"|wants?|should|must|will|needs?|can|don't|doesn't|can't|won't"
    r"|never|always|works?|lives?|starts?|ends?|owns?|goes|go|comes?"
    r"|ships?|happens?|takes?)\b|'(?:m|s|re|ve|ll)\b|https?://"
)
REMINDED = pattern(r"^(?:when|how|what|where|why|who|the time|if|last|we|you|i said)\b")
REACHES = pattern(
    r"\b(?:always|never|every|each|whenever|all|any|in general|from"
    r" now on|in (?:the )?future|next time|before (?:you|commit|push"
    r"|merg)\w*)\b"
)
