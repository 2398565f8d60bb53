"""The files of a memory: entries with frontmatter, the index, what lists show of them."""
