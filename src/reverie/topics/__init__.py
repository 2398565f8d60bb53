"""A memory folder as values: topics, index, instructions, versions, trust. Pure."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "claims": "Claim MAX find_claims find_literals",
        "consent": "unwrapped without_reported",
        "entry": "INDEX MAX_READ TYPES TopicFile index_of is_index is_topic key_for new",
        "frontmatter": "BOM MAX_BYTES edit parse_frontmatter remove scalar",
        "index": "IndexFault check contents find_pointer line parse_index pointers_to put "
        "resolve_link without",
        "instructions": "InstructionFile InstructionKind InstructionSet InstructionText MAX_FILES "
        "collect find render resolve_include rule_paths sources",
        "manifest": "IndexLimits ManifestLine SentIndex TopicFacts limits_hit newest_first "
        "plain_cut record render_index write_warning",
        "merge": "END OURS THEIRS lines_of merge_file merge_index merge_text",
        "novelty": "LOOKED_AT PassageIndex content echo is_said sentences",
        "paths": "SCOPES Scope agent_folder base log_key memory_paths",
        "prompt": "PromptOptions both_modes section",
        "redaction": "ForgetWords",
        "supersession": "frames supersedes",
        "times": "file_time files_copied files_sharing_time head_time line_times",
        "trust": "CommandEvidence Trust goes_to_review reads_like_instruction trust_of",
        "versions": "ABSENT OUTSIDE Origin Version blame decode encode trust_in",
    },
)
