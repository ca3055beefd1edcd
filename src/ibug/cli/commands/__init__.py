"""The commands, one a file: options, and the way from files to the answer."""
