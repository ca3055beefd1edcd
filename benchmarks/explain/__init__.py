"""What makes a distribution wide, and which labels would help: on made and on real data."""
