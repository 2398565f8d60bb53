"""Words in any language: tokens, stems, clauses, dates, hidden characters, frames.

Pure, and knows nothing of conversations or memories.
"""
