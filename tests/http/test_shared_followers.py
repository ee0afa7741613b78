# SPDX-License-Identifier: LicenseRef-Undeclared
"""Servers without PostgreSQL that follow a node of a shared catalogue, or one another."""

import contextlib
import os
import select
import socket
import sqlite3
import sys

import pytest

from harness import ORIGIN, Server, ask, eventually, problem, sitemapd
from nodes import Cluster, applied, cluster, equal, joined, loc, page, ready, reasons, served  # noqa: F401
from test_shared_peers import SECRET, fill, peer

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer  # noqa: E402
from postgres import free_port  # noqa: E402


def follower(cluster, name, followed, config="", shared="", secret=SECRET, start=True):
    """A server that follows another one, or an address."""
    url = f"http://{followed.admin}" if hasattr(followed, "admin") else followed
    path = cluster.folder / f"{name}-token"
    path.write_text(secret + "\n")
    path.chmod(0o600)
    cluster.database(name)
    node = Server(cluster.folder / name, "--admin-listen", f"127.0.0.1:{free_port()}", sites=(),
                  config=f"{config}\n[shared]\nfollow = {url}\npeer_token_file = {path}\nnode = {name}\n{shared}\n")
    cluster.nodes[name] = node
    return node.start() if start else node


def chain(cluster):
    """A node, its follower, and the follower's."""
    a = peer(cluster, "a")
    joined(a)
    b = follower(cluster, "b", a)
    joined(b)
    c = follower(cluster, "c", b)
    joined(c)
    return a, b, c


def epoch_of(node):
    with contextlib.closing(sqlite3.connect(node.database)) as db:
        return db.execute("SELECT epoch FROM local_shared").fetchone()[0]


def state(node):
    return ready(node)[1]["shared"]


def test_followers_serve_the_same_bytes(cluster):
    a = peer(cluster, "a")
    fill(a, 2000)
    b = follower(cluster, "b", a)
    joined(b)
    c = follower(cluster, "c", b)
    joined(c)
    equal([a, b, c])
    for i in range(5):
        assert a.register(loc(f"later-{i}")).status == 201
    equal([a, b, c])
    assert loc("later-4") in served(c)
    assert ready(c)[0] == 200 and ready(c)[1]["status"] == "ok", ready(c)
    assert state(c)["follows"] == f"http://{b.admin}"


def test_a_write_is_forwarded_and_seen_at_once(cluster):
    """Through both followers, to the node; the answer's change is here. A repeated one is what it was."""
    a, b, c = chain(cluster)
    for i in range(5):
        key = {"Idempotency-Key": f"key-{i}"}
        reply = c.api("POST", "/v1/sitemaps", {"loc": loc(f"one-{i}")}, headers=key)
        assert reply.status == 201, reply.body
        assert loc(f"one-{i}") in served(c) and loc(f"one-{i}") in served(a)
        assert c.api("POST", "/v1/sitemaps", {"loc": loc(f"one-{i}")}, headers=key).body == reply.body
    assert ready(c)[1]["forwarding"]["reason"] == "follows"
    equal([a, b, c])
    a.kill()
    problem(c.register(loc("lost")), 503)
    assert loc("lost") not in served(c)


def test_a_write_at_a_follower_that_does_not_forward_is_rejected(cluster):
    a = peer(cluster, "a")
    joined(a)
    b = follower(cluster, "b", a, shared="forward = no")
    joined(b)
    c = follower(cluster, "c", b, shared="forward = no")
    joined(c)
    for node in (b, c):
        reply = node.register(loc("one"))
        problem(reply, 503, "follower")
        assert reply["Retry-After"]
        problem(node.bulk([loc("one")]), 503, "follower")
        problem(node.api("POST", "/v1/sites", {"origin": "https://other.example.com"}), 503, "follower")
        assert ready(node)[0] == 200 and ready(node)[1]["status"] == "ok", ready(node)
    assert a.register(loc("one")).status == 201
    equal([a, b, c])


def shared_rows(node):
    """Of what all nodes have."""
    with contextlib.closing(sqlite3.connect(node.database)) as db:
        names = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'local_*' AND name NOT GLOB 'sqlite_*' ORDER BY name")]
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def test_no_job_of_a_follower_writes(cluster, tmp_path):
    """Folders, remote sources, sites and tokens of its configuration; maintenance."""
    a = peer(cluster, "a")
    joined(a)
    assert a.register(loc("one")).status == 201
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.xml").write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{ORIGIN}/x</loc></url></urlset>')
    with Origin() as origin:
        b = follower(cluster, "b", a, config=f"[site \"more\"]\norigin = https://more.example.com\n[source \"folder\"]\ndirectory = {folder}\nurl = {ORIGIN}/\n"
                     f"[source \"remote\"]\nupstream = http://127.0.0.2:{origin.port}/index.xml\n[fetch]\nallow_address = 127.0.0.0/8\n")
        joined(b)
        b.get("/sitemap_index.xml", {"User-Agent": "Googlebot/2.1"})
        sitemapd("scan", "folder", "--server", f"http://{b.admin}", env={"SITEMAPD_TOKEN": b.token})
        for i in range(3):
            assert a.register(loc(f"later-{i}")).status == 201
        equal([a, b])
        assert not origin.asked
    a.stop()
    b.stop()
    ours, theirs = shared_rows(a), shared_rows(b)
    assert {name for name in ours if ours[name] != theirs[name]} == set()
    b.told("follower-ignores")


def test_the_followed_node_goes_and_comes_back(cluster):
    a, b, c = chain(cluster)
    assert a.register(loc("one")).status == 201
    equal([a, b, c])
    before = page(c)
    a.kill()
    for node in (b, c):
        told = eventually(lambda: reasons(node).get("shared-unavailable"), f"{node.folder} is cut off")
        assert "the followed node" in told, told
        assert ready(node)[0] == 200 and ready(node)[1]["status"] == "degraded"
        assert state(node)["reachable"] is False
        assert b"sitemapd_shared_away_seconds 0\n" not in node.api("GET", "/metrics", token=None).body
    b.stop()
    b.start()
    c.stop()
    c.start()
    assert page(b) == page(c) == before
    eventually(lambda: "shared-unavailable" in reasons(c), "cut off after a restart")
    a.start()
    eventually(lambda: ready(c)[1]["status"] == "ok", "back")
    assert a.register(loc("two")).status == 201
    equal([a, b, c])
    b.told("shared-back")


def test_a_log_that_begins_behind_the_follower(cluster):
    a, b, c = chain(cluster)
    b.stop()
    c.stop()
    fill(a, 300)
    assert a.register(loc("one")).status == 201
    cluster.postgres.sql("DELETE FROM sitemapd.log WHERE seq < (SELECT max(seq) FROM sitemapd.log); DELETE FROM sitemapd.part")
    b.start()
    b.told("shared-diverged")
    b.told("shared-peer-copied", 2)
    c.start()
    c.told("shared-peer-copied", 2)
    equal([a, b, c])


def test_a_log_that_lost_records(cluster):
    """PostgreSQL goes back: the node gives the catalogue a new epoch, and the followers have it."""
    a, b, c = chain(cluster)
    assert a.register(loc("kept")).status == 201
    equal([a, b, c])
    head = applied(a)
    tags = page(c)
    for i in range(3):
        assert a.register(loc(f"lost-{i}")).status == 201
    equal([a, b, c])
    for node in (a, b, c):
        node.stop()
    cluster.postgres.sql(f"DELETE FROM sitemapd.part WHERE seq > {head}; DELETE FROM sitemapd.log WHERE seq > {head}")
    for node in (b, c):
        node.start()
        assert loc("lost-0") in served(node)  # what it has, until there is something else
    a.start()
    for node in (a, b, c):
        eventually(lambda: served(node) == {loc("kept")}, "the state of the log", within=60)
    equal([a, b, c])
    assert a.register(loc("next")).status == 201
    equal([a, b, c])
    assert tags[0] and not reasons(c).get("diverged")


def test_another_catalogue_at_the_same_address(cluster):
    """A backup was restored, and shared again."""
    a, b, c = chain(cluster)
    assert a.register(loc("old")).status == 201
    equal([a, b, c])
    a.stop()
    assert loc("old") in served(b)
    epoch = epoch_of(a)
    cluster.postgres.sql("DROP SCHEMA sitemapd CASCADE")
    copy = str(cluster.folder / "alone.db")
    assert sitemapd("backup", copy, database=a.database, env={"SITEMAPD_SHARED": cluster.postgres.url()}).code == 0
    assert sitemapd("restore", "--replace", copy, database=a.database).code == 0
    assert sitemapd("share", "init", "--shared", cluster.postgres.url(), database=a.database).code == 0
    assert epoch_of(a) != epoch
    a.start()
    joined(a)
    assert a.register(loc("new")).status == 201
    eventually(lambda: loc("new") in served(c), "the new one is served")
    equal([a, b, c])
    assert "another catalogue" in b.log()
    assert epoch_of(a) == epoch_of(b) == epoch_of(c)


def test_a_wrong_secret(cluster):
    a = peer(cluster, "a")
    joined(a)
    b = follower(cluster, "b", a, secret="another-secret-of-somebody-0123456789")
    told = eventually(lambda: reasons(b).get("joining"), "why it does not join")
    eventually(lambda: "rejects the secret" in reasons(b).get("joining", ""), f"the reason, not {told}")
    assert ready(b)[0] == 503
    assert b.get("/sitemap_index.xml").status == 503
    cluster.folder.joinpath("b-token").write_text(SECRET)
    b.stop()
    b.start()
    joined(b)
    equal([a, b])


@pytest.mark.parametrize("which", ["alone", "public", "without a secret"])
def test_what_cannot_be_followed_is_rejected_at_the_start(cluster, tmp_path, which):
    if which == "alone":
        (tmp_path / "alone").mkdir()
        node = cluster.nodes["alone"] = Server(tmp_path / "alone").start()
        url = f"http://{node.admin}"
    else:
        a = peer(cluster, "a") if which == "public" else cluster.node("a")
        joined(a)
        url = f"http://{a.public if which == 'public' else a.admin}"
    b = follower(cluster, "b", url, start=False)
    b.start(expect_ready=False)
    assert b.process.wait(60) == 1
    b.process = None
    assert "does not hand on a log" in b.log() and "the catalogue of a single machine cannot be followed" in b.log(), b.log()


def test_a_follower_that_starts_first(cluster):
    """The node is not there yet."""
    port = free_port()
    b = follower(cluster, "b", f"http://127.0.0.1:{port}")
    eventually(lambda: "the followed node does not answer" in reasons(b).get("joining", ""), "it waits")
    assert ready(b)[0] == 503
    token = cluster.folder / "b-token"
    a = cluster.node("a", "--admin-listen", f"127.0.0.1:{port}", env={"SITEMAPD_SHARED_PEER_TOKEN_FILE": str(token)})
    joined(a)
    joined(b)
    equal([a, b])


def test_settings_that_do_not_fit(cluster, tmp_path):
    def check(config):
        path = tmp_path / "check.conf"
        path.write_text(config)
        done = sitemapd("check-config", "--config", str(path))
        return done.code, done.err + done.out

    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    good = f"[shared]\nfollow = http://127.0.0.1:8081\npeer_token_file = {secret}\n"
    assert check(good)[0] == 0
    code, told = check(good + f"database = {cluster.postgres.url()}\n")
    assert code != 0 and "follow cannot be combined with database" in told
    code, told = check("[shared]\nfollow = http://127.0.0.1:8081\n")
    assert code != 0 and "follow needs peer_token_file" in told


def log_of(node, query, token=SECRET):
    return node.api("GET", f"/peer/log{query}", token=token)


def place(node):
    with contextlib.closing(sqlite3.connect(node.database)) as db:
        seq, chain_of = db.execute("SELECT seq, hex(chain) FROM local_shared").fetchone()
    return seq, chain_of.lower()


def settled(node):
    """It has joined, and declared its configuration: nothing moves."""
    joined(node)
    eventually(lambda: len(node.api("GET", "/v1/sites").json()["sites"]) == 1 and node.register(loc("settled")).status in (200, 201), "the site is there")


def test_the_route_of_the_log(cluster):
    a = peer(cluster, "a")
    settled(a)
    seq, at = place(a)
    here = f"?from={seq}&chain={at}"
    for token in (None, a.token, SECRET[:-1]):
        problem(log_of(a, here, token), 401, "unauthorized")
    epoch = epoch_of(a)
    assert log_of(a, "").body == f"sitemapd-log 1 {epoch}\ndone {seq} 0 0\n".encode()
    assert log_of(a, here).body == f"sitemapd-log 1 {epoch}\ndone {seq} 0 0\n".encode()
    assert log_of(a, here + f"&epoch={epoch}&wait=10&max=0").status == 200
    problem(log_of(a, here + "&epoch=" + "0" * 32), 409, "other-catalogue")
    problem(log_of(a, f"?from={seq}&chain={'0' * 64}"), 409, "diverged")
    problem(log_of(a, f"?from={seq + 1000}&chain={at}&wait=20000"), 409, "diverged")
    for bad in ("?from=1", f"?chain={at}", "?from=x&chain=" + at, f"?from={seq}&chain=00", "?from=-1&chain=" + at, here + "&wait=1s", here + "&from=1",
                here + "&max=99999999999", "?from=99999999999999999999&chain=" + at, here + "&epoch=" + "x" * 100):
        problem(log_of(a, bad), 400, "malformed-parameter")
    problem(log_of(a, f"?from={seq}&chain={'g' * 64}"), 409, "diverged")
    assert a.register(loc("one")).status == 201
    lines = log_of(a, here).body.split(b"\n")
    assert lines[1].startswith(f"record {seq + 1} ".encode()) and lines[2].startswith(b"part ") and lines[-2] == f"done {seq + 1} 0 0".encode()
    cluster.postgres.sql("DELETE FROM sitemapd.log WHERE seq < (SELECT max(seq) FROM sitemapd.log)")
    problem(log_of(a, here), 410, "log-trimmed")
    alone = cluster.node("z")
    problem(log_of(alone, ""), 404, "not-found")
    assert ask(a.public, "GET", "/peer/log").status in (404, 421)


def test_many_followers_wait_and_others_are_served(cluster):
    """As many as may wait, who read nothing; the next one is rejected; pages, writes and the stop go on."""
    a = peer(cluster, "a")
    settled(a)
    seq, at = place(a)
    host, port = a.admin.rsplit(":", 1)
    request = f"GET /peer/log?from={seq}&chain={at}&wait=20000 HTTP/1.1\r\nHost: {a.admin}\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode()
    waiting = [socket.create_connection((host, int(port))) for _ in range(70)]
    try:
        for one in waiting:
            one.sendall(request)
        answered = lambda: select.select(waiting, [], [], 0)[0]
        eventually(lambda: len(answered()) == 6, "no more than 64 may wait")
        for one in answered():
            told = one.recv(1000)
            assert told.startswith(b"HTTP/1.1 503") and b"too-many-waiting" in told, told
        assert a.register(loc("one")).status == 201
        assert served(a) == {loc("one"), loc("settled")}
        eventually(lambda: len(answered()) == 64, "the record is sent to all")
        for one in answered():
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        for one in waiting[:3]:
            one.sendall(request.replace(f"from={seq}".encode(), f"from={seq + 5}".encode()))
        b = follower(cluster, "b", a)
        joined(b)
        equal([a, b])
        a.stop()
    finally:
        for one in waiting:
            one.close()
