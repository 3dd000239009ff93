"""Random graphs."""
