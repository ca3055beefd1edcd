"""What uncertainty costs in a web service."""
