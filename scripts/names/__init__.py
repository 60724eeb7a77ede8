"""Other libraries' public names, and what webgrad has instead of some."""
