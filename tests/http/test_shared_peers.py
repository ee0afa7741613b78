# SPDX-License-Identifier: LicenseRef-Undeclared
"""Nodes of a shared catalogue that join by copying another node's file, and peers that give something else."""

import hashlib
import json
import os
import re
import socket
import sqlite3

import pytest

from harness import ORIGIN, ask, eventually, faster, problem, sitemapd
from nodes import equal, joined, loc, ready
from origin import Origin, answer
from postgres import free_port

SECRET = "a-secret-of-the-nodes-0123456789abcdef"
MANY = 20_000  # some MiB of file


def peer(cluster, name, advertise=True, speed=1, **more):
    """A node with the secret, which gives its file where it advertises its address."""
    secret = cluster.folder / "peer-token"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    env = {"SITEMAPD_SHARED_PEER_TOKEN_FILE": str(secret)} | (faster(speed) if speed > 1 else {})
    args = ()
    if advertise:
        port = free_port()
        args = ("--admin-listen", f"127.0.0.1:{port}")
        env["SITEMAPD_SHARED_ADVERTISE"] = f"http://127.0.0.1:{port}"
    node = cluster.node(name, *args, env=env, **more)
    return node


def fill(node, count=MANY):
    assert node.bulk([f"{ORIGIN}/many-{i:05}-{'x' * 100}.xml" for i in range(count)]).status == 200


def advertised(cluster, name):
    eventually(lambda: "advertise" in cluster.postgres.sql(f"SELECT state FROM sitemapd.node WHERE name = '{name}'"), f"{name} advertises", within=60)


def no_snapshot(cluster):
    """In PostgreSQL: a node can join by a peer only."""
    cluster.postgres.sql("DELETE FROM sitemapd.snapshot")


def pretend(cluster, port, name="zz", address="127.0.0.2"):
    """A row of a node that says it is reached there."""
    state = json.dumps({"advertise": f"http://{address}:{port}"}, separators=(",", ":"))
    cluster.postgres.sql("INSERT INTO sitemapd.node(name, seen, release, schema, applied, digest_seq, digest, state)"
                         f" VALUES('{name}', now() + interval '1 hour', '0', 1, 0, 0, '', '{state}')")


def epoch_of(node):
    with sqlite3.connect(node.database) as db:
        return db.execute("SELECT epoch FROM local_shared").fetchone()[0]


def snapshot(node, headers=(), token=SECRET, epoch=None):
    epoch = epoch or epoch_of(node)
    return node.api("GET", f"/peer/snapshot?epoch={epoch}", headers=headers, token=token)


def whole(node, headers=()):
    """Its copy, once it is made."""
    return eventually(lambda: (reply := snapshot(node, headers)).status != 503 and reply, "the copy is made", within=60)


def says(node, words):
    """In its log, which is written a moment later than what it reports."""
    eventually(lambda: re.search(words, node.log()), words)


def test_a_node_joins_by_a_peer(cluster):
    a = peer(cluster, "a")
    fill(a)
    advertised(cluster, "a")
    no_snapshot(cluster)
    b = peer(cluster, "b", advertise=False)
    joined(b)
    says(b, r"shared-peer-copied: copied \d+ bytes from node a at http://127")
    assert a.register(loc("later")).status == 201
    equal([a, b])
    left = lambda: [name for name in os.listdir(cluster.folder / "a") if "copy" in name or "snapshot" in name]
    eventually(lambda: not left(), "nothing is left")  # PostgreSQL's snapshot, which is missing, may just be made
    assert "request-failed" not in a.log()  # nor was it while the copy was made


def test_a_node_that_lacks_what_the_log_dropped_takes_a_peers_file(cluster):
    a = peer(cluster, "a")
    b = peer(cluster, "b", advertise=False)
    joined(b)
    b.stop()
    fill(a)
    assert a.register(loc("one")).status == 201
    advertised(cluster, "a")
    no_snapshot(cluster)
    cluster.postgres.sql("DELETE FROM sitemapd.log WHERE seq < (SELECT max(seq) FROM sitemapd.log); DELETE FROM sitemapd.part")
    b.start()
    eventually(lambda: "shared-peer-copied" in b.log(), "copied", within=60)
    equal([a, b])
    assert "shared-diverged: the log no longer has the records that this node lacks. This node" in b.wait_for_log("shared-diverged")[0]


def test_the_peers_route_is_for_their_secret_alone(cluster):
    a = peer(cluster, "a")
    eventually(lambda: ready(a)[0] == 200, "ready")
    problem(snapshot(a, token=None), 401, "unauthorized")
    problem(snapshot(a, token=a.token), 401, "unauthorized")
    problem(snapshot(a, token=SECRET[:-1]), 401, "unauthorized")
    problem(a.api("GET", "/v1/sites", token=SECRET), 401, "unauthorized")
    problem(snapshot(a, epoch="0" * 32), 409, "other-catalogue")
    assert whole(a).status == 200
    alone = cluster.node("c")
    problem(snapshot(alone, epoch="-"), 404, "not-found")
    assert ask(a.public, "GET", "/peer/snapshot").status in (404, 421)


def test_a_part_and_a_copy_that_is_gone(cluster):
    a = peer(cluster, "a")
    fill(a, 500)
    reply = whole(a)
    assert reply["ETag"] == f'"{hashlib.sha256(reply.body).hexdigest()}"'
    part = whole(a, {"Range": "bytes=5000-", "If-Match": reply["ETag"]})
    assert (part.status, part["Content-Range"], part.body) == (206, f"bytes 5000-{len(reply.body) - 1}/{len(reply.body)}", reply.body[5000:])
    problem(snapshot(a, {"Range": "bytes=5000-", "If-Match": f'"{"0" * 64}"'}), 412, "precondition-failed")
    problem(snapshot(a, {"Range": f"bytes={len(reply.body)}-", "If-Match": reply["ETag"]}), 416, "malformed-parameter")
    # A node that could not use it gets a new one. Nothing was written since: it is the same, and what was wrong may be over.
    problem(snapshot(a, {"If-None-Match": reply["ETag"]}), 503, "snapshot-pending")
    assert whole(a, {"If-None-Match": reply["ETag"]}).status == 200


class Proxy:
    """Between a node and the copy of another; `how(connection, reply)` sends it."""

    def __init__(self, origin, node, how):
        self.origin, self.node, self.how, self.asked = origin, node, how, []
        path = f"/peer/snapshot?epoch={epoch_of(node)}"
        origin.answers[path] = self.send

    def send(self, connection, head):
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        given = {name: headers[name] for name in ("Range", "If-Match") if name in headers}
        self.asked.append(given)
        reply = whole(self.node, given)
        head = [f"HTTP/1.1 {reply.status} x"] + [f"{name}: {reply[name]}" for name in ("ETag", "Content-Length", "Content-Range") if reply[name]]
        self.how(connection, "\r\n".join(head).encode() + b"\r\n\r\n", reply.body)


def test_a_download_goes_on_after_each_break(cluster):
    a = peer(cluster, "a", advertise=False)
    fill(a, 40_000)
    no_snapshot(cluster)
    with Origin() as origin:
        piece = 3 << 20
        proxy = Proxy(origin, a, lambda connection, head, body: connection.sendall(head + body[:piece]))
        pretend(cluster, origin.port)
        b = peer(cluster, "b", advertise=False)
        joined(b)
    assert len(proxy.asked) >= 3 and all("If-Match" in given for given in proxy.asked[1:]), proxy.asked
    starts = [int(given["Range"][6:-1]) for given in proxy.asked[1:]]
    assert starts == sorted(set(starts)), starts
    assert "shared-peer-failed" not in b.log()
    equal([a, b])


def test_a_peer_that_dies_in_the_middle(cluster):
    """Another node's file, or PostgreSQL's snapshot, is taken instead."""
    a = peer(cluster, "a", advertise=False)
    fill(a)
    with Origin() as origin:
        def die(connection, head, body):
            connection.sendall(head + body[:1 << 20])
            origin.listening.shutdown(socket.SHUT_RDWR)

        Proxy(origin, a, die)
        pretend(cluster, origin.port)
        b = peer(cluster, "b", advertise=False, speed=10)
        joined(b)
        origin.listening = socket.create_server(("127.0.0.1", 0))  # for its end
    says(b, r"shared-peer-failed: .* node zz.*: the connection was closed after \d+ of")
    equal([a, b])


def file_of(path):
    body = path.read_bytes()
    return answer(200, body, ETag=f'"{hashlib.sha256(body).hexdigest()}"')


def changed(cluster, sql):
    """The file of node a with something changed, as another peer would give it."""
    copy = cluster.folder / "changed.db"
    reply = whole(cluster.nodes["a"])
    copy.write_bytes(reply.body)
    with sqlite3.connect(copy) as db:
        db.executescript(sql)
    db.close()
    return file_of(copy)


TAG = '"' + "0" * 64 + '"'
HOSTILE = {
    "nothing": (lambda cluster: answer(204), "its answer is empty|HTTP status 204"),
    "not found": (lambda cluster: answer(404, b"{}"), "HTTP status 404"),
    "another catalogue": (lambda cluster: answer(409, b'{"code":"other-catalogue"}'), "HTTP status 409: .*other-catalogue"),
    "redirect": (lambda cluster: answer(302, Location="http://127.0.0.2/"), "HTTP status 302"),
    "no hash": (lambda cluster: answer(200, b"x" * 100), "its answer has no hash"),
    "no length": (lambda cluster: f"HTTP/1.1 200 OK\r\nETag: {TAG}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n".encode(), "its answer has no Content-Length"),
    "too long": (lambda cluster: answer(200, b"x" * 100, length=1 << 60, ETag=TAG), "no space: its file has 1152921504606846976 bytes"),
    "wrong hash": (lambda cluster: answer(200, b"x" * 100, ETag=TAG), "checksum mismatch: the copy does not have the hash that it announced"),
    "a part": (lambda cluster: answer(206, b"x" * 100, ETag=TAG, Content_Range="bytes 5-104/200"), "its answer has no Content-Length"),
    "no catalogue": (lambda cluster: answer(200, b"x" * 4096, ETag=f'"{hashlib.sha256(b"x" * 4096).hexdigest()}"'), "the snapshot: file is not a database"),
    "not shared": (lambda cluster: changed(cluster, "DELETE FROM local_shared"), "the snapshot belongs to another catalogue"),
    "another epoch": (lambda cluster: changed(cluster, "UPDATE local_shared SET epoch = 'other'"), "the snapshot belongs to another catalogue"),
    "another past": (lambda cluster: changed(cluster, "UPDATE local_shared SET chain = zeroblob(32)"), "its position in the log is invalid: "),
    "a future": (lambda cluster: changed(cluster, "UPDATE local_shared SET seq = seq + 1000"), "its position in the log is invalid: "),
    "a foreign trigger": (lambda cluster: changed(cluster, "CREATE TRIGGER more AFTER INSERT ON sitemap BEGIN DELETE FROM token; END"), 'the snapshot: the schema: trigger "more" is not part of this version'),
    "a missing index": (lambda cluster: changed(cluster, "DROP INDEX sitemap_loc"), 'the snapshot: the schema: index "sitemap_loc" is missing'),
    "always pending, then gone": (lambda cluster: answer(503, b'{"code":"stopping"}'), "HTTP status 503"),
    "unknown here": (lambda cluster: answer(421, b'{"status":421,"detail":"not this host"}'), "HTTP status 421: not this host;"),
    "another secret": (lambda cluster: answer(401, b'{"status":401,"detail":"unknown token"}'), r"it rejects the secret \(peer_token_file\);"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_peer_that_gives_something_else(cluster, what):
    a = peer(cluster, "a", advertise=False)
    fill(a, 300)
    epoch = epoch_of(a)
    make, words = HOSTILE[what]
    with Origin() as origin:
        origin.answers[f"/peer/snapshot?epoch={epoch}"] = make(cluster)
        pretend(cluster, origin.port)
        b = peer(cluster, "b", advertise=False)
        joined(b)
        says(b, f"shared-peer-failed: .* node zz.*: ({words})")
        assert "shared-peer-copied" not in b.log() or what in ("no catalogue", "not shared", "another epoch", "another past", "a future", "a foreign trigger", "a missing index")
        assert origin.asked
        equal([a, b])


def test_rows_that_do_not_fit_are_not_taken_twice(cluster):
    """The file is at a place that the log has, and lacks rows that the next records change: PostgreSQL's snapshot is used."""
    a = peer(cluster, "a", advertise=False)
    fill(a, 300)
    body = changed(cluster, "DELETE FROM sitemap")
    assert a.replace([loc("one")], max_removed=1000).status == 200
    epoch = epoch_of(a)
    with Origin() as origin:
        origin.answers[f"/peer/snapshot?epoch={epoch}"] = body
        pretend(cluster, origin.port)
        b = peer(cluster, "b", advertise=False)
        joined(b)
        assert len(origin.asked) == 1
    equal([a, b])


def test_a_node_does_not_copy_from_itself_under_its_former_name(cluster):
    a = peer(cluster, "a", advertise=False)
    fill(a, 300)
    with Origin() as origin:
        pretend(cluster, origin.port, address=origin.address)
        b = peer(cluster, "b", advertise=False, config=f"[shared]\nadvertise = http://{origin.address}:{origin.port}\n")
        joined(b)
        assert origin.asked == [] and "shared-peer-failed" not in b.log()


def test_a_node_answers_to_the_host_that_it_advertises(cluster):
    a = peer(cluster, "a", advertise=False, config="[shared]\nadvertise = http://a.internal:8081\n")
    asked = lambda host: ask(a.admin, "GET", "/healthz", host=host).status
    assert [asked(host) for host in ("a.internal:8081", "a.internal", "a.internal:81", "b.internal:8081", "a.admin")] == [200, 421, 421, 421, 421]


def test_a_peer_that_hangs(cluster):
    a = peer(cluster, "a", advertise=False)
    epoch = epoch_of(a)
    with Origin() as origin:
        origin.answers[f"/peer/snapshot?epoch={epoch}"] = origin.silent()
        pretend(cluster, origin.port)
        b = peer(cluster, "b", advertise=False, speed=10)
        eventually(lambda: origin.asked, "asked")
        b.stop()  # at once, though it waits
        b.start()
        joined(b)
        says(b, "shared-peer-failed: .* node zz")
    equal([a, b])


def test_one_node_at_a_time(cluster):
    a = peer(cluster, "a")
    fill(a)
    tag = whole(a)["ETag"]
    host, port = a.admin.rsplit(":", 1)
    epoch = epoch_of(a)
    with socket.create_connection((host, int(port))) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /peer/snapshot?epoch={epoch} HTTP/1.1\r\nHost: {a.admin}\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        busy = snapshot(a)
        problem(busy, 503, "too-many-copies")
        assert busy["Retry-After"]
        assert snapshot(a, {"If-Match": tag, "Range": "bytes=5-"}).status == 206  # one that goes on
    assert whole(a).status == 200


@pytest.mark.parametrize("peers", [True, False])
def test_postgresql_keeps_one_snapshot_where_nodes_have_each_others_files(cluster, peers):
    for name in "ab":
        joined(peer(cluster, name, advertise=peers, speed=10))
    assert cluster.nodes["a"].register(loc("one")).status == 201
    result = lambda: cluster.postgres.sql("SELECT count(*), max(seq) > 0 FROM sitemapd.snapshot")
    assert result() == "1|f"
    cluster.postgres.sql("UPDATE sitemapd.snapshot SET total = total - (1 << 30)")  # as if the log had grown by so much
    eventually(lambda: result() == ("1|t" if peers else "2|t"), "the next one", within=120)


def test_settings_that_do_not_fit_are_rejected(cluster, tmp_path):
    def check(config):
        path = tmp_path / "check.conf"
        path.write_text(config)
        done = sitemapd("check-config", "--config", str(path))
        return done.code, done.err + done.out

    shared = f"[shared]\ndatabase = {cluster.postgres.url()}\n"
    code, result = check(shared + "advertise = http://10.0.0.1:8081\n")
    assert code != 0 and "advertise needs peer_token_file" in result
    secret = tmp_path / "secret"
    secret.write_text("short\n")
    secret.chmod(0o600)
    code, result = check(shared + f"peer_token_file = {secret}\n")
    assert code != 0 and "must be one line of 32 to 256 visible ASCII characters" in result
    secret.write_text(SECRET)
    assert check(shared + f"peer_token_file = {secret}\n")[0] == 0
    code, result = check(f"[shared]\npeer_token_file = {secret}\n")
    assert code != 0 and "peer_token_file needs database" in result
    secret.chmod(0o644)
    code, result = check(shared + f"peer_token_file = {secret}\n")
    assert code != 0 and "permissions are too open" in result
