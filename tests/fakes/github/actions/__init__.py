"""What can be done to the fake's world, by whom: the same for people acting directly and for the API."""
