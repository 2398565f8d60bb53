"""Rules about tool calls: read, compiled, matched. Pure."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "calls": "CallContext parse",
        "literals": "clause_tokens compile_sentence table",
        "match": "CompiledRule FOLDER PackedRules breaks index_of is_irrevocable pack_rules "
        "rule_file_name rules_for_call says",
        "rule": "RuleHead read",
        "rule_set": "BLOCKED BROKEN CHANGED HELD MATCHED RuleCounts RuleSet final_calls offer_of "
        "offers",
        "shell_commands": "MAX_COMMANDS commands",
    },
)
