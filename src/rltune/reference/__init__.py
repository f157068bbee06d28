"""The simulator in plain Python: slow, meant to be read, and the oracle of tests."""
