# SPDX-License-Identifier: LicenseRef-Undeclared
"""Clients that mean harm, or cannot help it. Whatever they send, others are answered, and memory,
descriptors and the catalogue stay within their bounds."""

import base64
import concurrent.futures
import json
import os
import random
import re
import signal
import socket
import stat
import time

import harness
import pytest
from harness import HOST, ORIGIN, PLAIN, Connection, eventually, q, request_bytes, seconds, slow_reader
from hostile import REFUSED, Generator

XML = "/sitemap_index.xml"


def connect(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), seconds(10))


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


# ---- bounds -------------------------------------------------------------------------------------


def test_connections_leave_descriptors_for_the_rest(start, tmp_path, monkeypatch):
    """A crowd on the public listener takes neither the admin listener's nor the catalogue's. With random delays, since a
    worker that was full when a connection was handed to it stopped for good, which is rare otherwise. (TSan's library,
    which delays come with, does not bear the shell.)"""
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -Sn 100 && ulimit -Hn 200 && exec {harness.BIN} "$@"\n')
    limited.chmod(stat.S_IRWXU)
    monkeypatch.setattr(harness, "BIN", str(limited))
    server = start(env={"FAULT_DELAYS": "1"} if PLAIN else {})
    assert server.wait_for_log("few-descriptors")
    assert server.register(ORIGIN + "/a.xml").status == 201
    crowd = [connect(server.public) for _ in range(300)]
    try:
        time.sleep(0.3)
        assert descriptors(server) < 200
        # More than memory holds, so that the list needs a file.
        assert server.bulk([f"{ORIGIN}/{'x' * 100}/{n}.xml" for n in range(2000)]).status == 200
        assert server.register(ORIGIN + "/b.xml").status == 201
    finally:
        for one in crowd:
            one.close()
    eventually(lambda: server.get(XML).status == 200, "the public listener answers again")


def late(server):
    """How many were kept until their time was over."""
    return [server.metrics()[f'sitemapd_http_connections_cut_total{{listener="public",reason="{why}-timeout"}}'] for why in ("header", "body", "reply")]


def test_a_half_closed_connection_is_closed_after_the_reply(shared):
    """With its last request, or with the second of two: it is answered, and not kept until the idle time-out."""
    before = late(shared)
    for number in range(6):
        with Connection(shared.public) as connection:
            one = request_bytes("GET", "/robots.txt")
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)  # one segment has it all
            connection.send(one * (1 + number % 2))
            connection.socket.shutdown(socket.SHUT_WR)
            replies = connection.rest()
            assert replies.count(b"HTTP/1.1 200 OK\r\n") == 1 + number % 2
    assert late(shared) == before


def test_half_a_request_on_a_half_closed_connection_is_closed(shared):
    before = late(shared)
    whole = request_bytes("GET", "/robots.txt")
    for data in (b"", b"GET /rob", whole[:-2], b"\r\n"):
        with Connection(shared.public) as connection:
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            connection.send(data)
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.rest() == b""
        assert late(shared) == before, data


@pytest.mark.skipif(not PLAIN, reason="takes longer to come in than it may")
def test_what_a_busy_server_has_not_read_is_not_late(start):
    """A header that came in time is answered, though nobody looked before its time was over."""
    server = start(config="[server]\nheader_timeout = 8s\n")
    begun = time.monotonic()
    held = [Connection(server.public) for _ in range(900)]
    try:
        eventually(lambda: server.metrics()['sitemapd_http_connections{listener="public"}'] >= len(held), "all are accepted")
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            for connection in held:
                connection.send(request_bytes("GET", "/robots.txt"))
            if time.monotonic() - begun > 6:
                pytest.skip("this machine is so slow that they did not come in time")
            time.sleep(8.3)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        assert [c.reply().status for c in held] == [200] * len(held)
    finally:
        for connection in held:
            connection.close()


def memory(server):
    """Resident bytes."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def noise(size):
    """Text that gzip makes nothing of."""
    return base64.b64encode(random.Random(size).randbytes(size)).decode().replace("/", "_").replace("+", "-")[:size]


def test_slow_readers_of_old_pages_are_cut_off(start):
    """Each holds another version of a page: together no more than snapshot_budget and one page."""
    budget = 24 << 20
    server = start(env={"SITEMAPD_CACHE_SNAPSHOT_BUDGET": str(budget)})
    text = noise(12000 * 1000)
    locs = [f"{ORIGIN}/{text[n * 1000 : n * 1000 + 1000]}.xml" for n in range(12000)]
    assert server.bulk(locs).status == 200
    page_bytes = len(server.get(XML, {"Accept-Encoding": "gzip"}).body)
    assert page_bytes > 8 << 20, "more than the system takes into a socket's buffer"
    readers = []
    try:
        for number in range(8):
            readers.append(slow_reader(server.public, request_bytes("GET", XML, {"Accept-Encoding": "gzip", "Connection": "close"})))
            assert readers[-1].recv(1) == b"H"
            assert server.register(locs[0], lastmod=f"2026-01-{number + 1:02}").status == 200
        eventually(lambda: server.metrics()["sitemapd_snapshot_bytes"] <= budget + page_bytes, "the budget holds")
        # Who asked last gets the whole page, the longest at it got less, and the page is served.
        for reader in (readers[0], readers[-1]):
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        got = [sum(len(piece) for piece in iter(lambda: receive(reader), b"")) for reader in (readers[0], readers[-1])]
        assert got[0] < page_bytes < got[1]
        assert server.get(XML).status == 200
    finally:
        for reader in readers:
            reader.close()


def receive(reader):
    try:
        return reader.recv(1 << 20)
    except ConnectionResetError:
        return b""


def cut_for_memory(server):
    return server.metrics()['sitemapd_http_connections_cut_total{listener="admin",reason="request-memory"}']


def test_bodies_that_stall_keep_no_more_than_their_share(start):
    """The least that may be kept is 32 MiB; one site's tokens send more and stop before the end, another's body is read."""
    server = start(sites=(ORIGIN, "https://other.example"), env={"SITEMAPD_CACHE_SNAPSHOT_BUDGET": "1M"})
    mine, others = (server.make_token(name, "--site", site, "--role", "admin") for name, site in (("mine", ORIGIN), ("others", "https://other.example")))

    def begin(token, site, size):
        body = json.dumps({"robots": "# " + "x" * size}).encode()
        connection = Connection(server.admin)
        connection.send(request_bytes("PATCH", f"/v1/sites/{site}", {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}, body, host=server.admin)[:-1])
        return connection

    honest = begin(others, 2, 400000)
    stalled = [begin(mine, 1, 1000000) for _ in range(50)]
    try:
        eventually(lambda: cut_for_memory(server) >= 15, "the longest of that site are cut off")
        assert stalled[0].rest() == b"", "it was cut off"
        assert memory(server) < (200 << 20) * harness.SLOWNESS
        honest.send(b"}")
        assert honest.reply().status == 200
        stalled[-1].send(b"}")
        assert stalled[-1].reply().status == 422, "robots.txt has a limit of its own"
    finally:
        for connection in (honest, *stalled):
            connection.close()


def test_replies_that_nobody_reads_keep_no_more_than_their_share(start):
    server = start(env={"SITEMAPD_CACHE_SNAPSHOT_BUDGET": "1M"})
    assert server.api("POST", "/v1/urlsets", {"url": "/urls.xml", "with": ["images"]}).status == 201
    image = "https://cdn.example.com/" + "i" * 2000
    rows = [{"loc": f"{ORIGIN}/{n}", "images": [f"{image}{i}" for i in range(8)]} for n in range(600)]
    assert server.bulk(rows, "/v1/urls?urlset=/urls.xml").status == 200
    asked = request_bytes("GET", "/v1/urls?urlset=/urls.xml&limit=1000", {"Authorization": f"Bearer {server.token}"}, host=server.admin)
    readers = []
    try:
        for _ in range(10):
            readers.append(slow_reader(server.admin, asked))
        eventually(lambda: cut_for_memory(server) >= 5, "the longest are cut off")
        assert server.api("GET", "/v1/urls?urlset=/urls.xml&limit=1000").status == 200
    finally:
        for reader in readers:
            reader.close()


def test_a_stop_does_not_wait_for_slow_clients(start):
    """Half a header, half a body, and a reader who does not read: none keeps the server from its end."""
    server = start(env={f"SITEMAPD_SERVER_{name}_TIMEOUT": "24h" for name in ("HEADER", "BODY", "REPLY", "IDLE")})
    text = noise(12000 * 1000)
    assert server.bulk([f"{ORIGIN}/{text[n * 1000 : n * 1000 + 1000]}.xml" for n in range(12000)]).status == 200
    assert server.get(XML, {"Accept-Encoding": "gzip"}).status == 200, "the page is made: that is not what a stop waits for here"
    half = request_bytes("GET", XML, {"X": "y"})[:-4]
    body = request_bytes("POST", "/v1/sitemaps", [("Authorization", f"Bearer {server.token}"), ("Content-Type", "application/json"), ("Content-Length", "99")], b"[", host=server.admin)
    with Connection(server.public) as one, Connection(server.admin) as two, Connection(server.public) as three:
        one.send(half)
        two.send(body)
        three.send(request_bytes("GET", XML, {"Accept-Encoding": "gzip"}))
        assert three.receive().startswith(b"HTTP/1.1 200 ")
        connected = lambda now: [now[f'sitemapd_http_connections{{listener="{name}"}}'] for name in ("public", "admin")]
        eventually(lambda: connected(server.metrics()) == [2, 2], "all three are there, beside this call")
        server.stop()


# ---- requests that nobody honest sends ----------------------------------------------------------

REQUESTS = 1600  # for each listener
BATCH = 100
GROWTH = 48 << 20
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warning|info|debug) [a-z-]+: [^\x00-\x1f\x7f]*$")
ACCESS_LINE = re.compile(r'^[0-9.]+ - \S+ \[[^\]]+\] "[^" \x00-\x1f\x7f-\xff]+ [^"\x00-\x1f\x7f-\xff]*" \d{3} \d+ "[^"]*" "[^"]*"$')
SUCCESS = re.compile(rb"HTTP/1\.1 [23]\d\d ")


def throw(address, data):
    """Sends it, ends our side, and gives what came back before the server ended its own."""
    with Connection(address, seconds(20)) as connection:
        try:
            connection.socket.settimeout(seconds(60))
            connection.send(data)
            connection.socket.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            pass
        return connection.rest()


def verify(kind, data, answer):
    assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (data[:300], answer[:300])
    if kind == REFUSED:
        assert not SUCCESS.search(answer), (data[:600], answer[:600])
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"problem+json" in head and answer.count(b"HTTP/1.1 ") == 1 and body:
        json.loads(body.decode("utf-8"))


def test_malformed_requests(start, tmp_path):
    """On both listeners, hundreds at a time: each is refused or cut off, what is hidden in it is not answered, and the
    honest are served before, between and after."""
    access = tmp_path / "access.log"
    short = {f"SITEMAPD_SERVER_{name}_TIMEOUT": "5s" for name in ("HEADER", "BODY", "IDLE")}
    server = start(env={**short, "SITEMAPD_LOG_ACCESS_LOG": str(access)})
    assert server.register(ORIGIN + "/a.xml").status == 201
    page = server.get(XML)
    generators = [
        (server.public, Generator(random.Random(1), HOST, XML)),
        (server.admin, Generator(random.Random(2), server.admin, "/healthz", server.token)),
    ]
    before, ours = None, []

    def attack(case):
        address, kind, data = case
        answer = throw(address, data)
        verify(kind, data, answer)
        if b"\r\nCache-Control: " in answer:  # the library's own refusals have none, and no line in the log
            ours.append(kind)

    with concurrent.futures.ThreadPoolExecutor(48) as pool:
        for number in range(REQUESTS // BATCH):
            cases = [(address, *generator.one()) for address, generator in generators for _ in range(BATCH)]
            list(pool.map(attack, cases))
            again = server.get(XML)
            assert (again.status, again.body, again["ETag"]) == (200, page.body, page["ETag"])
            assert server.api("GET", "/v1/sitemaps").json()["next"] is None
            if number == 3:
                before = memory(server)
    assert [e["loc"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]] == [ORIGIN + "/a.xml"]
    if harness.PLAIN:
        assert memory(server) - before < GROWTH
    eventually(lambda: descriptors(server) < 60, "no connection stays")
    server.stop()  # every line is written
    log = server.log()
    for line in log.splitlines():
        assert LOG_LINE.match(line), line
    lines = access.read_bytes().decode("latin-1").split("\n")
    assert lines.pop() == "" and len(lines) >= len(ours) > REQUESTS * 3 // 4  # libmicrohttpd 1.0 refuses more by itself than 0.9.75
    for line in lines:
        assert ACCESS_LINE.match(line), line
    for secret in (server.token, "Bearer"):
        assert secret not in log and secret not in access.read_text()


# ---- tokens -------------------------------------------------------------------------------------


def test_a_token_for_one_site_reaches_no_other(start):
    """Neither by read nor by write, nor by way of what it may do to its own site."""
    other = "https://aaa.example.org"
    server = start(sites=(ORIGIN, other))
    for origin in (ORIGIN, other):
        assert server.register(origin + "/a.xml").status == 201
    sites = {s["origin"]: s["id"] for s in server.api("GET", "/v1/sites").json()["sites"]}
    indexes = {i["url"]: i["id"] for i in server.api("GET", "/v1/indexes").json()["indexes"]}
    entries = {e["loc"]: e["id"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]}
    assert server.api("PATCH", f"/v1/sites/{sites[other]}", {"host_aliases": ["alias.example.net"]}).status == 200
    token = server.cli("token", "add", "mine", "--site", ORIGIN).out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
    index, entry, loc = other + "/sitemap_index.xml", entries[other + "/a.xml"], other + "/a.xml"

    def state():
        return [server.get(path, host="aaa.example.org").body for path in (XML, "/robots.txt")] + [
            server.get("/robots.txt", host="alias.example.net").body, server.api("GET", f"/v1/sites/{sites[other]}").body,
        ]

    before = state()
    calls = [
        ("GET", f"/v1/sitemaps/{entry}"), ("DELETE", f"/v1/sitemaps/{entry}"), ("DELETE", "/v1/sitemaps?loc=" + q(loc)),
        ("POST", "/v1/sitemaps", {"loc": other + "/b.xml"}), ("POST", "/v1/sitemaps", {"loc": loc, "index": ORIGIN + "/sitemap_index.xml"}),
        ("POST", "/v1/sitemaps", {"loc": ORIGIN + "/b.xml", "index": index}), ("POST", "/v1/sitemaps", [{"loc": other + "/b.xml"}]),
        ("POST", "/v1/sitemaps?on_error=skip&index=" + q(index), [{"loc": other + "/b.xml"}]),
        ("PUT", "/v1/sitemaps?source=*&index=" + q(index), [{"loc": other + "/b.xml"}]), ("PUT", f"/v1/sitemaps?max_removed=9&source=environment&index={q(index)}", []),
        ("GET", "/v1/sitemaps?index=" + q(index)), ("GET", f"/v1/indexes/{indexes[index]}"), ("DELETE", f"/v1/indexes/{indexes[index]}?max_removed=9"),
        ("POST", "/v1/indexes", {"url": other + "/x/index.xml"}), ("GET", f"/v1/sites/{sites[other]}"), ("PATCH", f"/v1/sites/{sites[other]}", {"host_aliases": []}),
        ("DELETE", f"/v1/sites/{sites[other]}?max_removed=9"), ("DELETE", f"/v1/sites/{sites[ORIGIN]}?max_removed=9"), ("POST", "/v1/sites", {"origin": "https://new.example"}),
        ("PATCH", f"/v1/sites/{sites[ORIGIN]}", {"host_aliases": ["alias.example.net"]}), ("PATCH", f"/v1/sites/{sites[ORIGIN]}", {"host_aliases": ["ALIAS.example.net:8080"]}),
    ]
    for method, target, *body in calls:
        reply = server.api(method, target, *body, token=token)
        if "on_error=skip" in target and reply.status == 200:
            assert reply.json()["created"] == 0 and reply.json()["rejected_total"] == 1, reply
        else:
            assert reply.status in (403, 404, 409, 422), (method, target, reply)
        assert b"aaa.example.org/a.xml" not in reply.body or method == "POST", (method, target, reply)
        assert state() == before, (method, target)
    for target in ("/v1/sites", "/v1/indexes", "/v1/sitemaps", "/v1/changes?since=0", "/v1/sitemaps?loc=" + q(loc), f"/v1/sitemaps?prefix={q(other)}/"):
        assert b"aaa.example.org" not in server.api("GET", target, token=token).body, target


def test_a_token_revoked_elsewhere_is_refused_at_once(server):
    """One of some counts: whatever else the machine does, it does not do each time."""
    for _ in range(10):
        token = server.cli("token", "add", "mine").out.strip()
        eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
        assert server.cli("token", "revoke", "mine").code == 0
        if server.api("GET", "/v1/sites", token=token).status == 401:
            return
        eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 401, "it is not any more")
    pytest.fail("the command ends before its token does")
