"""The compiled functions on experts."""
