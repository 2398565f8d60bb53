"""What the embedded model keeps of a turn: few kinds of sentences, and silence where unsure."""
