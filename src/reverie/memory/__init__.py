"""Long-term memory as values: what is kept, how it is shown and what may never be saved."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "branch": "judged_once",
        "claims": "Claim MAX",
        "echo": "LOOKED_AT Passages content is_said",
        "facts": "DropReason Lost Reason Tombstone facts_of reasons_block reasons_in verdict",
        "format.entry": "INDEX MAX_READ TYPES TopicFile index_of is_index is_topic new",
        "format.frontmatter": "MAX_BYTES",
        "format.index": "IndexFault find_pointer pointers_to put resolve without",
        "hygiene.check": "CheckInput Finding HygieneReport check",
        "hygiene.faults": "junk",
        "instructions": "Collected InstructionFile InstructionText render rule_paths",
        "matching": "union",
        "merge": "END OURS THEIRS lines_of merge_index merge_text",
        "paths": "SCOPES Scope",
        "prompt": "Options both_modes section",
        "ranking": "Facts IndexLimits ManifestLine SentIndex limits_hit newest_first plain_cut "
        "record sent write_warning",
        "recall.gate": "CLEAR MARGIN MAX_SENTENCES evidence least telling",
        "recall.meaning": "LocalModel Meaning",
        "recall.passages": "Utterance best_lines headings",
        "recall.ranking": "MAX_TERMS Query QueryTerms RankedNote RankedTurn counted find_terms "
        "score_note score_turn",
        "repair.edits": "Repaired",
        "repair.repair": "kept repaired",
        "rules.book": "RuleBook",
        "rules.calls": "CallPlace",
        "rules.file": "FOLDER PackedRules name_of packed",
        "rules.ledger": "BLOCKED BROKEN CHANGED HELD MATCHED RuleCounts",
        "rules.offers": "offer_of offers",
        "rules.sentence": "compile_sentence",
        "rules.shell": "MAX_COMMANDS commands",
        "secrets": "SecretHit found removed",
        "secrets.certain": "certain",
        "secrets.likely": "entropy likely",
        "secrets.own": "TOKENS",
        "secrets.patterns": "AFTER_SECRET TOKEN_FLOOR keywords widened",
        "secrets.removal": "mark",
        "secrets.rules": "GITLEAKS",
        "secrets.scanner": "tellable",
        "secrets.signs": "spelt",
        "times": "file_time head_time line_times shared",
        "trust": "Evidence Trust goes_to_review reads_like_instruction trust_of",
        "versions": "ABSENT OUTSIDE Origin Version blame encode trust_in",
        "words": "ForgetWords",
    },
)
