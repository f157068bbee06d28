"""A mistake in a configuration file is explained: file, line, key, what was found, what is expected."""

import pytest
from config_texts import CLUSTER, MAP, MODELS, ROOT, RUN, TRACE, mistake

from rltune.config.context import Run
from rltune.config.load import load_run
from rltune.errors import ConfigError

NO_MAP = TRACE.replace(MAP, "")
FILTER = "filter: [{column: a, op: '>', value: 0}]\n"


def mapped(column: str) -> str:
    """A trace in which one column is mapped so."""
    rest = {"submit_s": "a", "gpus": "b", "run_s": "c"}
    rest.pop(column.partition(":")[0], None)
    return NO_MAP + f"columns: {{{column}, {', '.join(f'{name}: {of}' for name, of in rest.items())}}}\n"


def filtered(rule: str) -> str:
    """A trace whose second filter is this."""
    return TRACE + f"filter:\n  - {{column: a, op: '>', value: 0}}\n  - {{column: a, {rule}}}\n"


def with_vcs(cluster: str, name: str, vcs: str) -> str:
    """A cluster whose first pool that is called all has another name, and these virtual clusters."""
    return cluster.replace("name: all", f"name: {name}\n    vcs: [{vcs}]", 1)


RUNS = [
    # unknown keys
    (RUN + "evaluations: {}\n", "mine.yaml:6: evaluations: unknown key (did you mean 'evaluation'?); allowed here: "),
    (RUN + "true: x\n", 'mine.yaml:6: true: found a key that is no text; in quotes it is one: "true"'),
    # missing keys
    (RUN + "evaluation: {also: [{locality: any}]}\n", "evaluation.also[0].placement: missing; it is required"),
    # values of the wrong kind
    (RUN + "train_share: 1.5\n", "mine.yaml:6: train_share: found 1.5, expected less than 1; it is: share"),
    (RUN + "presets: {m: {actor_lr: .inf}}\n", "mine.yaml:6: presets.m.actor_lr: found inf"),
    (RUN + "evaluation: {sequence_jobs: [64, 64]}\n", "mine.yaml:6: evaluation.sequence_jobs: found twice: 64"),
    # words that are not allowed
    (RUN.replace("[fifo]", "[fifo, sfj]"), "mine.yaml:5: experiments[0].policy[1]: found 'sfj' (did you mean 'sjf'?)"),
    (RUN + "    backfill: [~]\n", "experiments[0].backfill[0]: found nothing (did you mean 'none'?); allowed: none, "),
    (RUN + "    metric: [slowdown]\n", "mine.yaml:6: experiments[0].metric[0]: found 'slowdown', expected wait, jct"),
    (RUN + "    preset: [quik]\n", "mine.yaml:6: experiments[0].preset[0]: found 'quik' (did you mean 'quick'?)"),
    (RUN + "results: ../x\n", "mine.yaml:6: results: found '../x', expected results or a folder in it"),
    (RUN + "evaluation: {also: [{placement: algorithm1, locality: any}]}\n", "knows locality strict only; found any"),
    (
        RUN + "whatif: {current: {policy: saf}, others: [{policy: saf}, {policy: saf, backfill: easy}]}\n",
        "mine.yaml:6: whatif: others: found saf-easy, saf-easy only, which is the current rule (whatif.current); expected "
        "at least one other rule",
    ),
    (RUN + "whatif: {current: {policy: qssf}}\n", "whatif.current.policy: found 'qssf'"),
    (RUN + "evaluation: {baseline_policies: [qssf]}\n", "evaluation.baseline_policies[0]: found 'qssf'"),
    # files that are named
    (
        RUN.replace("philly-smoke", "[philly-smoke, nope]"),
        "mine.yaml:4: experiments[0].workloads[0].trace: found 'nope'",
    ),
    (RUN.replace("philly-smoke", "philly-smok"), "mine.yaml:4: experiments[0].workloads[0].trace: found 'philly-smok'"),
    (
        RUN + "characterise: [nope]\n",
        "mine.yaml:6: characterise[0]: found 'nope', which has no file config/traces/nope",
    ),
    (RUN + "plugins: [nowhere.py]\n", "mine.yaml:6: plugins[0]: found 'nowhere.py'"),
    (RUN + "evaluation: {baseline_policies: [sjff]}\n", "baseline_policies[0]: found 'sjff' (did you mean 'sjf'?)"),
    (RUN + "deployment: {cell: nonsense}\n", "deployment.cell: found 'nonsense'; the run has: "),
    (RUN.replace("[fifo]", "[mine]") + "plugins: [config/own_policies.example.py]\n", "agents cannot train against"),
    # texts that are no configuration
    ("- a\n- b\n", "mine.yaml: found list, expected a mapping"),
    (RUN + "  bad: [1, 2\n", "mine.yaml:6: not valid YAML"),
    (
        RUN + "description: a: b\n",
        "mine.yaml:6: not valid YAML: mapping values are not allowed here (a text with a colon",
    ),
    (RUN + "title: U\n", "mine.yaml:6: title: found twice"),
    ("\x00\x01", "not valid YAML"),
    ('title: !!python/object/apply:os.system ["true"]\n', "not valid YAML"),
]
TRACES = [
    (TRACE + "time_zone: Mars/Olympus\n", "mine.yaml:6: time_zone: found 'Mars/Olympus'"),
    (TRACE + "start: 2020-13-45\n", "mine.yaml: not valid YAML: month must be in 1..12"),
    # a column that does not suit its name
    (mapped("run_s: {column: c, unit: GB}"), "columns.run_s: `unit`: found 'GB'; allowed: s, ms, min, h, d"),
    (
        mapped("gpus: {column: c, unit: mili}"),
        "columns.gpus: `unit`: found 'mili' (did you mean 'milli'?); allowed: milli, percent",
    ),
    (mapped("user: {column: c, unit: s}"), "user: `unit`: found 's'; allowed: none, as this is no column of numbers"),
    (mapped("vc: {column: c, factor: 2}"), "columns.vc: `factor`: found 2.0, which goes with numbers: submit_s, "),
    (mapped("run_s: {column: c, factor: 0}"), "columns.run_s.factor: found 0, expected greater than 0"),
    (
        mapped("run_s: {column: c, time_zone: UTC}"),
        "columns.run_s: `time_zone`: found 'UTC', which goes with times: submit_s, start_s, end_s",
    ),
    (mapped("gpus: {column: c, constant: 1}"), "columns.gpus: give either `column` or `constant`"),
    # a map without submission, GPUs or run time
    (
        NO_MAP + "columns: {}\n",
        "mine.yaml:5: columns: found none; needs submit_s, gpus, run_s (or start_s and end_s) as",
    ),
    (NO_MAP + "columns: {submit_s: t, run_s: r, resource: kind}\n", "resource; needs gpus as well"),
    (NO_MAP + "columns: {submit_s: t, gpus: g, end_s: e}\n", "needs run_s (or start_s and end_s) as well"),
    (NO_MAP + "columns: {submit_s: t, run_s: r, gpus: {constant: 4, fallback: q}}\n", "`fallback` goes with `column`"),
    # a filter whose value does not suit its op
    (
        filtered("op: '==', value: {a: 1}"),
        "filter[1].value: found {'a': 1}, expected a valid string or a valid integer",
    ),
    (filtered("op: in, value: 1"), "mine.yaml:8: filter[1].value: found 1; `in` needs a list of values"),
    (filtered("op: '==', value: [1, 2]"), "filter[1].value: found a list; `==` needs one value (`in` takes several)"),
    (filtered("op: '=~', value: 1"), "mine.yaml:8: filter[1].op: found '=~'"),
    # a trace that contradicts itself
    (TRACE + "synthetic: {jobs: 10}\n", "give exactly one of"),
    (TRACE.replace("path: jobs.csv\n", ""), "give exactly one of"),
    (NO_MAP, "format `csv` needs `columns`: of the job table → of the file"),
    (TRACE.replace("format: csv", "format: philly"), "`columns` goes with format `csv`; found `philly`"),
    (NO_MAP.replace("format: csv", "format: sacct") + FILTER, "`filter` goes with format `csv`; found `sacct`"),
    (
        NO_MAP.replace("format: csv", "format: swf") + "gpu_share: leave_out\n",
        "`gpu_share`: jobs of format `swf` ask for whole GPUs; leave it out",
    ),
    (TRACE + "part: Venus\n", "`part` goes with format `helios`"),
    (TRACE.replace("path: jobs.csv", "synthetic: {}"), "format `csv` reads a file of yours"),
]
TWO_POOLS = CLUSTER + CLUSTER.split("pools:\n")[1]
CLUSTERS = [
    (TWO_POOLS, "pool names must differ; found twice: all"),
    (with_vcs(with_vcs(TWO_POOLS, "a", "x"), "b", "y, x"), "a virtual cluster belongs to one pool; found in two: x"),
    *((with_vcs(CLUSTER, "a", f"'{name}'"), "a * stands at the end") for name in ("Venus*", "*", "a*/*")),
    (CLUSTER + "type_shares: {T4: 1.0}\n", "type_shares: found T4; the cluster has P100"),
    (CLUSTER + "type_shares: {P100: -1.0}\n", "expected shares of 0 or more"),
    (CLUSTER + "type_shares: {P100: 0.0}\n", "one above 0"),
    (CLUSTER.replace("P100", "P100|K80"), "gpu_type: found P100|K80, expected the name of one type"),
    (CLUSTER.replace("nodes: 2", "nodes: 2000000"), "nodes: found 2000000, expected less than or equal to 1000000"),
    (CLUSTER + "speeds: {P100: 1, p100: 2}\n", "speeds: found p100 twice"),
    (CLUSTER + "speeds: {P100: fast}\n", "speeds.P100: found 'fast', expected a valid number"),
    (CLUSTER + "type_shares: {P100: 1.0}\ngpu_types: ignore\n", "type_shares: goes with gpu_types: match or any"),
]
CASES = [(kind, *case) for kind, cases in (("run", RUNS), ("trace", TRACES), ("cluster", CLUSTERS)) for case in cases]


@pytest.mark.parametrize(("kind", "text", "part"), CASES)
def test_a_mistake_is_named_with_file_line_key_and_what_was_found(kind, text, part, tmp_path):
    message = mistake(tmp_path, text, MODELS[kind][0])
    assert part in message and "nput should" not in message and "\n" not in message, message


def test_all_mistakes_are_reported_at_once(tmp_path):
    text = RUN.replace("[fifo]", "[fio]") + "colour: red\ntrain_share: 2\npresets: {mine: {epoch: 1}}\n"
    lines = mistake(tmp_path, text).splitlines()
    assert len(lines) == 4
    for line, number, key in zip(sorted(lines), (5, 6, 7, 8), ("policy[0]", "colour", "train_share", "presets.mine")):
        assert f"mine.yaml:{number}: " in line and key in line


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(ConfigError, match=r"no such file \(did you mean 'default'\?\); there are: .*default\.yaml"):
        load_run("config/defaults.yaml", ROOT)
    with pytest.raises(ConfigError, match=r"^config/traces: a folder, expected a YAML file; there are: "):
        load_run("config/traces", ROOT)
    with pytest.raises(ConfigError, match="^~nosuchuser/x.yaml: no such file"):
        load_run("~nosuchuser/x.yaml", ROOT)
    assert "mine.yaml: not UTF-8 text" in mistake(tmp_path, (RUN + "description: caf\xe9\n").encode("latin-1"))


def test_a_mistake_in_a_named_trace_is_found_when_the_run_is_opened(project):
    project.change(project.trace, "title: Tiny", "title: Tiny\nx: 1")
    with pytest.raises(ConfigError, match=r"^config/traces/tiny\.yaml:2: x: unknown key"):
        Run.open("config/tiny.yaml")
