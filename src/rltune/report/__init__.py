"""The report: tables, figures and the page, made from tables of results alone.

Data flows one way: ``read`` gathers the run's tables, ``tables`` and ``figures`` turn frames into artefacts,
``artefact`` saves them, ``page`` shows what was saved. Nothing here knows the simulator or the agent.
"""
