"""Commands for releases: none of them is part of the package."""
