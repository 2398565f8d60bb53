"""Session notes without a language model."""
