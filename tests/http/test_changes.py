# SPDX-License-Identifier: LicenseRef-Undeclared
"""GET /v1/changes, for purges of a CDN: changes are reported once they are published; long polls wait for them, by the
thousand; cursors outlive a restart."""

import json
import os
import re
import select
import shutil
import threading
import time

import pytest

from harness import (
    INDEX, ORIGIN, PAGE_ENTRIES, PLAIN, TOKEN, Connection, eventually, locs, problem, q, request_bytes, seconds,
)

XML = "/sitemap_index.xml"
GZIP = {"Accept-Encoding": "gzip"}
AUTH = [("Authorization", f"Bearer {TOKEN}")]
SHOP = "https://shop.example.org"


def changes(server, since=0, token="", **more):
    query = "&".join(f"{k}={q(v)}" for k, v in {"since": since, **more}.items())
    reply = server.api("GET", f"/v1/changes?{query}", token=token)
    assert reply.status == 200, reply
    return reply.json()


def by_url(answer):
    urls = [p["url"] for p in answer["pages"]]
    assert len(urls) == len(set(urls)), urls
    return {p["url"]: p for p in answer["pages"]}


def serve_all(server, answer, host="www.example.com"):
    """Each page that is reported has, on the public listener, the state that was reported."""
    for url, result in by_url(answer).items():
        path = url.split("/", 3)[3]
        reply = server.get("/" + path, GZIP, host=host)
        if result["removed"]:
            assert reply.status == 404 and result["etag"] is None, (result, reply)
        else:
            assert reply.status == 200, (result, reply)
            assert result["etag"] in (None, reply["ETag"]), (result, reply)


def poll(server, since, wait=60, auth=AUTH):
    """A long poll on a connection of its own, not answered yet."""
    connection = Connection(server.admin, timeout=seconds(120))
    connection.send(request_bytes("GET", f"/v1/changes?since={q(since)}&wait={wait}", auth, host=server.admin))
    return connection


def is_quiet(connections, for_seconds=0.3):
    waiter = select.poll()  # select() knows no file beyond the 1,024th
    for connection in connections:
        waiter.register(connection.socket, select.POLLIN)
    return not waiter.poll(for_seconds * 1000)


def suspended(server):
    return server.metrics()['sitemapd_http_suspended{listener="admin"}']


# ---- what is reported -------------------------------------------------------------------------------


def test_pages_their_twins_and_robots(server):
    empty = changes(server)
    assert empty["pages"] == [] and set(empty) == {"revision", "next", "pages"}
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    for since in (0, empty["next"]):
        first = changes(server, since)
        assert set(by_url(first)) == {INDEX, INDEX + ".gz", f"{ORIGIN}/robots.txt"}
        assert all(set(p) == {"url", "etag", "changed_at", "revision", "removed"} for p in first["pages"])
    assert changes(server, first["next"])["pages"] == [] and changes(server, first["next"])["next"] == first["next"]
    serve_all(server, first)  # cold until it is asked for
    warm = changes(server)
    assert all(p["etag"] for p in warm["pages"]) and first["next"] == warm["next"]
    serve_all(server, warm)
    # An update is not news for robots.txt.
    assert server.register(f"{ORIGIN}/a.xml", lastmod="2026-01-31").status == 200
    second = changes(server, warm["next"])
    assert set(by_url(second)) == {INDEX, INDEX + ".gz"} and all(p["etag"] for p in second["pages"])
    assert by_url(second)[INDEX]["etag"] != by_url(warm)[INDEX]["etag"]
    serve_all(server, second)
    assert second["revision"] == by_url(second)[INDEX]["revision"] == server.metrics()["sitemapd_catalogue_revision"]
    # Registering the same again is not a change.
    assert server.register(f"{ORIGIN}/a.xml", lastmod="2026-01-31").status == 200
    assert changes(server, second["next"])["pages"] == []
    # What another process does is reported as well.
    assert server.cli("add", f"{ORIGIN}/b.xml").code == 0
    third = changes(server, second["next"], wait=60)
    assert set(by_url(third)) == {INDEX, INDEX + ".gz"}
    serve_all(server, third)


def test_a_change_names_its_page_only(server):
    rows = "".join(json.dumps({"loc": f"{ORIGIN}/p/{p}.xml", "position": p}) + "\n" for p in (0, PAGE_ENTRIES, 2 * PAGE_ENTRIES))
    assert server.cli("import", "--index", INDEX, "-", input=rows).code == 0
    page = lambda n: f"{ORIGIN}/sitemap_index{f'-{n}' if n > 1 else ''}.xml"
    eventually(lambda: len(changes(server)["pages"]) == 7, "three pages, their twins, robots.txt")
    at = changes(server)["next"]
    assert server.register(f"{ORIGIN}/p/{PAGE_ENTRIES}.xml", lastmod="2026-01-31").status == 200
    answer = changes(server, at)
    assert set(by_url(answer)) == {page(2), page(2) + ".gz"}
    # Emptied: reported as removed, together with robots.txt, which does not name it any more.
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(f'{ORIGIN}/p/{PAGE_ENTRIES}.xml')}").status == 204
    gone = changes(server, answer["next"])
    assert {u: p["removed"] for u, p in by_url(gone).items()} == {page(2): True, page(2) + ".gz": True, f"{ORIGIN}/robots.txt": False}
    serve_all(server, gone)
    # It is also reported to a client that has seen nothing yet.
    assert by_url(changes(server))[page(2)]["removed"] is True
    assert server.cli("import", "--index", INDEX, "-", input=rows).code == 0
    back = changes(server, gone["next"], wait=60)
    assert {u: p["removed"] for u, p in by_url(back).items()} == {page(2): False, page(2) + ".gz": False, f"{ORIGIN}/robots.txt": False}
    serve_all(server, back)


def test_removed_indexes_and_sites(start):
    server = start(sites=(ORIGIN, SHOP))
    made = server.api("POST", "/v1/indexes", {"url": f"{SHOP}/de/index.xml"}).json()["id"]
    for loc in (f"{ORIGIN}/a.xml", f"{SHOP}/a.xml", f"{SHOP}/de/a.xml"):
        assert server.register(loc).status == 201
    at = changes(server)
    assert len(by_url(at)) == 8 and f"{SHOP}/robots.txt" in by_url(at)
    assert server.api("DELETE", f"/v1/indexes/{made}?max_removed=1").status == 200
    one = changes(server, at["next"])
    removed = {u: p["removed"] for u, p in by_url(one).items()}
    assert removed == {f"{SHOP}/de/index.xml": True, f"{SHOP}/de/index.xml.gz": True, f"{SHOP}/robots.txt": False}
    serve_all(server, one, host="shop.example.org")
    site = {s["origin"]: s["id"] for s in server.api("GET", "/v1/sites").json()["sites"]}[SHOP]
    assert server.api("DELETE", f"/v1/sites/{site}?max_removed=1").status == 200
    two = changes(server, one["next"])
    removed = {u: p["removed"] for u, p in by_url(two).items()}
    assert removed == {f"{SHOP}{XML}": True, f"{SHOP}{XML}.gz": True, f"{SHOP}/robots.txt": True}
    # Tombstones outlive the purge of the rows, and a restart.
    server.args = server.args[: server.args.index(SHOP) - 1]
    server.restart()
    assert {u: p["removed"] for u, p in by_url(changes(server, one["next"])).items()} == removed
    assert changes(server, two["next"])["pages"] == []


def test_a_page_that_came_back_is_reported_once(server):
    """Under the same URL there was another index's page: what is there now counts."""
    url = f"{ORIGIN}/shop/index.xml"
    since = 0
    for n in range(3):
        made = server.api("POST", "/v1/indexes", {"url": url}).json()["id"]
        assert server.register(f"{ORIGIN}/shop/{n}.xml").status == 201
        answer = changes(server)
        assert {u: p["removed"] for u, p in by_url(answer).items()} == {url: False, url + ".gz": False, f"{ORIGIN}/robots.txt": False}
        assert set(by_url(changes(server, since))) == set(by_url(answer))
        serve_all(server, answer)
        assert server.api("DELETE", f"/v1/indexes/{made}?max_removed=1").status == 200
        gone = changes(server)
        assert {u: p["removed"] for u, p in by_url(gone).items()} == {url: True, url + ".gz": True, f"{ORIGIN}/robots.txt": False}
        serve_all(server, gone)
        since = gone["next"]


def test_a_token_sees_its_site_only(start):
    server = start(sites=(ORIGIN, SHOP))
    token = server.make_token("shop", "--site", SHOP)
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    nothing = changes(server, token=token)
    assert nothing["pages"] == []
    assert server.register(f"{SHOP}/a.xml").status == 201
    assert set(by_url(changes(server, nothing["next"], token=token))) == {f"{SHOP}{XML}", f"{SHOP}{XML}.gz", f"{SHOP}/robots.txt"}


def test_a_long_list_comes_in_parts(start):
    """At most 1,000 pages a reply, a revision never split: walked by `next` until nothing is left."""
    server = start(sites=[f"https://s{n}.example.com" for n in range(3)])
    rows = [{"loc": f"https://s{s}.example.com/p/{n}.xml", "position": n * PAGE_ENTRIES} for s in range(3) for n in range(500)]
    for part in (rows[:400], rows[400:900], rows[900:1450], rows[1450:]):
        assert server.cli("import", "-", input="".join(json.dumps(r) + "\n" for r in part)).code == 0
    eventually(lambda: server.metrics()["sitemapd_entries"] == 1500, "published")
    seen, since, replies = set(), 0, 0
    while True:
        answer = changes(server, since)
        if not answer["pages"]:
            break
        urls = by_url(answer)
        assert not seen & {u for u in urls if not u.endswith("robots.txt")}, "nothing twice"
        assert {u.split("/")[2] for u in urls if u.endswith("robots.txt")} == {u.split("/")[2] for u in urls if u.endswith(".xml")}, "with its site's pages"
        seen |= set(urls)
        since, replies = answer["next"], replies + 1
    assert len(seen) == 3003 and 1 < replies <= 4


# ---- since --------------------------------------------------------------------------------------


def test_since(server):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    token = changes(server)["next"]
    epoch, revision, registry = token.split("-")
    ahead = f"{epoch}-{int(revision) + 1}-{registry}"
    for since in (ahead, f"{'0' * len(epoch)}-{revision}-{registry}", "1", "7"):
        problem(server.api("GET", f"/v1/changes?since={since}"), 410, "revision-unknown", "since")
    for since in ("x", "-1", "1.5", "", f"{epoch}", f"{epoch}-", f"{epoch}-x", f"{token}-1", f" {token}", "99999999999999999999"):
        reply = server.api("GET", f"/v1/changes?since={q(since)}")
        assert reply.status in (400, 410), (since, reply)
    for wait in ("-1", "61", "x", "1.5"):
        problem(server.api("GET", f"/v1/changes?since={token}&wait={wait}"), 400, "malformed-parameter", "wait")
    assert changes(server, token, wait=0)["pages"] == []
    assert server.api("GET", "/v1/changes").json()["next"] == token, "without since: from the beginning"


def test_since_outlives_a_restart_and_not_another_catalogue(start, tmp_path):
    server = start()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get(XML).status == 200
    one = changes(server)
    server.restart()
    assert changes(server, one["next"])["pages"] == []
    cold = changes(server)
    assert by_url(cold)[INDEX]["etag"] is None, "not in memory yet"
    assert server.get(XML).status == 200
    assert changes(server) == one, "the same tags as before the restart"
    # A poll from before, on the new process.
    held = poll(server, one["next"])
    assert is_quiet([held])
    assert server.register(f"{ORIGIN}/b.xml").status == 201
    assert INDEX in by_url(held.reply().json())
    held.close()
    # An older copy of the file: what it does not know, it says.
    backup = tmp_path / "copy.db"
    assert server.cli("backup", str(backup)).code == 0
    assert server.register(f"{ORIGIN}/c.xml").status == 201
    late = changes(server)["next"]
    server.stop()
    (tmp_path / "two").mkdir()
    other = start(folder=tmp_path / "two", database=backup)
    problem(other.api("GET", f"/v1/changes?since={q(late)}"), 410, "revision-unknown")
    assert changes(other, one["next"])["pages"] != []


def renamed(backup, database):
    os.rename(backup, database)


def copied_over(backup, database):
    """Into the same inode."""
    shutil.copyfile(backup, database)
    for end in ("-wal", "-shm"):
        if os.path.exists(database + end):
            os.unlink(database + end)


@pytest.mark.parametrize("how", ["beneath", "stopped, renamed", "stopped, copied over", "killed, renamed", "stopped, renamed, written", "stopped, copied over, written"])
def test_a_backup_in_the_catalogues_place_is_another_epoch(server, tmp_path, how):
    """A cursor of what the backup does not have is refused, and still is once the revision has passed it."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    early = changes(server)["next"]
    backup = tmp_path / "copy.db"
    if "copied" in how:  # a copy of the file itself, not one that sitemapd made
        server.stop()
        shutil.copyfile(server.database, backup)
        server.start()
        assert changes(server, early)["pages"] == []
    else:
        assert server.cli("backup", str(backup)).code == 0
    for name in "bcd":
        assert server.register(f"{ORIGIN}/{name}.xml").status == 201
    late = changes(server)["next"]
    if how == "beneath":
        renamed(backup, server.database)
        eventually(lambda: "d.xml" not in server.api("GET", "/v1/sitemaps").body.decode(), "the other file is read")
    else:
        server.kill() if "killed" in how else server.stop()
        (copied_over if "copied" in how else renamed)(backup, server.database)
        if "killed" in how and os.path.exists(server.database + "-wal"):
            os.unlink(server.database + "-wal")  # of the other file, as any manual says
        if "written" in how:
            for name in "bcdef":
                assert server.cli("add", f"{ORIGIN}/other-{name}.xml").code == 0
        server.start()
    unknown = lambda cursor: problem(server.api("GET", f"/v1/changes?since={q(cursor)}"), 410, "revision-unknown")
    eventually(lambda: server.api("GET", f"/v1/changes?since={q(early)}").status == 410, "it is another epoch")
    for name in "efghij":
        unknown(late)
        eventually(lambda: server.register(f"{ORIGIN}/{name}.xml").status in (200, 201), "the other file is written")
    unknown(late)
    unknown(early)
    fresh = changes(server)["next"]
    server.restart()
    unknown(late)
    assert changes(server, fresh)["pages"] == []


@pytest.mark.parametrize("how", ["stopped", "killed", "written meanwhile"])
def test_the_same_file_is_the_same_epoch(server, how):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    at = changes(server)["next"]
    server.kill() if how == "killed" else server.stop()
    if how == "written meanwhile":
        assert server.cli("add", f"{ORIGIN}/b.xml").code == 0
    server.start()
    result = by_url(changes(server, at))
    assert (INDEX in result) == (how == "written meanwhile"), result


def test_a_stop_ends_polls_at_once(server):
    at = changes(server)["next"]
    held = [poll(server, at, wait=60) for _ in range(20)]
    eventually(lambda: suspended(server) == 20, "all wait")
    server.stop()
    for connection in held:
        answer = connection.reply()
        assert answer.status == 200 and answer.json()["pages"] == [] and answer.json()["next"] == at
        connection.close()


# ---- waiting ------------------------------------------------------------------------------------


def test_a_poll_is_held_until_something_is_published(server):
    at = changes(server)["next"]
    begun = time.monotonic()
    assert changes(server, at, wait=1)["pages"] == [] and 0.9 < time.monotonic() - begun < 20
    held = poll(server, at)
    assert is_quiet([held])
    # What changes no page wakes nobody up for good.
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/x/index.xml"}).status == 201
    problem(server.register("relative"), 422)
    assert is_quiet([held])
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    answer = held.reply().json()
    assert INDEX in by_url(answer)
    serve_all(server, answer)
    held.close()
    # What is there already is reported without waiting.
    begun = time.monotonic()
    assert changes(server, at, wait=60)["next"] == answer["next"] and time.monotonic() - begun < 20


def test_what_is_reported_is_what_is_served(server):
    """A copy fetched upon the news must not be the old one, or the purge was for nothing."""
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(2000)]).status == 200
    assert server.get(XML, GZIP).status == 200
    begun, stop, result = threading.Barrier(4, timeout=seconds(60)), threading.Event(), []

    def follow():
        since, last = changes(server)["next"], False
        begun.wait()
        while not last:
            last = stop.is_set()
            answer = changes(server, since, wait=1)
            since = answer["next"]
            if answer["pages"]:
                page = by_url(answer)[INDEX]
                xml = server.get(XML, GZIP)
                newest = int(re.findall(r"/n/(\d+)\.xml", locs(xml.xml())[-1])[0])
                result.append((page["revision"], newest))

    threads = [threading.Thread(target=follow, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    revisions = {}
    for n in range(120 if PLAIN else 40):
        answer = server.register(f"{ORIGIN}/n/{n}.xml").json()
        revisions[answer["revision"]] = n
    stop.set()
    for thread in threads:
        thread.join()
    assert result
    for revision, newest in result:
        assert newest >= revisions.get(revision, 0), "fetched after the news, it holds what the news was of"


# ---- many ---------------------------------------------------------------------------------------

POLLS = 1500 if PLAIN else 300


def test_polls_by_the_thousand_hold_no_thread(server):
    """Writes and reads go on beside them; then each is reported."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    at = changes(server)["next"]
    held = [poll(server, at, wait=60) for _ in range(POLLS)]
    try:
        eventually(lambda: suspended(server) == POLLS, "all wait")
        threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
        assert threads < 40, threads
        for _ in range(20):
            begun = time.monotonic()
            assert server.api("GET", "/v1/sitemaps").status == 200 and server.get(XML).status == 200
            assert server.register(f"{ORIGIN}/a.xml").json()["unchanged"] == 1
            assert time.monotonic() - begun < 20, "the polls' own wait is 60 s"
        assert is_quiet(held, 0.1), "none got an empty answer"
        begun = time.monotonic()
        assert server.register(f"{ORIGIN}/b.xml").status == 201
        assert time.monotonic() - begun < 20
        for connection in held:
            answer = connection.reply()
            assert answer.status == 200 and INDEX in by_url(answer.json())
        assert time.monotonic() - begun < 40
        assert suspended(server) == 0
    finally:
        for connection in held:
            connection.close()


def test_polls_leave_room_for_writes(start):
    """However many polls come, half of the places for waiting requests is for others."""
    server = start(config="[admin]\nmax_suspended = 64\n")
    at = changes(server)["next"]
    held = []
    try:
        for _ in range(10):
            held += [poll(server, at, wait=60) for _ in range(20)]
            eventually(lambda: suspended(server) == min(32, len(held)), "half of the places at most")
        answered = lambda: [c for c in held if not is_quiet([c], 0)]
        eventually(lambda: len(answered()) == 200 - 32, "the others are informed")
        refused = answered()
        for connection in refused:
            reply = connection.reply()
            problem(reply, 503, "too-many-waiting")
            assert reply["Retry-After"]
        # Writes, reads and lists find theirs.
        results = []
        work = lambda n: results.append(server.register(f"{ORIGIN}/a.xml").status)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(set(results)) == [200, 201], results
        # One with something to report is answered, crowded or not.
        assert INDEX in by_url(changes(server, at, wait=60))
        waiting = [c for c in held if c not in refused]
        for connection in waiting:
            assert INDEX in by_url(connection.reply().json())
        # A client that disconnects gives its place back.
        now = changes(server)["next"]
        for connection in held:
            connection.close()
        held = [poll(server, now, wait=60) for _ in range(32)]
        eventually(lambda: suspended(server) == 32, "their places are free again")
        assert is_quiet(held)
    finally:
        for connection in held:
            connection.close()


def test_polls_of_two_sites_leave_room_for_anothers(start):
    second = "https://second.example"
    server = start(sites=(ORIGIN, second), config="[admin]\nmax_suspended = 64\n")
    tokens = [server.make_token(name, "--site", site) for name, site in (("one", ORIGIN), ("two", second))]
    at = changes(server)["next"]
    held = []
    try:
        for token, count in zip(tokens, (16, 24)):
            held += [poll(server, at, wait=60, auth=[("Authorization", f"Bearer {token}")]) for _ in range(40)]
            eventually(lambda: suspended(server) == count, "half of the free places for polls")
        others = poll(server, at, wait=60)
        held.append(others)
        assert is_quiet([others]), "it waits"
    finally:
        for connection in held:
            connection.close()


def test_requests_that_wait_leave_connections(start):
    """Who fills every place for waiting requests does not keep others from asking how the server is."""
    server = start(config="[server]\nmax_connections = 64\n")
    at = changes(server)["next"]
    held = [poll(server, at, wait=60) for _ in range(80)]
    try:
        begun = time.monotonic()
        assert server.api("GET", "/healthz").status == 200
        assert time.monotonic() - begun < 20
    finally:
        for connection in held:
            connection.close()


def test_a_client_that_goes_away_is_not_waited_for(start):
    server = start(config="[admin]\nmax_suspended = 64\n")
    at = changes(server)["next"]
    gone = [poll(server, at, wait=60) for _ in range(32)]
    eventually(lambda: suspended(server) == 32, "all wait")
    for connection in gone:
        connection.close()
    eventually(lambda: suspended(server) == 0, "their places, long before their wait ends", 30)
    held = poll(server, at)
    assert is_quiet([held])
    held.close()


@pytest.mark.parametrize("first", [True, False], ids=("polls first", "polls last"))
def test_those_that_wait_keep_no_other_waiting(start, first):
    """libmicrohttpd before 1.0.3 could pass over connections with something to read for as long as another one of
    their thread is suspended. One thread has them all here: long polls, with a request behind each that is not to be
    read yet, and connections that are ready all at once, time and again."""
    server = start(config="[server]\nthreads = 1\n")
    server.register(ORIGIN + "/a.xml")
    since = server.api("GET", "/v1/changes?since=0").json()["next"]
    authorised = [("Authorization", f"Bearer {TOKEN}")]
    poll = request_bytes("GET", f"/v1/changes?since={since}&wait=60", authorised, host=server.admin)
    look = request_bytes("GET", "/healthz", host=server.admin)

    def write(blanks):
        body = b'{"loc": "%s/a.xml"}' % ORIGIN.encode() + b" " * blanks
        return request_bytes("POST", "/v1/sitemaps", [*authorised, ("Content-Type", "application/json")], body, host=server.admin)

    def begin_polls():
        opened = [Connection(server.admin) for _ in range(8)]
        for connection in opened:
            connection.send(poll + look)
        return opened

    polls = begin_polls() if first else []
    ready = [Connection(server.admin) for _ in range(40)]
    polls = polls or begin_polls()
    eventually(lambda: server.metrics()["sitemapd_long_polls"] == 8, "they wait")
    for turn in range(9):
        # A write is suspended too, shortly; and one has a body that comes in pieces.
        asks = look + (look, write(0), write(100000))[turn % 3] + look
        for piece in (asks[: len(asks) // 2], asks[len(asks) // 2 :]):
            for connection in ready:
                connection.send(piece)
        for connection in ready if turn % 2 else reversed(ready):
            assert [connection.reply().status for _ in range(3)] == [200, 200, 200], turn
    server.register(ORIGIN + "/b.xml")
    for connection in polls:
        assert [connection.reply().status for _ in range(2)] == [200, 200]
    for connection in polls + ready:
        connection.close()
