"""Maps: autologistic models."""
