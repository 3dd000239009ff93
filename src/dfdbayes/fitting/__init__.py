"""`fit` and what calls it: studies of coverage, comparisons."""
