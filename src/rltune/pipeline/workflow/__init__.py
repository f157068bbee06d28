"""Running the workflow: what there is to do and what it costs, starting it, watching it, doing one stage again."""
