"""Fitting the synthetic traces to months of real rows, and checking them on later months; tooling, no stage of a run."""
