"""What was said and decided: records, the fold over them, and the request it gives."""
