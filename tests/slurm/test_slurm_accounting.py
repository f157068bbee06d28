"""What sacct says, taken apart; after texts recorded from Slurm 22.05 with slurmdbd."""

from __future__ import annotations

import pytest

from rltune.errors import SlurmError
from rltune.slurm import accounting

TWO_GPUS = "billing=16,cpu=16,gres/gpu:p100=2,gres/gpu=2,mem=256G,node=1"
TWO_NODES = "billing=64,cpu=64,gres/gpu:p100=8,gres/gpu=8,mem=512G,node=2"
WHOLE_NODE = "billing=32,cpu=32,gres/gpu=4,mem=256G,node=1"
ONE_GPU = "billing=8,cpu=8,gres/gpu=1,mem=256G,node=1"
RECORDED = f"""\
1|1795322019|1795322019|1795322019|1795322951|ann|p100-1|{TWO_GPUS}|{WHOLE_NODE}|COMPLETED|fig1-0
3|1795322078|1795322079|1795322959|1795326589|ann|p100-[1-2]|{TWO_NODES}|{TWO_NODES}|COMPLETED|a|b
5|1795322138|1795322138|1795326593|Unknown|ben|p100-2|{WHOLE_NODE}|{WHOLE_NODE}|RUNNING|fig1-4
6|1795322138|1795322138|Unknown|Unknown|ben|None assigned|billing=8,cpu=8,mem=256G,node=1||PENDING|fig1-5
7|1795322198|1795322198|1795322210|1795322215|ben|p100-1|{ONE_GPU}|{ONE_GPU}|CANCELLED by 0|fig1-6
"""


def test_recorded_accounts() -> None:
    found = accounting.read(RECORDED)
    assert list(found) == [1, 3, 5, 6, 7]
    first = found[1]
    assert (first.name, first.submit_s, first.start_s, first.end_s) == ("fig1-0", 1795322019, 1795322019, 1795322951)
    assert first.nodes == ("p100-1",) and first.state == "COMPLETED" and first.account == "ann"
    assert (first.gpus, first.held_gpus) == (2, 4), "it had its node for itself"
    assert found[3].eligible_s == 1795322079
    assert found[3].nodes == ("p100-1", "p100-2") and found[3].gpus == 8 and found[3].name == "a|b"
    assert found[6].nodes == () and found[6].start_s is None and found[6].held_gpus == 0
    assert found[7].state == "CANCELLED"
    assert [job.ended for job in found.values()] == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1|2|3\n", "line 1: found 3 fields"),
        (RECORDED.replace("1795326589", "soon"), r"line 2 \(job 3\): End: found 'soon'"),
        (RECORDED.replace("p100-[1-2]", "p100-[1"), r"line 2 \(job 3\): NodeList"),
        (RECORDED.replace("gres/gpu:p100=2", "gres/gpu:p100=two", 1), r"line 1 \(job 1\): ReqTRES"),
        (RECORDED.replace("6|1795322138", "6|Unknown"), r"line 4 \(job 6\): Submit"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(SlurmError, match=words):
        accounting.read(text)
