"""Helpers that know nothing of statistics: files, checkpoints, identities, clocks."""
