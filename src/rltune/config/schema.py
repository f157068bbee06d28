"""The JSON schema of the configuration files, for editors; generated from the code."""

import json

from rltune.config.cluster import ClusterConfig
from rltune.config.run import RunConfig
from rltune.config.slurm import SlurmConfig
from rltune.config.trace import TraceConfig


def schema_text() -> str:
    """The schemas of run, trace, cluster and controller files as one JSON document."""
    models = {"run": RunConfig, "trace": TraceConfig, "cluster": ClusterConfig, "slurm": SlurmConfig}
    schemas = {
        name: model.model_json_schema(ref_template=f"#/{name}/$defs/{{model}}") for name, model in models.items()
    }
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"
