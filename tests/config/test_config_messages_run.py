"""Mistakes in a run's file: names of other files, folders, presets, policies, rules, placements."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_texts import CLUSTER, ROOT, RUN, TRACE, Mistake

from rltune.config.load import load_run
from rltune.errors import ConfigError


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


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("simulation: {overrun: later}\n", ["simulation.overrun: found 'later'", "allowed: double, now"]),
        ("simulation: {sticky_head: start}\n", ["simulation.sticky_head: found 'start'"]),
        ("simulation: {multi_node_slowdown: 0.5}\n", ["simulation.multi_node_slowdown: found 0.5", "1 or more"]),
        ("simulation: {interference_slowdown: 0.5}\n", ["simulation.interference_slowdown: found 0.5", "1 or more"]),
        (
            "simulation: {multi_node_slowdwn: 2}\n",
            ["simulation.multi_node_slowdwn: unknown key (did you mean 'multi_node_slowdown'?)"],
        ),
        ("plugins: [nowhere.py]\n", ["plugins[0]: found 'nowhere.py'", "no such file", "expected a Python file"]),
        ("plugins: [config]\n", ["plugins[0]: found 'config'", "a folder"]),
        ("plugins: [a.py, a.py]\n", ["plugins: found twice: a.py"]),
        (
            "evaluation: {baseline_policies: [sjff]}\n",
            ["evaluation.baseline_policies[0]: found 'sjff' (did you mean 'sjf'?)", "allowed: fifo, sjf", "plugins"],
        ),
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


@pytest.mark.parametrize(
    ("entries", "parts"),
    [
        ("[{placement: bestfit}]", ["also[0].placement: found 'bestfit'", "'best_fit'", "lookahead, algorithm1"]),
        ("[{placement: spread, locality: al}]", ["also[0].locality: found 'al'", "strict, plus_one", "soonest_end"]),
        ("[{locality: any}]", ["also[0].placement: missing"]),
        ("[{placement: spread, localty: any}]", ["also[0].localty: unknown key (did you mean 'locality'?)"]),
        (
            "[{placement: spread}, {placement: algorithm1, locality: any}]",
            ["also[1]: placement algorithm1 knows locality strict only; found any"],
        ),
        (
            "[{placement: spread}, {placement: spread, locality: strict}]",
            ["also: found twice: placement spread, locality strict"],
        ),
    ],
)
def test_other_placements_to_judge_in(entries: str, parts: list[str], mistake: Mistake) -> None:
    message = mistake(RUN + f"evaluation: {{also: {entries}}}\n")
    assert "mine.yaml:6: evaluation.also" in message and all(part in message for part in parts), message


def test_nothing_is_trained_with_algorithm1(mistake: Mistake) -> None:
    message = mistake(RUN + "    placement: [algorithm1]\n")
    assert "mine.yaml:6: experiments[0].placement[0]: found 'algorithm1'" in message, message
