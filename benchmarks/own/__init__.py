"""How good is the default on your own data? A folder of Parquet files, and a table in minutes."""
