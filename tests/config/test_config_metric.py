"""What an agent is rewarded for has one name only, which is also a part of its cell's folder."""

import pytest

from rltune.config.metric import METRICS, parse_metric
from rltune.errors import ConfigError


def test_metrics_and_mixes():
    assert [parse_metric(m) for m in METRICS] == [{m: 1.0} for m in METRICS]
    mix = parse_metric("0.5*wait+0.2*bsld+0.3*utilisation")
    assert mix == {"wait": 0.5, "bsld": 0.2, "utilisation": 0.3} and list(mix) == ["wait", "bsld", "utilisation"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("speed", "expected wait, jct, bsld, utilisation, or a mix"),
        ("", "or a mix"),
        ("wait+bsld", "or a mix"),
        ("1*wait", "or a mix"),
        ("0.5*wait+0.5*wait", "or a mix"),
        ("-0.5*wait+1.5*bsld", "or a mix"),
        ("nan*wait+0.5*bsld", "or a mix"),
        ("0.5*wait+0.4*bsld", "add up to 0.9, expected 1"),
        ("0.3*utilisation+0.7*wait", r"written as 0.7\*wait\+0.3\*utilisation"),
        ("0.70*wait+0.3*utilisation", r"written as 0.7\*wait\+0.3\*utilisation"),
        ("0.7 * wait + 0.3 * utilisation", r"written as 0.7\*wait\+0.3\*utilisation"),
    ],
)
def test_other_names(name, says):
    with pytest.raises(ConfigError, match=says):
        parse_metric(name)
