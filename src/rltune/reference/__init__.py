"""The simulator again in plain Python: slow, for reading, and the oracle of tests."""
