"""How fast are neighbours found? Searches in cells and among all rows, growth with the rows, and fewer trees."""
