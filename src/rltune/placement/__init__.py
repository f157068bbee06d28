"""MILP placement: the chosen job's nodes, jointly with which of the next jobs can start (paper §3.2)."""
