"""The simulator as something to learn in: observations of queues, many sequences in lock step, a Gymnasium env."""
