"""The scores of all policies as one compiled function."""

from numba import njit

from rltune.policies.registry import POLICIES


def _or_else(number, score, others):
    """The score of one policy where its number is asked for, else what ``others`` says."""
    score = njit(inline="always")(score)
    if others is None:
        return njit(inline="always")(lambda policy, job: score(job))

    @njit(inline="always")
    def chosen(policy, job):
        if policy == number:
            return score(job)
        return others(policy, job)

    return chosen


_scores = None
for _number, _policy in reversed(list(enumerate(POLICIES.values()))):
    _scores = _or_else(_number, _policy.score, _scores)


@njit(cache=True)
def compiled_score(policy, job):
    """Score of one job (Facts) under the policy of this number; lower goes first."""
    return _scores(policy, job)
