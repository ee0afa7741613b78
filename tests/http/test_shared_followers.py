# SPDX-License-Identifier: LicenseRef-Undeclared
"""Servers without PostgreSQL that follow a node of a shared catalogue, or one another."""

import contextlib
import re
import select
import socket
import sqlite3
import time

import pytest

from harness import ORIGIN, Server, ask, eventually, faster, problem, sitemapd
from nodes import Cluster, applied, equal, joined, loc, page, ready, reasons, served, until_its_end
from origin import Origin, answer
from postgres import free_port
from test_shared_peers import SECRET, fill, peer
from test_tls import make_pair


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
    eventually(lambda: ready(c)[1]["status"] == "ok", "all is well")
    assert state(c)["follows"] == f"http://{b.admin}"


def test_a_follower_may_be_ahead_of_the_one_that_it_follows(cluster):
    """What the one in the middle hands on it may not have applied itself; then it is asked for what is not there yet."""
    a, b = settled_pair(cluster)
    with contextlib.closing(sqlite3.connect(b.database, isolation_level=None, timeout=60)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert a.register(loc("one")).status == 201
        seq, at = place(a)
        assert place(b)[0] < seq
        reply = log_of(b, f"?from={seq}&chain={at}")
        assert reply.status == 200 and b"\nrecord " not in reply.body
        db.execute("ROLLBACK")
    assert a.register(loc("two")).status == 201
    equal([a, b])
    assert f"\nrecord {seq + 1} ".encode() in log_of(b, f"?from={seq}&chain={at}").body


def test_a_follower_hands_on_what_it_received_without_asking_again(cluster):
    a, b = settled_pair(cluster)
    seq, at = place(b)
    assert a.register(loc("one")).status == 201
    equal([a, b])
    a.kill()
    reply = log_of(b, f"?from={seq}&chain={at}")
    assert reply.status == 200 and f"\nrecord {seq + 1} ".encode() in reply.body, reply
    assert b"\nrecord " not in log_of(b, f"?from={seq}&chain={at[::-1]}").body


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


def test_nodes_trust_an_authority_of_their_own(cluster):
    """The file, the log and forwarded writes come and go over https, only where ca_file names who signed its certificate."""
    cert, key = make_pair(cluster.folder, "node")
    a = peer(cluster, "a", config=f"[admin]\ntls_cert = {cert}\ntls_key = {key}\n")
    url = f"https://{a.admin}"
    stranger = follower(cluster, "stranger", url)
    b = follower(cluster, "b", url, shared=f"ca_file = {cert}")
    joined(b)
    assert b.register(loc("one")).status == 201
    assert loc("one") in served(b) and loc("one") in served(a)
    assert b.metrics().get('sitemapd_forwarded_writes_total{outcome="answered"}') == 1
    eventually(lambda: "certificate" in stranger.log(), "the log says that the certificate is not trusted")
    assert ready(stranger)[0] == 503
    missing = sitemapd("check-config", env={"SITEMAPD_SHARED_FOLLOW": url, "SITEMAPD_SHARED_CA_FILE": "/nowhere.pem"})
    assert missing.code != 0 and "ca_file /nowhere.pem cannot be read" in missing.err


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
        eventually(lambda node=node: ready(node)[1]["status"] == "ok", "all is well")
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
    b.wait_for_log("follower-ignores")


def test_the_followed_node_goes_and_comes_back(cluster):
    a, b, c = chain(cluster)
    assert a.register(loc("one")).status == 201
    equal([a, b, c])
    before = page(c)
    a.kill()
    for node in (b, c):
        result = eventually(lambda: reasons(node).get("shared-unavailable"), f"{node.folder} is cut off")
        assert "the followed node" in result, result
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
    b.wait_for_log("shared-back")


@pytest.mark.own_postgres
def test_postgresql_goes_and_comes_back(cluster):
    """Nodes and followers say that they are cut off; no request of a follower fails for it."""
    a, b, c = chain(cluster)
    assert a.register(loc("one")).status == 201
    equal([a, b, c])
    cluster.postgres.kill()
    for node in (a, b, c):
        eventually(lambda: "shared-unavailable" in reasons(node), f"{node.folder} is cut off")
        assert served(node) == {loc("one")}
    assert "itself cannot reach PostgreSQL or the node that it follows" in reasons(b)["shared-unavailable"]
    cluster.postgres.start(database=False)
    for node in (a, b, c):
        eventually(lambda: ready(node)[1]["status"] == "ok", "all is well", within=90)
    assert a.register(loc("two")).status == 201
    equal([a, b, c])
    for node in (a, b):
        assert "GET /peer/log was answered" not in node.log()


def test_a_followed_node_that_cannot_write(cluster):
    """A follower whose forwarded writes are all rejected is not well, nor is one that follows it."""
    a, b, c = nodes = chain(cluster)
    assert c.register(loc("one")).status == 201
    equal(nodes)
    cluster.postgres.sql("ALTER TABLE sitemapd.log ADD CONSTRAINT \"full\" CHECK (false) NOT VALID")
    problem(c.register(loc("two")), 503, "shared-unavailable")
    for node in (b, c):
        eventually(lambda node=node: "its /readyz has the reason" in reasons(node).get("shared-refused", ""), "reported", within=60)
        eventually(lambda node=node: "shared-refused: the followed node cannot write" in node.log(), "logged")
    cluster.postgres.sql("ALTER TABLE sitemapd.log DROP CONSTRAINT \"full\"")
    for node in (b, c):
        eventually(lambda node=node: ready(node)[1]["status"] == "ok", "well again", within=60)
        eventually(lambda node=node: "shared-accepted: the followed node can write again" in node.log(), "logged")
    assert c.register(loc("two")).status in (200, 201)
    equal(nodes)


def test_a_log_that_begins_behind_the_follower(cluster):
    a, b, c = chain(cluster)
    b.stop()
    c.stop()
    fill(a, 300)
    assert a.register(loc("one")).status == 201
    cluster.postgres.sql("DELETE FROM sitemapd.log WHERE seq < (SELECT max(seq) FROM sitemapd.log); DELETE FROM sitemapd.part")
    b.start()
    b.wait_for_log("shared-diverged")
    b.wait_for_log("shared-peer-copied", 2)
    c.start()
    c.wait_for_log("shared-peer-copied", 2)
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
    b.wait_for_log("another catalogue")
    assert epoch_of(a) == epoch_of(b) == epoch_of(c)


def test_a_wrong_secret(cluster):
    a = peer(cluster, "a")
    joined(a)
    b = follower(cluster, "b", a, secret="another-secret-of-somebody-0123456789")
    result = eventually(lambda: reasons(b).get("joining"), "why it does not join")
    eventually(lambda: "rejects the secret" in reasons(b).get("joining", ""), f"the reason, not {result}")
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
    assert "does not serve a log" in b.log() and "the catalogue of a single machine cannot be followed" in b.log(), b.log()


def test_a_followed_node_that_does_not_know_its_name(cluster):
    """It may be repaired there, so the follower waits."""
    with Origin() as origin:
        reply = answer(421, b'{"code":"host-not-allowed","detail":"x"}')
        origin.answers = type("Always", (), {"get": lambda *_: reply})()
        b = follower(cluster, "b", f"http://{origin.address}:{origin.port}")
        eventually(lambda: "add it to allowed_hosts" in reasons(b).get("joining", ""), "it says what lacks")


def test_a_followed_node_whose_file_cannot_be_copied(cluster):
    """Why it does not join is seen where the node is watched, and not in its log alone."""
    a = peer(cluster, "a")
    joined(a)
    with Origin() as origin:
        middle = Between(origin, a, lambda path, reply: answer(500, b'{"code":"x","detail":"no copy today"}') if path.startswith("/peer/snapshot") else None)
        b = follower(cluster, "b", f"http://127.0.0.2:{origin.port}")
        eventually(lambda: "no copy today" in reasons(b).get("joining", ""), "it says why")
        middle.lies = None
        joined(b)


def test_a_command_on_the_file_of_a_follower(cluster):
    a = peer(cluster, "a")
    joined(a)
    b = follower(cluster, "b", a)
    joined(b)
    result = sitemapd("status", "--database", b.database, "--config", b.args[b.args.index("--config") + 1])
    assert result.code == 0 and ", ok\n" in result.out, result


def test_a_follower_that_starts_first(cluster):
    """The node is not there yet."""
    port = free_port()
    b = follower(cluster, "b", f"http://127.0.0.1:{port}")
    eventually(lambda: "the followed node does not respond" in reasons(b).get("joining", ""), "it waits")
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
    code, result = check(good + f"database = {cluster.postgres.url()}\n")
    assert code != 0 and "follow cannot be combined with database" in result
    code, result = check("[shared]\nfollow = http://127.0.0.1:8081\n")
    assert code != 0 and "follow needs peer_token_file" in result


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


def settled_pair(cluster):
    """A node and its follower, at one record."""
    a = peer(cluster, "a")
    settled(a)
    b = follower(cluster, "b", a)
    joined(b)
    equal([a, b])
    return a, b


def test_the_route_of_the_log(cluster):
    a = peer(cluster, "a")
    settled(a)
    seq, at = place(a)
    here = f"?from={seq}&chain={at}"
    for token in (None, a.token, SECRET[:-1]):
        problem(log_of(a, here, token), 401, "unauthorized")
    epoch = epoch_of(a)
    assert log_of(a, "").body == f"sitemapd-log 1 {epoch}\ndone {seq} 0 0 0\n".encode()
    assert log_of(a, here).body == f"sitemapd-log 1 {epoch}\ndone {seq} 0 0 0\n".encode()
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
    assert lines[1].startswith(f"record {seq + 1} ".encode()) and lines[2].startswith(b"part ") and lines[-2] == f"done {seq + 1} 0 0 0".encode()
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
            result = one.recv(1000)
            assert result.startswith(b"HTTP/1.1 503") and b"too-many-waiting" in result, result
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


class Between:
    """Hands what a follower asks on to a node, and its answer back, but for what `lies` makes of it: called with the
    path and the reply, it gives the bytes of an answer, or what `Origin` may be given; None: the truth. What asks for the
    log is given to `stands` instead, where it is set."""

    def __init__(self, origin, node, lies):
        self.origin, self.node, self.lies, self.lied, self.stands = origin, node, lies, 0, None
        origin.answers = self

    def get(self, path, _):
        if self.stands and path.startswith("/peer/log"):
            return self.stands

        def send(connection, head):
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
            reply = ask(self.node.admin, "GET", path, [(name, headers[name]) for name in ("Authorization", "Range", "If-Match", "If-None-Match") if name in headers], host=self.node.admin)
            lie = self.lies(path, reply) if self.lies else None
            self.lied += lie is not None
            if callable(lie):
                lie(connection, head)
            elif lie is not None:
                connection.sendall(lie)
            else:
                connection.sendall(answer(reply.status, reply.body, **{name.replace("-", "_"): reply[name] for name in ("ETag", "Content-Range") if reply[name]}))
        return send


def edited(change):
    """Of an answer that has a record."""
    return lambda path, reply: answer(200, change(reply.body)) if path.startswith("/peer/log?") and b"\nrecord " in reply.body else None


def instead(*args, **more):
    return lambda path, reply: answer(*args, **more) if path.startswith("/peer/log?") else None


def of_record(name, value):
    """The field of that number in the line of the first record."""
    def change(body):
        before, line, behind = body.partition(b"\nrecord ")
        fields, newline, rest = behind.partition(b"\n")
        fields = fields.split(b" ")
        fields[name] = value(fields[name]) if callable(value) else value
        return before + line + b" ".join(fields) + newline + rest
    return edited(change)


def in_body(body):
    """A byte of the first part is another one."""
    at = body.index(b"\n", body.index(b"\npart ") + 1) + 20
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]


AWAY = "connection to the followed node failed: .*"
HOSTILE = {
    "nothing": (instead(204), AWAY + "cannot serve its log now|" + AWAY + "is empty"),
    "not HTTP": (lambda path, reply: b"hello\n" * 100, AWAY),
    "redirect": (instead(302, Location="http://127.0.0.2/"), AWAY + "cannot serve its log now"),
    "an error": (instead(500, b'{"code":"x","detail":"' + b"y" * 10_000_000 + b'"}'), AWAY + "cannot serve its log now|" + AWAY),
    "no log": (instead(200, b"<html>"), AWAY + "is invalid: its answer is not a log"),
    "empty": (instead(200, b""), AWAY),
    "no length": (lambda path, reply: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n" if "/peer/log?" in path else None, AWAY + "its answer has no Content-Length"),
    "too long": (instead(200, b"x" * 100, length=1 << 60), AWAY + "no space: its answer has 1152921504606846976 bytes"),
    "cut short": (edited(lambda body: body[:-20]), AWAY + "is invalid: its answer is not a log, or is truncated"),
    "more behind it": (edited(lambda body: body + b"more\n"), AWAY + "is invalid"),
    "a line without end": (instead(200, b"sitemapd-log 1 " + b"x" * 5_000_000), AWAY + "is invalid"),
    "a huge part": (edited(lambda body: body.replace(b"\npart ", b"\npart 99999")), AWAY + "is invalid"),
    "another number": (of_record(0, b"99999999999999999999999"), AWAY + "is invalid"),
    "a gap": (of_record(0, lambda seq: str(int(seq) + 1).encode()), AWAY + "is invalid"),
    "another id": (of_record(1, lambda found: found[:-1] + (b"0" if found[-1:] != b"0" else b"1")), "shared-diverged: "),
    "another chain": (of_record(6, b"0" * 64), "shared-diverged: "),
    "other bytes": (edited(in_body), "shared-diverged: "),
    "a newer schema": (of_record(2, b"999999"), "shared-upgrade-needed"),
    "nodes that follow each other": (edited(lambda body: body.rsplit(b" ", 1)[0] + b" 8\n"), AWAY + "loop: the followed nodes follow each other"),
    "a head that goes back": (edited(lambda body: body[:body.rindex(b"done ")] + b"done 0 0 0 0\n"), AWAY + "is invalid"),
    "gone": (instead(410, b'{"code":"log-trimmed"}'), "shared-diverged: "),
    "another past": (instead(409, b'{"code":"diverged"}'), "shared-diverged: "),
    "another catalogue": (instead(409, b'{"code":"other-catalogue"}'), "shared-diverged: the followed node has another catalogue"),
    "another epoch": (edited(lambda body: b"sitemapd-log 1 " + b"0" * 32 + body[47:]), "shared-diverged: the followed node has another catalogue"),
}


@pytest.fixture(scope="module")
def truthful(tmp_path_factory, postgres):
    """A cluster whose node "a" each test has a follower of its own of."""
    database = postgres.beside("truthful")
    for made in until_its_end(Cluster(tmp_path_factory.mktemp("truthful"), database)):
        settled(peer(made, "a"))
        yield made


@contextlib.contextmanager
def between(cluster, name):
    """A follower of node "a", which is the same as that, and what is between them."""
    a = cluster.nodes["a"]
    with Origin() as origin:
        middle = Between(origin, a, None)
        b = follower(cluster, name, f"http://127.0.0.2:{origin.port}")
        joined(b)
        equal([a, b])
        yield a, b, middle
        if b.process:
            b.stop()
        del cluster.nodes[name]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_followed_node_that_lies(truthful, what):
    """The follower says so, serves what it had, and is as the others once it hears the truth."""
    lies, words = HOSTILE[what]
    name = what.replace(" ", "-")
    with between(truthful, name) as (a, b, middle):
        before = page(b)
        middle.lies = lies
        assert a.register(loc(name)).status == 201
        eventually(lambda: re.search(words, b.log()), f"it says so\n{b.log()[-2000:]}")
        assert middle.lied > 0
        if what != "another epoch":  # with which it may copy the file again, and go on
            assert page(b) == before
            assert ready(b)[1]["status"] == "degraded"
        middle.lies = None
        if what == "a newer schema":
            assert "forwards writes" in reasons(b)["upgrade-needed"] and "forwards writes" in b.log()
            return  # until it is upgraded
        eventually(lambda: page(b) != before, "it follows again")
        equal([a, b])
        eventually(lambda: ready(b)[1]["status"] == "ok", "all is well")


@pytest.mark.parametrize("how, words", [("silent", "timeout"), ("drip", "no response before the timeout"), ("endless head", "malformed response")])
def test_a_followed_node_that_stands_still(truthful, how, words):
    name = how.replace(" ", "-")
    with between(truthful, name) as (a, b, middle):
        def drip(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not middle.origin.ended.wait(0.02):
                connection.sendall(b"x")

        before = served(b)
        b.stop()
        middle.stands = {"silent": middle.origin.silent(), "drip": drip, "endless head": middle.origin.endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100)}[how]
        b.env.update(faster(10))
        b.start()
        eventually(lambda: re.search(f"shared-away: {AWAY}the followed node does not respond: ({words})", b.log()), "it says so", within=90)
        assert "shared-unavailable" in reasons(b) and served(b) == before
        b.stop()  # at once
        middle.stands = None
        for name_of in faster(10):
            del b.env[name_of]
        b.start()
        assert a.register(loc(name)).status == 201
        equal([a, b])


def test_a_follower_that_is_killed_is_whole(cluster):
    """At any instant: while it joins, applies lists, and copies the file again."""
    a = peer(cluster, "a")
    settled(a)
    b = follower(cluster, "b", a)
    for i in range(8):
        if i == 5:
            cluster.postgres.sql("DELETE FROM sitemapd.log WHERE seq < (SELECT max(seq) FROM sitemapd.log); DELETE FROM sitemapd.part")
        assert a.bulk([f"{ORIGIN}/list-{i}-{k}.xml" for k in range(3000)]).status == 200
        time.sleep(0.05 * i)  # any instant
        b.kill()
        with contextlib.closing(sqlite3.connect(b.database)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        b.start()
    joined(b)
    equal([a, b])
