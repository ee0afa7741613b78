# SPDX-License-Identifier: LicenseRef-Undeclared
"""Idempotency-Key: a write that is sent twice is applied once, and answered the same, also after a crash."""

import gzip
import json
import sqlite3
import threading
import time

import pytest

from harness import INDEX, ORIGIN, Server, eventually, problem, q

DAY = 86400


def name(number):
    return f"{ORIGIN}/s/{number:05d}.xml"


def keyed(key, *more):
    return [("Idempotency-Key", key), *more]


def shared_parts(reply):
    """The parts of an answer that a repeat has, too."""
    return reply.status, reply.body, reply.get("etag"), reply.get("location"), reply.get("content-type"), reply.get("cache-control")


def revision(server):
    return server.api("GET", "/v1/changes").json()["revision"]


def twice(server, method, target, key, body=None, **more):
    """Sends it twice; the second does nothing."""
    first = server.api(method, target, body, headers=keyed(key), **more)
    assert first.status in (200, 201, 204) and first.get("idempotency-replayed") is None, first
    stands = revision(server)
    second = server.api(method, target, body, headers=keyed(key), **more)
    assert shared_parts(second) == shared_parts(first) and second.get("idempotency-replayed") == "true", (first, second)
    assert revision(server) == stands
    return first


def rows(server, query="SELECT count(*) FROM idempotency"):
    with sqlite3.connect(server.database) as catalogue:
        return catalogue.execute(query).fetchone()[0]


def test_every_write_is_answered_again(server):
    entry = twice(server, "POST", "/v1/sitemaps", "one", {"loc": name(1), "lastmod": "2026-01-01"})
    assert entry.status == 201 and entry["Location"] and entry["ETag"]
    # As it was answered, whatever came after.
    server.register(name(1), lastmod="2026-02-02")
    again = server.api("POST", "/v1/sitemaps", {"loc": name(1), "lastmod": "2026-01-01"}, headers=keyed("one"))
    assert shared_parts(again) == shared_parts(entry)
    assert server.api("GET", entry["Location"]).json()["lastmod"] == "2026-02-02"
    twice(server, "POST", "/v1/sitemaps", "list", [{"loc": name(n)} for n in range(2, 9)])
    twice(server, "PUT", f"/v1/sitemaps?index={q(INDEX)}&max_removed=9", "replace", [{"loc": name(n)} for n in range(1, 6)])
    removal = twice(server, "DELETE", f"/v1/sitemaps?loc={q(name(2))}", "removal")
    assert removal.status == 204
    twice(server, "DELETE", "/v1/sitemaps/" + server.api("GET", f"/v1/sitemaps?loc={q(name(3))}").json()["sitemaps"][0]["id"], "by-id")
    undone = server.api("GET", "/v1/history").json()["changes"][0]["revision"]
    twice(server, "POST", f"/v1/history/{undone}/undo", "undo")
    twice(server, "POST", f"/v1/restore?index={q(INDEX)}&to={undone - 1}&on_conflict=overwrite", "restore")
    index = twice(server, "POST", "/v1/indexes", "index", {"url": ORIGIN + "/more/index.xml"})
    twice(server, "PATCH", index["Location"], "freeze", {"frozen": True})
    site = twice(server, "POST", "/v1/sites", "site", {"origin": "https://shop.example.org", "cross_hosts": ["cdn.example.net"]})
    assert site.json()["cross_hosts"] == ["cdn.example.net"] and site.json()["indexes"] == 1
    twice(server, "PATCH", site["Location"], "patch", {"cross_hosts": []})
    assert shared_parts(server.api("POST", "/v1/sites", {"origin": "https://shop.example.org", "cross_hosts": ["cdn.example.net"]}, headers=keyed("site"))) == shared_parts(site)
    server.make_token("spare")
    twice(server, "DELETE", "/v1/tokens/spare", "token")
    twice(server, "PATCH", index["Location"], "thaw", {"frozen": False})
    twice(server, "DELETE", index["Location"], "no-index")
    twice(server, "DELETE", site["Location"], "no-site")
    # One line in the log for what was done, none for a repeat.
    assert len(server.wait_for_log("site-add")) == 1 and len(server.wait_for_log("index-add")) == 1


def test_another_request_under_the_key(server):
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k")).status == 201
    for method, target, body in (("POST", "/v1/sitemaps", {"loc": name(2)}),
                                 ("POST", "/v1/sitemaps?on_error=fail", {"loc": name(1)}),
                                 ("POST", "/v1/sitemaps", [{"loc": name(1)}]),
                                 ("DELETE", f"/v1/sitemaps?loc={q(name(1))}", None),
                                 ("POST", "/v1/sites", {"origin": "https://shop.example.org"})):
        reply = server.api(method, target, body, headers=keyed("k"))
        problem(reply, 422, "idempotency-key-reused", "Idempotency-Key")
    assert server.api("GET", "/v1/sitemaps").json()["sitemaps"][0]["loc"] == name(1)
    assert len(server.api("GET", "/v1/sitemaps").json()["sitemaps"]) == 1


def test_tokens_have_keys_of_their_own(server):
    other = server.make_token("other")
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k")).status == 201
    reply = server.api("POST", "/v1/sitemaps", {"loc": name(2)}, headers=keyed("k"), token=other)
    assert reply.status == 201 and reply.get("idempotency-replayed") is None
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k"), token=other).status == 422
    # An ended token learns nothing of what it did.
    assert server.api("DELETE", "/v1/tokens/other").status == 204
    assert server.api("POST", "/v1/sitemaps", {"loc": name(2)}, headers=keyed("k"), token=other).status == 401


def test_refusals_and_dry_runs_are_not_kept(server):
    assert server.api("POST", "/v1/sitemaps", {"loc": "https://elsewhere.example/x.xml"}, headers=keyed("a")).status == 422
    assert server.api("POST", "/v1/sitemaps", [{"loc": name(1)}, {"loc": "/relative.xml"}], headers=keyed("b")).status == 422
    assert server.api("POST", "/v1/sitemaps?dry_run=1", [{"loc": name(1)}], headers=keyed("c")).status == 200
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(name(1))}", headers=keyed("d")).status == 404
    assert rows(server) == 0
    for key, number in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        assert server.api("POST", "/v1/sitemaps", {"loc": name(number)}, headers=keyed(key)).status == 201
    assert rows(server) == 4


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\xe9", "tab\there"])
def test_invalid_keys(server, key):
    reply = server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed(key))
    problem(reply, 400, "malformed-idempotency-key", "Idempotency-Key")
    assert server.api("GET", "/v1/sitemaps").json()["sitemaps"] == []


def test_keys_at_their_bounds(server):
    problem(server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("a", ("Idempotency-Key", "b"))), 400, "malformed-idempotency-key")
    for key in ("x" * 255, "!", '"quoted"', "~"):
        twice(server, "POST", "/v1/sitemaps", key, {"loc": name(1)})
    # A read has no use for one; a scan cannot keep it.
    assert server.api("GET", "/v1/sitemaps", headers=keyed("a b")).status == 200
    problem(server.api("POST", "/v1/sources/none/scan", headers=keyed("a")), 400, "idempotency-key-not-supported")


def test_large_and_packed_lists(server):
    """Their bodies are hashed as they come."""
    lines = "".join(json.dumps({"loc": name(n)}) + "\n" for n in range(20000)).encode()
    packed = gzip.compress(lines, mtime=0)
    kind = "application/x-ndjson"
    first = server.api("POST", "/v1/sitemaps", body=lines, content_type=kind, headers=keyed("plain"))
    assert first.status == 200 and first.json()["created"] == 20000
    assert shared_parts(server.api("POST", "/v1/sitemaps", body=lines, content_type=kind, headers=keyed("plain"))) == shared_parts(first)
    other = lines[:-3] + b" " + lines[-3:]
    assert server.api("POST", "/v1/sitemaps", body=other, content_type=kind, headers=keyed("plain")).status == 422
    gzipped = keyed("packed", ("Content-Encoding", "gzip"))
    first = server.api("POST", "/v1/sitemaps", body=packed, content_type=kind, headers=gzipped)
    assert first.status == 200 and first.json()["unchanged"] == 20000
    again = server.api("POST", "/v1/sitemaps", body=packed, content_type=kind, headers=gzipped)
    assert shared_parts(again) == shared_parts(first) and again.get("idempotency-replayed") == "true"


def test_a_long_answer_is_kept_without_its_rows(server):
    bad = [{"loc": f"/{'relative' * 20}/{n}.xml"} for n in range(400)] + [{"loc": name(1)}]
    target = "/v1/sitemaps?on_error=skip"
    first = server.api("POST", target, bad, headers=keyed("long")).json()
    assert first["created"] == 1 and first["rejected_total"] == 400 and len(first["rejected"]) > 0 and "shortened" not in first
    again = server.api("POST", target, bad, headers=keyed("long"))
    assert again.status == 200 and again.get("idempotency-replayed") == "true"
    assert again.json() == {**first, "rejected": [], "warnings": [], "shortened": True}
    robots = "# " + "x" * 20000 + "\n"
    body = {"origin": "https://shop.example.org", "robots": robots}
    made = server.api("POST", "/v1/sites", body, headers=keyed("robots"))
    assert made.status == 201 and made.json()["robots"] == robots
    again = server.api("POST", "/v1/sites", body, headers=keyed("robots"))
    assert again.status == 201 and again["Location"] == made["Location"]
    assert again.json() == {"id": made.json()["id"], "shortened": True}
    assert rows(server, "SELECT max(length(outcome)) FROM idempotency") <= 16384


def test_what_was_acknowledged_is_known_after_a_crash(server):
    answers = {}
    for n in range(20):
        answers[n] = server.api("POST", "/v1/sitemaps", {"loc": name(n)}, headers=keyed(f"key-{n}"))
        assert answers[n].status == 201
    server.kill()
    server.start()
    for n, first in answers.items():
        again = server.api("POST", "/v1/sitemaps", {"loc": name(n)}, headers=keyed(f"key-{n}"))
        assert shared_parts(again) == shared_parts(first) and again.get("idempotency-replayed") == "true"


def test_a_crash_in_mid_write_parts_nothing(server):
    """Killed while many are under way: each is there with its answer, or neither is."""
    stop, sent, lock = threading.Event(), {}, threading.Lock()

    def work(which):
        n = which * 100000
        while not stop.is_set():
            n += 1
            with lock:
                sent[n] = None
            try:
                reply = server.api("POST", "/v1/sitemaps", {"loc": name(n)}, headers=keyed(f"key-{n}"))
            except (OSError, AssertionError, ValueError):
                return
            with lock:
                sent[n] = reply

    threads = [threading.Thread(target=work, args=(which,)) for which in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(r is not None for r in list(sent.values())) >= 60, "writes are under way")
    server.process.kill()
    stop.set()
    for thread in threads:
        thread.join()
    server.kill()
    with sqlite3.connect(server.database) as catalogue:
        entries = {loc for loc, in catalogue.execute("SELECT loc FROM sitemap")}
        keys = {key for key, in catalogue.execute("SELECT key FROM idempotency")}
    assert {f"key-{int(loc.split('/')[-1][:-4])}" for loc in entries} == keys
    server.start()
    for n, first in sent.items():
        again = server.api("POST", "/v1/sitemaps", {"loc": name(n)}, headers=keyed(f"key-{n}"))
        assert again.status == 201, again  # never 200: that would be a second one
        assert first is None or shared_parts(again) == shared_parts(first)


def test_at_once(server):
    """Of many at once one is applied, and all are answered alike."""
    for turn, (target, body) in enumerate((("/v1/sitemaps", {"loc": name(1)}), ("/v1/sitemaps", [{"loc": name(n)} for n in range(2, 900)]))):
        replies, barrier = [], threading.Barrier(8)

        def work():
            barrier.wait()
            replies.append(server.api("POST", target, body, headers=keyed(f"turn-{turn}")))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(replies) == 8 and len({shared_parts(reply) for reply in replies}) == 1, replies
        assert sum(reply.get("idempotency-replayed") is None for reply in replies) == 1


def age(server, seconds):
    """As if so much time had passed."""
    with sqlite3.connect(server.database, timeout=60) as catalogue:
        catalogue.execute("UPDATE idempotency SET at = at - ?", (seconds,))


def test_a_day_later_it_is_forgotten(tmp_path):
    server = Server(tmp_path).start()
    try:
        first = server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k"))
        assert first.status == 201
        server.stop()
        age(server, DAY - 600)
        server.start()
        assert shared_parts(server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k"))) == shared_parts(first)
        server.stop()
        age(server, 600)
        server.start()
        # Whether it was purged before it is asked for or not.
        new = server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k"))
        assert new.status == 200 and new.json()["unchanged"] == 1 and new.get("idempotency-replayed") is None
        assert shared_parts(server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k"))) == shared_parts(new)
        server.stop()
        age(server, DAY)
        server.start()
        eventually(lambda: rows(server) == 0, "what is too old is purged", 60)
        server.stop()
    finally:
        server.kill()


def test_the_keys_of_a_token_are_bounded(server):
    """The oldest go; another token's stay."""
    other = server.make_token("other")
    assert server.api("POST", "/v1/sitemaps", {"loc": name(0)}, headers=keyed("k"), token=other).status == 201
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("first")).status == 201
    server.stop()
    with sqlite3.connect(server.database) as catalogue:
        catalogue.executemany("INSERT INTO idempotency(token, n, key, hash, at, outcome) VALUES (0, ?, ?, zeroblob(32), ?, x'32')",
                              [(n, f"made-{n}", int(time.time())) for n in range(2, 10001)])
    server.start()
    mine = "SELECT count(*) FROM idempotency WHERE token = 0"
    assert rows(server, mine) == 10000
    twice(server, "POST", "/v1/sitemaps", "last", {"loc": name(2)})
    assert rows(server, mine) == 10000
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("first")).status == 200
    assert rows(server, mine) == 10000
    again = server.api("POST", "/v1/sitemaps", {"loc": name(0)}, headers=keyed("k"), token=other)
    assert again.status == 201 and again.get("idempotency-replayed") == "true"


def test_the_answers_of_a_token_have_a_share(server):
    """Long answers make room sooner than so many short ones; another token's are not asked for it."""
    server.stop()
    with sqlite3.connect(server.database) as catalogue:
        catalogue.executemany("INSERT INTO idempotency(token, n, key, hash, at, outcome, upto) VALUES (?, ?, ?, zeroblob(32), ?, zeroblob(16384), ?)",
                              [(token, n, f"made-{n}", int(time.time()), n * 16384) for token in (0, 77) for n in range(1, 257)])
    server.start()
    kept = lambda token: rows(server, f"SELECT sum(length(outcome)) FROM idempotency WHERE token = {token}")
    assert kept(0) == 4 << 20
    for n in range(3):
        twice(server, "POST", "/v1/sitemaps", f"new-{n}", {"loc": name(n)})
        assert kept(0) <= 4 << 20
    assert kept(77) == 4 << 20 and rows(server, "SELECT count(*) FROM idempotency WHERE token = 0") > 250


def test_what_is_rolled_back_leaves_no_key(tmp_path):
    """The catalogue cannot be written: 503, and the same key goes through later."""
    server = Server(tmp_path).start()
    try:
        server.restart(write_timeout="300ms")
        holder = sqlite3.connect(server.database, timeout=60, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        assert server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k")).status == 503
        holder.execute("ROLLBACK")
        holder.close()
        eventually(lambda: server.api("POST", "/v1/sitemaps", {"loc": name(1)}, headers=keyed("k")).status == 201, "it is written")
        server.stop()
    finally:
        server.kill()
