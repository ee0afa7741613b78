# SPDX-License-Identifier: LicenseRef-Undeclared
"""The reader of /metrics refuses what is wrong: each fault is found, and a good text passes."""

import pytest

from exposition import Values, parse

GOOD = """# HELP sitemapd_a_total Things.
# TYPE sitemapd_a_total counter
sitemapd_a_total{x="1",y="a\\"b\\\\c\\nd"} 3
sitemapd_a_total{x="2",y=""} 4
# HELP sitemapd_b_seconds Times.
# TYPE sitemapd_b_seconds histogram
sitemapd_b_seconds_bucket{le="0.1"} 1
sitemapd_b_seconds_bucket{le="1"} 2
sitemapd_b_seconds_bucket{le="+Inf"} 2
sitemapd_b_seconds_sum 0.6
sitemapd_b_seconds_count 2
"""

FAULTS = [
    ("# HELP sitemapd_a_total Things.\n", ""),  # samples without a family's head
    ("# TYPE sitemapd_a_total counter\n", ""),
    ("Things.", ""),
    ("# TYPE sitemapd_a_total counter", "# TYPE sitemapd_a_total gauge"),  # _total is a counter's
    ("sitemapd_a_total", "sitemapd_a"),  # and a counter has it
    ("sitemapd_a_total", "other_a_total"),
    ("sitemapd_b_seconds", "sitemapd_b_ms"),
    ("sitemapd_b_seconds", "sitemapd_histogram_seconds"),
    ('{x="2",y=""} 4', '{x="2",x=""} 4'),
    ('{x="2",y=""} 4', '{x="2",y="",} 4'),
    ('{x="2",y=""} 4', '{x="2" y=""} 4'),
    ('{x="2",y=""} 4', '{x="2",z=""} 4'),
    ('{x="2",y=""} 4', '{x="2",y="\\t"} 4'),
    ('{x="2",y=""} 4', '{x="2",y="a"b"} 4'),
    ('{x="2",y=""} 4', '{x="1",y="a\\"b\\\\c\\nd"} 4'),  # the same series twice
    ("4\n", "-4\n"),
    ("4\n", "four\n"),
    ("4\n", "4 \n"),
    ("4\n", "4\n\n"),
    ('le="1"} 2', 'le="1"} 3'),  # more than all
    ('le="0.1"', 'le="2"'),
    ('_bucket{le="+Inf"} 2\n', '_count 2\n'),
    ("sitemapd_b_seconds_count 2\n", ""),
    ("sitemapd_b_seconds_count 2\n", "sitemapd_b_seconds_count 3\n"),
    ("sum 0.6", "sum 60"),  # more than its buckets allow
    ("sitemapd_b_seconds_count 2\n", "sitemapd_b_seconds_count 2"),
    ("sitemapd_b_seconds_sum", "sitemapd_a_total"),
]


def test_a_good_text():
    values = Values(GOOD)
    assert values.get("sitemapd_a_total", x="1", y='a"b\\c\nd') == 3
    assert values.get("sitemapd_b_seconds_bucket", le="1") == 2
    assert values.get("sitemapd_b_seconds_sum") == 0.6
    assert values.get("sitemapd_a_total", x="3", y="") == 0


@pytest.mark.parametrize("right,wrong", FAULTS)
def test_each_fault_is_found(right, wrong):
    assert right in GOOD
    with pytest.raises((AssertionError, KeyError, IndexError)):
        parse(GOOD.replace(right, wrong))
