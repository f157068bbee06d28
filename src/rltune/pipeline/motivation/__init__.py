"""Why the order of a queue matters (paper §2): seven jobs on two nodes, on real Slurm daemons and in the simulator."""
