"""Programs that other agents run as hooks: small, alone, and quick to start."""
