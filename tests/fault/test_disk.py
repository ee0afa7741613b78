# SPDX-License-Identifier: LicenseRef-Undeclared
"""The disk fails under a running server: the reason is reported, also by /readyz, no write is applied in part, crawlers
are served from memory, and the server recovers without a restart."""

import itertools
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from harness import ORIGIN, ask, eventually, locs, problem, q, render_export, seconds, sitemapd
from origin import Origin, answer, index, urlset

XML = "/sitemap_index.xml"
WAL, DB = ".db-wal", ".db"


def loc(name):
    return f"{ORIGIN}/{name}.xml"


def ready(server):
    return server.api("GET", "/readyz", token=None)


def reasons(server):
    reply = ready(server)
    return reply.json()["status"], [r["code"] for r in reply.json()["reasons"]]


def served(server, target=XML):
    reply = server.get(target)
    assert reply.status == 200, reply
    return locs(reply.xml())


def degraded(server, *codes):
    """Still serving, and reporting the reasons."""
    eventually(lambda: reasons(server)[0] == "degraded" and set(codes) <= set(reasons(server)[1]), f"degraded: {codes}")
    assert ready(server).status == 200


def whole(server, *expected):
    """Recovered: writes are accepted, /readyz has no reason left, and the served pages match the file."""
    name = f"healed-{time.monotonic_ns()}"
    # 200: one before, whose outcome was unknown, was applied.
    eventually(lambda: server.register(loc(name)).status in (200, 201), "writes are taken again")
    eventually(lambda: reasons(server) == ("ok", []), "ready without a reason")
    lines = server.cli("export").lines()
    assert {line["loc"] for line in lines} == {loc(n) for n in expected} | {loc(name)}
    assert server.get(XML).xml() == render_export(lines)
    done = server.cli("check")
    assert done.code == 0, done
    assert server.api("DELETE", f"/v1/sitemaps?loc={loc(name)}").status == 204


def bulk(server, stem, count):
    return server.bulk([loc(f"{stem}-{n}") for n in range(count)])


# ---- errors of the disk -------------------------------------------------------------------------


@pytest.mark.parametrize("op, error, code", [
    ("write", "EIO", "unavailable"), ("write", "ENOSPC", "no-space"), ("write", "EROFS", "unavailable"), ("write", "EDQUOT", None),
    ("sync", "EIO", "unavailable"), ("sync", "ENOSPC", None),
])
def test_a_log_that_cannot_be_written(faulty, disk, op, error, code):
    assert faulty.register(loc("before")).status == 201
    assert served(faulty) == [loc("before")]
    rule = disk.fail(op, error, WAL)
    for reply in (faulty.register(loc("lost")), bulk(faulty, "lost", 500), faulty.api("DELETE", f"/v1/sitemaps?loc={loc('before')}")):
        found = problem(reply, 503, code)
        assert reply.get("Retry-After"), reply
        assert found["code"] in ("unavailable", "no-space"), found
    assert disk.hits(rule) > 0
    assert served(faulty) == [loc("before")]
    degraded(faulty, "catalogue-not-writable")
    disk.heal()
    whole(faulty, "before")


def test_writes_that_are_cut_short(faulty, disk):
    rule = disk.fail("write", -1, "", every=3)
    for n in range(20):
        assert faulty.register(loc(n)).status == 201
    assert bulk(faulty, "more", 2000).status == 200
    assert disk.hits(rule) > 20
    disk.heal()
    assert len(served(faulty)) == 2020
    assert faulty.cli("check").code == 0


@pytest.mark.parametrize("op", ["write", "sync", "cut"])
def test_a_checkpoint_that_fails(faulty, disk, op):
    """The log grows and is kept; the writes are good."""
    rule = disk.fail(op, "EIO", DB)
    for part in range(6):  # some 6 MB of log
        assert bulk(faulty, f"b{part}", 8000).status == 200
    assert op == "cut" or disk.hits(rule) > 0
    assert len(served(faulty)) == 48000
    disk.heal()
    assert faulty.register(loc("last")).status == 201
    faulty.kill()
    assert faulty.cli("check").code == 0
    faulty.start()
    assert len(served(faulty)) == 48001


def test_a_file_that_cannot_be_read(faulty, disk):
    """What is in memory is served, what would have to be read is not there for now."""
    other = ORIGIN + "/cold/sitemap_index.xml"
    assert faulty.api("POST", "/v1/indexes", {"url": other}).status == 201
    assert bulk(faulty, "many", 9000).status == 200
    assert faulty.bulk([f"{ORIGIN}/cold/{n}.xml" for n in range(3000)]).status == 200
    faulty.restart()
    assert len(served(faulty)) == 9000
    rules = [disk.fail("read", "EIO", DB), disk.fail("read", "EIO", WAL)]
    reply = faulty.get("/cold/sitemap_index.xml")
    assert reply.status == 503 and reply.get("Retry-After"), reply
    assert len(served(faulty)) == 9000
    assert sum(map(disk.hits, rules)) > 0
    reply = bulk(faulty, "new", 3000)
    # A read that fails is "malformed" to SQLite (SQLITE_IOERR_CORRUPTFS).
    assert problem(reply, 503)["code"] in ("unavailable", "corrupt")
    degraded(faulty)
    assert len(served(faulty)) == 9000
    disk.heal()
    eventually(lambda: faulty.get("/cold/sitemap_index.xml").status == 200, "the cold page is built")
    eventually(lambda: bulk(faulty, "new", 3000).status == 200, "writes are taken")
    eventually(lambda: reasons(faulty) == ("ok", []), "ready without a reason")
    assert len(served(faulty)) == 12000 and len(served(faulty, "/cold/sitemap_index.xml")) == 3000
    assert faulty.cli("check").code == 0


@pytest.mark.parametrize("error", ["EIO", "EMFILE", "EACCES"])
def test_a_file_that_cannot_be_opened(faulty, disk, error):
    """Those that are open go on; what needs another connection is refused and comes back."""
    assert faulty.register(loc("a")).status == 201
    assert served(faulty) == [loc("a")]
    disk.fail("open", error)
    for n in range(5):
        assert faulty.get(XML).status == 200
        assert faulty.register(loc(f"b{n}")).status in (201, 503)
        assert faulty.api("GET", "/v1/sitemaps").status in (200, 503)
    disk.heal()
    there = {line["loc"][len(ORIGIN) + 1:-4] for line in faulty.cli("export").lines()}
    whole(faulty, *there)


# ---- no room ------------------------------------------------------------------------------------


def mounted(tmp_path, size):
    if os.geteuid() != 0:
        pytest.skip("a small tmpfs needs root")
    folder = tmp_path / "small"
    os.makedirs(folder)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], stderr=subprocess.PIPE)
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.decode()}")
    return folder


@pytest.fixture
def small(tmp_path):
    folder = mounted(tmp_path, "6m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Takes all the room that is left."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as file:
        try:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass
        finally:
            pass
    return path


def test_a_full_disk(start, small):
    server = start(database=small / "catalogue.db")
    assert server.register(loc("before")).status == 201
    assert bulk(server, "some", 200).status == 200
    names = served(server)
    filler = fill(small)
    refused = []
    for n in range(200):  # until what the log has left is used up
        reply = server.register(loc(f"n{n}"))
        if reply.status != 201:
            refused.append(n)
            problem(reply, 503, "no-space")
            if len(refused) == 3:
                break
        else:
            names.append(loc(f"n{n}"))
    assert len(refused) == 3, "the disk was never full"
    problem(bulk(server, "big", 20000), 503, "no-space")  # too large for memory: the spool
    assert sorted(served(server)) == sorted(names)
    degraded(server, "catalogue-not-writable")
    assert "no-space" in ready(server).body.decode()
    os.unlink(filler)
    whole(server, *(n[len(ORIGIN) + 1:-4] for n in names))


def test_a_full_disk_shows_before_anything_is_written(start, small):
    """Of a server that nobody writes to, and of the file: not only once a write has failed."""
    server = start(database=small / "catalogue.db")
    assert server.register(loc("before")).status == 201
    filler = fill(small)
    eventually(lambda: reasons(server) == ("degraded", ["catalogue-not-writable"]), "the server reports it")
    status = sitemapd("status", "--database", server.database)
    assert status.code == 1 and "no-space: the disk of the catalogue is full; writes are rejected (catalogue-not-writable)" in status.out, status
    os.unlink(filler)
    eventually(lambda: reasons(server) == ("ok", []), "there is room again")
    assert sitemapd("status", "--database", server.database).code == 0


@pytest.fixture
def medium(tmp_path):
    folder = mounted(tmp_path, "48m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_copies_of_sitemaps_leave_room_for_the_catalogue(start, medium):
    """What an origin sends to be served never takes the room that writes need."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        paths = [f"/{n}.xml" for n in range(80)]
        body = urlset(*(f"{base}/page/{i}/{'x' * 200}" for i in range(2800)))
        assert 80 * len(body) > 48 << 20
        origin.answers.update({path: answer(200, body) for path in paths} | {"/list.xml": answer(200, index(*(base + path for path in paths)))})
        server = start(sites=(), database=medium / "catalogue.db",
                       config=f'[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n[site "m"]\norigin = {base}\nindex = {XML}\n'
                              f'[source "shop"]\nupstream = {base}/list.xml\nserve = yes\n')
        eventually(lambda: server.wait_for_log("child-store-failed"), "it is reported")
        checks = lambda: {check["check"]["state"] for check in server.api("GET", "/v1/checks?limit=100").json()["checks"]}
        eventually(lambda: checks() == {"good"}, "all are polled")
        disk = os.statvfs(medium)
        assert disk.f_bavail * disk.f_frsize > 1 << 20, "a sixteenth of it is 3 MiB; the log of writes has some of that"
        assert [reply for n in range(50) if (reply := server.register(f"{base}/n{n}.xml")).status != 201] == []


def test_tokens_for_one_site_leave_room_to_remove_what_they_wrote(start, medium):
    """However full one of them makes the disk, a token for all sites removes it."""
    server = start(database=medium / "catalogue.db", config="[history]\nkeep = 0\n")
    site = server.make_token("tenant", "--site", ORIGIN, "--role", "admin")
    urlset = f"{ORIGIN}/products.xml"
    made = server.api("POST", "/v1/urlsets", {"url": urlset, "with": ["images"]}, token=site)
    assert made.status == 201 and server.register(loc("before")).status == 201
    pages, lines = itertools.count(), 4096
    while lines > 0:
        body = [{"loc": f"{ORIGIN}/{next(pages)}", "images": [f"{ORIGIN}/{'x' * 1500}.jpg"]} for _ in range(lines)]
        reply = server.api("POST", f"/v1/urls?urlset={q(urlset)}", body, token=site)
        if reply.status != 200:
            problem(reply, 503, "no-space")
            lines //= 2
    assert server.register(loc("after")).status == 201
    assert server.api("DELETE", "/v1/tokens/tenant").status == 204
    removed = server.api("DELETE", f"/v1/urlsets/{made.json()['id']}?max_removed=1000000000")
    assert removed.status == 200 and removed.json()["removed"] > 1000, removed
    assert server.cli("check").code == 0


def leave(folder, left):
    """Takes all the room but so many bytes; what it is to be freed by."""
    with open(folder / "filler", "wb") as file:
        file.write(bytes(shutil.disk_usage(folder).free - left))
    return folder / "filler"


def test_what_is_left_of_a_disk_is_for_tokens_for_all_sites(start, medium):
    """A sixteenth is 3 MiB: below that, lists and exports of tokens for one site are rejected, below half of it all that they add."""
    server = start(database=medium / "catalogue.db")
    site = server.make_token("tenant", "--site", ORIGIN, "--role", "admin")
    assert server.bulk([f"{ORIGIN}/{'x' * 1000}/{n}.xml" for n in range(3000)]).status == 200
    server.restart()  # all of it is in the file: no checkpoint of an idle moment makes room
    body = [{"loc": f"{ORIGIN}/{'y' * 1000}/{n}.xml"} for n in range(200)]
    export = lambda token: server.api("GET", "/v1/sitemaps", headers=[("Accept", "application/x-ndjson")], token=token)
    send = lambda token: server.api("POST", "/v1/sitemaps?dry_run=1", body, token=token)
    assert export(site).status == 200 and send(site).status == 200
    filler = leave(medium, 2 << 20)
    problem(export(site), 503, "no-space")
    problem(send(site), 503, "no-space")
    assert send(server.token).status == 200
    degraded(server, "disk-nearly-full")
    os.unlink(filler)
    assert export(site).status == 200 and send(site).status == 200
    one = lambda name, token: server.api("POST", "/v1/sitemaps", {"loc": loc(name)}, token=token)
    assert one("a", site).status == one("b", site).status == 201
    filler = leave(medium, 1 << 20)
    problem(one("c", site), 503, "no-space")
    problem(server.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/more.xml"}, token=site), 503, "no-space")
    # Who is for all sites, and what removes something, is not concerned.
    assert one("c", server.token).status == 201
    assert server.api("DELETE", f"/v1/sitemaps?loc={loc('a')}", token=site).status == 204
    os.unlink(filler)
    assert one("d", site).status == 201
    eventually(lambda: reasons(server) == ("ok", []), "there is room again")


def test_a_disk_that_the_log_filled(start, small):
    """A long read keeps the log from restarting; when that ends, writes are taken and the disk has room, though they come
    all the time."""
    server = start(database=small / "catalogue.db", config="[history]\nkeep = 0\n")
    assert server.register(loc("a")).status == 201
    server.restart()  # all of it is in the file, which need not grow
    stops, statuses = threading.Event(), []

    def write():
        while not stops.is_set():
            statuses.append(server.register(loc("a"), lastmod=f"2026-01-01T00:00:00.{len(statuses):06}Z").status)

    with sqlite3.connect(server.database) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sitemap").fetchone()
        writers = [threading.Thread(target=write) for _ in range(8)]
        for writer in writers:
            writer.start()
        eventually(lambda: statuses.count(503) > 100, "the disk is full")
        reader.execute("COMMIT")
    went = len(statuses)
    eventually(lambda: 200 in statuses[went:], "writes are taken again")
    eventually(lambda: shutil.disk_usage(small).free > 1 << 20, "what the log took is free")
    stops.set()
    for writer in writers:
        writer.join()
    assert set(statuses) == {200, 503}
    whole(server, "a")


def test_a_start_on_a_full_disk(start, small):
    fill(small)
    server = start(database=small / "catalogue.db", ready=False)
    assert server.process.wait(seconds(60)) == 1
    last = server.log().strip().splitlines()[-1]
    server.kill()
    assert "full" in last or "space" in last, last


@pytest.mark.skipif(os.geteuid() != 0, reason="a read-only mount needs root")
def test_a_start_on_a_read_only_mount(start, small):
    database = small / "catalogue.db"
    server = start(database=database)
    assert server.register(loc("a")).status == 201
    server.stop()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    server = start(database=database, ready=False)
    assert server.process.wait(seconds(60)) == 1
    last = server.log().strip().splitlines()[-1]
    server.kill()
    assert "read" in last.lower(), last
    subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
    assert served(start(database=database)) == [loc("a")]


def test_polls_on_a_full_disk(start, disk, data):
    """What a poll found cannot be kept: it is reported, crawlers are served as before, and with room again it is polled automatically."""
    with Origin() as origin:
        base, gate = f"http://{origin.address}:{origin.port}", threading.Event()

        def late(connection, _):
            gate.wait(300)
            connection.sendall(answer(200, urlset(base + "/page", lastmod="2026-02-02")))

        origin.answers.update({"/list.xml": answer(200, index((base + "/a.xml", "2026-01-01"), base + "/b.xml")), "/a.xml": answer(404), "/b.xml": late})
        server = start(sites=(), database=data / "catalogue.db", env=disk.environment(data),
                       config=f'[fetch]\nallow_address = 127.0.0.2\nrate = 1000\n[site "m"]\norigin = {base}\n'
                              f'index = {XML}\n[source "shop"]\nupstream = {base}/list.xml\n')
        page = lambda: ask(server.public, "GET", XML, host=f"{origin.address}:{origin.port}")
        checks = lambda: {check["loc"][len(base):]: check["check"]["state"] for check in server.api("GET", "/v1/checks").json()["checks"]}
        polls = lambda: sum("GET /b.xml " in head for head in origin.asked)
        eventually(lambda: polls() == 1 and "/a.xml is gone (gone)" in server.log(), "one is read, the other is waited for")
        eventually(lambda: page().status == 200 and locs(page().xml()) == [base + "/a.xml", base + "/b.xml"], "both are listed")
        before, entries = page(), server.cli("export").out
        rule = disk.fail("write", "ENOSPC", WAL)
        gate.set()
        eventually(lambda: "check-not-kept" in server.log(), "it is reported")
        assert disk.hits(rule) > 0 and "could not be stored (no-space)" in server.log()
        assert (page().body, checks()["/b.xml"], server.cli("export").out) == (before.body, "new", entries)
        degraded(server, "catalogue-not-writable")
        disk.heal()
        eventually(lambda: checks() == {"/a.xml": "gone", "/b.xml": "good"}, "it is polled again")
        eventually(lambda: b"2026-02-02" in page().body, "what was found is published")
        assert polls() == 2
        assert locs(page().xml()) == locs(before.xml())
        assert server.cli("check").code == 0


# ---- the file is changed beneath it -------------------------------------------------------------


@pytest.fixture
def plain(start, data):
    server = start(database=data / "catalogue.db")
    assert bulk(server, "old", 2500).status == 200
    assert len(served(server)) == 2500
    return server


def old(count=2500):
    return [f"old-{n}" for n in range(count)]


def test_deleted_and_restored(plain, data):
    path = data / "catalogue.db"
    os.rename(path, data / "away")
    problem(plain.register(loc("lost")), 503, "unavailable")
    assert len(served(plain)) == 2500
    degraded(plain, "catalogue-not-writable", "catalogue-unreadable")
    os.rename(data / "away", path)
    whole(plain, *old())


def test_deleted_for_good_then_restored(plain, data):
    copy = data / "backup.db"
    assert plain.cli("backup", str(copy)).code == 0
    assert plain.register(loc("after")).status == 201
    os.unlink(data / "catalogue.db")
    problem(plain.register(loc("lost")), 503, "unavailable")
    assert len(served(plain)) == 2501
    degraded(plain, "catalogue-not-writable")
    time.sleep(0.3)
    os.rename(copy, data / "catalogue.db")
    whole(plain, *old())


def another(data, tmp_path, names, indexes=()):
    """Another catalogue's file."""
    path = tmp_path / "another.db"
    done = [sitemapd("site", "add", ORIGIN, database=path)]
    done += [sitemapd("index", "add", ORIGIN + i, database=path) for i in indexes]
    done.append(sitemapd("import", "-", database=path, input="\n".join(loc(n) for n in names) + "\n"))
    assert all(d.code == 0 for d in done), done
    os.rename(path, data / "new.db")
    return data / "new.db"


def test_replaced_by_rename(plain, data, tmp_path):
    os.rename(another(data, tmp_path, ["new-1", "new-2"]), data / "catalogue.db")
    eventually(lambda: served(plain) == [loc("new-1"), loc("new-2")], "the new catalogue is served")
    whole(plain, "new-1", "new-2")


def test_replaced_by_one_that_cannot_be_served(plain, data, tmp_path):
    """The pages in memory stay until there are others."""
    copy, path = data / "backup.db", data / "catalogue.db"
    assert plain.cli("backup", str(copy)).code == 0
    new = another(data, tmp_path, ["new-1"])
    with sqlite3.connect(new) as broken:
        broken.execute("UPDATE site SET origin = 'nonsense'")
    broken.close()
    os.rename(new, path)
    degraded(plain, "catalogue-unreadable")
    for _ in range(20):
        assert len(served(plain)) == 2500
        time.sleep(0.02)
    os.rename(copy, path)
    whole(plain, *old())


@pytest.mark.parametrize("size", [0, 100, 4096, 5000, "half"])
def test_truncated(plain, data, size):
    """The copy in memory is served; a good file renamed into place ends it."""
    copy, path = data / "backup.db", data / "catalogue.db"
    assert plain.cli("backup", str(copy)).code == 0
    plain.restart()  # its log is in the file now
    assert len(served(plain)) == 2500
    os.truncate(path, os.path.getsize(path) // 2 if size == "half" else size)
    for name in range(3):
        reply = plain.register(loc(f"lost-{name}"))
        assert reply.status in (201, 503), reply
        assert len(served(plain)) in (2500, 2501, 2502, 2503)
    reply = bulk(plain, "lost", 3000)
    found = problem(reply, 503)
    assert found["code"] in ("corrupt", "unavailable"), found
    degraded(plain)
    os.rename(copy, path)
    whole(plain, *old())


def test_corrupted(plain, data):
    copy, path = data / "backup.db", data / "catalogue.db"
    assert plain.cli("backup", str(copy)).code == 0
    plain.restart()
    assert len(served(plain)) == 2500
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    found = problem(bulk(plain, "lost", 3000), 503)
    assert found["code"] == "corrupt", found
    assert len(served(plain)) == 2500
    degraded(plain, "catalogue-not-writable")
    assert plain.cli("check").code == 1
    os.rename(copy, path)
    whole(plain, *old())


def test_overwritten_by_something_else(plain, data):
    copy, path = data / "backup.db", data / "catalogue.db"
    assert plain.cli("backup", str(copy)).code == 0
    with open(data / "junk", "wb") as file:
        file.write(b"this is not a database\n" * 5000)
    os.rename(data / "junk", path)
    problem(plain.register(loc("lost")), 503)
    assert len(served(plain)) == 2500
    degraded(plain, "catalogue-not-writable")
    os.rename(copy, path)
    whole(plain, *old())


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_locked_by_another_process(plain, data, how):
    plain.restart(write_timeout="1s")
    assert len(served(plain)) == 2500
    holder = sqlite3.connect(data / "catalogue.db", isolation_level=None)
    holder.execute(f"BEGIN {how}")
    begun = time.monotonic()
    problem(plain.register(loc("lost")), 503, "busy")
    assert time.monotonic() - begun >= 0.9, "it waits for its write_timeout"
    assert len(served(plain)) == 2500
    degraded(plain, "catalogue-not-writable")
    holder.execute("ROLLBACK")
    holder.close()
    whole(plain, *old())


# ---- network filesystems ------------------------------------------------------------------------


@pytest.mark.parametrize("magic, name", [(0x6969, "NFS"), (0xFF534D42, "CIFS"), (0xFE534D42, "SMB2"), (0x517B, "SMB"), (0x01021997, "9P")])
def test_a_network_filesystem_is_refused(start, disk, data, magic, name):
    disk.fail("statfs", magic - (1 << 32) if magic >= 1 << 31 else magic)
    server = start(database=data / "catalogue.db", env=disk.environment(data), ready=False)
    assert server.process.wait(seconds(60)) == 1
    last = server.log().strip().splitlines()[-1]
    server.kill()
    assert f"network file system ({name})" in last and "local disk" in last, last
    done = sitemapd("site", "add", ORIGIN, database=data / "catalogue.db", env=disk.environment(data))
    assert done.code == 1 and name in done.err, done
    assert not os.listdir(data), "nothing was made there"
    disk.heal()
    server = start(database=data / "catalogue.db", env=disk.environment(data))
    assert server.register(loc("a")).status == 201


def test_a_stop_is_bounded_where_the_disk_hangs(faulty, disk):
    """What cannot be written does not hold up the stop for ever, and what was acknowledged is there at the next start."""
    assert faulty.register(loc("kept")).status == 201
    disk.fail("sync", "HANG")
    faulty.process.terminate()
    assert faulty.process.wait(seconds(60)) == 1
    assert re.search(r"stop-slow: timeout: still waiting for [a-z ]+ after 7 s", faulty.log()), faulty.log()
    assert re.search(r"stop-forced: timeout: still waiting for [a-z ]+ \(is the disk hanging", faulty.log()), faulty.log()
    disk.heal()
    faulty.start()
    assert served(faulty) == [loc("kept")]
