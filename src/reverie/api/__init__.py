"""The public Python API: thin doors to what the rooms below do."""
