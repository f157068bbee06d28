"""A live Slurm cluster: read its queue and nodes, set priorities, and emulate one on a single machine."""
