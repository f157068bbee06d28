"""The agent: what it sees of a queue, its networks, PPO, training, and the file a trained policy is kept in."""
