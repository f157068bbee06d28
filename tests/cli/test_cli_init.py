"""`rltune init`: what it understands of a log and a list of nodes, what it writes, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from rltune.config.context import Run
from rltune.config.whatif import Rule
from rltune.traces.clean import clean_trace

HEADER = (
    "JobID|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|ReqCPUS|AllocCPUS|ReqMem|ReqTRES|"
    "AllocTRES|QOS"
)
NODES = "NODELIST|PARTITION|CPUS|MEMORY|GRES|STATE\n" + "".join(
    f"n{i}|gpu*|64|512000|gpu:a100:8(S:0-1)|mixed\n" for i in range(4)
)
ODD = [  # as Slurm writes them: an array, its steps, tasks that wait, cancelled in the queue, no end, old memory, a state of none
    "9001_3|ann|gpu|2024-01-03T00:00:00|2024-01-03T00:00:10|2024-01-03T01:00:10|3600|120|COMPLETED|1|8|8|4Gc|gres/gpu=1|gres/gpu:a100=1,gres/gpu=1|n",
    "9001_3.batch|||2024-01-03T00:00:10|2024-01-03T00:00:10|2024-01-03T01:00:10|3600||COMPLETED|1|8|8|||cpu=8|",
    "9001_[4-9%2]|ann|gpu|2024-01-03T00:00:00|Unknown|Unknown|0|120|PENDING|1|8|0|4Gn|gres/gpu=1||n",
    "9002|ben|gpu|2024-01-03T00:00:00|None|2024-01-03T00:10:00|0|60|CANCELLED by 1007|1|8|0|64G|gres/gpu=2||n",
    "9003|ben|gpu|2024-01-03T00:00:00|2024-01-03T00:05:00|Unknown|500|UNLIMITED|NODE_FAIL|1|8|8|4Gn|gres/gpu=2|gres/gpu=2|n",
    "9004|ben|gpu|2024-01-03T00:00:00|2024-01-03T00:05:00|2024-01-03T00:15:00|600|60|SPARKLING|1|8|8|64G|gres/gpu=2|gres/gpu=2|n",
    "9005|ben|gpu|2024-01-03T00:00:00|2024-01-03T00:05:00|2024-01-03T00:15:00|600|60|COMPLETED|9|8|8|64G|gres/gpu=72|gres/gpu=72|n",
]


def stamp(minute: int) -> str:
    return f"2024-{1 + minute // 40320:02d}-{1 + minute // 1440 % 28:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00"


def sacct(jobs: int = 3100, odd: bool = True) -> str:
    """A log of jobs of 1 to 8 GPUs, one every half hour."""
    rows = []
    for i in range(jobs):
        at, gpus, minutes = 30 * i, 1 << i % 4, 10 + i % 300
        times = f"{stamp(at)}|{stamp(at + 5)}|{stamp(at + 5 + minutes)}|{60 * minutes}|{2 * minutes}"
        held = f"gres/gpu={gpus}|cpu=8,gres/gpu:a100={gpus},gres/gpu={gpus},mem=64G,node=1"
        rows.append(f"{i + 1}|u{i % 7}|gpu|{times}|COMPLETED|1|8|8|64G|{held}|n")
    return "\n".join([HEADER, *rows, *(ODD if odd else [])]) + "\n"


@pytest.fixture
def files(project: Any) -> Any:
    (project.root / "jobs.txt").write_text(sacct())
    (project.root / "nodes.txt").write_text(NODES)
    return project


Cli = Callable[..., Any]


def says(outcome: Any, *parts: str) -> None:
    """It was done, and each of these stands in what was printed."""
    assert outcome.status == 0 and not [part for part in parts if part.strip() not in outcome.out], outcome


INIT = ("init", "jobs.txt", "--nodes", "nodes.txt", "--name", "mine", "--time-zone", "Europe/Berlin", "--yes")


def test_it_says_what_it_understood_and_writes_a_run_that_is_valid(files, cli):
    outcome = cli(*INIT)
    assert outcome.status == 0, outcome
    parts = """Slurm sacct --parsable2; jobs: 3,104 (3,104 GPU); (Europe/Berlin); 1 step of a job; 1 range of array tasks;
        1 cancelled before it started; 1 status unknown; COMPLETED → passed; NOT KNOWN: SPARKLING (1);
        columns not used: QOS; 4 nodes, 32 GPUs; pool all: 4 × 8 a100; 1 larger than every pool; offered load;
        make report CONFIG=config/mine.yaml"""
    says(outcome, *parts.split(";"))
    run = Run.open("config/mine.yaml")
    assert run.config.whatif is not None and run.config.cells()[0].estimate == "requested"
    assert run.traces["mine"].data == "own" and run.traces["mine"].time_zone == "Europe/Berlin"
    assert run.clusters["mine"].gpus == 32
    assert cli("config", "check", "config/mine.yaml").status == 0
    assert not list((files.root / "config").rglob(".*"))
    assert cli("simulate", "--trace", "mine", "--cluster", "mine", "--jobs", "64", "--csv", "x.csv").status == 0
    assert all(user.startswith("user-") for user in pd.read_csv("x.csv")["user"]), "no names of people"


def test_a_header_in_quotes_is_the_same_header(files, cli):
    quoted = "|".join(f'"{name}"' for name in HEADER.split("|"))
    (files.root / "jobs.txt").write_text(sacct().replace(HEADER, quoted))
    says(cli(*INIT), "COMPLETED → passed")


def test_its_own_files_are_written_again_with_force_only_and_others_never(files, cli):
    assert cli(*INIT).status == 0
    cli(*INIT).explains("config/traces/mine.yaml", "--force")
    (files.root / "nodes.txt").write_text(NODES + "n9|gpu*|64|512000|gpu:a100:8(S:0-1)|mixed\n")
    assert cli(*INIT, "--force").status == 0 and Run.open("config/mine.yaml").clusters["mine"].gpus == 40
    before = files.trace.read_text()
    cli("init", "jobs.txt", "--nodes", "nodes.txt", "--name", "tiny", "--yes", "--force").explains(
        "config/traces/tiny.yaml", "not written by `rltune init`"
    )
    assert files.trace.read_text() == before


def test_it_asks_for_what_is_not_given_until_it_holds(files, cli, monkeypatch):
    files_and_name = ["none.txt", "jobs.txt", "jobs.txt", "nodes.txt", "a b", "mine"]
    answers = iter([*files_and_name, "Mars/Base", "Europe/Berlin", "lifo easy", "fifo easy none", "fifo none"])
    monkeypatch.setattr("typer.prompt", lambda question, default=None: next(answers))
    monkeypatch.setattr("typer.confirm", lambda question, default: True)
    outcome = cli("init")
    says(outcome, "none.txt: no such file", "no column of GPUs nor of CPUs", "found 'a b'", "found 'Mars/Base'")
    says(outcome, "current-policy: found 'lifo'", "current rule: found 'fifo easy none'", "written: config/mine.yaml")
    assert Run.open("config/mine.yaml").config.whatif.current == Rule(policy="fifo", backfill="none")
    assert next(answers, None) is None


def test_a_rule_that_is_given_is_written(files, cli):
    assert cli(*INIT, "--current-policy", "saf").status == 0
    assert Run.open("config/mine.yaml").config.whatif.current == Rule(policy="saf", backfill="easy")


def test_without_a_terminal_it_says_which_option_is_missing(files, shell):
    shell.rltune("init", "jobs.txt", "--name", "mine", "--yes", cwd=files.root).explains(
        "--nodes: not given", "init --help"
    )


ONE_NODE = "NODELIST|PARTITION|CPUS|MEMORY|GRES|STATE\nn1|gpu*|64|512000|gpu:a100:2|idle\n"
TAPES = sacct(odd=False).replace("gres/gpu", "gres/tape")
HUGE = sacct(odd=False).replace("|64G|", "|64T|").replace("mem=64G", "mem=64T")
OTHER_PARTITIONS = NODES.replace("gpu*", "fast") + "n9|slow|64|512000|gpu:a100:8|idle\n"


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"--name": "a/b"}, ["name: found 'a/b'"]),
        ({"log": "nodes.txt"}, ["nodes.txt: no column of submission nor of run time"]),
        ({"log": "config"}, ["config: a folder"]),
        ({"--time-zone": "Berlin"}, ["found 'Berlin'", "did you mean 'Europe/Berlin'?"]),
        ({"--current-policy": "lifo"}, ["--current-policy: found 'lifo'", "fifo, sjf, saf"]),
        ({"--current-backfill": "off"}, ["current-backfill: found 'off'", "none, greedy, easy"]),
        ({"jobs.txt": sacct(500, odd=False)}, ["500 jobs fit the cluster, at least 3,000"]),
        ({"jobs.txt": TAPES}, ["no job asks for a GPU, and nodes.txt lists 32", "AccountingStorageTRES=gres/gpu"]),
        (  # what was understood of both files comes first
            {"nodes.txt": OTHER_PARTITIONS},
            ["partitions in the log: gpu, in the list of nodes: fast, slow", "jobs.txt:", "nodes.txt:"],
        ),
        (
            {"nodes.txt": "name,gpus,cpus\na,8,0.0001\n"},
            ["nodes.txt: cpus: found 0.0001, expected greater than or equal to 0.001; it is: CPU cores per node"],
        ),
        (
            {"nodes.txt": NODES.replace("512000", "1e15")},
            ["nodes.txt:2: found CPUS '64' and MEMORY '1e15', expected numbers, and up to 32,768 GB"],
        ),
        ({"jobs.txt": HUGE, "nodes.txt": ONE_NODE}, ["memory: 70,369 GB (is it in MB?) and 537 GB"]),
        ({"nodes.txt": ONE_NODE}, ["check the list of nodes", "of the largest pool: 2"]),
    ],
)
def test_mistakes_are_explained(changes, parts, files, cli):
    for name in changes.keys() & {"jobs.txt", "nodes.txt"}:
        (files.root / name).write_text(changes[name])
    options = [word for change in changes.items() if change[0].startswith("--") for word in change]
    outcome = cli("init", changes.get("log", "jobs.txt"), *INIT[2:], *options)
    assert outcome.status == 1 and not [part for part in parts if part not in outcome.err], outcome
    assert not (files.root / "config" / "mine.yaml").exists()


def write_csv(root: Path, columns: str, row: Callable[[int], str], jobs: int = 3000) -> None:
    (root / "own.csv").write_text("\n".join([columns, *map(row, range(jobs))]) + "\n")


def test_partitions_without_nodes_in_the_list_count_for_nothing(files, cli):
    """Their jobs are left out: their use of GPUs and their GPU types are not those of the nodes that are listed."""

    def row(i: int) -> str:
        held = f"{1_700_000_000 + 1800 * i},3600,{64 if i % 3 == 0 else 1},{'h100' if i % 3 == 0 else 'v100' if i % 2 else 'a100'}"
        return f"{held},{('elsewhere', 'gpu', 'more')[i % 3]}"

    write_csv(files.root, "submit_time,duration,gpus,gpu_type,partition", row, jobs=4800)
    (files.root / "nodes.txt").write_text(
        "name,gpus,type,partition\na,8,a100,gpu\nb,8,v100,gpu\nc,8,a100,more\nd,8,v100,more\n"
    )
    outcome = cli("init", "own.csv", *INIT[2:], "--speeds", "a100=1,v100=2")
    says(outcome, "3,200 jobs; left out: 1,600", "recorded on the most frequent, a100")
    assert "cannot have run" not in outcome.out and Run.open("config/mine.yaml").clusters["mine"].gpu_types == "match"


@pytest.mark.parametrize("unit", ["", "000"])
def test_a_csv_without_submissions_limits_and_users_says_what_that_costs(unit, files, cli):
    def row(i: int) -> str:
        begin, status = 1_700_000_000 + 1800 * i, "success" if i % 3 else "odd"
        return f"{i},{begin}{unit},{begin + 3000}{unit},{1 << i % 4},{status},red"

    write_csv(files.root, "job_id,start_time,end_time,gpus,status,colour", row)
    parts = """no submission times: the starts replace them; no time limits; no users and no partitions: no fair shares; NOT KNOWN: odd (1,000);
        success → passed; columns not used: colour; a verdict needs 8, a log of about 80 days;
        the log shows no waits (no starts, or nobody waited); 3,000 jobs leave one validation window, so nothing that an agent learns is kept;
        BUT FIRST: no submission times"""
    says(cli("init", "own.csv", *INIT[2:]), *parts.split(";"))
    assert Run.open("config/mine.yaml").config.cells()[0].estimate == "history-rolling"


def test_a_night_without_a_midnight_is_a_day(files, cli):
    """In Cairo clocks went from 00:00 to 01:00 on 26 April 2024, here in the log's last tenth."""
    first = 1_714_082_400 - 1800 * 2892
    write_csv(files.root, "submit_time,duration,gpus", lambda i: f"{first + 1800 * i},600,1")
    outcome = cli("init", "own.csv", *INIT[2:6], "--time-zone", "Africa/Cairo", "--yes")
    says(outcome, "the last tenth has arrivals on 7 days; a verdict needs 8")


def test_a_csv_of_processors_goes_on_a_cluster_of_processors(files, cli):
    write_csv(files.root, "submit_time,duration,cpus", lambda i: f"{1_700_000_000 + 1800 * i},{600 + i},{1 + i % 16}")
    (files.root / "nodes.txt").write_text("name,cpus\n" + "".join(f"n{i},16\n" for i in range(4)))
    outcome = cli("init", "own.csv", *INIT[2:])
    assert outcome.status == 0 and "no recorded waits" in outcome.out, outcome
    assert yaml.safe_load((files.root / "config" / "clusters" / "mine.yaml").read_text())["slots"] == "cpu"
    write_csv(files.root, "submit_time,duration,cpus", lambda i: f"{1_700_000_000 + 1800 * i},90000,16")
    says(cli("init", "own.csv", *INIT[2:], "--force"), "used about 787 processors at once, the list of nodes has 64")


def test_speeds_of_gpu_types_are_asked_for_where_there_are_several(files, cli, monkeypatch):
    (files.root / "nodes.txt").write_text(NODES + "h|gpu|64|512000|gpu:h100:8|idle\n")
    answers, asked = iter(["h100=fast", "none.csv", "a100=1, h100=2.5", "fifo none"]), []
    monkeypatch.setattr("typer.prompt", lambda question, default=None: (asked.append(question), next(answers))[1])
    monkeypatch.setattr("typer.confirm", lambda question, default: True)
    outcome = cli(*INIT[:-1])
    assert outcome.status == 0 and "found 'h100=fast', expected such as" in outcome.out, outcome
    assert sum("How fast" in question for question in asked) == 3
    cluster = yaml.safe_load((files.root / "config/clusters/mine.yaml").read_text())
    assert cluster["speeds"] == {"a100": 1.0, "h100": 2.5} and cluster["recorded_on"] == "a100"
    run = yaml.safe_load((files.root / "config/mine.yaml").read_text())
    assert run["gpu_types"] == [{"trace": "mine", "cluster": "mine"}]
    cli(*INIT, "--force", "--speeds", "a100=1").explains("speeds: no speed on GPU type h100")
    for wrong in ("a100=0,h100=2", "a100=-1,h100=2", "a100=nan,h100=2", "a100=1,a100=2", "=1"):
        cli(*INIT, "--force", "--speeds", wrong).explains(f"found '{wrong}', expected such as")


def test_speeds_go_with_several_types_that_log_and_nodes_name_alike(files, cli):
    given = (*INIT, "--speeds", "a100=1,h100=2")
    cli(*given).explains("--speeds: found one GPU type, a100; expected several GPU types, named alike")
    (files.root / "jobs.txt").write_text(sacct(odd=False).replace("|gres/gpu=", "|gres/gpu:h200=1,gres/gpu="))
    says(cli(*INIT), "the log asks for GPU types (h200), the nodes have one (a100): types are ignored")
    (files.root / "nodes.txt").write_text(NODES + "v|gpu|64|512000|gpu:v100:8|idle\n")
    cli(*given, "--force").explains(
        "--speeds: found GPU types in the log (h200) that the nodes do not name (a100, v100)"
    )
    says(cli(*INIT, "--force"), "GPU types (h200) that the nodes do not name", "types are ignored")


@pytest.mark.parametrize(("jobs", "ignored"), [(300, False), (331, True)])
def test_a_few_jobs_of_types_that_the_nodes_do_not_name_are_left_out(jobs, ignored, files, cli):
    """Up to a tenth of the 3,300 that name one."""
    head, *rows = sacct(3300, odd=False).splitlines()
    kinds = ["h200"] * jobs + ["a100"] * (len(rows) - jobs)
    typed = [row.replace("|gres/gpu=", f"|gres/gpu:{kind}=1,gres/gpu=") for row, kind in zip(rows, kinds)]
    (files.root / "jobs.txt").write_text("\n".join([head, *typed]) + "\n")
    (files.root / "nodes.txt").write_text(NODES + "v|gpu|64|512000|gpu:v100:8|idle\n")
    outcome = cli(*INIT)
    assert outcome.status == 0, outcome
    assert ("GPU types (h200) that the nodes do not name" in outcome.out) == ignored
    assert (f"left out: {jobs:,} GPU type not in the cluster" in outcome.out) != ignored
    assert Run.open("config/mine.yaml").clusters["mine"].gpu_types == ("ignore" if ignored else "match")


@pytest.mark.parametrize(
    ("factor", "part"), [(2, "median time limit: 18,540 s (of 100% of"), (0.5, "is it in another unit?")]
)
def test_slurms_raw_time_limit_in_a_csv_is_in_minutes_and_questioned_if_most_jobs_exceed_it(factor, part, files, cli):
    def row(i: int) -> str:
        at, minutes = 30 * i, 10 + i % 300
        times = f"{stamp(at)},{stamp(at + 5)},{stamp(at + 5 + minutes)}"
        return f"{i},{times},{1 << i % 4},{factor * minutes:.0f}"

    write_csv(files.root, "job_id,submit_time,start_time,end_time,gpus,TimelimitRaw", row, 3100)
    outcome = cli("init", "own.csv", *INIT[2:])
    assert outcome.status == 0 and part in outcome.out, outcome
    assert ("ran longer than it" in outcome.out) == (factor < 1)
    found = yaml.safe_load((files.root / "config/traces/mine.yaml").read_text())["columns"]["requested_s"]
    assert found == {"column": "TimelimitRaw", "unit": "min"}


def test_a_name_that_yaml_takes_for_something_else_stays_a_name(files, cli):
    assert cli(*INIT[:5], "1.5", *INIT[6:]).status == 0
    assert Run.open("config/1.5.yaml").config.traces() == ["1.5"]


def test_nodes_that_cannot_have_run_the_log_are_asked_about(files, cli, monkeypatch):
    """Most of them are missing from the list; too many are no contradiction."""
    (files.root / "few.txt").write_text("\n".join(NODES.splitlines()[:3]) + "\n")
    asked: list[tuple[str, bool]] = []
    monkeypatch.setattr("typer.confirm", lambda question, default: (asked.append((question, default)), default)[1])
    monkeypatch.setattr("typer.prompt", lambda question, default=None: default)
    given = ("--name", "mine", "--time-zone", "Europe/Berlin", "--current-policy", "fifo")
    refused = cli("init", "jobs.txt", "--nodes", "few.txt", *given)
    assert refused.status == 1 and "nothing written" in refused.out and not (files.root / "config/mine.yaml").exists()
    assert asked == [("These nodes are too few. Write the configuration nevertheless?", False)]
    assert "GPUs at once, the list of nodes has 16 (offered load" in refused.out and "no verdict" in refused.out
    (files.root / "many.txt").write_text(NODES + "".join(f"m{i}|gpu*|64|512000|gpu:a100:8|idle\n" for i in range(9)))
    assert cli("init", "jobs.txt", "--nodes", "many.txt", *given).status == 0
    assert asked[1:] == [("Write the configuration?", True)]


ZONES = dict.fromkeys((":Europe/Berlin", "Europe/Berlin"), "Europe/Berlin")
ZONES |= dict.fromkeys(("CET-1CEST", ":/etc/localtime", ""), "Asia/Tokyo")


@pytest.mark.parametrize(("given", "zone"), ZONES.items())
def test_this_machines_time_zone(files, cli, monkeypatch, given, zone):
    """TZ may also hold a file or a zone's rules; the zone is then that of /etc/localtime, here Tokyo's."""
    resolve, tokyo = Path.resolve, Path("/usr/share/zoneinfo/Asia/Tokyo")
    monkeypatch.setattr(Path, "resolve", lambda self: tokyo if str(self) == "/etc/localtime" else resolve(self))
    monkeypatch.setenv("TZ", given)
    assert f"clock: {zone}, this machine's" in cli(*INIT[:6], "--yes").out


def test_slurms_states_are_known_in_a_csv_too(files, cli):
    states = ["COMPLETED", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED by {i}", "PREEMPTED"]
    columns = "job_id,submit_time,duration,gpus,State"
    write_csv(files.root, columns, lambda i: f"{i},{1_700_000_000 + 1800 * i},600,1,{states[i % 5].format(i=i)}")
    outcome = cli("init", "own.csv", *INIT[2:])
    assert outcome.status == 0 and "NOT KNOWN" not in outcome.out, outcome
    jobs = clean_trace("mine", Run.open("config/mine.yaml").traces["mine"], files.root / "own.csv").jobs
    assert dict(jobs["status"].value_counts()) == {"failed": 1200, "killed": 1200, "passed": 600}
