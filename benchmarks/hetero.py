"""Which GPU type a job gets, on clusters of three types with measured speeds: rules and agents on held-out real rows.

Disjoint windows of 256 jobs from the tenth of the rows behind an origin, each from an idle cluster; estimates
lognormal(1), given or calibrated. Rules (rltune.evaluation.studies.gpu_types): orders × backfill rules × {any, fastest free,
fastest only}, AlloX, earliest completion, that with a price of GPU time, and order and type planned together. The last also
chooses how many nodes a job runs on; earliest completions, and rules that reserve for one job at most, run with that and without. *Ours* is the last,
with the order, price and estimates that are best on the validation windows, before the origin. It is compared with the best
rule without a price and the best of fastest free and of any free, in hindsight, and with the earliest completion with a price, its
order, price, estimates and locality chosen as ours are. Then ours without each of its parts, with wrong speeds and with
exact run times; agents, which choose a scheduler before they learn an order, compared by the metric that they are trained
for with rivals chosen by it; and SETTINGS: earlier origins, a
load of 0.9, other models. PAI's rows are read from the folder that RLTUNE_REAL_TRACES names (default ../shared/traces), by
default if they are there. Negative differences are better. The last line is one JSON object.
"""

import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from parts.heldout import (
    BY,
    THERE,
    TRACES,
    Task,
    add_options,
    against,
    loaded,
    logged,
    pooled,
    prepare,
    trained,
    windows_of,
    work,
)
from parts.output import parser_of, report
from parts.search import search_quality

from rltune.agent.policy_file import TrainedPolicy
from rltune.agent.scheduler_choice import POLICIES
from rltune.cluster.fit import with_unknown_speeds, with_wrong_speeds
from rltune.cluster.load import offered_load
from rltune.cluster.speeds import GAVEL
from rltune.config import LookaheadConfig
from rltune.evaluation.contenders import Contender
from rltune.evaluation.intervals import FEWEST
from rltune.evaluation.studies.gpu_types import RULE, SPREAD, rules, run_rule
from rltune.simulator.bound import lower_bound
from rltune.simulator.config import SchedulerConfig

LENGTH = 256
MODELS = {"vision": ("ResNet", "CycleGAN"), "language": ("LM", "Transformer")}
"""Settings in which all jobs train models of one kind → beginnings of their names."""
FIRST = "recorded"
SETTINGS: dict[str, dict[str, Any]] = {
    FIRST: {},
    "origin-0.8": {"origin": 0.8},
    "origin-0.7": {"origin": 0.7},
    "load-0.9": {"nodes": (("balance", 0.9),)},
    **{name: {"nodes": (("speeds", name),)} for name in MODELS},
}
"""Name → fields of the task that differ; jobs as they came, windows after 90 %, all models that were measured."""
ORIGINS = (FIRST, "origin-0.8", "origin-0.7")
"""Settings that are compared together as well."""
ESTIMATES = ("given", "calibrated")
LESS = ("none", "greedy", "easy")
"""Backfill rules that reserve for one job at most."""
WRONG = (0.2, 0.5)
"""Shares by which speeds are off at most."""
KEYS = [*RULE, "information"]
"""Columns that name a rule, and what it knows of run times and speeds."""
COMPARED = {
    "best_rule": ("best_rule", "excess_s"),
    "wait": ("best_rule", "wait_s"),
    "priced": ("priced", "excess_s"),
    "fastest_free": ("fastest_free", "jct_s"),
    "any_free": ("any_free", "jct_s"),
    "exact": ("exact", "excess_s"),
}
"""Name of a comparison → which rival, and by what: the mean completion beyond the run time on the fastest type, the wait, the
completion."""


def main() -> None:
    """Simulate, train, print."""
    parser = parser_of(__doc__)
    parser.add_argument("--traces", nargs="+", choices=list(TRACES), default=list(THERE))
    parser.add_argument("--settings", nargs="*", choices=list(SETTINGS), default=[], help=f"besides {FIRST}")
    parser.add_argument("--seeds", nargs="*", type=int, default=[], help=f"of agents trained in the setting {FIRST}")
    parser.add_argument("--metrics", nargs="+", choices=list(BY), default=["jct"], help="that these are trained for")
    add_options(parser)
    args = parser.parse_args()
    began, figures = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, models in MODELS.items():
            table = pd.read_csv(GAVEL)
            table[table["model"].str.startswith(models)].to_csv(Path(folder) / f"{name}.csv", index=False)
        same = {
            "folder": folder,
            "keep": args.keep,
            "cluster": "-mixed",
            "locality": SPREAD,
            "metric": "jct",
            "label": "RLTune",
        }
        first = {trace: Task(trace, 0.9, 0, "tuned", **same) for trace in args.traces}
        tasks = {
            (t, name): setting_of(first[t], name)
            for t in args.traces
            for name in dict.fromkeys([FIRST, *args.settings])
        }
        seeds = [replace(first[t], seed=s, metric=m) for t in args.traces for m in args.metrics for s in args.seeds]
        with pooled(args.processes) as pool:
            for trace, task in first.items():
                pool.apply(prepare, (task,))
                figures[trace] = {"search": pool.apply(search_quality, (task,))}  # timed: nothing else runs
            ruled = pool.imap(work, [(ruled_by_all, t) for t in tasks.values()], chunksize=1)
            agents = pool.imap(work, [(agents_on, t) for t in seeds], chunksize=1)
            found = {}
            for (trace, name), (frame, facts) in zip(tasks, ruled):
                found[trace, name] = frame
                figures[trace][name] = facts | compared(f"{trace}, {name}", frame)
            for task, (frame, log) in zip(seeds, agents):
                print("  " + ", ".join(f"{k} {v}" for k, v in log.items()), flush=True)
                figures.setdefault("agents", []).append(log)
                trained_for = (task.trace, f"agents, {task.metric}")
                found[trained_for] = pd.concat([found.get(trained_for), frame])
            for trace in args.traces:
                sides = [sides_of(found[trace, name]) for name in ORIGINS if (trace, name) in found]
                if len(sides) == len(ORIGINS):
                    every = {side: pd.concat([part[side] for part in sides]) for side in sides[0]}
                    figures[trace]["three origins"] = {
                        "windows": len(every["ours"]),
                        "against": against_rivals(every["ours"], every),
                    }
                for metric, by in BY.items():
                    if (trace, name := f"agents, {metric}") in found:
                        figures[trace][name] = compare_agents(found[trace, name], sides_of(found[trace, FIRST], by), by)
    searches = pd.DataFrame([figures[trace]["search"] for trace in args.traces], dtype=float)
    least = searches.columns.isin(["search_questions", "search_proven", "rollout_decisions_per_s"])
    worst = searches.min().where(least, searches.max())
    figures |= {name: None if value != value else value for name, value in worst.items()}
    for trace in args.traces:
        for name, (middle, low, high) in figures[trace][FIRST]["against"].items():
            figures |= {f"{trace}_vs_{name}": middle, f"{trace}_vs_{name}_lo": low, f"{trace}_vs_{name}_hi": high}
    figures["seconds"] = round(time.perf_counter() - began)
    report(figures, args.write)


def setting_of(task: Task, name: str) -> Task:
    """The task in one of SETTINGS."""
    changed = SETTINGS[name]
    nodes = tuple((k, f"{task.folder}/{v}.csv" if k == "speeds" else v) for k, v in changed.get("nodes", ()))
    return replace(task, origin=changed.get("origin", task.origin), nodes=nodes)


def contender(scheduler: SchedulerConfig, policy: TrainedPolicy | None = None) -> Contender:
    """What gpu_types.run_rule runs."""
    return Contender(scheduler, policy, lookahead=LookaheadConfig())


def ruled_by_all(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per rule × its information × window, those of the validation windows too; how many windows, a lower bound,
    and the load of what is shown."""
    given = loaded(task)
    calibrated, exact = replace(given, jobs=given.calibrated), given.with_exact_estimates()
    knowing = {"given": given, "calibrated": calibrated, "exact": exact}

    def table(rule: SchedulerConfig, information: str, before: bool) -> pd.DataFrame:
        starts = windows_of(given, LENGTH, validation=before)
        frame = run_rule(knowing[information], contender(rule), starts, LENGTH)
        return frame.assign(information=information, before=before, first_job=starts)

    priced = rules(POLICIES, priced=True)
    joint = [rule for rule in priced if rule.types == "joint"]
    known = pd.concat(table(*one, True) for one in product([*priced, *without_spread(priced)], ESTIMATES))
    unpriced = rules(POLICIES, priced=False)
    easy = [rule for rule in unpriced if rule.backfill == "easy"]
    more = [replace(r, backfill=b, locality=way) for r, b, way in product(easy, LESS, ("strict", SPREAD))]
    tested = [*product([*unpriced, *without_spread(unpriced), *more], ESTIMATES), *product(joint, ["exact"])]
    for by in BY.values():
        means = known.groupby(KEYS)[by].mean()
        tested += [rule_of(means[part].idxmin()) for part in (is_joint(means), ~is_joint(means))]
    ours = known.groupby(KEYS)["excess_s"].mean()[is_joint].idxmin()
    tested += map(rule_of, parts_off(ours).values())
    tested += [(replace(rule_of(ours)[0], policy=policy), ours[-1]) for policy in POLICIES]
    jobs = knowing[ours[-1]].jobs
    for share in WRONG:
        wrong = with_wrong_speeds(jobs, share, np.random.default_rng(1))
        knowing[speeds_off(share)] = replace(given, jobs=wrong)
    knowing["no speeds"] = replace(given, jobs=with_unknown_speeds(jobs))
    frames = [known, *(table(*one, False) for one in dict.fromkeys(tested))]
    bounds = [lower_bound(given.jobs, given.layout, int(f), LENGTH).jct_s for f in windows_of(given, LENGTH)]
    begin, end = windows_of(given, LENGTH)[[0, -1]] + [0, LENGTH]
    shown = pd.DataFrame({name: given.jobs.row[name][begin:end] for name in ("submit_s", "run_s", "gpus")})
    offered = offered_load(shown, given.layout.gpus)
    facts = {"windows": len(bounds), "bound_jct_s": round(float(np.mean(bounds))), "load": round(offered, 2)}
    return pd.concat(frames).assign(trace=task.trace, origin=task.origin), facts


def without_spread(some: list[SchedulerConfig]) -> list[SchedulerConfig]:
    """Rules for the earliest completion, with jobs on as few nodes as possible."""
    return [replace(rule, locality="strict") for rule in some if rule.types == "least"]


def is_joint(rows: pd.Series) -> np.ndarray:
    """Which of rows by KEYS are of order and type planned together."""
    return rows.index.get_level_values("types") == "joint"


def rule_of(keys: tuple[Any, ...]) -> tuple[SchedulerConfig, str]:
    """The rule that KEYS name, and its information."""
    return SchedulerConfig(**dict(zip(RULE[2:], keys[2:]))), keys[-1]


def speeds_off(share: float) -> str:
    """What schedulers know whose speeds are wrong by up to so much."""
    return f"speeds off by {share:.0%}".replace("%", " %")


def parts_off(ours: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """Ours without each of its parts: KEYS."""
    *of, locality, types, price, information = ours
    return {
        "without a price": (*of, locality, types, 0.0, information),
        "jobs planned one by one": (*of, locality, "least", price, information),
        "as few nodes as possible": (*of, "strict", types, price, information),
        **{speeds_off(share): (*of, locality, types, price, speeds_off(share)) for share in WRONG},
        "no speeds": (*of, locality, types, 0.0, "no speeds"),  # the price is one of faster types
        "other estimates": (*of, locality, types, price, next(name for name in ESTIMATES if name != information)),
    }


def chosen(frame: pd.DataFrame, by: str) -> dict[str, tuple[Any, ...]]:
    """Ours and its rivals, chosen by a column: their KEYS."""
    before, means = (part.groupby(KEYS)[by].mean() for part in (frame[frame["before"]], frame[~frame["before"]]))
    level = means.index.get_level_values
    plain = means[(level("types") != "joint") & level("information").isin(ESTIMATES) & (level("gpu_price") == 0)]
    return {
        "ours": before[is_joint].idxmin(),
        "best_rule": plain.idxmin(),
        "priced": before[~is_joint(before)].idxmin(),
        "fastest_free": plain.xs("fastest_free", level="types", drop_level=False).idxmin(),
        "any_free": plain.xs("any", level="types", drop_level=False).idxmin(),
        "exact": means[level("information") == "exact"].idxmin(),
    }


def sides_of(frame: pd.DataFrame, by: str = BY["jct"]) -> dict[str, pd.DataFrame]:
    """Rows of ours and of its rivals, chosen by a column, on the windows shown."""
    by_rule = dict(list(frame[~frame["before"]].groupby(KEYS, sort=False)))
    return {name: by_rule[rule] for name, rule in chosen(frame, by).items()}


def against_rivals(
    ours: pd.DataFrame, sides: dict[str, pd.DataFrame], by: str = BY["jct"]
) -> dict[str, list[float | None]]:
    """Rows of one scheduler in each of COMPARED; those of an agent for another metric by that alone."""
    pairs = COMPARED if by == BY["jct"] else {rival: (rival, by) for rival in sides if rival != "ours"}
    return {name: differs(ours, sides[rival], column) for name, (rival, column) in pairs.items()}


def compared(title: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Print a setting's table; means of ours and its rivals, and ours against each of them and without each of its parts."""
    rules, sides = chosen(frame, BY["jct"]), sides_of(frame)
    tested = frame[~frame["before"]]
    columns = ["jct_s", "excess_s", "wait_s", "bsld"]
    print(f"\n{title}, {len(sides['ours'])} windows of {LENGTH} jobs; {rules}")
    print(tested.groupby(KEYS, sort=False)[columns].mean().round(1).to_string())
    pairs = against_rivals(sides["ours"], sides)
    by_rule = dict(list(tested.groupby(KEYS, sort=False)))
    parts = {name: differs(by_rule[rule], sides["ours"], "excess_s") for name, rule in parts_off(rules["ours"]).items()}
    same = tested[(tested[KEYS[3:]] == list(rules["ours"][3:])).all(axis=1)]
    print({name: value for name, (value, *_) in pairs.items()})
    return {
        "rules": {name: {key: str(value) for key, value in zip(KEYS[2:], rule[2:])} for name, rule in rules.items()},
        "mean": {name: side[columns].mean().round(2).to_dict() for name, side in sides.items()},
        "against": pairs,
        "without": parts,
        "orders": same.groupby("policy")["excess_s"].mean().round(1).to_dict(),
    }


def differs(ours: pd.DataFrame, theirs: pd.DataFrame, column: str) -> list[float | None]:
    """Relative difference and its interval, None where there are too few windows for one."""
    seeded = ours if "seed" in ours else ours.assign(seed=0)
    middle, *ends = (round(value + 0.0, 4) if value == value else None for value in against(seeded, theirs, column))
    return [middle, *ends] if len(seeded[["origin", "first_job"]].drop_duplicates()) >= FEWEST else [middle, None, None]


def agents_on(task: Task) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row per window of an agent, of its scheduler without its network, and of its network where jobs are planned one by one."""
    load = loaded(task)
    policy, training, seconds = trained(task, load)
    agent_rules = training.agent_scheduler.config
    work = replace(load, jobs=load.calibrated) if training.agent_scheduler.uses_calibrated else load
    starts, frames = windows_of(load, LENGTH), []
    alone = replace(agent_rules, types="least") if agent_rules.types == "joint" else agent_rules
    singly = replace(policy, facts={**policy.facts, "scheduler": {**policy.facts["scheduler"], "types": alone.types}})
    for name, scheduler, learned in (
        ("RLTune", agent_rules, policy),
        ("without its network", agent_rules, None),
        ("without the program", alone, singly),
        ("without either", alone, None),
    ):
        frame = run_rule(work, contender(scheduler, learned), starts, LENGTH)
        assert set(frame["types"]) == {scheduler.on(work.jobs).types}
        frames.append(frame.assign(agent=name, first_job=starts))
    frame = pd.concat(frames).assign(trace=task.trace, origin=task.origin, seed=task.seed)
    return frame, logged(task, policy.facts, seconds)


def compare_agents(agents: pd.DataFrame, sides: dict[str, pd.DataFrame], by: str) -> dict[str, Any]:
    """Agents over their seeds, with and without their parts, against the rules, and RLTune against its parts, by a column."""
    by_agent = dict(list(agents.groupby("agent", sort=False)))
    found: dict[str, Any] = {}
    for name, of_agent in by_agent.items():
        pairs = against_rivals(of_agent, sides, by) | {"ours": differs(of_agent, sides["ours"], by)}
        pairs |= {
            f"its {other}": differs(of_agent, part, by) for other, part in by_agent.items() if name == "RLTune" != other
        }
        seeds = of_agent.groupby("seed")[by].mean().round(2).to_dict()
        means = of_agent[["jct_s", "excess_s", "wait_s", "bsld"]].mean().round(2).to_dict()
        found[name] = {"mean": means, "against": pairs}
        print(f"{name}: {by} by seed {seeds}, {pairs}")
    return found


if __name__ == "__main__":
    sys.exit(main())
