"""Whether a memory folder is in order, told from its texts alone, without a model."""
