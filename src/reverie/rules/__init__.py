"""Rules about tool calls: read, compiled, matched. Pure."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "calls": "CallContext parse",
        "literals": "clause_tokens table",
        "match": "CompiledRule breaks is_irrevocable says",
        "prohibition": "compile_sentence",
        "rule": "RuleHead read",
        "rule_file": "FOLDER PackedRules index_of pack_rules rule_file_name rules_for_call",
        "rule_set": "RuleSet final_calls",
    },
)
