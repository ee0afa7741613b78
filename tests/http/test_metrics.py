# SPDX-License-Identifier: LicenseRef-Undeclared
"""/metrics: its values match what was done, its format is valid, and it answers even while the disk fails. For the
names see test_metrics_names.py."""

import os
import signal
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from exposition import Values
from harness import ORIGIN, Connection, ask, eventually, request_bytes, seconds, write_gzip

XML = "/sitemap_index.xml"
GZIP = {"Accept-Encoding": "gzip"}


def scrape(server):
    reply = ask(server.admin, "GET", "/metrics", host=server.admin)
    assert reply.status == 200 and reply["Cache-Control"] == "no-store"
    return Values(reply.body.decode())


def soon(server, check, what):
    """A request is counted when it is completed, which is after its reply was read here."""
    return eventually(lambda: (lambda v: v if check(v) else None)(scrape(server)), what)


def public(values, status):
    return values.get("sitemapd_http_requests_total", listener="public", route="public", status=status)


def encodings(values):
    return {e: values.get("sitemapd_http_responses_total", listener="public", encoding=e) for e in ("gzip", "identity", "none")}


def test_requests_encodings_bytes_and_times(server):
    begun = time.monotonic()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    pages = [server.get(XML, GZIP) for _ in range(3)]
    assert [p.status for p in pages] == [200] * 3 and pages[0]["Content-Encoding"] == "gzip"
    assert server.get(XML, {**GZIP, "If-None-Match": pages[0]["ETag"]}).status == 304
    plain = server.get(XML)
    assert plain.status == 200 and plain["Content-Encoding"] is None
    assert server.get(XML, GZIP, method="HEAD").status == 200
    file = server.get(XML + ".gz")
    assert file.status == 200
    missing = server.get("/none")
    assert missing.status == 404

    # Of each one what is said of it comes one by one, of the last one perhaps between two scrapes.
    took, name = {"listener": "public", "route": "public"}, "sitemapd_http_request_duration_seconds"
    bytes_of = {"gzip": 3 * len(pages[0].body), "identity": len(plain.body) + len(file.body) + len(missing.body)}
    sent = lambda v: {e: v.get("sitemapd_http_response_bytes_total", listener="public", encoding=e) for e in bytes_of}
    values = soon(server, lambda v: v.get(name + "_count", **took) == 8 and sum(encodings(v).values()) == 8 and sum(sent(v).values()) >= sum(bytes_of.values())
                  and v.get(name + "_count", listener="admin", route="sitemaps") and v.get("sitemapd_http_request_body_bytes_total", listener="admin"), "all are counted")
    assert (public(values, "200"), public(values, "304"), public(values, "404")) == (6, 1, 1)
    assert encodings(values) == {"gzip": 3, "identity": 3, "none": 2}, "304 and HEAD have no body; .gz and 404 are not encoded"
    assert sent(values) == bytes_of
    assert len(values.families["sitemapd_http_response_bytes_total"].samples) == 2 * len(bytes_of), "without a body there are no bytes"
    assert values.get(name + "_count", **took) == 8 == values.get(name + "_bucket", le="+Inf", **took)
    assert 0 < values.get(name + "_sum", **took) < 8 * (time.monotonic() - begun)
    # Both listeners count apart; of a scrape its own request is not in it.
    assert values.get(name + "_count", listener="admin", route="sitemaps") == 1
    assert values.get("sitemapd_http_requests_total", listener="admin", route="sitemaps", status="201") == 1
    assert values.get("sitemapd_http_request_body_bytes_total", listener="admin") == len('{"loc": "%s/a.xml"}' % ORIGIN)
    assert values.get("sitemapd_http_request_body_bytes_total", listener="public") == 0
    assert values.get("sitemapd_http_connections_accepted_total", listener="public") == 8


def test_a_long_answer_is_in_its_bucket(server):
    revision = server.api("GET", "/v1/changes?since=0").json()["next"]
    assert server.api("GET", f"/v1/changes?since={revision}&wait=1").status == 200
    name, labels = "sitemapd_http_request_duration_seconds", {"listener": "admin", "route": "changes"}
    values = soon(server, lambda v: v.get(name + "_count", **labels) == 2, "the poll is counted")
    assert values.get(name + "_bucket", le="0.5", **labels) <= 1 <= values.get(name + "_sum", **labels)
    assert values.get("sitemapd_long_polls") == 0

    waiting = threading.Thread(target=server.api, args=("GET", f"/v1/changes?since={revision}&wait=30"))
    waiting.start()
    soon(server, lambda v: v.get("sitemapd_long_polls") == 1, "one waits")
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    waiting.join(seconds(60))
    soon(server, lambda v: v.get("sitemapd_long_polls") == 0, "none waits")


def test_one_write(server):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get(XML, GZIP).status == 200
    before = scrape(server)
    assert server.register(f"{ORIGIN}/b.xml").status == 201
    after = scrape(server)
    grown = lambda name, **labels: after.get(name, **labels) - before.get(name, **labels)
    for name in (
        "sitemapd_segments_rendered_total", "sitemapd_pages_published_total", "sitemapd_publish_duration_seconds_count",
        "sitemapd_catalogue_commits_total", "sitemapd_catalogue_changes_total", "sitemapd_entries",
        "sitemapd_catalogue_revision", "sitemapd_catalogue_committed_revision",
        "sitemapd_catalogue_transaction_duration_seconds_count", "sitemapd_catalogue_commit_duration_seconds_count",
        "sitemapd_catalogue_batch_changes_count", "sitemapd_catalogue_batch_changes_sum",
    ):
        assert grown(name) == 1, name
    assert grown("sitemapd_catalogue_batch_changes_bucket", le="1") == 1
    assert grown("sitemapd_page_build_duration_seconds_count") == 0 == grown("sitemapd_pages_built_cold_total")
    assert before.get("sitemapd_page_build_duration_seconds_count") == 1
    whole, end = (grown(f"sitemapd_catalogue_{what}_duration_seconds_sum") for what in ("transaction", "commit"))
    assert 0 < end <= whole
    assert after.get("sitemapd_catalogue_committed_revision") == after.get("sitemapd_catalogue_revision")
    # Registering the same again is not a commit, and nothing is published.
    assert server.register(f"{ORIGIN}/b.xml").status == 200
    same = scrape(server)
    for name in ("sitemapd_catalogue_commits_total", "sitemapd_publish_duration_seconds_count", "sitemapd_catalogue_revision"):
        assert same.get(name) == after.get(name), name


def test_writes_that_share_a_commit(start):
    server = start(config="[catalogue]\nwrite_timeout = 60s\n")
    before = scrape(server)
    held = sqlite3.connect(server.database, timeout=60, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")  # another process holds the lock
    writes = [threading.Thread(target=server.register, args=(f"{ORIGIN}/{i}.xml",)) for i in range(7)]
    for write in writes:
        write.start()
    values = soon(server, lambda v: v.get("sitemapd_catalogue_queue_depth") == v.get("sitemapd_http_suspended", listener="admin") == 7, "all wait")
    assert values.get("sitemapd_catalogue_queue_limit") >= 7
    held.execute("ROLLBACK")
    held.close()
    for write in writes:
        write.join(seconds(60))
    after = scrape(server)
    grown = lambda name, **labels: after.get(name, **labels) - before.get(name, **labels)
    assert grown("sitemapd_catalogue_changes_total") == 7
    assert grown("sitemapd_catalogue_batch_changes_sum") == 7
    # One transaction, unless it lasted so long on a busy machine that the rest had to wait for the next.
    batches = grown("sitemapd_catalogue_batch_changes_count")
    assert 1 <= batches < 7 and batches == grown("sitemapd_catalogue_commits_total")
    assert grown("sitemapd_catalogue_batch_changes_bucket", le="10") == batches
    assert batches > 1 or grown("sitemapd_catalogue_batch_changes_bucket", le="5") == 0
    assert after.get("sitemapd_catalogue_queue_depth") == 0


def test_a_write_that_times_out(start):
    server = start().restart(write_timeout="1s")
    held = sqlite3.connect(server.database, timeout=60, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    assert server.register(f"{ORIGIN}/a.xml").status == 503
    values = scrape(server)
    assert values.get("sitemapd_catalogue_failed_writes_total", reason="busy") == 1
    assert sum(values.all("sitemapd_catalogue_failed_writes_total").values()) == 1
    held.execute("ROLLBACK")
    held.close()
    eventually(lambda: server.register(f"{ORIGIN}/a.xml").status in (200, 201), "the lock is free")


def test_indexes_pages_entries(start):
    """Also where another process writes, and as it was after a restart."""
    server = start()
    assert server.cli("index", "add", f"{ORIGIN}/shop/sitemap_index.xml").code == 0
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(3)]).status == 200
    assert server.bulk([f"{ORIGIN}/shop/{i}.xml" for i in range(5)]).status == 200
    expected = {f"{ORIGIN}/sitemap_index.xml": 3, f"{ORIGIN}/shop/sitemap_index.xml": 5}
    for _ in range(2):
        values = soon(server, lambda v: v.get("sitemapd_entries") == 8, "published")
        assert values.all("sitemapd_index_entries") == expected
        assert values.all("sitemapd_index_pages") == {url: 1 for url in expected}
        assert (values.get("sitemapd_indexes"), values.get("sitemapd_pages")) == (2, 1 + 1)
        server.restart()
    assert server.cli("remove", f"{ORIGIN}/shop/0.xml").code == 0
    soon(server, lambda v: v.get("sitemapd_index_entries", index=f"{ORIGIN}/shop/sitemap_index.xml") == 4, "another process's")
    assert server.replace([], max_removed=3).status == 200
    values = soon(server, lambda v: v.get("sitemapd_pages") == 1, "an empty index has no page")
    assert values.all("sitemapd_index_entries") == {f"{ORIGIN}/sitemap_index.xml": 0, f"{ORIGIN}/shop/sitemap_index.xml": 4}


def test_bounded_series(start):
    """What is beyond the bound is summed up: a scrape stays small however many there are."""
    server = start(config="[catalogue]\nwrite_timeout = 60s\n")  # 202 registries on a busy machine
    make = lambda i: server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/d{i:03d}/sitemap_index.xml"}).status
    with ThreadPoolExecutor(32) as pool:  # which share commits
        assert set(pool.map(make, range(202))) == {201}  # with the site's own: 203
    assert server.bulk([f"{ORIGIN}/d{i:03d}/a.xml" for i in (0, 199, 200, 201)] + [f"{ORIGIN}/a.xml"]).status == 200
    values = scrape(server)
    entries = values.all("sitemapd_index_entries")
    assert len(entries) == 201 and values.get("sitemapd_indexes") == 203
    # By path: /d000/ to /d199/ come first, and /sitemap_index.xml last.
    assert entries["other"] == 3 and entries[f"{ORIGIN}/d199/sitemap_index.xml"] == 1
    assert values.all("sitemapd_index_pages")["other"] == 3
    assert sum(entries.values()) == 5 == values.get("sitemapd_entries")


def test_the_shrink_guard(server):
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(10)]).status == 200
    held = lambda: scrape(server).get("sitemapd_shrink_guard_held_total")
    assert held() == 0
    assert server.replace([f"{ORIGIN}/1.xml"]).status == 409
    assert held() == 1
    assert server.replace([f"{ORIGIN}/1.xml"], max_removed=9).status == 200
    assert held() == 1


def test_sources(start, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    urlset = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>%s/p%d</loc></url></urlset>'
    for i in range(4):
        write_gzip(folder / f"{i}.xml.gz", (urlset % (ORIGIN, i)).encode())
    (folder / "broken.xml").write_text((urlset % (ORIGIN, 9))[:-20])
    os.utime(folder / "broken.xml", (1, 1))
    began = int(time.time())
    server = start("--source", str(folder))
    values = soon(server, lambda v: v.get("sitemapd_source_listed", source="files") == 4, "scanned")
    of = lambda name: values.get(f"sitemapd_source_{name}", source="files")
    assert (of("files"), of("problems"), of("held_removals"), of("failing"), of("watch_limited")) == (5, 1, 0, 0, 0)
    assert began - 1 <= of("last_good_scan_seconds") <= time.time() + 1
    assert of("scans_total") >= 1 and of("files_read_total") >= 5
    for i in range(4):
        (folder / f"{i}.xml.gz").unlink()
    soon(server, lambda v: v.get("sitemapd_source_held_removals", source="files") == 4, "held")
    # In a scrape of its own: one that the scan meets half-way may have read this count before.
    assert scrape(server).get("sitemapd_shrink_guard_held_total") >= 1
    # A file by itself: two checks of one load.
    assert server.get("/broken.xml").status == 200
    values = soon(server, lambda v: v.get("sitemapd_files") == 1, "in memory")
    assert values.get("sitemapd_file_loads_total") == 1


def test_age_and_trouble(server):
    """The age grows while the catalogue is away, and /metrics still answers."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    able = lambda v: (v.get("sitemapd_catalogue_readable"), v.get("sitemapd_catalogue_writable"))
    values = soon(server, lambda v: v.get("sitemapd_snapshot_age_seconds") < 1 and able(v) == (1, 1), "fresh")
    assert values.get("sitemapd_catalogue_file_bytes") > 0 and values.get("sitemapd_catalogue_wal_file_bytes") > 0
    disk = os.statvfs(server.database)
    assert values.get("sitemapd_catalogue_disk_bytes") == disk.f_blocks * disk.f_frsize
    assert 0 < values.get("sitemapd_catalogue_disk_free_bytes") <= values.get("sitemapd_catalogue_disk_bytes")
    os.rename(server.database, server.database + ".away")
    soon(server, lambda v: v.get("sitemapd_snapshot_age_seconds") >= 1.5 and able(v) == (0, 0), "the age grows")
    assert server.register(f"{ORIGIN}/b.xml").status == 503
    assert scrape(server).get("sitemapd_catalogue_failed_writes_total", reason="unavailable") == 1
    os.rename(server.database + ".away", server.database)
    soon(server, lambda v: v.get("sitemapd_snapshot_age_seconds") < 1 and able(v) == (1, 1), "it is back")
    assert server.register(f"{ORIGIN}/b.xml").status == 201


def test_connections(start):
    config = "[server]\nmax_connections_per_address = 2\nheader_timeout = {0}\nidle_timeout = {0}\nthreads = 1\n"
    server = start(config=config.format("1h"))
    cut = lambda v, reason: v.get("sitemapd_http_connections_cut_total", listener="public", reason=reason)
    first, second = Connection(server.public), Connection(server.public)
    soon(server, lambda v: v.get("sitemapd_http_connections", listener="public") == 2, "two are open")
    third = Connection(server.public)
    values = soon(server, lambda v: cut(v, "address-limit") == 1, "one too many")
    assert values.get("sitemapd_http_connections_accepted_total", listener="public") == 3
    for one in (first, second, third):
        one.close()
    soon(server, lambda v: v.get("sitemapd_http_connections", listener="public") == 0, "they have left")
    with open(os.path.join(server.folder, "sitemapd.conf"), "w", encoding="utf-8") as file:
        file.write(config.format("1s"))
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("reloaded")
    first, second = Connection(server.public), Connection(server.public)
    first.send(b"GET / HT")  # and nothing more
    values = soon(server, lambda v: cut(v, "header-timeout") == 2, "too slow, and idle")
    assert cut(values, "body-timeout") == cut(values, "reply-timeout") == cut(values, "make-room") == 0
    first.close()
    second.close()
    assert values.get("sitemapd_http_full_total", listener="public") == 0
    assert values.get("sitemapd_http_accept_failures_total", listener="public") == 0


def test_a_full_listener(start):
    server = start(config="[server]\nmax_connections = 4\nthreads = 2\nheader_timeout = 60s\n")
    assert scrape(server).get("sitemapd_http_connections_limit", listener="public") == 4
    crowd = [Connection(server.public) for _ in range(6)]
    values = soon(server, lambda v: v.get("sitemapd_http_connections_cut_total", listener="public", reason="make-room") >= 1, "room is made")
    assert values.get("sitemapd_http_full_total", listener="public") >= 1
    for one in crowd:
        one.close()


def test_who_leaves_is_counted(server):
    with Connection(server.admin) as client:
        client.send(request_bytes("POST", "/v1/sitemaps", [
            ("Authorization", f"Bearer {server.token}"), ("Content-Type", "application/json"), ("Content-Length", "100"),
        ], host=server.admin, length=False) + b"{")
        soon(server, lambda v: v.get("sitemapd_http_connections", listener="admin") == 2, "it is there")
        client.socket.shutdown(socket.SHUT_WR)
    name = "sitemapd_http_requests_aborted_total"
    soon(server, lambda v: v.get(name, listener="admin") == 1, "it left")
    # Refused early, with the body unread: answered, and not aborted.
    reply = server.api("POST", "/v1/sitemaps", body=b"x" * 100, content_type="text/plain")
    assert reply.status == 415
    values = soon(server, lambda v: v.get("sitemapd_http_requests_total", listener="admin", route="sitemaps", status="415") == 1, "answered")
    assert values.get(name, listener="admin") == 1
    assert values.get(name, listener="public") == 0


def test_the_process(server):
    values = scrape(server)
    with open(f"/proc/{server.process.pid}/status") as status:
        resident = int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024
    assert 0.5 * resident < values.get("process_resident_memory_bytes") < 2 * resident
    assert values.get("process_virtual_memory_bytes") > values.get("process_resident_memory_bytes")
    assert abs(values.get("process_open_fds") - len(os.listdir(f"/proc/{server.process.pid}/fd"))) <= 2
    assert values.get("process_max_fds") >= values.get("process_open_fds")
    threads = lambda: len(os.listdir(f"/proc/{server.process.pid}/task"))
    eventually(lambda: scrape(server).get("process_threads") == threads(), "none begins or ends any more")
    assert abs(values.get("process_start_time_seconds") - time.time()) < seconds(60)
    assert values.get("sitemapd_build_info", version=server.cli("--version").out.split()[1]) == 1
    before = values.get("process_cpu_seconds_total")
    eventually(lambda: [scrape(server) for _ in range(20)][-1].get("process_cpu_seconds_total") > before, "it has worked")


def test_when_something_was_registered_last(start, tmp_path):
    """By any client, also with the same values; what is refused or only tried does not count; a restart keeps what the
    catalogue has."""
    name = "sitemapd_last_registration_seconds"

    def last(server):
        return scrape(server).get(name)

    def later():
        """A second later than all before, and well within it: time(2) is a few milliseconds behind."""
        time.sleep(1.1)
        while time.time() % 1 < 0.05:
            time.sleep(0.01)
        return int(time.time())

    database = tmp_path / "catalogue.db"
    server = start(database=database)
    assert last(server) == 0
    assert server.register("no address").status == 422 and last(server) == 0
    began = later()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert began <= last(server) <= time.time()
    again = later()
    assert server.register(f"{ORIGIN}/a.xml").json()["unchanged"] == 1
    same = last(server)
    assert again <= same <= time.time()
    for refused in ("https://other.example/a.xml", f"{ORIGIN}/a.xml#part"):
        later()
        assert server.register(refused).status in (403, 404, 422) and last(server) == same
    beside = later()
    assert server.cli("add", f"{ORIGIN}/b.xml").code == 0
    assert eventually(lambda: last(server) >= beside, "a command's")
    changed = last(server)
    later()
    assert server.register(f"{ORIGIN}/b.xml").json()["unchanged"] == 1 and last(server) > changed
    server.stop()
    server = start(database=database)
    assert last(server) == changed, "what changed last, of the catalogue"
    server.stop()
    with sqlite3.connect(database) as file:
        file.execute("UPDATE page SET changed_at = changed_at + 86400 * 3650")
    file.close()
    server = start(database=database)
    assert last(server) == 0, "a clock that was ahead hides nothing"
    assert server.register(f"{ORIGIN}/b.xml").json()["unchanged"] == 1 and changed < last(server) <= time.time()
