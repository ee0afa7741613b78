# SPDX-License-Identifier: LicenseRef-Undeclared
"""The short form of rounds.py: each of what breaks, once, but for what takes long."""

import pytest

from harness import assert_no_report
from rounds import Rounds


@pytest.fixture
def rounds(tmp_path):
    made = Rounds(tmp_path, seed=1)
    try:
        yield made
    finally:
        made.end()
    for node in made.nodes:
        assert_no_report(node.log())


def test_nothing_acknowledged_is_lost_whatever_breaks(rounds):
    for fault in rounds.QUICK:
        if rounds.can(fault):
            print(rounds.round(fault))
