"""Rules that are looked at when a call is made: read from memories, matched on the parsed call."""
