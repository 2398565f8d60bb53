"""Sub-agents: their types, their work in this process or in one of their own, who runs where."""
