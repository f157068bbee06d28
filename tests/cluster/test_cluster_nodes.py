"""Lists of nodes, as Slurm and others write them."""

from pathlib import Path

import numpy as np
import pytest

from rltune.cluster.fit import compile_jobs, fit
from rltune.cluster.nodes import as_cluster, gres_gpus, read_nodes
from rltune.errors import DataError
from rltune.traces.columns import empty_columns

SINFO = """\
NODELIST|PARTITION|CPUS|MEMORY|GRES|STATE
a1|gpu*|64|512000|gpu:a100:8(S:0-1)|mixed
a1|long|64|512000|gpu:a100:8(S:0-1)|mixed
a2|gpu*|64|512000|gpu:a100:8(S:0-1)|drained*
v1|small|32|128000|gpu:v100:4|idle
c1|cpu|128|256000|(null)|idle
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "nodes.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("gres", "found"),
    [
        ("gpu:8", (8, "gpu")),
        ("gpu:a100:8(S:0-1)", (8, "a100")),
        ("gpu", (1, "gpu")),
        ("(null)", (0, "gpu")),
        ("", (0, "gpu")),
        ("gpu:a100:4(S:0),gpu:v100:2(S:1)", (6, "a100+v100")),
        ("gpu:2,mps:200", (2, "gpu")),
        ("gpu:3090:8", (8, "3090")),
        ("gpu:p100:0000000001", (1, "p100")),
        ("cpu=8,gres/gpu=4,mem=64G", (4, "gpu")),
        ("gres/gpu=4,gres/gpu:a100=4", (4, "a100")),
        ("gres/gpu:a100=2,gres/gpu:v100=2", (4, "a100+v100")),
        ("gres/gpu:a100_1g.5gb=3", (3, "a100_1g.5gb")),
        ("gres/gpumem=80G,gres/gpuutil=50", (0, "gpu")),
        ("gres:gpu:2", (2, "gpu")),
        ("gpu:1g.5gb:7(S:0-1)", (7, "1g.5gb")),
        ("gpu:rtx:4,gpu:2080ti:4", (8, "rtx+2080ti")),
    ],
)
def test_gres(gres, found):
    assert gres_gpus(gres) == found


@pytest.mark.parametrize("cut", ["|", " "])
def test_sinfo(cut, tmp_path):
    nodes = read_nodes(written(tmp_path, SINFO.replace("|", cut)))
    table = nodes.table.set_index("name")
    assert nodes.source == "sinfo" and list(table["gpus"]) == [8, 8, 4, 0]
    assert table.loc["a1", "partitions"] == ("gpu", "long") and table.loc["a2", "partitions"] == ("gpu",)
    assert list(table["down"]) == [False, True, False, False]
    assert table.loc["a1", "mem_gb"] == pytest.approx(512000 * 1.048576e-3)


def test_memory_of_one_mib_is_slurms_word_for_not_configured(tmp_path):
    cluster, notes = as_cluster(read_nodes(written(tmp_path, SINFO.replace("128000", "1"))), "Mine")
    assert [g.mem_gb for p in cluster.pools for g in p.groups] == [536.9, 256]
    assert any("64 GB a GPU are assumed" in line for line in notes)


@pytest.mark.parametrize("mib", [515_000, 191_800, 123_500, 1_031_000])
@pytest.mark.parametrize("printed", [lambda mib: mib / 1024, lambda mib: round(mib / 1024, 2)])
def test_a_job_with_all_of_a_nodes_memory_fits_it(mib, printed, tmp_path):
    """Whether sacct prints MiB or two decimals of GiB."""
    cluster, _ = as_cluster(read_nodes(written(tmp_path, SINFO.replace("512000", str(mib)))), "Mine")
    whole = {"job_id": "1", "gpus": 8, "run_s": 60.0, "mem_gb": printed(mib) * 1.073741824, "gpu_type": "a100"}
    fitted, _ = fit(empty_columns(1).assign(**whole, submit_s=0.0), cluster)
    cut = compile_jobs(fitted, np.array([60.0]), cluster).cut[0, 0]
    assert (cut["size"], cut["full"], cut["rem"]) == (8, 1, 0)
    assert cluster.pools[0].groups[0].mem_gb < mib * 1.048576e-3 + 0.11


def test_a_csv_may_mark_the_default_partition_as_slurm_does(tmp_path):
    text = "name,gpus,cpus,mem_gb,partition\na,8,64,0.04,gpu*\nb,8,64,512,long;gpu*\nc,8,64,512,big\n"
    cluster, _ = as_cluster(read_nodes(written(tmp_path, text)), "Mine")
    assert [p.vcs for p in cluster.pools] == [["gpu", "long"], ["big"]]
    assert cluster.pools[0].groups[0].mem_gb == 0.04


def test_blanks_around_the_fields_of_a_csv_are_no_part_of_them(tmp_path):
    """Within a name they are."""
    text = "name,gpus,type,partition\nn1 , 8 ,A100 ,big mem \nn2,8,A100,big mem; long\nn3,8,A100,small\n"
    cluster, _ = as_cluster(read_nodes(written(tmp_path, text)), "Mine")
    assert [p.vcs for p in cluster.pools] == [["big mem", "long"], ["small"]]
    assert {g.gpu_type for p in cluster.pools for g in p.groups} == {"A100"} and cluster.gpu_types == "ignore"


def test_nodes_without_a_name_are_numbered(tmp_path):
    nodes = read_nodes(written(tmp_path, "name,gpus\na,8\n,4\n,2\n"))
    assert nodes.table["name"].tolist() == ["a", "node1", "node2"] and nodes.table["gpus"].tolist() == [8, 4, 2]


def test_partitions_that_share_nodes_are_one_pool(tmp_path):
    cluster, notes = as_cluster(read_nodes(written(tmp_path, SINFO)), "Mine")
    first, second = cluster.pools
    assert first.vcs == ["gpu", "long"] and [(g.nodes, g.gpus) for g in first.groups] == [(2, 8)]
    assert second.name == "small" and cluster.gpu_types == "match" and cluster.gpus == 20
    text = "; ".join(notes)
    assert "without GPUs: 1" in text and "list was made: 1;" in text and "gpu, long share nodes" in text


def test_csv_with_counts(tmp_path):
    nodes = read_nodes(
        written(
            tmp_path,
            "name,gpus,cpus,mem_gb,type,partition,nodes\na[1-3],8,64,512,A100,x,3\nb,4,32,,V100,y;z,2\nc,4,32,,V100,y,0\n",
        )
    )
    cluster, notes = as_cluster(nodes, "Mine")
    assert [(p.name, p.vcs) for p in cluster.pools] == [("x", ["x"]), ("y+z", ["y", "z"])] and cluster.gpus == 32
    assert cluster.pools[1].groups[0].mem_gb == 256 and any("64 GB a GPU" in line for line in notes)


def test_a_machine_list_of_others_is_read(tmp_path):
    nodes = read_nodes(written(tmp_path, "machineId, number of GPUs, single GPU mem\nm0,2, 12GB\nm1,8, 24GB\n"))
    cluster, _ = as_cluster(nodes, "Mine")
    assert list(nodes.table["name"]) == ["m0", "m1"]
    assert cluster.gpus == 10 and [p.name for p in cluster.pools] == ["all"]
    alibaba = read_nodes(written(tmp_path, "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\n"))
    theirs, remarks = as_cluster(alibaba, "Theirs")
    (group,) = theirs.pools[0].groups
    assert (group.gpu_type, group.gpus, group.cpus) == ("P100", 2, 64) and "assumed" not in str(remarks)
    assert group.mem_gb == pytest.approx(262144 * 1.048576e-3, abs=0.1)


def test_what_a_list_gives_as_nothing_is_assumed(tmp_path):
    cluster, remarks = as_cluster(read_nodes(written(tmp_path, "name,gpus,cpus,mem_gb\na,2,0,0\n")), "Mine")
    assert "8 cores and 64 GB a GPU are assumed" in str(remarks) and cluster.pools[0].groups[0].cpus == 16


def test_columns_that_stand_for_nothing_are_named(tmp_path):
    text = "name,gpu_count,memory_mb,cores_total,slurm_partition,\na,8,64000,32,x,\n"
    nodes = read_nodes(written(tmp_path, text))
    assert nodes.unused == ("cores_total", "slurm_partition")
    assert nodes.table[["gpus", "mem_gb"]].to_numpy().tolist() == [[8, 64.0]]
    assert any("not known from the list" in line for line in as_cluster(nodes, "Mine")[1])


def test_a_list_of_one_column_has_no_separator(tmp_path):
    assert list(read_nodes(written(tmp_path, "gpus\n8\n4\n")).table["gpus"]) == [8, 4]


def test_a_cluster_of_processors(tmp_path):
    cluster, notes = as_cluster(read_nodes(written(tmp_path, SINFO)), "Mine", "cpu")
    assert cluster.slots == "cpu" and cluster.gpus == 64 + 64 + 32 + 128
    assert any("equal parts" in line for line in notes)
    assert max(g.gpus for p in cluster.pools for g in p.groups) == 64


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty"]),
        ("name,colour\na,red\n", ["no column of GPUs nor of CPUs", "name, colour", "sinfo"]),
        ("name,gpus\na,many\n", ["nodes.txt:2", "gpus", "'many'"]),
        ("name,gpus\na,1\nb,inf\n", ["nodes.txt:3", "gpus", "'inf'"]),
        ("name,gpus\na,8\nb,-8\n", ["nodes.txt:3", "gpus", "'-8'", "expected whole numbers from 0 to 1,000,000"]),
        ("name,gpus,nodes\na,8,2.5\n", ["nodes.txt:2", "nodes", "'2.5'"]),
        ("\n# nodes\n", ["no column of GPUs nor of CPUs", "found #, nodes", "sinfo"]),
        ('name,gpus\n"a,8\n', ["nodes.txt: cannot be read as a table", "sinfo"]),
        ("name,gpus\n\na,8\n\nb,-8\n", ["nodes.txt:5: gpus: found '-8'"]),
        ("\nname,gpus\n\na[1-2],8\n", ["nodes.txt:4: found a[1-2]"]),
        ("name,gpus\n\na,8,9\n", ["nodes.txt:3: found 3 fields"]),
        (SINFO + "\nx|gpu\n", ["nodes.txt:8: found 2 fields"]),
        ("name,gpus,nodes\na,8,99999999999\n", ["nodes.txt:2", "nodes", "'99999999999'"]),
        (SINFO + "n[1-4]|gpu|64|1|gpu:a100:8|idle\n", ["nodes.txt:7", "n[1-4]", "several nodes", "sinfo --Node"]),
        ("name,gpus\na,8\ngpu[01-16],8\n", ["nodes.txt:3: found gpu[01-16], several nodes in one line, expected one"]),
        ("name,gpus,memory_mb\na,8,99999999999\n", ["found '99999999999', expected 0 to 32,768,000"]),
        ("name\tgpus\na\t8\n\t\nb\t-8\n", ["nodes.txt:4: gpus: found '-8'"]),
        ("name,gpus,mem\na,8,515000\n", ["nodes.txt:2: mem: found '515000', expected 0 to 32,768 GB (is it in MB?)"]),
        ("name,gpus\na,1\na,2\n", ["'a' is there twice"]),
        ("name,gpus,gpus\na,1,2\n", ["found columns gpus and gpus, expected one column for gpus"]),
        ("name,gpus,GPUs\na,1,2\n", ["found columns gpus and GPUs, expected one column for gpus"]),
        ("NODELIST|STATE\na|idle\n", ["PARTITION, CPUS, MEMORY, GRES", "sinfo --Node"]),
        (SINFO + "x|gpu\n", ["nodes.txt:7", "found 2 fields, expected 6"]),
        (SINFO + "x|gpu|many|1|gpu:1|idle\n", ["nodes.txt:7", "'many'"]),
        (SINFO + "x|gpu|8|inf|gpu:1|idle\n", ["nodes.txt:7", "MEMORY 'inf', expected numbers"]),
        (SINFO + "x|gpu|-64|1|gpu:1|idle\n", ["nodes.txt:7", "CPUS '-64'", "expected numbers"]),
        ("name,gpus\nn1,8,9\n", ["nodes.txt:2: found 3 fields, expected 2 as in the header"]),
        ("name,gpus,cpus\nn1,8,9,\nn2,8,9,\n", ["nodes.txt:2: found 4 fields, expected 3"]),
        ("NODELIST|PARTITION|CPUS|MEMORY|GRES\n", ["names no node"]),
        (SINFO + "x|gpu|64|1|gpu:a:b:c|idle\n", ["nodes.txt:7: GRES: found 'gpu:a:b:c', expected", "gpu:p100:4"]),
    ],
)
def test_what_is_wrong_is_said(text, parts, tmp_path):
    with pytest.raises(DataError) as error:
        read_nodes(written(tmp_path, text))
    assert not [part for part in parts if part not in str(error.value)], error.value


def test_no_file_and_no_gpus(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_nodes(tmp_path / "none")
    with pytest.raises(DataError, match="no node of the list has gpus"):
        as_cluster(read_nodes(written(tmp_path, "name,cpus\na,8\n")), "Mine")
