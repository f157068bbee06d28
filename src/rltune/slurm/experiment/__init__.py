"""Jobs of a trace on an emulated Slurm cluster, under Slurm's own order or a controller's: the experiment of paper §5.6."""
