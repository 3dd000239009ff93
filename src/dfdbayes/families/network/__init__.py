"""Networks of columns."""
