"""The stages of a run, each a function on a workspace: what notebooks call and the workflow orders.

``ensure_*`` finds what a stage needs, or makes it; a stage's own function always makes it anew.
"""
