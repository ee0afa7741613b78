"""The short form of rounds.py: each of what breaks, once."""

import pytest

from harness import assert_no_report
from rounds import Cluster


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(str(tmp_path), seed=1)
    try:
        yield made
    finally:
        made.end()
    for node in made.nodes:
        assert_no_report(node.log())


def test_nothing_acknowledged_is_lost_whatever_breaks(cluster):
    for fault in Cluster.FAULTS:
        print(cluster.round(fault))
