"""Judging: schedulers on the same held-out windows, and intervals for every comparison."""
