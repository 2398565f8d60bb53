"""The team server: HTTP over `team.store`, and nothing that another door needs."""
