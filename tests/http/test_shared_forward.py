# SPDX-License-Identifier: LicenseRef-Undeclared
"""A node that forwards its writes to another one ([shared] forward): every kind of write, what the other node rejects,
repeats on both, and the other node away before, while and after it was asked."""

import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import ORIGIN, ask, eventually, faster, problem, q, sitemapd
from nodes import equal, joined, loc, ready, reasons, served
from origin import Origin, answer
from postgres import free_port
from relay import Relay


class Pair:
    """Node "a", which applies the writes of "b"."""

    def __init__(self, cluster, to=None, **more):
        self.cluster, port = cluster, free_port()
        self.a = cluster.node("a", "--admin-listen", f"127.0.0.1:{port}")
        self.to = to or f"http://127.0.0.1:{port}"
        self.b = cluster.node("b", env={"SITEMAPD_SHARED_FORWARD": self.to}, **more)
        joined(self.a), joined(self.b)

    def token(self, name, *options):
        return self.cluster.token(name, *options)


@pytest.fixture
def pair(cluster):
    return Pair(cluster)


def connect(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


def forwarding(node):
    return ready(node)[1].get("forwarding")


def outcome(node, name):
    return node.metrics()[f'sitemapd_forwarded_writes_total{{outcome="{name}"}}']


def wrote(node):
    """Records of the log that it wrote."""
    return node.metrics()["sitemapd_shared_appended_total"]


def test_every_kind_of_write(pair):
    a, b = pair.a, pair.b
    token = pair.token("writer", "--role", "admin")
    count, before = 0, wrote(b)

    def write(method, target, json_body=None, status=200, **more):
        nonlocal count
        reply = b.api(method, target, json_body, token=token, **more)
        assert reply.status == status, (method, target, reply)
        count += 1
        return reply

    made = write("POST", "/v1/sitemaps", {"loc": loc("one")}, 201)
    assert served(b) == {loc("one")}  # there in the very next GET
    assert a.api("GET", f"/v1/sitemaps/{made.json()['sitemap']['id']}")["ETag"] == made["ETag"] != ""
    many = [loc(f"many-{i:05}-{'x' * 60}") for i in range(3000)]  # more than stays in memory
    lines = "".join(json.dumps({"loc": name}) + "\n" for name in many).encode()
    reply = write("POST", "/v1/sitemaps", body=lines, content_type="application/x-ndjson")
    assert reply.json()["created"] == len(many)
    assert served(b) == {loc("one"), *many}
    replaced = gzip.compress(lines + json.dumps({"loc": loc("two")}).encode())
    reply = write("PUT", f"/v1/sitemaps?index={q('/sitemap_index.xml')}&source=*&max_removed=9999", body=replaced, content_type="application/x-ndjson", headers={"Content-Encoding": "gzip"})
    assert served(b) == {loc("two"), *many}
    undone = write("POST", f"/v1/history/{reply.json()['revision']}/undo?max_removed=10")
    assert undone.json()["revision"] > reply.json()["revision"]
    assert served(b) == {loc("one"), *many}
    write("DELETE", f"/v1/sitemaps?loc={q(loc('one'))}", status=204)
    assert served(b) == set(many)
    urlset = write("POST", "/v1/urlsets", {"url": "/urls.xml"}, 201).json()
    write("POST", f"/v1/urls?urlset={q('/urls.xml')}", {"loc": f"{ORIGIN}/page"}, 201)
    assert f"{ORIGIN}/page" in b.get("/urls.xml").body.decode()
    write("PATCH", f"/v1/urlsets/{urlset['id']}", {"max_pages": 20})
    site = write("POST", "/v1/sites", {"origin": "https://shop.example.net"}, 201)
    write("DELETE", site["Location"])
    dry = write("POST", "/v1/sitemaps?dry_run=1", {"loc": loc("dry")})
    assert dry.json()["rows_total"] == 1
    equal([a, b])
    assert forwarding(b) == {"to": pair.to, "node": None, "reason": "far", "under_way": 0, "answered": count, "direct": 0, "failed": 0, "unknown": 0, "unseen": 0, "loops": 0}
    assert outcome(b, "answered") == count and b.metrics()["sitemapd_forwarding"] == 1
    assert wrote(b) == before
    assert forwarding(a) is None and a.metrics()["sitemapd_forwarding"] == 0
    assert f"to {pair.to}, {count} answered, 0 direct, 0 failed, 0 unknown" in b.api("GET", "/readyz?verbose", token=None).body.decode()
    result = sitemapd("status", "--server", f"http://{b.admin}", env={"SITEMAPD_TOKEN": token})
    assert f"forwards writes to {pair.to} (far): {count} answered, 0 applied here, 0 failed, 0 unknown" in result.out, result


def test_what_the_other_node_rejects_is_passed_on_word_for_word(pair):
    a, b = pair.a, pair.b
    token = pair.token("writer")
    calls = [("POST", "/v1/sitemaps?no=1", {"loc": loc("one")}), ("POST", "/v1/sitemaps", {"loc": "https://other.example/x.xml"}), ("POST", "/v1/sitemaps", {"lok": "x"}),
             ("DELETE", f"/v1/sitemaps?loc={q(loc('none'))}", None), ("POST", "/v1/restore?index=/none.xml&to=1", None), ("POST", "/v1/sitemaps?on_error=fail", [{"loc": "x"}]),
             ("PUT", "/v1/sitemaps?index=/none.xml", [{"loc": loc("one")}])]
    for method, target, body in calls:
        there, here = (node.api(method, target, body, token=token) for node in (a, b))
        assert there.status in (400, 404, 409, 422) and (here.status, here.body) == (there.status, there.body), (target, there, here)
        names = lambda reply: sorted(pair for pair in reply.same_headers() if pair[0] != "x-request-id")
        assert names(here) == names(there)
    twice = b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token, headers=[("Idempotency-Key", "k"), ("Idempotency-Key", "l")])
    problem(twice, 400, "malformed-idempotency-key")
    assert outcome(b, "answered") == len(calls) + 1 and outcome(b, "direct") == 0
    # What needs no other node is answered here.
    problem(b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token="smd_" + "x" * 43), 401, "unauthorized")
    problem(b.api("POST", "/v1/sites", {"origin": "https://x.example"}, token=token), 403)
    problem(b.api("POST", "/v1/sitemaps", body=b"x", content_type="text/plain", token=token), 415)
    problem(ask(b.admin, "POST", "/v1/sitemaps", [("Authorization", f"Bearer {token}"), ("Content-Type", "application/json"), ("Content-Length", str(1 << 50))], host=b.admin), 413, "body-too-large")
    assert outcome(b, "answered") == len(calls) + 1


def test_empty_values_and_bodies_that_are_ignored_mean_the_same(pair):
    a, b = pair.a, pair.b
    token = pair.token("writer")
    assert a.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-01"}, token=token).status == 201
    row = {"loc": loc("one"), "lastmod": "2026-11-02"}
    for name in ("If-Match", "If-None-Match", "Idempotency-Key"):
        there, here = (node.api("POST", "/v1/sitemaps", row, token=token, headers={name: ""}) for node in (a, b))
        assert there.status in (400, 412) and (here.status, here.body) == (there.status, there.body), (name, there, here)
    for method, target in (("DELETE", f"/v1/sitemaps?loc={q(loc('none'))}"), ("POST", "/v1/history/999/undo")):
        there, here = (node.api(method, target, {}, token=token) for node in (a, b))
        assert there.status == 404 and (here.status, here.body) == (there.status, there.body), (target, there, here)
    assert outcome(b, "answered") == 5


def test_if_match_and_repeats_on_both_nodes(pair):
    a, b = pair.a, pair.b
    token = pair.token("writer")
    first = b.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-01"}, token=token)
    tag = first["ETag"]
    won = b.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-02"}, token=token, headers={"If-Match": tag})
    assert won.status == 200, won
    for node in (a, b):
        problem(node.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-03"}, token=token, headers={"If-Match": tag}), 412, "precondition-failed")
    # The client that lost sees the winner's entry at once, on the node that answered it.
    assert a.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-04"}, token=token).status == 200
    problem(b.api("POST", "/v1/sitemaps", {"loc": loc("one"), "lastmod": "2026-11-05"}, token=token, headers={"If-Match": won["ETag"]}), 412)
    assert b.api("GET", f"/v1/sitemaps?loc={q(loc('one'))}", token=token).json()["sitemaps"][0]["lastmod"] == "2026-11-04"
    key = {"Idempotency-Key": "key-1"}
    once = b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token, headers=key)
    assert once.status == 201 and once["Idempotency-Replayed"] is None
    for node in (b, a, b):
        again = node.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token, headers=key)
        assert (again.status, again.body, again["Idempotency-Replayed"]) == (201, once.body, "true")
        problem(node.api("POST", "/v1/sitemaps", {"loc": loc("three")}, token=token, headers=key), 422, "idempotency-key-reused")
    assert b.api("GET", "/v1/history?limit=1", token=token).json()["changes"][0]["by"] == "writer"
    equal([a, b])


def test_the_request_is_the_clients(pair):
    """Its id, its trace and its token are those in the other node's history and log."""
    a, b = pair.a, pair.b
    token = pair.token("writer")
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    reply = b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token, headers={"X-Request-Id": "my-request", "traceparent": trace})
    assert reply.status == 201 and reply["X-Request-Id"] == "my-request"
    change = a.api("GET", "/v1/history?limit=1").json()["changes"][0]
    assert change["by"] == "writer" and change["request_id"] == "my-request", change
    assert "a" * 32 in a.wait_for_log("sitemap-put")[0]
    assert reply["Sitemapd-Revision"] is None


def test_a_forged_header_gains_nothing(pair):
    a, b = pair.a, pair.b
    token = pair.token("shop", "--site", ORIGIN)
    eventually(lambda: a.api("POST", "/v1/sites", {"origin": "https://other.example"}).status in (201, 409), "another site")
    forged = {"Sitemapd-Forwarded-By": "zz"}
    # Applied by the node that was asked; in its answer the revision of what is published.
    direct = b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token, headers=forged)
    assert direct.status == 201 and int(direct["Sitemapd-Revision"]) >= direct.json()["revision"]
    assert outcome(b, "answered") == 0 and wrote(b) >= 1
    for node in (a, b):
        there = node.api("POST", "/v1/sitemaps", {"loc": "https://other.example/x.xml"}, token=token, headers=forged)
        assert there.status in (403, 422), there
        problem(node.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token="smd_" + "x" * 43, headers=forged), 401, "unauthorized")
        problem(node.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=None, headers=forged), 401, "unauthorized")
    # This node's own name: the request could have come from it, but a client's header is not counted as a loop of nodes.
    for names in ("zz, b", "b;mark"):
        problem(b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token, headers={"Sitemapd-Forwarded-By": names}), 508, "forwarding-loop")
    assert outcome(b, "loop") == 0
    assert b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token, headers={"Sitemapd-Forwarded-By": "bb"}).status == 201


def test_a_loop_is_refused(cluster):
    """A node that is to forward to itself."""
    port = free_port()
    joined(cluster.node("a"))
    b = cluster.node("b", "--admin-listen", f"127.0.0.1:{port}", env={"SITEMAPD_SHARED_FORWARD": f"http://127.0.0.1:{port}"})
    joined(b)
    problem(b.register(loc("one")), 508, "forwarding-loop")
    assert outcome(b, "loop") == 1 and served(b) == set()


def test_the_environments_token_may_be_this_nodes_alone(cluster):
    """The other node answers 401, which says that nothing was applied; from then on it is not asked again."""
    other = "smd_" + "o" * 43
    pair = Pair(cluster, token=other)
    for name in ("one", "two"):
        assert pair.b.register(loc(name)).status == 201
    assert (outcome(pair.b, "direct"), outcome(pair.b, "answered")) == (1, 0)
    assert wrote(pair.b) >= 2
    assert pair.b.api("POST", "/v1/sitemaps", {"loc": loc("three")}, token=pair.token("writer")).status == 201
    assert outcome(pair.b, "answered") == 1
    equal([pair.a, pair.b])


def test_the_other_node_is_away(pair):
    """Nothing was sent: this node applies it, as if nothing was forwarded."""
    a, b = pair.a, pair.b
    token = pair.token("writer")
    a.kill()
    many = [loc(f"many-{i:05}-{'x' * 60}") for i in range(3000)]
    lines = "".join(json.dumps({"loc": name}) + "\n" for name in many).encode()
    first = b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token, headers={"Idempotency-Key": "k"})
    assert first.status == 201
    again = b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token, headers={"Idempotency-Key": "k"})
    assert (again.status, again.body, again["Idempotency-Replayed"]) == (201, first.body, "true")
    for body, more in ((lines, {}), (gzip.compress(lines), {"Content-Encoding": "gzip"})):
        assert b.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson", token=token, headers=more).status == 200
    problem(b.api("POST", "/v1/sitemaps", {"loc": "x"}, token=token), 422)
    problem(b.api("POST", "/v1/sitemaps?on_error=fail", [{"loc": "x"}], token=token), 422)
    assert b.api("DELETE", f"/v1/sitemaps?loc={q(loc('one'))}", token=token).status == 204
    made = b.api("POST", "/v1/urlsets", {"url": "/urls.xml"})
    assert made.status == 201, made
    assert served(b) == set(many)
    assert (outcome(b, "direct"), outcome(b, "answered")) == (8, 0)
    b.wait_for_log("forward-failed: a write could not be forwarded")
    a.start()
    joined(a)
    # b asks twice a second whether a answers again, and until then applies its writes itself.
    eventually(lambda: b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token).status in (200, 201) and outcome(b, "answered") == 1, "it forwards again")
    equal([a, b])


def test_the_other_node_stops(pair):
    """It answers what it has, and what comes afterwards this node applies. What crosses the end of a kept connection may have
    been applied."""
    a, b = pair.a, pair.b
    token = pair.token("writer")
    ends, replies = threading.Event(), {}

    def write():
        while not ends.is_set():
            name = loc(f"n{len(replies)}")
            replies[name] = b.api("POST", "/v1/sitemaps", {"loc": name}, token=token).status

    writer = threading.Thread(target=write)
    writer.start()
    eventually(lambda: outcome(b, "answered") > 5, "forwarded")
    a.stop()
    eventually(lambda: outcome(b, "direct") > 5, "applied here")
    ends.set()
    writer.join()
    unknown = {name for name, status in replies.items() if status != 201}
    assert len(unknown) <= 1 and all(replies[name] == 504 for name in unknown), replies
    a.start()
    joined(a)
    equal([a, b])
    assert served(a) | unknown == set(replies)


def posts(origin):
    return [head for head in origin.asked if head.startswith("POST")]


def ends_after(sent):
    return lambda connection, head: connection.sendall(sent)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"nonsense\r\n\r\n"], ids=["silence", "half an answer", "nonsense"])
def test_an_unknown_outcome(cluster, sent):
    """What answers in the other node's place has all of the request, and gives no answer."""
    joined(cluster.node("a"))
    with Origin() as origin:
        origin.answers["/v1/sitemaps"] = ends_after(sent)
        b = cluster.node("b", env={"SITEMAPD_SHARED_FORWARD": f"http://{origin.address}:{origin.port}"})
        joined(b)
        result = problem(b.register(loc("one")), 504, "outcome-unknown")
        assert "Idempotency-Key" in result["detail"]
        assert len(posts(origin)) == 1 and served(b) == set()
        assert outcome(b, "unknown") == 1
        # With a key it cannot be applied twice: this node applies it, or finds that it was.
        assert b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, headers={"Idempotency-Key": "k"}).status == 201
        assert len(posts(origin)) == 2 and served(b) == {loc("two")}
        assert outcome(b, "direct") == 1
        head = posts(origin)[0]
        assert "\r\nSitemapd-Forwarded-By: b" in head and f"Authorization: Bearer {b.token}" in head, head


def test_other_answers(cluster):
    """503 means: not applied. Where the reason is that node's alone, this node applies it; where it is busy, the client waits."""
    joined(cluster.node("a"))
    result = lambda status, code: answer(status, json.dumps({"type": "about:blank", "status": status, "code": code}, separators=(",", ":")).encode(), Content_Type="application/problem+json", Retry_After="7", Connection="close")
    with Origin() as origin:
        b = cluster.node("b", env={"SITEMAPD_SHARED_FORWARD": f"http://{origin.address}:{origin.port}"})
        joined(b)
        for i, (status, code) in enumerate([(503, "stopping"), (503, "shared-unavailable"), (503, "diverged"), (421, "host-not-allowed"), (503, "no-space")]):
            origin.answers["/v1/sitemaps"] = result(status, code)
            assert b.register(loc(f"own-{i}")).status == 201
        assert outcome(b, "direct") == 5
        for status, code in [(503, "busy"), (504, "outcome-unknown"), (409, "conflict")]:
            origin.answers["/v1/sitemaps"] = result(status, code)
            reply = b.register(loc("other"))
            assert (reply.status, reply.json()["code"], reply["Retry-After"]) == (status, code, "7")
        assert outcome(b, "answered") == 3 and served(b) == {loc(f"own-{i}") for i in range(5)}


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 16 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True).returncode != 0:
        pytest.skip("a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_node_whose_disk_is_full_rejects_what_it_would_forward(cluster, small_disk):
    """What was forwarded before is answered, although the node cannot show it."""
    pair = Pair(cluster, database=small_disk / "catalogue.db")
    a, b = pair.a, pair.b
    assert b.register(loc("before")).status == 201
    with open(small_disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    replies = []
    eventually(lambda: replies.append(b.register(loc(f"full-{len(replies)}"))) or replies[-1].status == 503, "it rejects writes")
    problem(replies[-1], 503, "no-space")
    assert {reply.status for reply in replies[:-1]} <= {201}
    here = set(served(a))
    assert all((loc(f"full-{i}") in here) == (reply.status == 201) for i, reply in enumerate(replies))
    (small_disk / "filler").unlink()
    eventually(lambda: b.register(loc("after")).status in (200, 201), "it forwards again")
    equal([a, b])


def test_lists_leave_room_for_small_writes(cluster):  # noqa: F811
    """However many lists the other node has not answered yet, a small write is sent."""
    joined(cluster.node("a"))
    lists = 270
    with Origin() as origin:
        origin.answers["/v1/sitemaps?list=1"] = origin.silent()
        origin.answers["/v1/sitemaps"] = answer(409, b'{"status":409,"code":"conflict"}', Content_Type="application/problem+json", Connection="close")
        b = cluster.node("b", env={"SITEMAPD_SHARED_FORWARD": f"http://{origin.address}:{origin.port}"})
        joined(b)
        body = b'{"loc": "https://www.example.com/a.xml"}\n' * 2000
        head = f"POST /v1/sitemaps?list=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {b.token}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
        with contextlib.ExitStack() as open_lists:
            for _ in range(lists):
                open_lists.enter_context(connect(b.admin)).sendall(head.encode() + body)
            eventually(lambda: forwarding(b)["under_way"] == lists, "all lists have arrived")
            assert b.register(loc("small")).status == 409, "the other node has answered it"


def test_killed_while_it_is_asked(pair):
    """Nothing that was acknowledged is lost, nothing is applied twice; with a key the outcome is always known."""
    a, b = pair.a, pair.b
    token = pair.token("writer")
    acknowledged, statuses, ends = [], set(), threading.Event()

    def write(number):
        count = 0
        while not ends.is_set():
            name, count = loc(f"w{number}-{count}"), count + 1
            headers = {"Idempotency-Key": f"k{number}-{count}"} if number % 2 else {}
            reply = b.api("POST", "/v1/sitemaps", {"loc": name}, token=token, headers=headers)
            statuses.add((bool(headers), reply.status))
            if reply.status == 201:
                acknowledged.append(name)
            elif headers:
                again = eventually(lambda: (r := b.api("POST", "/v1/sitemaps", {"loc": name}, token=token, headers=headers)).status == 201 and r, "the outcome")
                acknowledged.append(again.json()["sitemap"]["loc"])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for _ in range(3):
        before, direct = outcome(b, "answered"), outcome(b, "direct")
        eventually(lambda: outcome(b, "answered") > before + 5, "forwarded")
        a.process.send_signal(signal.SIGKILL)
        eventually(lambda: outcome(b, "direct") > direct + 5, "applied here")
        a.kill()
        a.start()
    joined(a)
    ends.set()
    for writer in writers:
        writer.join()
    equal([a, b])
    assert statuses <= {(False, 201), (False, 504), (True, 201)}, statuses
    assert set(acknowledged) <= served(a) and len(set(acknowledged)) == len(acknowledged)


def test_a_node_that_postgresql_does_not_reach(cluster):
    """The other node's answer is passed on, though this node cannot serve the change yet; and this one stops."""
    a, relay = cluster.node("a"), Relay(cluster.postgres.port)
    far = cluster.postgres.url().replace(f":{cluster.postgres.port}/", f":{relay.port}/")
    b = cluster.node("b", env={"SITEMAPD_SHARED": far, "SITEMAPD_SHARED_FORWARD": f"http://{a.admin}"})
    joined(a), joined(b)
    try:
        relay.cut()
        with ThreadPoolExecutor() as pool:
            waits = pool.submit(b.register, loc("waits"))  # b does not know yet that it is cut off
            eventually(lambda: outcome(b, "answered") == 1, "answered there")
            b.stop()
            assert waits.result().status == 201
        b.start()
        eventually(lambda: "shared-unavailable" in reasons(b), "cut off")
        assert b.register(loc("cut")).status == 201
        assert outcome(b, "answered") == outcome(b, "unseen") == 1
        relay.mend()
        eventually(lambda: served(b) == {loc("waits"), loc("cut")}, "it has caught up")
        equal([a, b])
    finally:
        relay.end()


def test_the_other_node_hangs(pair):
    """It takes connections, and answers nothing: what it was sent is given up after a while, and the rest is applied here."""
    a, b = pair.a, pair.b
    token = pair.token("writer")
    b.stop()
    b.env.update(faster(10))
    b.start()
    assert b.api("POST", "/v1/sitemaps", {"loc": loc("one")}, token=token).status == 201
    os.kill(a.process.pid, signal.SIGSTOP)
    try:
        problem(b.api("POST", "/v1/sitemaps", {"loc": loc("two")}, token=token), 504, "outcome-unknown")
        assert b.api("POST", "/v1/sitemaps", {"loc": loc("three")}, token=token).status == 201
        assert (outcome(b, "direct"), outcome(b, "unknown")) == (1, 1)
    finally:
        os.kill(a.process.pid, signal.SIGCONT)
    eventually(lambda: b.api("POST", "/v1/sitemaps", {"loc": loc("four")}, token=token).status == 200 and outcome(b, "answered") > 1, "it is asked again")
    equal([a, b])
    assert served(b) >= {loc("one"), loc("three"), loc("four")}


def secret(cluster, text="a-secret-of-the-nodes-0123456789abcdef"):
    path = cluster.folder / f"peer-token-{len(text)}"
    path.write_text(text + "\n")
    path.chmod(0o600)
    return {"SITEMAPD_SHARED_PEER_TOKEN_FILE": str(path)}


def near(cluster, name, **env):
    """A node beside PostgreSQL that advertises its address."""
    port = free_port()
    node = cluster.node(name, "--admin-listen", f"127.0.0.1:{port}", env=secret(cluster) | {"SITEMAPD_SHARED_ADVERTISE": f"http://127.0.0.1:{port}"} | env)
    joined(node)
    return node


def test_auto_finds_the_node_near_postgresql(cluster):
    """By itself, once it knows that PostgreSQL is far and who leads the writes; another one when that is gone."""
    a = near(cluster, "a")
    relay = Relay(cluster.postgres.port, 10)
    try:
        far = cluster.postgres.url().replace(f":{cluster.postgres.port}/", f":{relay.port}/")
        d = cluster.node("d", env={"SITEMAPD_SHARED": far} | faster(10))  # without the secret
        b = cluster.node("b", env={"SITEMAPD_SHARED": far} | secret(cluster) | faster(10))
        joined(b)
        to = eventually(lambda: forwarding(b), "it forwards")
        assert (to["node"], to["to"], to["reason"]) == ("a", f"http://{a.admin}", "far")
        assert "forwarding: PostgreSQL is" in b.wait_for_log("writes are forwarded to node a")[0]
        assert b.register(loc("one")).status == 201 and served(b) == {loc("one")}
        assert (outcome(b, "answered"), outcome(b, "direct")) == (1, 0)
        c = near(cluster, "c")
        assert forwarding(a) is None and forwarding(c) is None and forwarding(d) is None and forwarding(b)["node"] == "a"
        a.kill()
        assert b.register(loc("two")).status == 201 and outcome(b, "direct") == 1
        eventually(lambda: (forwarding(b) or {}).get("node") == "c", "the next one")
        assert b.register(loc("three")).status == 201 and outcome(b, "answered") == 2
        a.start()
        joined(a)
        equal([a, b, c])
    finally:
        relay.end()


def test_who_led_and_is_far_now_does_not_forward_to_itself(cluster):
    """What the nodes know of it is older than that."""
    relays = [Relay(cluster.postgres.port, delay) for delay in (0, 20)]
    try:
        hosts = ",".join(f"127.0.0.1:{relay.port}" for relay in relays)
        a = near(cluster, "a", SITEMAPD_SHARED=cluster.postgres.url().replace(f"127.0.0.1:{cluster.postgres.port}", hosts))
        eventually(lambda: '"writer":"leads"' in cluster.postgres.sql("SELECT state FROM sitemapd.node WHERE name = 'a'"), "it leads")
        relays[0].end()
        eventually(lambda: a.metrics()["sitemapd_shared_round_trip_seconds"] >= 0.03, "it is far")
        eventually(lambda: a.register(loc("one")).status in (200, 201), "it writes")
        for i in range(5):
            assert a.register(loc(f"n{i}")).status == 201
        assert forwarding(a) is None and "are forwarded" not in a.log()
    finally:
        relays[1].end()


def test_a_small_change_comes_with_its_notification(cluster):
    """To nodes that have the secret; a large one, and one for a node with another secret, is asked for."""
    a = cluster.node("a", env=secret(cluster))
    b = cluster.node("b", env=secret(cluster))
    c = cluster.node("c", env=secret(cluster, "another-secret-0123456789abcdef-0123456789"))
    d = cluster.node("d")
    for node in (a, b, c, d):
        joined(node)
    came = lambda node: node.metrics()["sitemapd_shared_notified_total"]
    for i in range(5):
        assert a.register(loc(f"small-{i}")).status == 201
    equal([a, b, c, d])
    eventually(lambda: came(b) >= 1, "with its notification")
    before = came(b)
    assert a.bulk([loc(f"large-{i:05}-{'x' * (i % 50)}") for i in range(3000)]).status == 200
    equal([a, b, c, d])
    assert came(b) == before
    assert c.register(loc("theirs")).status == 201 and d.register(loc("nobodys")).status == 201 and b.register(loc("own")).status == 201
    equal([a, b, c, d])
    assert came(c) == came(d) == 0


def test_the_secret_alone_makes_no_notification(cluster):
    """Every role of the database can send one. Its key has a part that only roles of nodes can read: they may write the log anyway."""
    a, b = cluster.node("a", env=secret(cluster)), cluster.node("b", env=secret(cluster))
    came = lambda: b.metrics()["sitemapd_shared_notified_total"]
    joined(b)

    def notified():
        before = came()
        assert a.register(loc("x"), lastmod="2026-01-01", digest=str(before)).status in (200, 201)
        equal([a, b])
        return came() > before

    eventually(notified, "with the same part")
    a.stop()
    cluster.postgres.sql("UPDATE sitemapd.cluster SET salt = sha256('guessed')")
    a.start()
    joined(a)
    before = came()
    for i in range(3):
        assert a.register(loc(f"other-{i}")).status == 201
        equal([a, b])
    assert came() == before, "what b cannot open it reads in the log"


def test_nobody_near_postgresql(cluster):
    """A node that is near applies its writes; so does one that is far where no node that is near advertises its address."""
    joined(cluster.node("a"))
    relay = Relay(cluster.postgres.port, 10)
    try:
        far = cluster.postgres.url().replace(f":{cluster.postgres.port}/", f":{relay.port}/")
        b = cluster.node("b", env={"SITEMAPD_SHARED": far})
        joined(b)
        assert b.register(loc("one")).status == 201
        assert forwarding(b) is None and wrote(b) >= 1
    finally:
        relay.end()


def test_the_setting(tmp_path):
    def check(text):
        (tmp_path / "x.conf").write_text(text)
        done = sitemapd("check-config", "--config", tmp_path / "x.conf")
        return done.code, done.err

    shared = "[shared]\ndatabase = postgresql://x@127.0.0.1/x\n"
    for good in ("auto", "no", "http://10.0.0.1:8081", "https://web1.internal"):
        assert check(shared + f"forward = {good}\n")[0] == 0
    for bad in ("yes", "web1:8081", "http://web1/x", "ftp://web1"):
        code, result = check(shared + f"forward = {bad}\n")
        assert code != 0 and f"forward {bad}: must be auto, no" in result, result
    code, result = check("[shared]\nforward = http://10.0.0.1:8081\n")
    assert code != 0 and "forward needs database" in result
