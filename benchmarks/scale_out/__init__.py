"""How the sharded index scales on a Dask cluster."""
