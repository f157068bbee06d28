"""Learners that RLTune is compared with, in its simulator, on its sequences."""
