# SPDX-License-Identifier: LicenseRef-Undeclared
"""SIGHUP: a configuration read again in a running server. A bad one changes nothing."""

import contextlib
import datetime
import json
import os
import re
import signal
import threading
import time

import pytest

from exposition import Values
from harness import HOST, ORIGIN, Connection, ask, eventually, request_bytes, seconds
from test_page import valid

XML = "/sitemap_index.xml"
SITE = f'[site "main"]\norigin = {ORIGIN}\n'
URLSET = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'


class Reloading:
    """A server with a configuration file that tests rewrite."""

    def __init__(self, start, folder, config=SITE, **options):
        self.path = os.path.join(str(folder), "sitemapd.conf")
        self.server = start(sites=(), config=config, **options)

    def reload(self, config=None, word="reloaded"):
        """SIGHUP with another file. The log lines that came of it, the last one last."""
        if config is not None:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(config)
        before = len(self.server.log())
        self.server.process.send_signal(signal.SIGHUP)
        end = re.compile(r'^.*(info reloaded: .*|"event":"reloaded".*|error reload-refused: the new configuration was rejected; the previous one stays in effect)$', re.M)
        eventually(lambda: end.search(self.server.log()[before:]), "the reload is over")
        lines = self.server.log()[before:].splitlines()
        assert [line for line in lines if end.match(line) and word in line], lines
        return lines

    def refused(self, config=None):
        return self.reload(config, "reload-refused")


@pytest.fixture
def reloading(start, tmp_path):
    return lambda *args, **more: Reloading(start, tmp_path, *args, **more)


def scrape(server):
    return Values(ask(server.admin, "GET", "/metrics", host=server.admin).body.decode())


def sites(server):
    return {site["origin"]: site for site in server.api("GET", "/v1/sites").json()["sites"]}


def test_nothing_new(reloading):
    r = reloading()
    for _ in range(3):
        lines = r.reload()
        assert len(lines) == 1 and "no setting changed; sites, " in lines[0], lines
    assert r.server.running()


def test_an_unchanged_reload_writes_nothing(reloading):
    """Twenty sites with hosts and two indexes each: one look at the catalogue, no transaction."""
    config = "".join(
        f'[site "s{i}"]\norigin = https://s{i}.example.com\nindex = /sitemap_index.xml\nindex = /shop/index.xml\n'
        f"host_alias = alias{i}.example.com\ncross_host = CDN{i}.example.com\n" for i in range(20))
    r = reloading(config)
    before = scrape(r.server)
    r.reload()
    r.reload(config.replace("[site", "; a comment\n[site", 1))
    after = scrape(r.server)
    for name in ("sitemapd_catalogue_commits_total", "sitemapd_catalogue_changes_total", "sitemapd_catalogue_revision"):
        assert after.get(name) == before.get(name), name
    r.reload(config.replace("alias7.", "another7.").replace("alias8.", "another8."))
    assert scrape(r.server).get("sitemapd_catalogue_commits_total") == before.get("sitemapd_catalogue_commits_total") + 1


def test_what_changes_live(reloading):
    r = reloading("[log]\nlevel = warning\n[limits]\nmax_rejections = 3\n" + SITE)
    r.reload("[log]\nlevel = info\nformat = json\n[limits]\nmax_rejections = 1\nmax_body = 1K\n[server]\nstrict_host = yes\n" + SITE)
    result = json.loads(r.server.log().splitlines()[-1])
    assert result["event"] == "reloaded"
    for name in ("[log] level", "[log] format", "[limits] max_rejections", "[limits] max_body", "[server] strict_host"):
        assert name in result["message"], result
    reply = r.server.bulk(["bad", "worse", "worst"])
    assert reply.status == 422 and len(reply.json()["rejected"]) == 1, reply
    assert r.server.api("POST", "/v1/sites", {"origin": "https://" + "a" * 2000 + ".example.com"}).status == 413
    assert r.server.get("/robots.txt").status == 200
    assert r.server.get("/robots.txt", host="elsewhere.example.com").status == 421


def test_pages_with_a_style(reloading):
    """An instruction behind the declaration, which is not an element: the rest of the page is as it was, and so are its tags when it is removed."""
    bare = "[server]\npage_style = no\n" + SITE
    r = reloading(bare)
    assert r.server.register(ORIGIN + "/a.xml", lastmod="2026-01-01").status == 201
    plain, packed = r.server.get(XML), r.server.get(XML, {"Accept-Encoding": "gzip"})
    r.reload(SITE)
    styled = r.server.get(XML)
    declaration, style, rest = styled.body.split(b"\n", 2)
    assert style.startswith(b'<?xml-stylesheet type="text/css" href="data:text/css,') and style.endswith(b'"?>')
    assert declaration + b"\n" + rest == plain.body
    valid(styled.body)
    assert r.server.get(XML, {"Accept-Encoding": "gzip"}).xml() == styled.body
    assert styled["ETag"] != plain["ETag"]
    assert r.server.get(XML, {"If-None-Match": styled["ETag"]}).status == 304
    assert r.server.get(XML, {"If-None-Match": plain["ETag"]}).status == 200
    assert r.server.register(ORIGIN + "/b.xml").status == 201
    assert style in r.server.get(XML).body
    assert r.server.cli("render", ORIGIN + XML, "--config", r.path, env={"SITEMAPD_SERVER_PAGE_STYLE": ""}).out.encode() == r.server.get(XML).body
    assert r.server.api("DELETE", "/v1/sitemaps?loc=" + ORIGIN + "/b.xml").status in (200, 204)
    r.reload(bare)
    assert r.server.get(XML)["ETag"] == plain["ETag"] and r.server.get(XML).body == plain.body
    assert r.server.get(XML, {"Accept-Encoding": "gzip"})["ETag"] == packed["ETag"]


def test_timeouts_change_live(reloading):
    r = reloading("[server]\nheader_timeout = 24h\nidle_timeout = 24h\n" + SITE)
    r.reload("[server]\nheader_timeout = 300ms\nidle_timeout = 200ms\n" + SITE)
    with Connection(r.server.public) as slow:
        slow.send(b"GET /robots.txt HTTP/1.1\r\nHost: ")
        assert slow.rest() == b"", "the new deadline holds"


def test_what_needs_a_restart(reloading):
    r = reloading()
    changed = "[server]\nthreads = 3\ncache_control = no-cache\n[catalogue]\nshrink_guard = 50%\n[cache]\nsnapshot_budget = 2M\n[log]\nlevel = debug\n" + SITE
    for _ in range(2):  # as long as it is so, not once
        lines = r.reload(changed)
        result = sorted(line.split("needs a restart: ")[1] for line in lines if "needs a restart: " in line)
        assert result == ["[cache] snapshot_budget", "[catalogue] shrink_guard", "[server] cache_control", "[server] threads"], lines
    # Flags count before the file: there is nothing to restart for.
    lines = r.reload("[server]\nlisten = 127.0.0.1:1\n[catalogue]\ndatabase = /nowhere/c.db\n" + SITE)
    assert not [line for line in lines if "needs a restart" in line], lines


def test_a_bad_one_is_refused_whole(reloading):
    r = reloading()
    bad = "[server]\nlisten = nonsense\nthread = 3\n[log]\nlevel = debug\n" + SITE + 'host_alias = other.example.com\n[site "more"]\n'
    lines = r.refused(bad)
    text = "\n".join(lines)
    for place in (":2: ", ":3: ", ":9: "):
        assert f"{r.path}{place}" in text, lines
    assert r.server.get("/robots.txt", host="other.example.com").status == 200, "one site answers any host"
    assert list(sites(r.server)) == [ORIGIN] and sites(r.server)[ORIGIN]["host_aliases"] == []
    os.unlink(r.path)
    assert any(r.path in line for line in r.refused())
    # And when it is good again, it counts.
    assert any("changed: [log] level" in line for line in r.reload("[log]\nlevel = debug\n" + SITE))


def test_readyz_reports_a_refused_reload(reloading, tmp_path):
    """Until one succeeds: the next start would find the same. A mistake in the file, a file that it names, what the catalogue rejects."""
    hides = "[admin]\nmetrics_token = yes\n"
    r = reloading(config=hides + SITE)
    reasons = lambda token: {reason["code"]: reason["detail"] for reason in r.server.api("GET", "/readyz", token=token).json()["reasons"]}
    shop = r.server.make_token("shop", "--site", ORIGIN)
    assert reasons(r.server.token) == {}
    none = tmp_path / "none.pem"
    for config, why in (
        ("[server]\nlisten = nonsense\nthread = 3\n" + SITE, f'{r.path}:2: listen: "nonsense"'),
        (SITE + f"robots_file = {none}\n", str(none)),
        (SITE + '[site "other"]\norigin = https://other.example\nhost_alias = www.example.com\n', "www.example.com"),
    ):
        r.refused(config)
        detail = reasons(r.server.token)["config-refused"]
        assert detail.startswith("the last reload was rejected, and a start may fail: ") and why in detail and "\n" not in detail, detail
        assert reasons(shop)["config-refused"] == reasons(None)["config-refused"] == "send a token for all sites for the details"
    r.reload(hides + SITE)
    assert reasons(r.server.token) == {}


def test_metrics_report_reloads(reloading):
    before = int(time.time())
    r = reloading()
    family = lambda: scrape(r.server)
    began = family().get("sitemapd_config_loaded_seconds")
    assert before - 1 <= began <= time.time() and family().get("sitemapd_config_refused") == 0
    assert "sitemapd_tls_certificate_expires_seconds" not in family().families, "there is no TLS"
    time.sleep(1.1)  # the time of a load is in whole seconds
    r.refused("[server]\nlisten = nonsense\n")
    m = family()
    assert m.get("sitemapd_config_refused") == 1 and m.get("sitemapd_config_loaded_seconds") == began
    assert m.all("sitemapd_config_reloads_total") == {"applied": 0, "refused": 1}
    r.reload(SITE)
    m = family()
    assert m.get("sitemapd_config_refused") == 0 and m.get("sitemapd_config_loaded_seconds") > began
    assert m.all("sitemapd_config_reloads_total") == {"applied": 1, "refused": 1}


def test_sites_change(reloading, tmp_path):
    robots = tmp_path / "robots.txt"
    robots.write_text("User-agent: a\n")
    r = reloading()
    server = r.server
    r.reload(SITE + f"robots_file = {robots}\nalias = /s.xml -> /sitemap_index.xml\nindex = /sitemap_index.xml\nindex = /shop/sitemap_index.xml\n" + '[site "two"]\norigin = https://two.example.com\n')
    eventually(lambda: len(sites(server)) == 2, "the site is there")
    assert eventually(lambda: server.get("/robots.txt").body.startswith(b"User-agent: a\n"), "the file is served")
    assert server.get("/s.xml")["Location"] == ORIGIN + "/sitemap_index.xml"
    assert server.get("/robots.txt", host="nobody.example.com").status == 421, "two sites: hosts count"
    assert server.register(ORIGIN + "/shop/a.xml").json()["sitemap"]["index"] == ORIGIN + "/shop/sitemap_index.xml"
    # The file alone, changed in place.
    robots.write_text("User-agent: b\n")
    r.reload()
    assert eventually(lambda: server.get("/robots.txt").body.startswith(b"User-agent: b\n"), "read again")
    # A robots file that cannot be read refuses all of it.
    robots.unlink()
    assert any("robots.txt" in line for line in r.refused())
    assert server.get("/robots.txt").body.startswith(b"User-agent: b\n")
    # What leaves the file stays, and is reported.
    lines = r.reload(SITE)
    assert any("site-no-longer-configured" in line for line in lines) and any("index-no-longer-configured" in line for line in lines), lines
    assert eventually(lambda: server.get("/s.xml").status == 404, "the alias is gone")
    assert eventually(lambda: not sites(server)["https://two.example.com"]["managed"], "the API's now")
    assert server.api("PATCH", "/v1/sites/" + sites(server)["https://two.example.com"]["id"], {"cross_hosts": ["cdn.example.com"]}).status == 200


def test_what_the_catalogue_refuses(reloading):
    """Found only by doing it: what was done before is taken back."""
    r = reloading()
    assert r.server.register(ORIGIN + "/x/sitemap_index-2.xml").status == 201  # would be a page of the index below
    before = sites(r.server)
    main = SITE + "index = /sitemap_index.xml\nindex = /new/sitemap_index.xml\nindex = /x/sitemap_index.xml\n"
    lines = r.refused('[log]\nlevel = error\n[site "good"]\norigin = https://good.example.com\n' + main + "host_alias = other.example.com\n")
    assert any("/x/sitemap_index.xml" in line for line in lines), lines
    assert sites(r.server) == before
    assert [i["url"] for i in r.server.api("GET", "/v1/indexes").json()["indexes"]] == [ORIGIN + "/sitemap_index.xml"]
    assert r.reload(SITE), "the level stayed at info, or this were not seen"


def source(name, folder, **more):
    lines = [f'[source "{name}"]', f"directory = {folder}", f"url = {ORIGIN}/{name}/", "settle = 100ms"]
    return "\n".join(lines + [f"{key} = {value}" for key, value in more.items()]) + "\n"


def named(server):
    return {s["name"]: s for s in server.api("GET", "/v1/sources").json()["sources"]}


def test_sources_change(reloading, tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.xml").write_text(URLSET.format(f"{ORIGIN}/{name}"))
        os.utime(tmp_path / name / f"{name}.xml", (1700000000, 1700000000))  # what is new is looked at twice
    r = reloading()
    server = r.server
    page = lambda: server.get("/sitemap_index.xml").body.decode()
    r.reload(SITE + source("a", tmp_path / "a") + source("b", tmp_path / "b", serve="yes"))
    eventually(lambda: "/a/a.xml" in page() and "/b/b.xml" in page(), "both were read")
    eventually(lambda: not any(one["scanning"] for one in named(server).values()), "both scans are over")
    assert sorted(named(server)) == ["a", "b"]
    assert server.get("/b/b.xml").status == 200 and server.get("/a/a.xml").status == 404
    scans = server.metrics()['sitemapd_source_scans_total{source="a"}']

    # One goes, one comes, one serves now too; the unchanged one is not disturbed.
    lines = r.reload(SITE + source("a", tmp_path / "a") + source("c", tmp_path / "c", serve="yes"))
    assert any("source-no-longer-configured: b" in line for line in lines), lines
    eventually(lambda: "/c/c.xml" in page(), "the new one was read")
    assert sorted(named(server)) == ["a", "c"]
    assert server.get("/b/b.xml").status == 404 and server.get("/c/c.xml").status == 200
    assert "/b/b.xml" in page(), "its entry stays"
    assert server.metrics()['sitemapd_source_scans_total{source="a"}'] == scans
    assert server.api("POST", "/v1/sources/b/scan").status == 404
    assert server.api("POST", "/v1/sources/c/scan").status == 200

    # Changed in place: the name owns the same entries.
    r.reload(SITE + source("a", tmp_path / "a", serve="yes") + source("c", tmp_path / "c", exclude="*"))
    assert eventually(lambda: server.get("/a/a.xml").status == 200, "served now")
    assert server.get("/c/c.xml").status == 404
    (tmp_path / "a" / "more.xml").write_text(URLSET.format(f"{ORIGIN}/more"))
    eventually(lambda: "/a/more.xml" in page(), "it watches")

    # A bad source refuses all of it.
    r.refused(SITE + source("a", tmp_path / "b") + '[source "d"]\ndirectory = /tmp\n')
    assert sorted(named(server)) == ["a", "c"] and named(server)["a"]["directory"] == str(tmp_path / "a")
    r.reload(SITE)
    assert named(server) == {} and server.get("/a/a.xml").status == 404


def test_a_source_that_ended_holds_nothing(reloading, tmp_path):
    (tmp_path / "f").mkdir()
    r = reloading(SITE)

    def held():
        names = []
        for fd in os.listdir(f"/proc/{r.server.process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                names.append(os.readlink(f"/proc/{r.server.process.pid}/fd/{fd}"))
        return sorted(name for name in names if "event" in name or "inotify" in name)

    watching = lambda: eventually(lambda: len(held()) == len(before) + 2, "a watch and an event")
    before = held()
    for i in range(5):
        r.reload(SITE + source("f", tmp_path / "f", rescan=f"{i + 1}h"))
        watching()
    r.reload(SITE)
    eventually(lambda: held() == before, "neither")


def test_under_load(reloading, tmp_path):
    """Many reloads while requests run: each is answered right."""
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "f.xml").write_text(URLSET.format(f"{ORIGIN}/f"))
    r = reloading()
    for i in range(12):
        r.reload(SITE + (source("f", tmp_path / "f", serve="yes", rescan=f"{i + 1}h") if i % 3 else "") + f"alias = /{i}.xml -> /sitemap_index.xml\n" * (i % 3 == 0))
        with Connection(r.server.public) as connection:
            for path in ("/robots.txt", "/f/f.xml", "/robots.txt"):
                connection.send(request_bytes("GET", path, host=HOST))
                reply = connection.reply()
                assert reply.status in ((200,) if path == "/robots.txt" else (200, 404)), reply
        assert r.server.register(f"{ORIGIN}/{i}.xml").status == 201
        assert r.server.metrics()["sitemapd_entries"] >= i


def test_invalid_files(reloading):
    """Gone, a folder, half written, not text: refused each time, and the next good one counts."""
    r = reloading()
    whole = "[log]\nlevel = debug\n" + SITE
    for cut in ('[server', '[site "main', f'[site "main"]\norigin = {ORIGIN[:6]}', "[log]\nlevel = de"):
        assert any(r.path + ":" in line for line in r.refused(cut)), cut
    with open(r.path, "wb") as file:
        file.write(os.urandom(3000))
    r.refused()
    os.unlink(r.path)
    r.refused()
    os.mkdir(r.path)
    assert any(r.path in line for line in r.refused())
    os.rmdir(r.path)
    os.symlink(r.path, r.path)
    r.refused()
    os.unlink(r.path)
    os.mkfifo(r.path)
    assert any(f"{r.path}: is a pipe" in line for line in r.refused())
    os.unlink(r.path)
    assert list(sites(r.server)) == [ORIGIN] and r.server.get("/robots.txt").status == 200
    assert any("changed: [log] level" in line for line in r.reload(whole))


def test_a_pipe_does_not_hold_the_stop(reloading):
    r = reloading()
    os.unlink(r.path)
    os.mkfifo(r.path)
    r.server.process.send_signal(signal.SIGHUP)
    r.server.stop()


def test_signals_in_a_row(reloading):
    """Those that come while one is at work are one more; the last file counts."""
    r = reloading()
    for i in range(40):
        with open(r.path + ".new", "w", encoding="utf-8") as file:
            file.write(SITE + f"alias = /{i}.xml -> /sitemap_index.xml\n")
        os.rename(r.path + ".new", r.path)
        r.server.process.send_signal(signal.SIGHUP)
    eventually(lambda: r.server.get("/39.xml").status == 301, "the last one counts")
    assert [r.server.get(f"/{i}.xml").status for i in range(39)] == [404] * 39
    assert "refused" not in r.server.log()


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_a_stop_beside_a_reload(reloading, tmp_path, first):
    """In each order, and with a source that is begun meanwhile: it stops, and all is there."""
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "f.xml").write_text(URLSET.format(f"{ORIGIN}/f"))
    r = reloading()
    for i in range(4):
        assert r.server.register(f"{ORIGIN}/{first}-{i}.xml").status == 201
        with open(r.path, "w", encoding="utf-8") as file:
            file.write(SITE + (source("f", tmp_path / "f", serve="yes") if i % 2 == 0 else ""))
        r.server.process.send_signal(first)
        time.sleep(i * 0.004)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            r.server.process.send_signal(number)
        assert r.server.process.wait(seconds(60)) == 0, r.server.log()
        r.server.start()
        assert r.server.get("/sitemap_index.xml").status == 200
    page = r.server.get("/sitemap_index.xml").body.decode()
    assert all(f"/{first}-{i}.xml" in page for i in range(4))


def state_of(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_goes_before_what_waits(reloading, stop):
    """The kernel hands out the lowest number first, which is SIGHUP's."""
    r = reloading()
    r.server.process.send_signal(signal.SIGSTOP)
    eventually(lambda: state_of(r.server.process) == "T", "it stands still")
    for number in (signal.SIGHUP, signal.SIGUSR1, stop, signal.SIGCONT):
        r.server.process.send_signal(number)
    assert r.server.process.wait(seconds(60)) == 0, r.server.log()
    assert "stop: " in r.server.log() and "reloaded" not in r.server.log(), r.server.log()


LONG = SITE + "; a line of a long file\n" * 40000  # each reload takes long enough for the next to be waiting when it ends


@contextlib.contextmanager
def stream_of_reloads(r):
    """Once some are over."""
    over = threading.Event()
    itself = os.pidfd_open(r.server.process.pid)  # and nobody who gets its number later

    def stream():
        with contextlib.suppress(ProcessLookupError):
            while not over.is_set():
                signal.pidfd_send_signal(itself, signal.SIGHUP)

    sender = threading.Thread(target=stream)
    sender.start()
    try:
        eventually(lambda: r.server.log().count("info reloaded: ") > 2, "reloads follow each other")
        yield
    finally:
        over.set()
        sender.join()
        os.close(itself)


def test_a_stop_in_a_stream_of_reloads(reloading):
    """The one at work is finished; no other follows."""
    r = reloading(LONG)
    process = r.server.process
    with stream_of_reloads(r):
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: state_of(process) == "T", "it stands still")
        stood = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        assert process.wait(seconds(60)) == 0, r.server.log()[-4000:]
    # By the time of each event, since the log may be behind.
    later = [line for line in r.server.log().splitlines() if " info reloaded: " in line and line.split("Z ")[0] > stood[:23]]
    assert len(later) <= 1, later


def test_a_log_is_reopened_in_a_stream_of_reloads(reloading, tmp_path):
    r = reloading(LONG + f"[log]\naccess_log = {tmp_path}/access.log\n")
    with stream_of_reloads(r):
        r.server.process.send_signal(signal.SIGUSR1)
        r.server.wait_for_log("access-log-reopened")
