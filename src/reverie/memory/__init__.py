"""Long-term memory as values: what is kept, how it is shown and what may never be saved."""
