# SPDX-License-Identifier: LicenseRef-Undeclared
"""Shares of sites (docs/security.md) are those of each site, also of sites whose ids differ by a multiple of 256."""

import contextlib
import socket
import sqlite3

from harness import ORIGIN, Connection, eventually, problem, q, request_bytes, seconds

SECOND = "https://second.example"
THIRD = "https://third.example"
LINES = ("Accept", "application/x-ndjson")


def sites_apart(start, **more):
    """A server with three sites whose ids differ by 256, and a token for each."""
    server = start(**more)
    tokens, ids = [server.make_token("first", "--site", ORIGIN)], []
    for name, origin in (("second", SECOND), ("third", THIRD)):
        with contextlib.closing(sqlite3.connect(server.database, timeout=60)) as catalogue, catalogue:
            ids.append(catalogue.execute("SELECT max(id) FROM site").fetchone()[0])
            catalogue.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'site'", (ids[-1] + 255,))
        assert server.api("POST", "/v1/sites", {"origin": origin}).status == 201
        tokens.append(server.make_token(name, "--site", origin))
    with contextlib.closing(sqlite3.connect(server.database, timeout=60)) as catalogue:
        ids.append(catalogue.execute("SELECT max(id) FROM site").fetchone()[0])
    assert [n - ids[0] for n in ids] == [0, 256, 512]
    return server, tokens


def bearer(token):
    return "Authorization", f"Bearer {token}"


def test_long_polls_of_a_site_leave_another_its_share(start):
    server, tokens = sites_apart(start, config="[admin]\nmax_suspended = 64\n")
    waiting = lambda: server.metrics()["sitemapd_long_polls"]
    held = []

    def poll(token, count):
        since = server.api("GET", "/v1/changes?since=0", token=token).json()["next"]
        for _ in range(count):
            held.append(Connection(server.admin, timeout=seconds(120)))
            held[-1].send(request_bytes("GET", f"/v1/changes?since={q(since)}&wait=60", [bearer(token)], host=server.admin))

    try:
        before = 0
        for token, share in zip(tokens, (16, 8, 4)):  # of half of max_suspended, what is free
            poll(token, share)
            eventually(lambda: waiting() == before + share, "each of them waits")
            poll(token, 1)
            problem(held.pop().reply(), 503, "too-many-waiting")
            before += share
        assert waiting() == before
    finally:
        for connection in held:
            connection.close()
    eventually(lambda: waiting() == 0, "their places are free")


def test_slow_exports_of_a_site_leave_another_its_own(start):
    server, tokens = sites_apart(start)
    assert server.bulk([f"{ORIGIN}/{'long' * 100}/{i}.xml" for i in range(20000)]).status == 200
    assert server.bulk([f"{SECOND}/{i}.xml" for i in range(3)]).status == 200
    export = lambda token: server.api("GET", "/v1/sitemaps", headers=[LINES], token=token)
    readers = []
    try:
        for _ in range(4):
            readers.append(Connection(server.admin))
            readers[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            readers[-1].send(request_bytes("GET", "/v1/sitemaps", [bearer(tokens[0]), LINES], host=server.admin))
            assert readers[-1].take(15) == b"HTTP/1.1 200 OK"
        problem(export(tokens[0]), 503, "too-many-copies")
        assert export(tokens[1]).body.count(b"\n") == 3
    finally:
        for reader in readers:
            reader.close()
    eventually(lambda: export(tokens[0]).status == 200, "there is a place again")
