"""The index that recall looks in: derived from files, and built again from them at any time."""
