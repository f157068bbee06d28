"""Compile the simulator once; the first stages would each compile it for themselves, for most of a minute."""

from logged import logged

with logged(snakemake.log[0]):  # noqa: F821
    import numpy as np

    from rltune.agent.rollout import AgentRanker
    from rltune.environment.observation import Observer
    from rltune.evaluation.studies import example_schedules
    from rltune.simulator.batch import simulate
    from rltune.simulator.config import SchedulerConfig

    example_schedules.simulated()
    jobs, layout = example_schedules.workload()
    agent = AgentRanker(lambda rows: rows[:, 0], Observer(jobs, layout, "engineered"))
    simulate(jobs, layout, np.array([0]), np.array([len(jobs.gpus)]), SchedulerConfig("fifo"), agent)
