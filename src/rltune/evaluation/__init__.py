"""Evaluation: schedulers on the same test windows, and intervals for every comparison."""
