"""The parameters of each synthetic trace: rounded from what is published of the trace, or our choice.

Published: Jeon et al., USENIX ATC 2019 (Philly); Weng et al., NSDI 2022 (PAI); the RLTune
paper's Tables 2 and 4; the headers of the logs in the Parallel Workloads Archive. Medians, shares of GPU counts and
arrival rates are those of published rows, rounded; sigmas are chosen so that mean run times come out near the rows'.
"""

from dataclasses import replace

from rltune.traces.synthetic.model import DAY_S, Model

PHILLY = Model(
    salt=2017,
    start="2017-10-16 00:00:00",
    time_zone="America/Los_Angeles",
    users=319,  # paper, Table 4
    jobs_per_hour=70.0,
    gpus={1: 0.888, 2: 0.02, 4: 0.044, 8: 0.041, 16: 0.0055, 32: 0.0014, 64: 0.0001},
    run_s={1: (1500, 2.3), 128: (9000, 2.45)},
    longest_s=60 * DAY_S,  # paper, Table 4
    wait=(0.6, 2703.3, 1.8),  # the mean: paper, Table 2
    daily=0.15,
    weekend=0.9,
    day_sigma=0.5,
    burst_exponent=1.1,
    gap_s=10.0,
    vcs={f"vc{k:02d}": 1 / k for k in range(1, 15)},
)
PAI = Model(
    salt=2022,
    start="1970-01-26 00:00:00",  # PAI's clock is shifted: a Monday of it
    time_zone="Asia/Shanghai",
    users=1242,  # paper, Table 4
    jobs_per_hour=427.0,
    gpus={
        1: 0.77,
        2: 0.03,
        4: 0.03,
        5: 0.018,
        8: 0.015,
        10: 0.046,
        16: 0.02,
        20: 0.022,
        30: 0.017,
        50: 0.02,
        100: 0.01,
        200: 0.002,
    },
    run_s={1: (450, 2.15), 9: (900, 2.15), 400: (1700, 1.75)},
    longest_s=30 * DAY_S,  # paper, Table 4
    wait=(0.8, 22.1, 1.5),  # the mean: paper, Table 2
    daily=0.1,
    day_sigma=0.1,
    gap_s=5.0,
    same_gpus=0.45,
)
HPC2N = Model(
    salt=2002,
    start="2002-07-29 00:00:00",
    time_zone="Europe/Stockholm",
    users=256,
    jobs_per_hour=6.55,
    gpus={
        1: 0.307,
        2: 0.233,
        4: 0.107,
        6: 0.025,
        8: 0.092,
        10: 0.018,
        12: 0.014,
        16: 0.068,
        20: 0.016,
        24: 0.018,
        32: 0.067,
        36: 0.02,
        64: 0.013,
        128: 0.002,
    },
    run_s={1: (4000, 2.1), 2: (1000, 2.2), 240: (300, 2.9)},
    longest_s=5 * DAY_S,
    wait=(0.45, 15_900, 1.5),
    daily=0.7,
    weekend=0.6,
    day_sigma=0.5,
    burst_exponent=1.0,
    burst_most=150,
    gap_s=15.0,
    same_gpus=0.9,
    user_run=0.25,
)
SDSC_SP2 = replace(
    HPC2N,
    salt=1998,
    start="1998-04-27 00:00:00",
    time_zone="America/Los_Angeles",
    users=437,
    jobs_per_hour=2887 / (30 * 24),  # paper, Table 2, as are the means of GPUs (44,416 / 2,887), run times and waits
    gpus={1: 0.256, 2: 0.2, 4: 0.155, 8: 0.121, 16: 0.094, 32: 0.073, 64: 0.057, 128: 0.044},
    run_s={128: (1250, 2.25)},
    longest_s=64_800,  # 18 hours, the usual limit of such a centre's queues
    wait=(0.3, 10_403.6, 1.5),
)
EXAMPLE = Model(
    salt=2024,
    start="2024-01-08 00:00:00",
    time_zone="Europe/Berlin",
    users=48,
    jobs_per_hour=4.0,  # asks for six tenths of 128 GPUs, and in busy weeks for more than all
    gpus={1: 0.52, 2: 0.05, 4: 0.08, 8: 0.262, 16: 0.052, 24: 0.01, 32: 0.024},
    run_s={1: (215, 2.8), 256: (420, 3.1)},
    longest_s=7 * DAY_S,
    wait=(0.75, 1253.3, 1.8),
    daily=0.6,
    weekend=0.75,
    same_gpus=0.9,
)
"""A made-up Slurm cluster of 16 nodes of 8 GPUs: what a report on an operator's log looks like."""
FINETUNING = Model(
    salt=2026,
    start="2025-01-06 00:00:00",
    time_zone="Europe/Berlin",
    users=16,
    jobs_per_hour=1024 / 48,  # as many as the paper submits (§5.6), in two days
    gpus={1: 0.54, 2: 0.34, 4: 0.08, 8: 0.04},
    run_s={1: (465, 1.08), 2: (763, 1.06), 4: (1140, 0.92), 8: (1020, 0.8)},
    longest_s=10 * 3600,
    shortest_s=45,
    daily=0.2,
    day_sigma=0.1,
    burst_most=25,
    gap_s=120.0,
    same_gpus=0.7,
    user_run=0.05,
    burst_run=0.15,
)
"""The jobs of the deployment (paper §5.6): fine-tuning and inference of language models on 13 GPUs. The paper gives no
distributions; these are our choice: minutes to hours, and the work of two days on that cluster."""
