"""What long-term memory has to say to a turn: looked for, checked, shown, accounted for."""
