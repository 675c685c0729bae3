"""A router for each page of the desk."""
