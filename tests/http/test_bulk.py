# SPDX-License-Identifier: LicenseRef-Undeclared
"""Lists to POST /v1/sitemaps: their forms, all or nothing, what they cost others and the server."""

import gzip
import json
import os
import re
import threading
import time

import pytest

from harness import INDEX, ORIGIN, PLAIN, TOKEN, Connection, eventually, locs, problem, q, request_bytes, seconds

XML = "/sitemap_index.xml"
NDJSON = "application/x-ndjson"
LIST = "/v1/sitemaps"
AUTH = [("Authorization", f"Bearer {TOKEN}")]


def line(loc, **fields):
    return (json.dumps({"loc": loc, **fields}) + "\n").encode()


def post(server, body, kind=NDJSON, target=LIST, headers=(), method="POST"):
    return server.api(method, target, body=body, content_type=kind, headers=headers)


def codes(found):
    return [(r["line"], r["code"]) for r in found["rejected"]]


def page(server):
    reply = server.get(XML)
    return locs(reply.body) if reply.status == 200 else []


def memory_mb(server, what="VmHWM"):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{what}:\s+(\d+) kB", file.read(), re.M).group(1)) / 1024


def send_chunked(connection, server, pieces, target=LIST, headers=(), kind=NDJSON, pause=0.0):
    """Transfer-Encoding: chunked, one chunk for each piece."""
    headers = AUTH + [("Content-Type", kind), ("Transfer-Encoding", "chunked"), ("Connection", "close"), *headers]
    connection.send(request_bytes("POST", target, headers, host=server.admin))
    for piece in pieces:
        if piece:
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        if pause:
            time.sleep(pause)
    connection.send(b"0\r\n\r\n")
    return connection.reply("POST")


# ---- forms --------------------------------------------------------------------------------------

ROWS = [{"loc": f"{ORIGIN}/{i}.xml", "lastmod": "2026-01-31T10:20:30Z", "digest": f"d{i}"} for i in range(700)]
NAMES = [r["loc"] for r in ROWS]
AS_NDJSON = b"".join(json.dumps(r).encode() + b"\n" for r in ROWS)
FORMS = [
    ("array", json.dumps(ROWS).encode(), "application/json"),
    ("array with space", json.dumps(ROWS, indent=1).encode(), "application/json; charset=utf-8"),
    ("ndjson", AS_NDJSON, NDJSON),
    ("ndjson with crlf, blank lines, no last newline", AS_NDJSON.replace(b"\n", b"\r\n\r\n").rstrip(), NDJSON),
]


@pytest.mark.parametrize("encoding", [None, "gzip", "x-gzip", "members", "chunked", "bytes", "identity"])
@pytest.mark.parametrize("body, kind", [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_forms(server, body, kind, encoding):
    if encoding in ("gzip", "x-gzip"):
        reply = post(server, gzip.compress(body), kind, headers=[("Content-Encoding", encoding)])
    elif encoding == "members":
        parts = gzip.compress(body[:9999]) + gzip.compress(b"") + gzip.compress(body[9999:])
        reply = post(server, parts, kind, headers=[("Content-Encoding", "gzip")])
    elif encoding == "identity":
        reply = post(server, body, kind, headers=[("Content-Encoding", "identity")])
    elif encoding in ("chunked", "bytes"):
        step = 1000 if encoding == "chunked" else 1
        body = body if encoding == "chunked" else None
        if body is None:  # byte by byte a few rows do
            body = json.dumps(ROWS[:3]).encode() if "json;" in kind or kind == "application/json" else AS_NDJSON[:240]
            body = body if kind != NDJSON else b"".join(json.dumps(r).encode() + b"\n" for r in ROWS[:3])
        with Connection(server.admin) as connection:
            reply = send_chunked(connection, server, [body[i : i + step] for i in range(0, len(body), step)], kind=kind)
    else:
        reply = post(server, body, kind)
    count = 3 if encoding == "bytes" else len(ROWS)
    assert reply.status == 200, reply
    answer = reply.json()
    assert (answer["created"], answer["rejected"], answer["rejected_total"]) == (count, [], 0)
    assert page(server) == NAMES[:count]


def test_invalid_forms(server):
    rows = AS_NDJSON
    for body, kind, headers, status in (
        (rows, "application/json", (), 400),
        (json.dumps(ROWS).encode()[:-1], "application/json", (), 400),
        (b"[" + rows.replace(b"\n", b",") + b"]", "application/json", (), 400),
        (rows[:-10], NDJSON, (), (400, 422)),
        (rows, NDJSON, [("Content-Encoding", "gzip")], 400),
        (gzip.compress(rows), NDJSON, (), (400, 422)),
        (gzip.compress(rows)[:-5], NDJSON, [("Content-Encoding", "gzip")], 400),
        (gzip.compress(rows)[:2000], NDJSON, [("Content-Encoding", "gzip")], 400),
        (gzip.compress(rows)[:-8] + b"\0\0\0\0\0\0\0\0", NDJSON, [("Content-Encoding", "gzip")], 400),
        (gzip.compress(rows) + b"more", NDJSON, [("Content-Encoding", "gzip")], 400),
        (rows, NDJSON, [("Content-Encoding", "br")], 415),
        (rows, NDJSON, [("Content-Encoding", "gzip, gzip")], 415),
        (rows, "text/plain", (), 415),
    ):
        reply = post(server, body, kind, headers=headers)
        assert reply.status in (status if isinstance(status, tuple) else (status,)), (body[:40], kind, headers, reply)
        problem(reply, reply.status)
        assert server.get(XML).status == 404, "nothing was taken"
    assert post(server, b"", NDJSON).status in (200, 400, 411)
    assert post(server, b"[]", "application/json").json()["created"] == 0


# ---- all or nothing -----------------------------------------------------------------------------


def test_one_bad_line_and_nothing_is_applied(server):
    assert server.bulk(NAMES[:5]).json()["created"] == 5
    tag, revision = server.get(XML)["ETag"], server.metrics()["sitemapd_catalogue_revision"]
    bad = [line(n) for n in NAMES[5:400]]
    bad[17:17] = [line("relative")]
    bad[300:300] = [line(f"{ORIGIN}/x.xml", lastmod="2026-02-30"), b'{"loc": 7}\n', b'{"lok": "x"}\n']
    bad.append(line("https://other.example/a.xml"))
    found = problem(post(server, b"".join(bad)), 422, "entries-refused")
    assert codes(found) == [
        (18, "loc-relative"), (301, "lastmod-invalid"), (302, "wrong-type"), (303, "unknown-field"), (400, "site-unknown"),
    ], "those of the form and those of the place, in one reply, by line"
    assert found["rejected_total"] == 5 and found["rejected"][0]["loc"] == "relative"
    assert all(r["detail"] for r in found["rejected"])
    assert server.get(XML)["ETag"] == tag and server.metrics()["sitemapd_catalogue_revision"] == revision

    skipped = post(server, b"".join(bad), target=f"{LIST}?on_error=skip").json()
    assert codes(skipped) == [(18, "loc-relative"), (302, "wrong-type"), (303, "unknown-field"), (400, "site-unknown")]
    assert skipped["created"] == 396 and skipped["rejected_total"] == 4
    assert [(w["line"], w["codes"]) for w in skipped["warnings"]] == [(301, ["lastmod-invalid"])], "it costs only itself"
    assert len(page(server)) == 401
    assert problem(post(server, b"".join(bad), target=f"{LIST}?on_error=later"), 400)["field"] == "on_error"


def test_refused_lines_are_listed_up_to_a_bound_and_counted(start):
    server = start(config="[limits]\nmax_rejections = 7\n")
    body = b"".join(line(NAMES[i]) if i % 2 else line(f"bad{i}") for i in range(600))
    found = problem(post(server, body), 422, "entries-refused")
    assert [r["line"] for r in found["rejected"]] == [1, 3, 5, 7, 9, 11, 13] and found["rejected_total"] == 300
    answer = post(server, body, target=f"{LIST}?on_error=skip").json()
    assert len(answer["rejected"]) == 7 and answer["rejected_total"] == 300 and answer["created"] == 300
    # What is wrong with every line costs memory for no more than the bound.
    many = 300000 if PLAIN else 30000
    before = memory_mb(server)
    found = problem(post(server, b'{"loc":"x"}\n' * many), 422)
    assert found["rejected_total"] == many and len(found["rejected"]) == 7
    assert not PLAIN or memory_mb(server) - before < 30


def test_a_loc_twice_in_one_list(server):
    """A list is a series of upserts: the later one counts, as if it had come in a list of its own."""
    rows = [{"loc": NAMES[0], "lastmod": "2026-01-01", "digest": "a"}, {"loc": NAMES[1]}, {"loc": NAMES[0], "lastmod": "2026-01-02", "digest": "b"},
            {"loc": NAMES[1]}, {"loc": NAMES[0].replace("www", "WWW"), "lastmod": "2026-01-03", "digest": "b"}]
    answer = server.bulk(rows).json()
    assert (answer["created"], answer["updated"], answer["unchanged"], answer["rejected"]) == (2, 1, 2, []), answer
    assert page(server) == NAMES[:2]
    entry = server.api("GET", f"{LIST}?loc={q(NAMES[0])}").json()["sitemaps"][0]
    assert (entry["lastmod"], entry["digest"]) == ("2026-01-02", "b"), "with the digest unmoved the last date is not news"
    # The same again is not a change at all.
    assert server.bulk([rows[2], rows[1]]).json()["revision"] == answer["revision"]
    # Twice and with another index: it has moved.
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/d/index.xml"}).status == 201
    twice = [{"loc": f"{ORIGIN}/d/a.xml"}, {"loc": f"{ORIGIN}/d/a.xml", "index": INDEX}]
    answer = server.bulk(twice).json()
    assert (answer["created"], answer["updated"]) == (1, 1) and server.get("/d/index.xml").status == 404
    assert page(server)[-1] == f"{ORIGIN}/d/a.xml" and server.cli("check").code == 0


# ---- bounds -------------------------------------------------------------------------------------


def test_a_gzip_bomb_is_413(server):
    before = memory_mb(server)
    good = b"".join(line(n) for n in NAMES)
    size = 1 << 26
    squeezed = {
        "spaces": gzip.compress(b" " * size),
        "lines": gzip.compress(b"\n" * size),
        "one string": gzip.compress(b'{"loc": "' + b"a" * size),
        "behind good lines": gzip.compress(good) + gzip.compress(b"\n" * size),
        "twice": gzip.compress(gzip.compress(b"\n" * size)),
    }
    for name, body in squeezed.items():
        for kind in (NDJSON, "application/json"):
            reply = post(server, body, kind, headers=[("Content-Encoding", "gzip")])
            assert reply.status in (413, 422, 400), (name, kind, reply)
            if name in ("spaces", "lines") or (kind == NDJSON and name == "behind good lines"):
                problem(reply, 413, "gzip-bomb")
    assert server.get(XML).status == 404
    assert not PLAIN or memory_mb(server) - before < 40
    # Small bodies may be as repetitive as they like.
    assert post(server, gzip.compress(line(NAMES[0]) * 9000), headers=[("Content-Encoding", "gzip")]).json()["unchanged"] == 8999


def test_what_is_larger_than_configured(start):
    server = start(config="[limits]\nmax_body = 64K\nmax_bulk = 64K\nmax_bulk_entries = 1000\n")
    assert post(server, b"".join(line(n) for n in NAMES)).json()["created"] == 700
    fill = line(NAMES[0]) + b"\n" * 70000
    problem(post(server, fill), 413, "body-too-large")
    problem(post(server, gzip.compress(fill), headers=[("Content-Encoding", "gzip")]), 413)
    with Connection(server.admin) as connection:
        problem(send_chunked(connection, server, [line(NAMES[0]), b" " * 70000]), 413)
    found = problem(post(server, b'{"loc":"%s/n.xml"}\n' % ORIGIN.encode() * 1001), 413)
    assert "1000" in found["detail"], found
    assert len(page(server)) == 700


# ---- beside others ------------------------------------------------------------------------------


class Singles(threading.Thread):
    """Registers one entry after the other; what each waited for its answer."""

    def __init__(self, server, name="single", pause=0.01):
        super().__init__(daemon=True)
        self.server, self.name_, self.pause = server, name, pause
        self.waits, self.replies, self.stopped = [], [], threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()

    def run(self):
        while not self.stopped.is_set():
            begun = time.monotonic()
            reply = self.server.register(f"{ORIGIN}/{self.name_}/{len(self.waits)}.xml")
            self.waits.append(time.monotonic() - begun)
            self.replies.append(reply)
            time.sleep(self.pause)


def test_a_slow_sender_holds_nobody_up(start):
    """Its lines wait in a spool; the transaction begins when the last is there."""
    server = start(config="[server]\nbody_timeout = 10m\n")
    rows = [line(f"{ORIGIN}/slow/{i}.xml") for i in range(20)]
    with Connection(server.admin) as connection, Singles(server) as singles:
        # Past what is read at once, so that it is spooled while it comes.
        rows[0] = (b" " * 999 + b"\n") * 70 + rows[0]

        def slowly():
            for row in rows:
                yield row
                seen = len(singles.replies)
                eventually(lambda: len(singles.replies) > seen + 1, "others are answered while it comes")

        reply = send_chunked(connection, server, slowly())
        assert reply.status == 200 and reply.json()["created"] == 20
    assert all(r.status == 201 for r in singles.replies)
    seen = page(server)
    assert seen.index(f"{ORIGIN}/slow/0.xml") > 15, "it came after those that were quicker"
    # One that never ends leaves nothing behind.
    with Connection(server.admin) as connection:
        headers = AUTH + [("Content-Type", NDJSON), ("Content-Length", "999999")]
        connection.send(request_bytes("POST", LIST, headers, rows[0] + rows[1], host=server.admin))
        assert server.register(f"{ORIGIN}/meanwhile.xml").status == 201
    assert server.register(f"{ORIGIN}/after.xml").status == 201
    assert len(page(server)) == len(seen) + 2


def test_many_slow_senders_hold_no_thread(start):
    server = start(env={"SITEMAPD_SERVER_HEADER_TIMEOUT": "1h"})  # all are open before the last of them asks
    connections = [Connection(server.admin) for _ in range(200)]
    try:
        headers = AUTH + [("Content-Type", NDJSON), ("Content-Length", "200000")]
        for connection in connections:
            connection.send(request_bytes("POST", LIST, headers, b" " * 70000, host=server.admin))
        for i in range(20):
            begun = time.monotonic()
            assert server.register(f"{ORIGIN}/{i}.xml").status == 201
            assert server.api("GET", LIST).status == 200
            assert time.monotonic() - begun < 20, "they are cut after 30 s (body_timeout)"
    finally:
        for connection in connections:
            connection.close()


def test_a_single_waits_for_a_bulk_no_longer_than_write_timeout(start):
    """Where the bulk takes longer, 503 says so, and what it was said of was not applied."""
    server = start().restart(write_timeout="100ms")
    count = 150000 if PLAIN else 40000
    body = b"".join(b'{"loc":"%s/b/%06d.xml"}\n' % (ORIGIN.encode(), i) for i in range(count))
    with Singles(server, pause=0.001) as singles:
        replies = []
        eventually(lambda: replies.append(post(server, body)) or replies[-1].status != 503, "its turn, for which it waits no longer than others", 120)
        assert replies[-1].status == 200 and replies[-1].json()["created"] == count, "a bulk's own time does not count"
    refused = [i for i, r in enumerate(singles.replies) if r.status != 201]
    assert len(refused) > 1, "one after the other: who waited for the bulk's end would be the only one"
    for i in refused:
        found = problem(singles.replies[i], 503, "busy")
        assert "nothing was applied" in found["detail"] and singles.replies[i]["Retry-After"]
        assert server.api("GET", f"{LIST}?loc={q(f'{ORIGIN}/single/{i}.xml')}").json()["sitemaps"] == []
    eventually(lambda: server.register(f"{ORIGIN}/last.xml").status in (200, 201), "one is taken again")


@pytest.mark.parametrize("method,query", [("POST", ""), ("POST", "?on_error=skip"), ("PUT", f"?index={q(ORIGIN + XML)}")])
def test_a_sites_long_list_gives_way_to_others(start, method, query):
    """Others' writes are not refused for its sake; alone, it takes as long as it takes."""
    server = start()
    assert server.cli("site", "add", "https://two.example").code == 0
    token = server.make_token("one", "--site", ORIGIN)
    server.restart(write_timeout="300ms")
    count = 60000 if PLAIN else 20000  # more than its time
    body = b"".join(line(f"{ORIGIN}/{i}/{'x' * 900}.xml") for i in range(count))
    if "skip" in query:
        body = line("https://two.example/no.xml") + body
    over, others = threading.Event(), []

    def register():
        while not over.is_set():
            others.append(server.api("POST", LIST, {"loc": f"https://two.example/{len(others)}.xml"}).status)

    def send():
        """Once it has its turn, for which it waits no longer than others."""
        replies = []
        eventually(lambda: replies.append(server.api(method, LIST + query, body=body, content_type=NDJSON, token=token)) or replies[-1].status != 503, "its turn", 120)
        return replies[-1]

    thread = threading.Thread(target=register)
    thread.start()
    try:
        problem(send(), 413, "list-too-long")
    finally:
        over.set()
        thread.join()
    assert page(server) == []
    assert others.count(201) > 0
    found = send()
    assert (found.status, found.json()["created"]) == (200, count)


@pytest.mark.stress
def test_a_million(start):
    """In bounded memory, and the singles meanwhile wait at most write_timeout (docs/api.md), 10 s."""
    count = 1000000 if PLAIN else 30000
    server = start(config="[catalogue]\nwrite_timeout = 10s\n")
    assert server.register(f"{ORIGIN}/first.xml").status == 201
    before = memory_mb(server)
    piece = lambda n: b"".join(b'{"loc":"%s/s/%07d.xml","lastmod":"2026-01-31T10:20:30Z"}\n' % (ORIGIN.encode(), i) for i in range(n, n + 10000))
    begun = time.monotonic()
    with Connection(server.admin, timeout=seconds(120)) as connection, Singles(server) as singles:
        reply = send_chunked(connection, server, map(piece, range(0, count, 10000)))
    assert reply.status == 200 and reply.json()["created"] == count, reply
    took = time.monotonic() - begun
    grown = memory_mb(server) - before
    # 77 MB of lines came in; what they cost is the writer's cache, not a share of them.
    assert not PLAIN or grown < 160, grown
    statuses = {r.status for r in singles.replies}
    assert statuses <= {201, 503} and max(singles.waits) < 10 + max(seconds(2), took / 3), (statuses, max(singles.waits), took)
    made = sum(r.status == 201 for r in singles.replies)
    entries = server.metrics()["sitemapd_entries"]
    assert entries == count + made + 1, "what was refused with 503 was not applied"
    last = server.get(f"/sitemap_index-{int(entries - 1) // 50000 + 1}.xml" if entries > 50000 else XML)
    assert last.status == 200
    assert not [p for p in os.listdir(server.folder) if "spool" in p], "no file is left"


def spooled(server):
    """Bytes of the files without a name that the server holds."""
    folder, total = f"/proc/{server.process.pid}/fd", 0
    for fd in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{fd}").endswith(" (deleted)"):
                total += os.stat(f"{folder}/{fd}").st_size
        except OSError:
            pass  # closed meanwhile
    return total


def test_all_lists_together_are_bounded(start):
    server = start(env={"SITEMAPD_LIMITS_MAX_SPOOL": "1M"})
    part = b"".join(line(f"{ORIGIN}/{'a' * 900}/{n}.xml") for n in range(950))
    other = b"".join(line(f"{ORIGIN}/{'b' * 900}/{n}.xml") for n in range(500))
    headers = AUTH + [("Content-Type", NDJSON), ("Content-Length", str(2 * len(part)))]
    with Connection(server.admin) as slow:
        slow.send(request_bytes("POST", LIST, headers, part, host=server.admin))
        eventually(lambda: spooled(server) > 800000, "it is spooled")
        refused = post(server, other)
        problem(refused, 503, "spool-full")
        assert refused["Retry-After"]
        assert post(server, line(f"{ORIGIN}/small.xml")).status == 200, "what needs no file"
    assert eventually(lambda: post(server, other).status == 200, "the room is given back")
    assert len(page(server)) == 501
    problem(post(server, 3 * other), 413, "body-too-large")


def test_an_export_of_one_site_takes_its_half_of_the_room(start):
    server = start(env={"SITEMAPD_LIMITS_MAX_SPOOL": "4M"})
    token = server.make_token("one", "--site", ORIGIN)
    for part in range(2):
        listed = b"".join(line(f"{ORIGIN}/{'e' * 900}/{part}-{n}.xml") for n in range(1200))
        assert post(server, listed).status == 200
    export = lambda whose: server.api("GET", LIST, headers=[("Accept", NDJSON)], token=whose)
    whole = export(server.token)
    assert whole.status == 200 and 2 << 20 < len(whole.body) < 4 << 20
    for _ in range(3):  # what was taken is given back
        problem(export(token), 503, "spool-full")
    assert export(server.token).status == 200
    assert post(server, b"".join(line(f"{ORIGIN}/{'g' * 900}/{n}.xml") for n in range(500))).status == 200


@pytest.mark.skipif(not PLAIN, reason="a sanitizer's allocator keeps what is freed")
def test_what_a_list_took_of_memory_is_given_back(server):
    """The engine's cache for a list, 64 MiB: soon after it."""
    before = memory_mb(server, "RssAnon")
    assert server.bulk(f"{ORIGIN}/much/{i}" for i in range(250_000)).json()["created"] == 250_000
    assert memory_mb(server, "VmHWM") - before > 45
    eventually(lambda: memory_mb(server, "RssAnon") - before < 25, "it is given back")
