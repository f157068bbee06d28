"""What a decision, a question and a training cost: what benchmarks/slurm.py, milp.py and training.py have written."""

from measured.read import measured, table


def controller_cycles() -> str:
    """Cycles of the live controller by the length of the queue, written by benchmarks/slurm.py."""
    rows, releases = [], []
    for what, found in measured("controller").items():
        *lengths, release = found.items()
        for n, each in lengths:
            first, after = each["first"], each["next"]
            seconds = (first["cycle_s"], first["write_s"], after["cycle_s"], after["decide_s"], after["compare_s"])
            load = " / ".join(f"{100 * one['cpu_s'] / 60:.1f} %" for one in (first, after))
            rows.append((what, f"{int(n):,}", *(f"{s:.2f}" for s in seconds), load))
        releases.append(f"{release[1]['jobs']:,} jobs took {release[1]['s']:.1f} s ({what})")
    said = f"Releasing {', '.join(releases)}; a service's `TimeoutStopSec` has to be longer."
    cycles = table(
        "decided | waiting jobs | first: whole cycle | first: writing | next: whole cycle | next: deciding "
        "| watchdog's comparison | CPU load at one cycle a minute (first / next)",
        rows,
    )
    return f"{cycles}\n\n{said}"


def question_costs() -> str:
    """What a question to the placement model costs, written by benchmarks/milp.py."""
    found = measured("milp")
    rows = [(name, f"{of['questions']:,}", *(f"{ms:.2g}" for ms in of["ms"])) for name, of in found["timed"].items()]
    shares = [100 * found[f"bestfit_not_optimal_share{end}"] for end in ("", "_t4", "_10000")]
    said = (
        f"The placement by best_fit is not optimal for {shares[0]:.2g} % of the questions on 36 nodes, {shares[1]:.2g} % of "
        f"those with four slots and {shares[2]:.2g} % of those on 10,000 nodes."
    )
    return f"{table(' | '.join(['', 'questions', 'median, ms', '95 %', '99 %']), rows)}\n\n{said}"


def training_speed() -> str:
    """How fast agents are trained and decide, written by benchmarks/training.py."""
    found = measured("training")
    shown = ("{seconds:.2g} s", "{rollout_seconds:.2g} s", "{choices_per_second:,.0f}", "{rss_gb:.2f} GB")
    rows = [(name, *(form.format(**of) for form in shown)) for name, of in found["found"].items()]
    heads = ["preset", "epoch", "of which rollouts", "decisions with a choice, per second", "memory"]
    said = (
        f"Of the {found['decisions']:,} decisions of an epoch of `tuned`, {found['choices']:,} have two candidates or more; "
        f"queues have {found['rollout_mean_queue']:.0f} jobs on average. Of the {found['milp_asked']:,} questions to the "
        f"placement model, {found['milp_presolved']:,} are presolved. An online decision, from queue to order, takes "
        f"{found['decision_ms_256']:.2g} ms at 256 queued jobs and {found['decision_ms_1024']:.2g} ms at 1,024, of which the "
        f"network sees the first 256. A whole training of `tuned`, lengthened to 100 epochs, with its choices and validations, takes "
        f"{found['cell_minutes']:.1f} minutes on these rows, and {found['cell_milp_minutes']:.1f} with look-ahead placement."
    )
    return f"{table(' | '.join(heads), rows)}\n\n{said}"
