"""How good are the predicted distributions? On real data, beside the paper's rule and other packages."""
