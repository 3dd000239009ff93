"""From a loss to a calibrated posterior."""
