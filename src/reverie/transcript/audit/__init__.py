"""What must survive a compaction, and whether it did."""
