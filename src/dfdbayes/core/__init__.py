"""What every fit is made of: data, parameters, models, losses, the search, calibration, samplers."""
