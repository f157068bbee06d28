"""What readers of raw files share: archives, encodings, CSV, lines, times, and the fields of Slurm."""
