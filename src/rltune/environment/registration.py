"""Makes the environment known to Gymnasium when imported; loads nothing else of RLTune, nothing compiled.

Either of these; Gymnasium itself looks for no environments of packages that are not imported:

    gymnasium.make("rltune.environment.registration:rltune/Scheduling-v0")

    import rltune.environment.registration
    gymnasium.make("rltune/Scheduling-v0")
"""

from gymnasium.envs.registration import register, registry

ID = "rltune/Scheduling-v0"


if ID not in registry:
    register(ID, entry_point="rltune.environment.gym_env:SchedulingEnv")
