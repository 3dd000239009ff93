"""Counts and binary columns."""
