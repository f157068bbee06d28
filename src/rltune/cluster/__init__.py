"""Clusters: their layout as arrays, what they can hold, and where a job can go."""
