"""How fast the HTML report responds in a browser."""
