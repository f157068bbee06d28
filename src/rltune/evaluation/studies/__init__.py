"""The studies of the report: what is computed next to the evaluation itself."""
