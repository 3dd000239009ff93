"""Files and frames as they are, and what their columns hold."""
