# SPDX-License-Identifier: LicenseRef-Undeclared
"""Lists on several nodes in a loop, and what small writes wait for meanwhile: a figure of a dozen long lists."""

import contextlib
import threading

from harness import eventually
from nodes import equal, loc


def test_of_lists_on_several_nodes_a_small_write_waits_for_one(cluster):
    """Two nodes are sent one list after another, each longer than others take over while they hold the lock."""
    nodes = cluster.three()
    writes_each = 6
    done = threading.Event()
    lists, problems = [0], []

    def send_lists(node, name):
        while not done.is_set():
            lists[0] += 1
            body = "".join(f'{{"loc":"{loc(f"{name}-{i}-{i * 7919 % 104729}")}","lastmod":"2026-01-{1 + lists[0] % 28:02}"}}\n' for i in range(120_000))
            with contextlib.suppress(OSError):  # no answer came in time: another list goes on
                reply = node.api("POST", "/v1/sitemaps", body=body.encode(), content_type="application/x-ndjson")
                if reply.status not in (200, 503):
                    problems.append((name, reply.status, reply.body))

    senders = [threading.Thread(target=send_lists, args=(node, name)) for node, name in zip(nodes, "ab")]
    for sender in senders:
        sender.start()
    waited = []
    try:
        eventually(lambda: int(cluster.postgres.sql("SELECT count(*) FROM sitemapd.log WHERE parts > 0")) > 1, "lists", within=120)
        for i in range(writes_each):
            for node, name in ((nodes[2], "c"), (nodes[0], "a")):
                head = cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log")
                assert node.register(loc(f"small-{name}-{i}")).status == 201
                waited.append(int(cluster.postgres.sql(
                    f"SELECT count(*) FROM sitemapd.log WHERE parts > 0 AND seq > {head} AND seq <"
                    f" (SELECT max(seq) FROM sitemapd.log WHERE node = '{name}' AND parts = 0)")))
    finally:
        done.set()
        for sender in senders:
            sender.join()
    assert not problems
    # Another may end between our look and the write, or begin while a node is at the one before.
    assert sum(waited) <= 1.5 * len(waited), waited
    equal(nodes)
