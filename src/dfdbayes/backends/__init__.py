"""Where the heavy work is done: this machine, or a Dask cluster."""
