"""The system's features, policies and networks, from its registries, as tables that the report shows."""

import re
from dataclasses import asdict
from typing import Any

import pandas as pd

from rltune.agent.policy_file import CRITIC_LAYERS
from rltune.config import Preset, RunConfig
from rltune.config.preset import BUILT_IN
from rltune.environment.features import CATEGORIES, CRITIC, FEATURE_SETS, FEATURES, PER, columns_of
from rltune.policies import CUSTOM, POLICIES, SYMBOLS, Policy
from rltune.simulator.state import MAX_VISIBLE

LETTER = re.compile(r"\b([a-z])\b")


def features() -> pd.DataFrame:
    """Table 3: a row per feature: category, feature, definition, low, high, raw, per, sets, source; by category."""
    shown = {**FEATURE_SETS, "critic": CRITIC}
    frame = pd.DataFrame([asdict(feature) for feature in FEATURES.values()]).rename(columns={"name": "feature"})
    frame["per"] = frame["of"].map(dict(enumerate(PER)))
    frame["sets"] = [
        ", ".join(of for of, columns in shown.items() if any(name in column.names for column in columns))
        for name in frame["feature"]
    ]
    frame = frame.sort_values("category", key=lambda c: c.map(CATEGORIES.index), kind="stable", ignore_index=True)
    return frame[["category", "feature", "definition", "low", "high", "raw", "per", "sets", "source"]]


def policies(config: RunConfig) -> pd.DataFrame:
    """Table 5: a row per policy, built in or loaded: policy, title, formula, letters, dynamic, source, in_table5, remark,
    role (base policy, baseline, both or "" in this run)."""
    bases, baselines = {cell.policy for cell in config.cells()}, set(config.evaluation.baseline_policies)
    rows = []
    for name in (*POLICIES, *CUSTOM):
        policy = POLICIES.get(name) or Policy(
            name, name, lambda job: 0.0, "", "a function of the user’s own", dynamic=True
        )
        letters = [letter for letter in SYMBOLS if letter in LETTER.findall(policy.formula)]
        roles = {"base policy": name in bases, "baseline": name in baselines}
        row = {k: getattr(policy, k) for k in ("title", "formula", "dynamic", "in_table5", "source", "remark")}
        role = ", ".join(role for role, has in roles.items() if has)
        rows.append({"policy": name, **row, "letters": ", ".join(letters), "role": role})
    return pd.DataFrame(rows)


def network(config: RunConfig) -> dict[str, Any]:
    """Actor and critic of the run's first RLTune agent, else of the paper's preset, as the figure takes them.

    features: name of its set; columns, critic_columns: what a job's row has; queue: rows at most; actor, critic: units
    of every layer after its input, the last 1; critic empty where there is none; others: the same in a few words, of the
    run's other agents.
    """
    found = [
        describe_network(cell.features, config.preset(cell.preset))
        for cell in config.cells()
        if config.preset(cell.preset).agent == "rltune"
    ]
    first, *rest = found or [describe_network("engineered", BUILT_IN["paper"])]
    others = dict.fromkeys(_in_words(n) for n in rest if _in_words(n) != _in_words(first))
    return {**first, "others": list(others)}


def describe_network(features: str, preset: Preset) -> dict[str, Any]:
    """Actor and critic that this preset trains on this feature set, as `network` has them, without others."""
    return {
        "features": features,
        "columns": [str(column) for column in columns_of(features)],
        "critic_columns": [str(column) for column in CRITIC],
        "queue": MAX_VISIBLE,
        "actor": [*preset.actor_layers, 1],
        "critic": [*CRITIC_LAYERS, 1] if preset.has_critic else [],
        "base_policy_bias": preset.base_policy_bias > 0,
    }


def _in_words(network: dict[str, Any]) -> str:
    layers = "-".join(map(str, network["actor"]))
    critic = "a critic" if network["critic"] else "no critic"
    return f"feature set {network['features']}, actor {layers}, {critic}"
