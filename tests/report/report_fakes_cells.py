"""Results of cells as training and evaluation would have written them: windows, histories, jobs, runs elsewhere."""

import numpy as np
import pandas as pd
from report_fakes_traces import TRACES

from rltune.config.cells import Cell
from rltune.report.transferred import transferred

GAIN = {"fifo": 0.85, "sjf": 0.4, "f1": -0.02, "wfp3": 0.6, "saf": 0.0, "multifactor": 0.7}
LEVEL = {"fifo": 1.0, "sjf": 0.35, "f1": 0.12, "wfp3": 0.4, "saf": 0.2, "multifactor": 0.9}
HEURISTICS = ("fifo", "sjf", "f1", "wfp3", "saf")
WINDOWS = {256: 24, 1024: 8}
SOLVER = {"asked": 30, "presolved": 5, "cached": 5, "calls": 20, "infeasible": 1, "limit": 0, "failure": 0}


def windows(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """A row a scheduler × window; every scheduler sees the same windows."""
    first = TRACES[cell.trace][1]
    base = first * LEVEL[cell.policy]
    gain = GAIN[cell.policy] * (0.6 if cell.features == "raw" else 1)
    roles = [
        ("base", cell.policy, cell.backfill, cell.placement, base),
        ("base_best_fit", cell.policy, cell.backfill, "best_fit", 1.03 * base),
        ("random", cell.policy, cell.backfill, "best_fit", 0.4 * base),
        ("rltune", cell.policy, cell.backfill, cell.placement, (1 - gain) * base),
    ]
    # heuristics do not depend on the base policy the agent was trained against
    rules = {"none": 1.0, "greedy": 0.6, "easy": 0.55}
    roles += [("baseline", p, b, "best_fit", first * LEVEL[p] * rules[b]) for p in HEURISTICS for b in rules]
    bound, luck, frames = 0.05 * first * min(LEVEL.values()), np.random.default_rng(cell.seed).normal(1, 0.1), []
    for n, count in WINDOWS.items():
        hardness = rng.lognormal(0, 0.8, count)
        for role, policy, backfill, placement, level in roles:
            agent = int(role == "rltune")
            wait = level * hardness * (n / 256) ** 0.5 * rng.lognormal(0, 0.15, count)
            ran = {"role": role, "policy": policy, "backfill": backfill, "placement": placement, "locality": "strict"}
            ran |= {"types": "auto", "gpu_price": 0.0}
            solver = {f"milp_{name}": agent * number for name, number in SOLVER.items()}
            same = {"jobs": n, "makespan_s": n * 60.0, "decisions": n, "choices": n // 3, "seconds": 0.05}
            one = _windows(wait, n).assign(**ran, **same, **solver, jct_s=wait + 9000)
            bounds = bound * hardness if role == "baseline" else np.nan
            bsld, spans = 1 + wait / 400 * (luck if agent else 1), 0.6 / (1 + wait / 1e5)
            used = {"utilisation": 0.06 / (1 + wait / 1e6), "utilisation_span": spans}
            frames.append(one.assign(bound_s=bounds, bsld=bsld, **used))
    frame = pd.concat(frames, ignore_index=True)
    return pd.concat([frame, *elsewhere(cell, frame)], ignore_index=True)


def elsewhere(cell: Cell, frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Agent and base under the run's other placements: with best_fit a tenth more wait, with the others a fifth less."""
    found = []
    for placement, locality in (("best_fit", "strict"), ("lookahead", "soonest_end")):
        if (placement, locality) != (cell.placement, cell.locality):
            factor = 1.1 if placement == "best_fit" else 0.8
            for role in ("rltune", "base"):
                own = frame[frame["role"] == role].assign(role=f"{role}_also", placement=placement, locality=locality)
                found.append(own.assign(wait_s=own["wait_s"] * factor))
    return found


def bases(cells: pd.DataFrame, wins: pd.DataFrame) -> pd.DataFrame:
    """Every base policy on the shortest windows, and every agent with each, as the transfer stage gathers them: away from its
    own policy an agent waits a tenth longer."""
    chosen = transferred(cells)
    axes = chosen[["cell", "trace", "cluster", "backfill", "placement", "locality", "estimate", "policy"]]
    kept = ["cell", "role", "sequence_jobs", "window", "first_job", "wait_s"]
    own = wins[wins["role"].isin(["base", "rltune"]) & (wins["sequence_jobs"] == min(WINDOWS))]
    own = own[kept].merge(axes, on="cell")
    agents = own[own["role"] == "rltune"]
    elsewhere = [
        agents[agents["policy"] != policy].assign(policy=policy, wait_s=lambda rows: 1.1 * rows["wait_s"])
        for policy in chosen["policy"].unique()
    ]
    return pd.concat([own.assign(cell=own["cell"].where(own["role"] == "rltune", "")), *elsewhere], ignore_index=True)


def away(cells: pd.DataFrame) -> pd.DataFrame:
    """Every agent on every workload: a fifth less wait than its base at home, else a tenth; random a third more."""
    rng, chosen, n = np.random.default_rng(5), transferred(cells), min(WINDOWS)
    rules = {k: chosen[k].iloc[0] for k in ("backfill", "placement", "locality", "estimate")}
    rows = []
    for (trace, cluster), _ in chosen.groupby(["trace", "cluster"], sort=False):
        base = TRACES[trace][1] * rng.lognormal(0, 0.8, WINDOWS[n])
        who = [("base", policy, "", LEVEL[policy]) for policy in chosen["policy"].unique()]
        who += [("random", "", "", 4 / 3)]
        who += [
            ("rltune", c["policy"], c["cell"], LEVEL[c["policy"]] * (0.8 if c["trace"] == trace else 0.9))
            for _, c in chosen.iterrows()
        ]
        for role, policy, cell, factor in who:
            where = {"trace": trace, "cluster": cluster, **rules}
            rows.append(_windows(base * factor, n).assign(**where, role=role, policy=policy, cell=cell))
    return pd.concat(rows, ignore_index=True)


def noise(cells: pd.DataFrame) -> pd.DataFrame:
    """FIFO the same at every sigma; SAF a fifth of it, a tenth more a unit of sigma; agents twice as steep."""
    rng, chosen, n = np.random.default_rng(6), transferred(cells), min(WINDOWS)
    rows = []
    for (trace, cluster), group in chosen.groupby(["trace", "cluster"], sort=False):
        base = TRACES[trace][1] * rng.lognormal(0, 0.8, WINDOWS[n])
        who = [("fifo", "none", "", 1.0, 0.0), ("saf", "none", "", 0.2, 0.1)]
        who += [(c["policy"], "none", c["cell"], 0.3, 0.2) for _, c in group.iterrows()]
        for sigma in (0.0, 1.0, 2.0):
            where = {"trace": trace, "cluster": cluster, "locality": "strict", "sigma": sigma}
            for policy, backfill, cell, level, slope in who:
                one = _windows(base * level * (1 + slope * sigma), n)
                rows.append(one.assign(**where, policy=policy, backfill=backfill, cell=cell))
    return pd.concat(rows, ignore_index=True)


def _windows(wait_s: np.ndarray, n: int) -> pd.DataFrame:
    first = np.arange(len(wait_s))
    return pd.DataFrame({"sequence_jobs": n, "window": first, "first_job": first * n, "wait_s": wait_s})


def history(cell: Cell, rng: np.random.Generator, epochs: int = 20) -> pd.DataFrame:
    """A learning curve that flattens."""
    e = np.arange(1, epochs + 1)
    base = TRACES[cell.trace][1] * rng.lognormal(0, 0.1, epochs)
    rl = base * (1 - GAIN[cell.policy] * (1 - np.exp(-e / 6)) + rng.normal(0, 0.04, epochs))
    if cell.metric == "utilisation":  # more is better: the score to be minimised has its sign reversed
        base, rl = -0.05 * np.ones(epochs), -0.05 * base / rl
    validated = np.where(e % 4 == 0, 1.0, np.nan)
    curve = {"epoch": e, "base": base, "rl": rl, "kept_epoch": e // 4 * 4}
    compared = {"rl": rl * 1.02, "base": base, "random": base * 0.9}
    cost = {"decisions": 5000, "choices": 1800, "mean_queue": 30.0, "rollout_seconds": 2.0, "update_seconds": 1.0}
    solver = {"asked": 150, "presolved": 30, "calls": 100, "cached": 20, "infeasible": 0, "limit": 0, "failure": 0}
    solver |= {"p50_ms": 0.2, "p95_ms": 0.5, "p99_ms": 0.8, "max_ms": 1.5}
    validation = {f"validation_{who}": values * validated for who, values in compared.items()}
    return pd.DataFrame({**curve, **cost, **validation, **{f"milp_{name}": value for name, value in solver.items()}})


def jobs(cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """Jobs of the test windows under base and agent; a third do not wait."""
    frames = []
    for n, count in WINDOWS.items():
        for role, factor in (("base", 1.0), ("rltune", 1 - GAIN[cell.policy])):
            wait = rng.lognormal(np.log(TRACES[cell.trace][1] * factor / 3), 1.5, n * count)
            wait[rng.random(n * count) < 0.33] = 0
            measures = {"wait_s": wait, "jct_s": wait + 600, "bsld": 1 + wait / 600}
            frames.append(pd.DataFrame({"role": role, "sequence_jobs": n, **measures}))
    return pd.concat(frames, ignore_index=True)
