"""What a run produced, and what can be read off it."""
