"""The shell around the fold: sessions, forks, background work."""
