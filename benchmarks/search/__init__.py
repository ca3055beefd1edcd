"""How fast are neighbours found? Full scans, searches that skip rows, approximate ones, and fewer trees."""
