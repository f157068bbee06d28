"""Compile the simulator, into the project's cache."""

import numpy as np

from rltune.agent.rollout import AgentRanker
from rltune.environment.observation import Observer
from rltune.evaluation.studies.example_schedules import simulated, workload
from rltune.simulator.batch import simulate
from rltune.simulator.config import SchedulerConfig

if __name__ == "__main__":
    simulated()
    jobs, layout = workload()
    agent = AgentRanker(lambda rows: rows[:, 0], Observer(jobs, layout, "engineered"))
    simulate(jobs, layout, np.array([0]), np.array([len(jobs.gpus)]), SchedulerConfig("fifo"), agent)
