"""Helpers of the readers of raw files: archives, encodings, CSV, lines, times, and the fields of Slurm."""
