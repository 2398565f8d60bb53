"""Programs that another agent runs at its hooks."""
