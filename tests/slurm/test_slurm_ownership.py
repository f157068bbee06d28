"""Which priorities count as the controller's: of requeued, unreadable and array jobs, and of those that others changed."""

from dataclasses import replace

import pytest
from fake_slurm import BAND, NOW_S, assigned, controller, cycled, job, no_answer, priorities, ranked

from rltune.errors import SlurmUnavailable
from rltune.slurm.ownership import Assignment, Ownership

ARRAYS = {"partitions": ["gpu"], "also": ["arrays"]}
OTHERS = {12: "somebody has set its priority"}


def test_requeued_jobs_are_known_again_and_counted_while_they_run(tmp_path):
    """They run for some cycles, and come back with the priority they had, during the cycles or after the release."""
    slurm, made = ranked(tmp_path, cycles=1)
    for number in (11, 12, 13):
        slurm.start(number)
    cycled(made, 2)
    slurm.requeue(11)
    assert made.cycle().ranked == 4 and slurm.queue[11].priority in BAND
    assert made.release_all("test") == (4, []) and "released 4 jobs to Slurm; 2 jobs on the list run" in made.said[-1]
    slurm.requeue(12)
    made.release_all("later")
    assert "released 1 jobs to Slurm; 1 jobs on the list run" in made.said[-1] and set(assigned(made)) == {13}
    del slurm.queue[13]
    made.release_all("at last")
    assert made.said[-1] == "released 0 jobs to Slurm: at last" and not assigned(made) and slurm.all_released()


def test_a_task_of_a_ranked_array_takes_the_arrays_priority_over(tmp_path):
    slurm, made = ranked(tmp_path, cycles=0, n=0, eligible=ARRAYS)
    slurm.add(job(50, array_id=50, tasks="1-9"))
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, tasks=""))
    slurm.computed[51] = 4000
    made.release_all("test")
    assert slurm.all_released()


def test_tasks_of_an_array_whose_priority_somebody_has_set(tmp_path):
    slurm, made = ranked(tmp_path, cycles=0, n=0, eligible=ARRAYS)
    slurm.add(job(50, array_id=50, tasks="1-9"))
    made.cycle()
    slurm.add(replace(slurm.queue[50], id=51, tasks=""))
    made.cycle()
    slurm.change(51, priority=777)
    assert made.cycle().left == {51: "somebody has set its priority"}
    slurm.change(50, priority=888)
    for number in (52, 53):
        slurm.add(replace(slurm.queue[50], id=number, tasks=""))
        assert {50, 51, 52} <= made.cycle().left.keys()
    made.release_all("test")
    assert priorities(slurm) == {50: 888, 51: 777, 52: 888, 53: 888}


def test_tasks_of_an_array_that_others_hold_or_set_stay_so(tmp_path):
    """While the rest of the array gets other priorities, and is released."""
    slurm, made = ranked(tmp_path, cycles=0, n=0, eligible=ARRAYS)
    slurm.add(job(50, array_id=50, tasks="1-9"), job(60))
    made.cycle()
    slurm.add(*(replace(slurm.queue[50], id=number, tasks="") for number in (51, 52)))
    cycled(made, 2)
    slurm.hold(51)
    slurm.change(52, priority=777)
    given = set()
    for number in range(100, 130):
        slurm.add(job(number, submit_s=NOW_S - 30 * 3600 - number))  # waits too long, and goes first
        made.cycle()
        given.add(slurm.queue[50].priority)
    assert len(given) > 1 and (slurm.queue[51].priority, slurm.queue[52].priority) == (0, 777)
    made.release_all("test")
    assert slurm.queue[51].held and slurm.queue[52].priority == 777 and slurm.queue[50].priority == slurm.computed[50]


def test_an_unreadable_record_does_not_keep_ended_jobs_on_the_list(tmp_path):
    """Job 15 cannot be read as long as it lives; the others end, one by one, and Slurm forgets them."""
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.hidden, slurm.faults = {15}, ("job 15: time_limit: found 'x'",)
    assert made.cycle().faults == slurm.faults
    del slurm.queue[10]
    for _ in range(3):
        assert made.cycle().ranked == 4, "the others are ranked"
    assert set(assigned(made)) == {11, 12, 13, 14, 15}
    slurm.change(11, state="COMPLETED")
    slurm.hidden.add(11)
    cycled(made, 2)
    assert set(assigned(made)) == {12, 13, 14, 15}
    del slurm.queue[12]
    assert made.release_all("test") == (3, []), "13, 14 and the one that cannot be read"
    assert slurm.all_released() and not assigned(made)


def test_a_job_is_forgotten_when_two_answers_in_a_row_lack_it(tmp_path):
    slurm, made = ranked(tmp_path, cycles=1, eligible={"partitions": ["gpu"], "priority_below": 50_000})
    slurm.hidden = {12}
    made.cycle()
    slurm.hidden = set()
    assert made.cycle().ranked == 6 and assigned(made)[12].missed == 0, "its priority is known for the controller's"
    del slurm.queue[12]
    for left in ({*range(10, 16)}, {10, 11, 13, 14, 15}):
        made.cycle()
        assert assigned(made).keys() == left


def test_answers_that_lack_every_job_lose_none(tmp_path):
    """As one without a line, with exit status 0; asked for by their ids, that answer is empty too."""
    slurm, made = ranked(tmp_path, cycles=1)
    slurm.hidden, states = set(range(10, 16)), slurm.states
    slurm.states = lambda ids: {}  # type: ignore[method-assign]
    cycled(made, 5)
    made.release_all("test")
    assert set(assigned(made)) == set(range(10, 16)), "not unknown by Slurm's word, and so kept"
    slurm.states = states  # type: ignore[method-assign]
    assert made.release_all("test") == (6, []) and not assigned(made) and slurm.all_released()


@pytest.mark.parametrize(
    ("priority", "below"), [(777, None), (777, 4_000_000_000), (5_000_000, None), (3_000_000, 4_000_000)]
)
def test_a_priority_that_somebody_else_sets_stays(tmp_path, priority, below):
    """Eligible, lower or higher than the band; after a restart, too, and as long as the job is there."""
    eligible = {"partitions": ["gpu"], "priority_below": below}
    slurm, made = ranked(tmp_path, eligible=eligible)
    slurm.change(12, priority=priority)
    for _ in range(3):
        assert made.cycle().left == OTHERS
    assert 12 not in assigned(made) and made.directory.ownership().overridden == {12: 0}
    assert made.release_all("test")[0] == 5 and slurm.queue[12].priority == priority
    again = controller(slurm, tmp_path, eligible=eligible)
    again.cycle()
    slurm.start(12)
    again.cycle()
    slurm.requeue(12)
    assert again.cycle().left == OTHERS and slurm.queue[12].priority == priority
    assert {change.job for change in slurm.writes[6:]} == {10, 11, 13, 14, 15}
    del slurm.queue[12]
    for overridden in ({12: 1}, {}):
        again.cycle()
        assert again.directory.ownership().overridden == overridden


def test_a_job_that_is_eligible_again_is_ranked_again(tmp_path):
    """Also where nobody heard that Slurm did release it."""
    slurm, made = ranked(tmp_path)
    slurm.change(12, dependency="afterok:1")
    slurm.after_release = no_answer
    with pytest.raises(SlurmUnavailable):
        made.cycle()
    assert slurm.queue[12].priority == slurm.computed[12]
    slurm.after_release = lambda: None
    assert made.cycle().left == {12: "depends on other jobs"}
    slurm.change(12, dependency="")
    assert made.cycle().ranked == 6 and not made.directory.ownership().overridden


@pytest.mark.parametrize("case", ["late", "previous", "other band"])
def test_any_priority_that_was_sent_counts_as_the_controllers(tmp_path, case):
    """Nobody heard what became of two changes, and the first arrives; killed before Slurm heard of it; another `band`."""
    slurm, made = ranked(tmp_path, cycles=1)
    given, before = assigned(made), slurm.queue[12].priority
    if case == "other band":
        made = controller(slurm, tmp_path, band=[3_000_000, 4_000_000])
    else:
        sent = Assignment(BAND.low + 9, BAND.low + 7 if case == "late" else before)
        made.directory.write(Ownership({**given, 12: sent}))
    assert made.release_all("test") == (6, []) and slurm.all_released()
