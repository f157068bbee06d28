"""A mistake in a configuration file is explained: file, line, key, what was found, what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_texts import CLUSTER, MODELS, ROOT, RUN, TRACE, Mistake

from rltune.config.load import load_run, read_block
from rltune.errors import ConfigError


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
        (
            "run",
            RUN + "    seed: [1.5]\n",
            ["mine.yaml:6: experiments[0].seed[0]: found 1.5", "a whole number (0 or more)"],
        ),
        ("run", RUN + "lookahead:\n  jobs: 99\n", ["mine.yaml:7: lookahead.jobs: found 99, expected 16 or less"]),
        (
            "run",
            RUN.replace("[fifo]", "fifo"),
            ["mine.yaml:5: experiments[0].policy: found 'fifo', expected a list, such as policy: [fifo]"],
        ),
        (
            "run",
            RUN.replace("[fifo]", "[]"),
            ["mine.yaml:5: experiments[0].policy: found [] (a list), expected at least 1"],
        ),
        (
            "run",
            RUN + "presets: [paper]\n",
            ["mine.yaml:6: presets: found ['paper'] (a list), expected a block of names"],
        ),
        (
            "run",
            "title: T\nexperiments:\n",
            ["mine.yaml:2: experiments: found nothing, expected a list", "[{name: …, workloads: …, policy: …}]"],
        ),
        (
            "run",
            RUN.replace("title: T", "title: 2020-01-01"),
            ["mine.yaml:1: title: found 2020-01-01, expected a text", "quotes"],
        ),
        (
            "cluster",
            CLUSTER.replace("gpus: 8", "gpus: eight"),
            [".gpus: found 'eight', expected a whole number (1 or more, at most 64)", "GPUs a node"],
        ),
        ("cluster", CLUSTER.replace("nodes: 2", "nodes: 0"), ["mine.yaml:5: pools[0].groups[0].nodes: found 0"]),
        ("cluster", CLUSTER.replace("cpus: 64", "cpus: -1"), [".cpus: found -1, expected 0.001 or more"]),
        ("cluster", "title: C\npools: []\n", ["mine.yaml:2: pools: found [] (a list), expected at least 1"]),
        (
            "cluster",
            "title: C\npools: [{name: a, groups: []}]\n",
            ["pools[0].groups: found [] (a list), expected at least 1"],
        ),
        ("trace", TRACE + "start: yesterday\n", ["mine.yaml:6: start: found 'yesterday'", "date"]),
        ("trace", TRACE + "time_zone: Mars/Olympus\n", ["mine.yaml:6: time_zone", "Mars/Olympus", "IANA"]),
        (
            "run",
            RUN + "    metric: [slowdown]\n",
            [":6: experiments[0].metric[0]: found 'slowdown'", "wait, jct, bsld"],
        ),
    ],
)
def test_wrong_value(kind: str, text: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(text, MODELS[kind][0])
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        ("run", RUN.replace("[fifo]", "[fifo, sfj]"), [":5: experiments[0].policy[1]: found 'sfj'", "'sjf'", "wfp3"]),
        ("run", RUN + "    backfill: [easyy]\n", [":6: experiments[0].backfill[0]: found 'easyy'", "'easy'", "greedy"]),
        (
            "run",
            RUN + "    backfill: [~]\n",
            [":6: experiments[0].backfill[0]: found nothing (did you mean 'none'?)", "none, greedy, easy"],
        ),
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
    ("text", "parts"),
    [
        ((RUN + "description: caf\xe9\n").encode("latin-1"), ["mine.yaml", "UTF-8"]),
        (RUN + "title: U\n", ["mine.yaml:6: title: found twice"]),
        (RUN + "    seed: [-1]\n", ["mine.yaml:6: experiments[0].seed[0]: found -1"]),
        (RUN + "    backfill: []\n", ["mine.yaml:6: experiments[0].backfill: found []"]),
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


def test_all_mistakes_are_reported_at_once(mistake: Mistake) -> None:
    text = RUN.replace("[fifo]", "[fio]") + "colour: red\nsplit: {train: 2}\npresets: {mine: {epoch: 1}}\n"
    lines = mistake(text).splitlines()
    assert len(lines) == 4
    for line, number, key in zip(sorted(lines), (5, 6, 7, 8), ("policy[0]", "colour", "split.train", "presets.mine")):
        assert f"mine.yaml:{number}: " in line and key in line


@pytest.mark.parametrize(
    ("kind", "text", "parts"),
    [
        (
            "run",
            RUN + "split: 0.9\n",
            [":6: split: found 0.9, expected a block of keys: split: {train: …, validation: …}"],
        ),
        ("run", RUN + "split:\n", [":6: split: found nothing, expected a block of keys"]),
        (
            "run",
            RUN.replace("[{trace: philly-smoke, cluster: philly-192}]", "[philly-smoke]"),
            [":4: experiments[0].workloads[0]: found 'philly-smoke'", "{trace: …, cluster: …}"],
        ),
        ("run", RUN + "presets: {mine: 3}\n", [":6: presets.mine: found 3", "its keys are agent, epochs"]),
        ("run", RUN + "evaluation: {also: best_fit}\n", ["expected a list, such as also: [{placement: …}]"]),
        ("run", RUN + "evaluation: {sequence_jobs: 256}\n", ["expected a list, such as sequence_jobs: [256]"]),
        ("run", RUN + "plugins: mine.py\n", ["expected a list, such as plugins: [mine.py]"]),
        (
            "run",
            RUN + "lookahead: {slot_s: 10 min}\n",
            ["a number (more than 0) alone, without a unit", "seconds from one"],
        ),
        ("run", RUN + "split: {train: 90%}\n", ["found '90%'", "such as 0.9 for 90%"]),
        ("run", RUN.replace("main", "3"), ["experiments[0].name: found 3, expected a text", 'in quotes, "3"']),
        ("run", RUN + "true: x\n", [":6: true: found a key that is no text", 'in quotes it is one: "true"']),
        (
            "cluster",
            "title: C\npools: all\n",
            [":2: pools: found 'all', expected a list, such as pools: [{name: …, groups: …}]"],
        ),
        ("cluster", CLUSTER + "balance: 0.9\n", [":6: balance: found 0.9", "balance: {load: …}"]),
        ("cluster", CLUSTER + "type_shares: 3\n", ["a block of names with a value each", "type_shares: {NAME: …}"]),
        ("cluster", CLUSTER + "type_shares: {P100: a}\n", ["type_shares.P100: found 'a', expected a number"]),
        ("cluster", CLUSTER.replace("512", "512GB"), [".mem_gb: found '512GB'", "without a unit", "memory a node, GB"]),
        ("trace", TRACE.replace("gpus: b", "gpus: 3"), ["columns.gpus: found 3", "the name of a column", "in quotes"]),
        ("trace", TRACE.replace("unit: s", "unit: seconds"), ["found 'seconds' (did you mean 's'?)"]),
        ("trace", TRACE + "filter: [{column: a, op: '=', value: 1}]\n", ["found '=' (did you mean '=='?)"]),
        (
            "trace",
            TRACE + "filter: [{column: a, op: '==', value: {a: 1}}]\n",
            [":6: filter[0].value: found {'a': 1}", "a text, a number, true or false or a list"],
        ),
        ("trace", TRACE + "start: 2020-13-45\n", [":6: found 2020-13-45, which is no date", "2020-03-31"]),
        ("trace", TRACE + "start: 2020\n", [":6: start: found 2020, expected a date such as 2020-03-31"]),
    ],
)
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
