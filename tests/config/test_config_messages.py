"""A mistake in a configuration file is explained: file, line, key, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rltune.config import ClusterConfig, RunConfig, TraceConfig
from rltune.config.load import load_run, read_block
from rltune.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
RUN = """\
title: T
experiments:
  - name: main
    workloads: [{trace: philly-smoke, cluster: philly-192}]
    policy: [fifo]
"""
CLUSTER = """\
title: C
pools:
  - name: all
    groups:
      - {gpu_type: P100, nodes: 2, gpus: 8, cpus: 64, mem_gb: 512}
"""
MAP = "columns: {submit_s: a, gpus: b, run_s: {column: c, unit: s}}\n"
TRACE = "title: T\ndata: own\nformat: csv\npath: jobs.csv\n" + MAP
MODELS = {"run": (RunConfig, RUN), "cluster": (ClusterConfig, CLUSTER), "trace": (TraceConfig, TRACE)}

Mistake = Callable[[str | bytes, type], str]


@pytest.fixture
def mistake(tmp_path: Path) -> Mistake:
    """The message a file of this text gets."""

    def read(text: str | bytes, model: type = RunConfig) -> str:
        path = tmp_path / "mine.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_run(path, ROOT) if model is RunConfig else read_block(path, model, ROOT)
        return str(caught.value)

    return read


@pytest.mark.parametrize("kind", MODELS)
def test_the_texts_these_tests_break_are_valid(kind: str, tmp_path: Path) -> None:
    model, text = MODELS[kind]
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    read_block(path, model, ROOT)


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("run", RUN + "evaluations: {}\n", ["mine.yaml:6: evaluations", "'evaluation'", "split, lookahead"]),
        ("run", RUN.replace("policy:", "polcy:"), ["mine.yaml:5: experiments[0].polcy", "'policy'", "placement"]),
        ("run", RUN.replace("cluster:", "clutser:"), ["mine.yaml:4: experiments[0].workloads[0].clutser", "'cluster'"]),
        ("run", RUN + "presets:\n  mine:\n    epoch: 3\n", ["mine.yaml:8: presets.mine.epoch", "'epochs'", "clip"]),
        ("run", RUN + "lookahead:\n  job: 8\n", ["mine.yaml:7: lookahead.job:", "'jobs'", "rank_decay"]),
        ("cluster", CLUSTER.replace("mem_gb", "memory"), ["mine.yaml:5: pools[0].groups[0].memory", "mem_gb"]),
        ("trace", TRACE + "timezone: UTC\n", ["mine.yaml:6: timezone", "'time_zone'"]),
        ("trace", TRACE + "filter: [{colum: a, op: '<', value: 1}]\n", ["mine.yaml:6: filter[0].colum", "'column'"]),
    ],
)
def test_unknown_key(kind: str, text: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text, MODELS[kind][0])
    assert all(part in message for part in [*parts, "unknown key", "allowed here"]), message


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("run", RUN + "presets:\n  mine:\n    epochs: many\n", ["mine.yaml:8: presets.mine.epochs: found 'many'"]),
        ("run", RUN + "split: {train: 1.5}\n", ["mine.yaml:6: split.train: found 1.5", "less than 1"]),
        ("run", RUN + "split: {train: .nan}\n", ["mine.yaml:6: split.train: found nan"]),
        ("run", RUN + "    seed: [1.5]\n",
         ["mine.yaml:6: experiments[0].seed[0]: found 1.5", "a whole number (0 or more)"]),
        ("run", RUN + "lookahead:\n  jobs: 99\n", ["mine.yaml:7: lookahead.jobs: found 99, expected 16 or less"]),
        ("run", RUN.replace("[fifo]", "fifo"),
         ["mine.yaml:5: experiments[0].policy: found 'fifo', expected a list, such as policy: [fifo]"]),
        ("run", RUN.replace("[fifo]", "[]"),
         ["mine.yaml:5: experiments[0].policy: found [] (a list), expected at least 1"]),
        ("run", RUN + "presets: [paper]\n",
         ["mine.yaml:6: presets: found ['paper'] (a list), expected a block of names"]),
        ("run", "title: T\nexperiments:\n",
         ["mine.yaml:2: experiments: found nothing, expected a list", "[{name: …, workloads: …, policy: …}]"]),
        ("run", RUN.replace("title: T", "title: 2020-01-01"),
         ["mine.yaml:1: title: found 2020-01-01, expected a text", "quotes"]),
        ("cluster", CLUSTER.replace("gpus: 8", "gpus: eight"),
         [".gpus: found 'eight', expected a whole number (1 or more, at most 64)", "GPUs a node"]),
        ("cluster", CLUSTER.replace("nodes: 2", "nodes: 0"), ["mine.yaml:5: pools[0].groups[0].nodes: found 0"]),
        ("cluster", CLUSTER.replace("cpus: 64", "cpus: -1"), [".cpus: found -1, expected 0.001 or more"]),
        ("cluster", "title: C\npools: []\n", ["mine.yaml:2: pools: found [] (a list), expected at least 1"]),
        ("cluster", "title: C\npools: [{name: a, groups: []}]\n",
         ["pools[0].groups: found [] (a list), expected at least 1"]),
        ("trace", TRACE + "start: yesterday\n", ["mine.yaml:6: start: found 'yesterday'", "date"]),
        ("trace", TRACE + "time_zone: Mars/Olympus\n", ["mine.yaml:6: time_zone", "Mars/Olympus", "IANA"]),
        ("run", RUN + "    metric: [slowdown]\n",
         [":6: experiments[0].metric[0]: found 'slowdown'", "wait, jct, bsld"]),
    ],
)
def test_wrong_value(kind: str, text: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text, MODELS[kind][0])
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("run", RUN.replace("[fifo]", "[fifo, sfj]"), [":5: experiments[0].policy[1]: found 'sfj'", "'sjf'", "wfp3"]),
        ("run", RUN + "    blocking: [easyy]\n", [":6: experiments[0].blocking[0]: found 'easyy'", "'easy'", "fits"]),
        ("run", RUN + "    blocking: [~]\n",
         [":6: experiments[0].blocking[0]: found nothing (did you mean 'none'?)", "none, fits, easy"]),
        ("run", RUN + "    placement: [bestfit]\n", ["found 'bestfit'", "'best_fit'", "first_fit", "lookahead"]),
        ("trace", TRACE.replace("data: own", "data: mine"), [":2: data: found 'mine'", "synthetic, sample, full, own"]),
        ("trace", TRACE.replace("csv\n", "slurm\n", 1), [":3: format: found 'slurm'", "philly, helios, alibaba2020"]),
        ("cluster", CLUSTER + "gpu_types: ignored\n", [":6: gpu_types: found 'ignored'", "'ignore'"]),
    ],
)
def test_wrong_word(kind: str, text: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text, MODELS[kind][0])
    assert all(part in message for part in [*parts, "allowed: "]), message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- a\n- b\n", ["found a list", "mapping"]),
        ("hello", ["found a text", "mapping"]),
        ("", ["mapping"]),
        ("# only a remark\n", ["mapping"]),
        (RUN + "  bad: [1, 2\n", ["mine.yaml:6: not valid YAML", "at 'bad: [1, 2'"]),
        ("title:\tx\n\tfoo: 1\n", ["mine.yaml:1: not valid YAML", "spaces, not tabs"]),
        (RUN + "---\ntitle: U\n", ["not valid YAML", "single document"]),
        (b"\x00\x01\x02", ["not valid YAML"]),
        ('title: !!python/object/apply:os.system ["true"]\n', ["not valid YAML", "tag"]),
    ],
)
def test_not_a_mapping_or_not_yaml(text: str | bytes, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text)
    assert message.startswith(("/", "mine.yaml")) and "mine.yaml:" in message
    assert all(part in message for part in parts), message
    assert "\n" not in message


def test_missing_file() -> None:
    with pytest.raises(ConfigError, match=r"^config/nope\.yaml: no such file; there are: .*default\.yaml"):
        load_run("config/nope.yaml", ROOT)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("philly-smoke", "philly-smok", ["'philly-smok'", "traces/philly-smok.yaml", "'philly-smoke'", "helios"]),
        ("philly-192", "phily-192", ["'phily-192'", "config/clusters/phily-192.yaml", "'philly-192'", "venus-160"]),
        ("philly-192", "zzz", ["'zzz'", "allowed", "alibaba-slice"]),
    ],
)
def test_unknown_trace_or_cluster(old: str, new: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(RUN.replace(old, new))
    assert "mine.yaml" in message and all(part in message for part in parts), message


def test_a_mistake_in_a_named_trace_is_found_when_the_run_is_read(tmp_path: Path) -> None:
    for folder, name, text in (("traces", "philly-smoke", TRACE + "x: 1\n"), ("clusters", "philly-192", CLUSTER)):
        (tmp_path / "config" / folder).mkdir(parents=True)
        (tmp_path / "config" / folder / f"{name}.yaml").write_text(text)
    (tmp_path / "config" / "mine.yaml").write_text(RUN)
    with pytest.raises(ConfigError, match=r"^config/traces/philly-smoke\.yaml:6: x: unknown key"):
        load_run("config/mine.yaml", tmp_path)


@pytest.mark.parametrize("key", ["results", "cache"])
@pytest.mark.parametrize("value", ["/tmp/x", "~/x", "../x", "a/../../x", '""', ".", "src", "results/../src"])
def test_folders_stay_where_results_and_caches_belong(key: str, value: str, mistake: Mistake) -> None:
    message = mistake(RUN + f"{key}: {value}\n")
    top = {"results": "results", "cache": ".cache"}[key]
    assert f"mine.yaml:6: {key}: found '{value.strip(chr(34))}', expected {top} or a folder in it" in message


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ((RUN + "description: caf\xe9\n").encode("latin-1"), ["mine.yaml", "UTF-8"]),
        (RUN + "title: U\n", ["mine.yaml:6: title: found twice"]),
        (RUN + "    seed: [-1]\n", ["mine.yaml:6: experiments[0].seed[0]: found -1"]),
        (RUN + "    blocking: []\n", ["mine.yaml:6: experiments[0].blocking: found []"]),
        (RUN + "evaluation: {sequence_jobs: [0]}\n", ["mine.yaml:6: evaluation.sequence_jobs[0]: found 0"]),
        (RUN + "evaluation: {sequence_jobs: [64, 64]}\n", ["mine.yaml:6: evaluation.sequence_jobs: found twice: 64"]),
        (RUN + "evaluation: {baseline_policies: []}\n", ["mine.yaml:6: evaluation.baseline_policies: found []"]),
        (RUN + "presets: {m: {actor_lr: .inf}}\n", ["mine.yaml:6: presets.m.actor_lr: found inf"]),
        (RUN + "presets: {a b: {}}\n", ["mine.yaml:6: presets.a b: found 'a b'; allowed: letters"]),
        (RUN + "    estimate: [lognormal-1.0]\n", ["mine.yaml:6", "'lognormal-1.0'", "lognormal-1,"]),
        (RUN.replace("philly-smoke", "../traces/philly-smoke"), ["mine.yaml:4", "trace: found", "letters"]),
        (RUN + "    preset: [quik]\n", ["mine.yaml:6: experiments[0].preset[0]: found 'quik'", "'quick'"]),
        (RUN.replace("philly-smoke", "x").replace("philly-192", "y"), ["'x'", "'y'", "mine.yaml:4"]),
        (RUN + "    estimate: [foo]\n    seed: [-1]\ncolour: 1\n", ["'foo'", "found -1", "colour"]),
    ],
)
def test_more_mistakes(text: str | bytes, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text)
    assert all(part in message for part in parts), message


def test_a_wrong_column_of_a_map_is_named_with_the_nearest(mistake: Mistake) -> None:
    text = "title: T\ndata: own\nformat: csv\npath: x.csv\ncolumns:\n  submit: t\n  gpus: {colum: g}\n"
    message = mistake(text, TraceConfig)
    assert "mine.yaml:6: columns.submit: unknown key (did you mean 'submit_s'?); allowed" in message, message
    assert "mine.yaml:7: columns.gpus.colum: unknown key (did you mean 'column'?)" in message, message


@pytest.mark.parametrize(
    ("name", "column", "parts"),
    [
        ("run_s", "{column: c, unit: GB}", ["columns.run_s.unit: found 'GB'", "allowed: count, s, ms, min, h, d"]),
        ("wait_s", "{column: c, unit: percent}", ["columns.wait_s.unit: found 'percent'", "allowed: count, s"]),
        ("mem_gb", "{column: c, unit: s}", ["columns.mem_gb.unit: found 's'", "allowed: count, GB, MB, GiB, MiB"]),
        ("gpus", "{column: c, unit: mili}", ["columns.gpus.unit: found 'mili' (did you mean 'milli'?)", "percent"]),
        ("user", "{column: c, unit: s}", ["columns.user.unit: unknown key", "allowed here: column, fallback"]),
        ("vc", "{column: c, factor: 2}", ["columns.vc.factor: unknown key"]),
        ("run_s", "{column: c, factor: 0}", ["columns.run_s.factor: found 0", "more than 0"]),
        ("submit_s", "{column: c, factor: -1}", ["columns.submit_s.factor: found -1", "more than 0"]),
        ("cpus", "{column: c, factor: .nan}", ["columns.cpus.factor: found nan"]),
        ("submit_s", "{column: c, time_zone: Mars/Olympus}",
         ["columns.submit_s.time_zone: found 'Mars/Olympus'", "IANA"]),
        ("run_s", "{column: c, time_zone: UTC}", ["columns.run_s.time_zone: unknown key", "factor, unit"]),
        ("gpus", "{column: c, constant: 1}", ["columns.gpus: give either `column` or `constant`"]),
    ],
)
def test_a_column_that_does_not_suit_its_name(name: str, column: str, parts: list[str], mistake: Mistake) -> None:
    rest = {"submit_s": "a", "gpus": "b", "run_s": "c"}
    rest.pop(name, None)
    lines = "".join(f"  {key}: {value}\n" for key, value in rest.items())
    message = mistake(TRACE.replace(MAP, f"columns:\n  {name}: {column}\n{lines}"), TraceConfig)
    assert message.startswith("/") and "mine.yaml:6: " in message and "\n" not in message
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("{}", "found none; needs submit_s, gpus, run_s (or start_s and end_s) as well"),
        ("{gpus: g, run_s: r}", "found run_s, gpus; needs submit_s as well"),
        ("{submit_s: t, run_s: r}", "needs gpus as well"),
        ("{submit_s: t, run_s: r, resource: kind}", "needs gpus as well"),
        ("{submit_s: t, gpus: g}", "needs run_s (or start_s and end_s) as well"),
        ("{submit_s: t, gpus: g, end_s: e}", "needs run_s (or start_s and end_s) as well"),
    ],
)
def test_a_map_needs_submission_gpus_and_run_time(columns: str, missing: str, mistake: Mistake) -> None:
    message = mistake(TRACE.replace(MAP, f"columns: {columns}\n"), TraceConfig)
    assert "mine.yaml:5: columns: found " in message and message.endswith(missing), message


@pytest.mark.parametrize(
    "columns", ["{submit_s: t, gpus: g, start_s: s, end_s: e}", "{submit_s: t, run_s: r, resource: {constant: cpu}}"]
)
def test_maps_that_are_enough(columns: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(TRACE.replace(MAP, f"columns: {columns}\n"))
    assert read_block(tmp_path / "mine.yaml", TraceConfig).column("submit_s").column == "t"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("{column: a, op: in, value: 1}", "value: found 1; `in` needs a list of values"),
        ("{column: a, op: in, value: x}", "value: found 'x'; `in` needs a list of values"),
        ("{column: a, op: '==', value: [1, 2]}", "value: found a list; `==` needs one value (`in` takes several)"),
        ("{column: a, op: '<', value: []}", "value: found a list; `<` needs one value (`in` takes several)"),
        ("{column: a, op: '=~', value: 1}", "op: found '=~'"),
    ],
)
def test_a_filter_whose_value_does_not_suit_its_op(rule: str, text: str, mistake: Mistake) -> None:
    message = mistake(TRACE + f"filter:\n  - {{column: a, op: '>', value: 0}}\n  - {rule}\n", TraceConfig)
    assert f"mine.yaml:8: filter[1].{text}" in message and "\n" not in message, message


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("    preset: [quick, quik]\n", ["experiments[0].preset", "'quik'", "paper, tuned, quick"]),
        ("    estimate: [exact, lognormal]\n", ["experiments[0].estimate", "'lognormal'", "lognormal-SIGMA"]),
        ("    estimate: [lognormal--1]\n", ["experiments[0].estimate", "'lognormal--1'", "exact"]),
    ],
)
def test_unknown_preset_or_estimate(line: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(RUN + line)
    assert all(part in message for part in parts), message


def test_a_preset_of_ones_own_is_known(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RUN + "    preset: [mine]\npresets: {mine: {epochs: 3}}\n")
    run = load_run(path, ROOT)
    assert run.preset("mine").epochs == 3 and run.preset("mine").clip == run.preset("paper").clip


def test_pools_and_their_virtual_clusters_are_told_apart(mistake: Mistake) -> None:
    twice = CLUSTER + CLUSTER.split("pools:\n")[1]
    assert "found twice: all" in mistake(twice, ClusterConfig)
    shared = twice.replace("name: all", "name: a\n    vcs: [x]", 1).replace("name: all", "name: b\n    vcs: [y, x]")
    assert "found in two: x" in mistake(shared, ClusterConfig)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TRACE + "synthetic: {jobs: 10}\n", "exactly one of"),
        (TRACE.replace("path: jobs.csv\n", ""), "exactly one of"),
        (TRACE.split("columns")[0], "`columns` goes with format `csv`"),
        (TRACE.replace("format: csv", "format: philly"), "`columns` goes with format `csv`"),
        (TRACE + "part: Venus\n", "`part` goes with format `helios`"),
        ("title: T\ndata: synthetic\nformat: csv\nsynthetic: {}\n" + MAP, "reads a file of yours"),
    ],
)
def test_a_trace_that_contradicts_itself(text: str, words: str, mistake: Mistake) -> None:
    message = mistake(text, TraceConfig)
    assert "mine.yaml" in message and words in message


def test_all_mistakes_are_reported_at_once(mistake: Mistake) -> None:
    text = RUN.replace("[fifo]", "[fio]") + "colour: red\nsplit: {train: 2}\npresets: {mine: {epoch: 1}}\n"
    lines = mistake(text).splitlines()
    assert len(lines) == 4
    for line, number, key in zip(sorted(lines), (5, 6, 7, 8), ("policy[0]", "colour", "split.train", "presets.mine")):
        assert f"mine.yaml:{number}: " in line and key in line


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("simulation: {overrun: later}\n", ["simulation.overrun: found 'later'", "allowed: double, now"]),
        ("simulation: {commit: start}\n", ["simulation.commit: found 'start'", "allowed: decision, head"]),
        ("simulation: {stretch: 0.5}\n", ["simulation.stretch: found 0.5", "1 or more"]),
        ("simulation: {sharing: 0.5}\n", ["simulation.sharing: found 0.5", "1 or more"]),
        ("simulation: {strech: 2}\n", ["simulation.strech: unknown key (did you mean 'stretch'?)"]),
        ("plugins: [nowhere.py]\n", ["plugins[0]: found 'nowhere.py'", "no such file", "expected a Python file"]),
        ("plugins: [config]\n", ["plugins[0]: found 'config'", "a folder"]),
        ("plugins: [a.py, a.py]\n", ["plugins: found twice: a.py"]),
        ("evaluation: {baseline_policies: [sjff]}\n",
         ["evaluation.baseline_policies[0]: found 'sjff' (did you mean 'sjf'?)", "allowed: fifo, sjf", "plugins"]),
        ("evaluation: {baseline_policies: [sjf, sjf]}\n", ["evaluation.baseline_policies: found twice: sjf"]),
    ],
)
def test_rules_and_policies_of_ones_own(line: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(RUN + line)
    assert "mine.yaml:6: " in message and "\n" not in message, message
    assert all(part in message for part in parts), message


def test_a_policy_of_ones_own_is_no_base_policy(mistake: Mistake) -> None:
    message = mistake(RUN.replace("[fifo]", "[mine]") + "plugins: [config/own_policies.example.py]\n")
    assert "mine.yaml:5: experiments[0].policy[0]: found 'mine'" in message, message
    assert "cannot be trained against" in message and "evaluation.baseline_policies" in message, message


def test_a_load_to_balance_for_is_above_0(mistake: Mistake) -> None:
    message = mistake(CLUSTER + "balance: {load: 0}\n", ClusterConfig)
    assert "mine.yaml:6: balance.load: found 0" in message and "more than 0" in message, message


@pytest.mark.parametrize(
    ("entries", "parts"),
    [
        ("[{placement: bestfit}]", ["also[0].placement: found 'bestfit'", "'best_fit'", "lookahead, algorithm1"]),
        ("[{placement: spread, locality: al}]", ["also[0].locality: found 'al'", "strict, plus_one", "soonest_end"]),
        ("[{locality: any}]", ["also[0].placement: missing"]),
        ("[{placement: spread, localty: any}]", ["also[0].localty: unknown key (did you mean 'locality'?)"]),
        ("[{placement: spread}, {placement: algorithm1, locality: any}]",
         ["also[1]: placement algorithm1 knows locality strict only; found any"]),
        ("[{placement: spread}, {placement: spread, locality: strict}]",
         ["also: found twice: placement spread, locality strict"]),
    ],
)
def test_other_placements_to_judge_in(entries: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(RUN + f"evaluation: {{also: {entries}}}\n")
    assert "mine.yaml:6: evaluation.also" in message and all(part in message for part in parts), message


def test_nothing_is_trained_with_algorithm1(mistake: Mistake) -> None:
    message = mistake(RUN + "    placement: [algorithm1]\n")
    assert "mine.yaml:6: experiments[0].placement[0]: found 'algorithm1'" in message, message


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("run", RUN + "split: 0.9\n",
         [":6: split: found 0.9, expected a block of keys: split: {train: …, validation: …}"]),
        ("run", RUN + "split:\n", [":6: split: found nothing, expected a block of keys"]),
        ("run", RUN.replace("[{trace: philly-smoke, cluster: philly-192}]", "[philly-smoke]"),
         [":4: experiments[0].workloads[0]: found 'philly-smoke'", "{trace: …, cluster: …}"]),
        ("run", RUN + "presets: {mine: 3}\n", [":6: presets.mine: found 3", "its keys are agent, epochs"]),
        ("run", RUN + "evaluation: {also: best_fit}\n", ["expected a list, such as also: [{placement: …}]"]),
        ("run", RUN + "evaluation: {sequence_jobs: 256}\n", ["expected a list, such as sequence_jobs: [256]"]),
        ("run", RUN + "plugins: mine.py\n", ["expected a list, such as plugins: [mine.py]"]),
        ("run", RUN + "lookahead: {slot_s: 10 min}\n",
         ["a number (more than 0) alone, without a unit", "seconds from one"]),
        ("run", RUN + "split: {train: 90%}\n", ["found '90%'", "such as 0.9 for 90%"]),
        ("run", RUN.replace("main", "3"), ["experiments[0].name: found 3, expected a text", 'in quotes, "3"']),
        ("run", RUN + "true: x\n", [":6: true: found a key that is no text", 'in quotes it is one: "true"']),
        ("cluster", "title: C\npools: all\n",
         [":2: pools: found 'all', expected a list, such as pools: [{name: …, groups: …}]"]),
        ("cluster", CLUSTER + "balance: 0.9\n", [":6: balance: found 0.9", "balance: {load: …}"]),
        ("cluster", CLUSTER + "type_shares: 3\n", ["a block of names with a value each", "type_shares: {NAME: …}"]),
        ("cluster", CLUSTER + "type_shares: {P100: a}\n", ["type_shares.P100: found 'a', expected a number"]),
        ("cluster", CLUSTER.replace("512", "512GB"), [".mem_gb: found '512GB'", "without a unit", "memory a node, GB"]),
        ("trace", TRACE.replace("gpus: b", "gpus: 3"), ["columns.gpus: found 3", "the name of a column", "in quotes"]),
        ("trace", TRACE.replace("unit: s", "unit: seconds"), ["found 'seconds' (did you mean 's'?)"]),
        ("trace", TRACE + "filter: [{column: a, op: '=', value: 1}]\n", ["found '=' (did you mean '=='?)"]),
        ("trace", TRACE + "filter: [{column: a, op: '==', value: {a: 1}}]\n",
         [":6: filter[0].value: found {'a': 1}", "a text, a number, true or false or a list"]),
        ("trace", TRACE + "start: 2020-13-45\n", [":6: found 2020-13-45, which is no date", "2020-03-31"]),
        ("trace", TRACE + "start: 2020\n", [":6: start: found 2020, expected a date such as 2020-03-31"]),
    ],
)  # fmt: skip
def test_what_is_expected_is_said_in_the_files_own_words(
    kind: str, text: str, parts: list[str], mistake: Mistake
) -> None:
    """In one line, without the names of classes and types that the code has for it."""
    message = mistake(text, MODELS[kind][0])
    assert not [part for part in parts if part not in message], message
    assert "\n" not in message and "instance of" not in message and "input should" not in message, message


def test_a_text_that_yaml_takes_for_something_else_is_shown_with_its_line(mistake: Mistake) -> None:
    message = mistake(RUN + "description: a: b\n")
    assert "mine.yaml:6: not valid YAML" in message and "at 'description: a: b'" in message and "in quotes" in message


def test_a_file_of_a_similar_name_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no such file \(did you mean 'default'\?\); there are: "):
        load_run("config/defaults.yaml", ROOT)
    with pytest.raises(ConfigError, match=r"^config/traces: a folder, expected a YAML file; there are: "):
        load_run("config/traces", ROOT)
