"""What German, Spanish and French sentences are worth keeping: the plainest of each kind.

The same kinds as in English, in far fewer wordings: what is asked to be remembered, orders for
good, who a person is, due days, and places to look things up. In doubt, nothing.
"""

from __future__ import annotations

from reverie.embedded.extraction.words import Sentence, SentenceRule, pattern

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

ASKED = pattern(
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


def asked(sentence: Sentence) -> str | None:
    """What a sentence asks to be kept."""
    found = None if sentence.asks else ASKED.search(sentence.masked)
    if found is None or _REMINDED.match(found["what"]):
        return None
    return sentence.text[found.start("what") : found.end("what")]
