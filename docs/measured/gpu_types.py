"""Which GPU type a job gets: what benchmarks/hetero.py has written."""

from typing import Any

from measured.read import measured, percent, table

TYPES = {
    "any_free": "any type that is free, best in hindsight",
    "fastest_free": "fastest type that is free, best in hindsight",
    "best_rule": "best of all rules without a price, in hindsight",
    "priced": "earliest completion with a price, chosen before",
    "ours": "**planned together, chosen before**",
    "exact": "planned together with true run times, best in hindsight",
}
"""Rules in the output of benchmarks/hetero.py → what they are."""
RIVALS = {
    "best_rule": "the best of all rules without a price",
    "wait": "the same rule",
    "priced": "earliest completion with a price",
    "fastest_free": "the fastest type that is free",
    "any_free": "any type that is free",
    "exact": "true run times",
    "ours": "planned together without an agent",
    "its without its network": "RLTune without its network",
    "its without the program": "RLTune where each job in turn gets a type",
    "its without either": "RLTune without both",
}
"""Rivals in the output of benchmarks/hetero.py → what they are."""
BY = {"wait": "wait", "fastest_free": "completion", "any_free": "completion"}
"""By what ours is compared with some of them; with the others by the excess."""
GAINS = {key: f"{BY.get(key, 'excess')}, against {rival}" for key, rival in RIVALS.items()}
"""What is compared → by what, and with what."""
OTHERS = {"wait": "for waits", "bsld": "for bounded slowdowns"}
"""Metrics that agents were trained for on some traces → as a heading."""
SETTINGS = {
    "recorded": "as above",
    "origin-0.8": "after 80 % of the rows",
    "origin-0.7": "after 70 %",
    "three origins": "these three together, two of them used in development",
    "load-0.9": "load 0.9",
    "vision": "vision models",
    "language": "language models",
}
"""Settings in the output of benchmarks/hetero.py → what they are."""


COLUMNS = {
    "jct": {"excess_s": "excess", "wait_s": "wait"},
    "wait": {"wait_s": "wait", "excess_s": "excess"},
    "bsld": {"bsld": "bounded slowdown", "excess_s": "excess"},
}
"""Metric that is learned for → columns that are shown, and their names."""


def type_columns() -> dict[str, dict[str, Any]]:
    """What benchmarks/hetero.py has written, by trace."""
    found = measured("types")
    return {title: found[name] for name, title in (("philly", "Philly"), ("venus", "Venus"), ("pai", "PAI"))}


def type_rules() -> str:
    """Rules for the GPU type: mean completion, excess, wait and bounded slowdown, and ours against the others."""
    traces = {name: found["recorded"] for name, found in type_columns().items()}
    shown = "{jct_s:,.0f} / {excess_s:,.0f} / {wait_s:,.0f} / {bsld:.2f}"
    rows = [(title, *(shown.format(**found["mean"][key]) for found in traces.values())) for key, title in TYPES.items()]
    ideal_s = [found["mean"]["ours"]["jct_s"] - found["mean"]["ours"]["excess_s"] for found in traces.values()]
    bounds = [(found["bound_jct_s"], found["bound_jct_s"] - run_s) for found, run_s in zip(traces.values(), ideal_s)]
    rows.append(("no schedule has less", *(f"{jct_s:,.0f} / {excess_s:,.0f}" for jct_s, excess_s in bounds)))
    rows.append(("offered load, each job on its fastest type", *(f"{found['load']:.1f}" for found in traces.values())))
    rows.append(("**planned together**, %:", *("" for _ in traces)))
    rows += type_gains([found["against"] for found in traces.values()])
    heads = (f"{name}, {found['windows']} windows" for name, found in traces.items())
    return table(" | ".join(["completion / excess / wait, s / bounded slowdown", *heads]), rows)


def type_gains(against: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each of GAINS that was compared."""
    return [(title, *(percent(a[key]) for a in against)) for key, title in GAINS.items() if key in against[0]]


def type_settings() -> str:
    """Ours against the best rule without a price, the priced rule, the fastest free type and any, and bounded slowdowns, under other
    origins, loads and models."""
    traces = list(type_columns().values())
    rows = []
    for name, title in SETTINGS.items():
        windows = " / ".join(str(trace[name]["windows"]) for trace in traces)
        for i, key in enumerate(("best_rule", "priced", "fastest_free", "any_free")):
            cells = (percent(found) if None not in (found := trace[name]["against"][key]) else "–" for trace in traces)
            rows.append((f"{title}; {windows} windows" if i == 0 else "", GAINS[key], *cells))
        if "mean" in traces[0][name]:
            sides = [[f"{trace[name]['mean'][side]['bsld']:.2f}" for side in ("ours", "best_rule")] for trace in traces]
            rows.append(("", "bounded slowdown, and the best rule's (no %)", *map(" / ".join, sides)))
    return table(" | ".join(["%", "", *type_columns()]), rows)


def type_parts() -> str:
    """How much more excess there is without a part of ours."""
    found = [trace["recorded"]["without"] for trace in type_columns().values()]
    rows = [(name, *(percent(part[name]) for part in found)) for name in found[0]]
    orders = [trace["recorded"]["orders"].values() for trace in type_columns().values()]
    apart = " / ".join(f"{100 * (max(some) / min(some) - 1):.0f} %" for some in orders)
    said = f"Planned together, the worst of the eight orders has {apart} ({' / '.join(type_columns())}) more excess than the best, in hindsight."
    return f"{table(' | '.join(['more excess without it, %', *type_columns()]), rows)}\n\n{said}"


def type_agents() -> str:
    """Trained agents against rules and against what they are without their parts."""
    found = {name: trace["agents, jct"]["RLTune"]["against"] for name, trace in type_columns().items()}
    rows = [*chosen_by_agents([(name, "jct") for name in found]), *type_gains(list(found.values()))]
    return table(" | ".join(["RLTune, %", *found]), rows)


def chosen_by_agents(columns: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Of the agents on each (trace, metric): how many kept a network, and the rules for the type that they chose."""
    logs = measured("types")["agents"]
    agents = [[log for log in logs if (log["trace"], log["metric"]) == (t.lower(), metric)] for t, metric in columns]
    kept = (f"{sum(log['learned'] for log in of)} of {len(of)}" for of in agents)
    types = (sorted({log["scheduler"]["types"].replace("auto", "fastest_free") for log in of}) for of in agents)
    return [("agents that kept a network", *kept), ("rule for the type that they chose", *map(", ".join, types))]


def type_agents_otherwise() -> str:
    """Agents that were trained for waits or slowdowns, compared by these with rules that were chosen by them."""
    found = {
        f"{name}, {title}": trace[f"agents, {metric}"]["RLTune"]["against"]
        for name, trace in type_columns().items()
        for metric, title in OTHERS.items()
        if f"agents, {metric}" in trace
    }
    rows = [
        (rival, *(percent(against[key]) for against in found.values()))
        for key, rival in RIVALS.items()
        if all(key in against for against in found.values())
    ]
    pairs = [(name, m) for name, trace in type_columns().items() for m in OTHERS if f"agents, {m}" in trace]
    rows = [*chosen_by_agents(pairs), *rows]
    return table(" | ".join(["RLTune, %, against", *found]), rows)


SEARCHED = {
    "search_questions": ("questions of the simulator", 1, 0),
    "search_gap_p50": ("the plan costs more than the program's, %, median", 100, 2),
    "search_gap_p95": ("the same, 95 %", 100, 2),
    "search_proven": ("proven optimal, of all questions of two jobs or more, %", 100, 1),
    "cvxpy_p50_ms": ("the program in CVXPY, ms a question", 1, 0),
    "program_p50_ms": ("a decision with 60 queued jobs or more, ms, median", 1, 2),
    "program_p95_ms": ("the same, 95 %", 1, 1),
    "rollout_decisions_per_s": ("decisions a second, ranked by a network", 1, 0),
}
"""What is measured of the search → title, factor, digits."""


def type_search() -> str:
    """How good and how fast the search is."""
    found = [trace["search"] for trace in type_columns().values()]
    rows = [
        (title, *("–" if of[key] is None else f"{scale * of[key]:,.{digits}f}" for of in found))
        for key, (title, scale, digits) in SEARCHED.items()
    ]
    return table(" | ".join(["eight jobs planned together", *type_columns()]), rows)


UNCERTAIN = {
    "given": "estimates as given",
    "exact": "true run times",
    "no price": "no price",
    "each in turn": "jobs planned one by one",
    "more": "12 jobs together",
    "fastest free": "fastest type that is free",
    "sampled": "over samples",
    "evolution": "learned by evolution",
    "ppo": "learned by PPO",
    "critic": "learned by a critic's gradient",
}
"""Plans in the output of benchmarks/planning.py → what they are."""


def type_uncertainty() -> str:
    """Plans over samples and with learned prices, against the plan on calibrated estimates at a constant price, by excess and wait;
    and plans with prices learned for waits and bounded slowdowns, by these, also against the best rule that learns nothing."""
    found = measured("planning")
    traces = {name: found[name.lower()] for name in type_columns()}
    chosen = [trace["runs"][0]["prices"] for trace in traces.values()]
    rows = [
        ("calibrated estimates: excess / wait, s", *_means(traces, "jct", "{excess_s:,.0f} / {wait_s:,.0f}")),
        ("price: calibrated / over samples", *(f"{some['calibrated']} / {some['sampled']}" for some in chosen)),
    ]
    for plan in traces["Philly"]["jct"]["against"]:
        rows.append((f"{UNCERTAIN[plan]}: excess", *_against(traces, "jct", plan, "excess_s")))
        rows.append(("wait", *_against(traces, "jct", plan, "wait_s")))
    for metric, column, shown in (("wait", "wait_s", "{wait_s:,.0f} s"), ("bsld", "bsld", "{bsld:.2f}")):
        prices = (trace[metric]["price"] for trace in traces.values())
        means = zip(_means(traces, metric, shown), prices)
        rows.append((f"**{OTHERS[metric]}**: calibrated estimates, price", *(f"{mean}, {p:g}" for mean, p in means)))
        for plan in traces["Philly"][metric]["against"]:
            rows.append((UNCERTAIN[plan], *_against(traces, metric, plan, column)))
            rows.append(("excess", *_against(traces, metric, plan, "excess_s")))
        for plan in traces["Philly"][metric]["against_best"]:
            versus = (trace[metric]["against_best"][plan][column] for trace in traces.values())
            rows.append((f"{UNCERTAIN[plan]}, against the best without", *map(percent, versus)))
    heads = (f"{name}, {trace['jct']['windows']} windows" for name, trace in traces.items())
    return table(" | ".join(["%, against calibrated estimates", *heads]), rows)


def type_prices() -> str:
    """Prices and plans that evolution learned on top of trained agents, against the agents alone."""
    found = measured("prices")
    traces = {name: found[name.lower()] for name in type_columns()}
    rows = []
    for metric, title in {"jct": "for completion", **OTHERS}.items():
        of = [next(run for run in trace["runs"] if run["metric"] == metric) for trace in traces.values()]
        rules = (run["scheduler"]["types"].replace("auto", "fastest_free") for run in of)
        rows.append((f"**{title}**: rule that the agent chose", *rules))
        for column, words in COLUMNS[metric].items():
            against = (trace.get(metric, {}).get("against", {}).get(column) for trace in traces.values())
            rows.append((words, *map(percent, against)))
    heads = (
        f"{name}, {max(trace.get(metric, {}).get('windows', 0) for metric in COLUMNS)} windows"
        for name, trace in traces.items()
    )
    return table(" | ".join(["%, against the agent alone", *heads]), rows)


def _means(traces: dict[str, Any], metric: str, shown: str) -> list[str]:
    return [shown.format(**trace[metric]["mean"]["calibrated"]) for trace in traces.values()]


def _against(traces: dict[str, Any], metric: str, plan: str, column: str) -> list[str]:
    return [percent(trace[metric]["against"][plan][column]) for trace in traces.values()]
