# SPDX-License-Identifier: LicenseRef-Undeclared
"""Requests to remote hosts (probe, import URL, migrate), against an origin with many faults: where requests may go,
their limits, and the reports."""

import email.utils
import gzip
import os
import re
import socket
import subprocess
import time

import pytest

from harness import BIN, environment, seconds, sitemapd
from origin import Origin, answer, bomb, index, urlset

HOST = "http://www.example.com"


@pytest.fixture(scope="module")
def origin():
    with Origin() as made:
        yield made


@pytest.fixture(scope="module")
def secret():
    """What nobody outside may reach."""
    with Origin("127.0.0.1") as made:
        made.answers["/secret.xml"] = answer(200, urlset("http://www.example.com/secret"))
        yield made


@pytest.fixture(autouse=True)
def forget(origin, secret):
    origin.answers.clear()
    origin.asked.clear()
    secret.asked.clear()


def probe(origin, path, *more):
    return sitemapd("probe", HOST + path, "--connect", f"{origin.address}:{origin.port}", *more)


def verdict(done):
    lines = [line for line in done.out.splitlines() if line.startswith("verdict")]
    assert len(lines) == 1, done
    return lines[0].removeprefix("verdict").strip()


PAGE = urlset(HOST + "/page", lastmod="2026-10-10")

FAULTS = {
    "good": (answer(200, PAGE), 0, f"good: a sitemap of 1 URL, {len(PAGE)} bytes, the newest page of 2026-10-10"),
    "gone": (answer(410), 1, "gone: answers 410 (gone)"),
    "refused": (answer(403), 1, "refused: answers 403 to this server; crawlers may get another response (refused)"),
    "wall": (answer(503, cf_mitigated="challenge"), 1, "refused: answers 503 to this server; crawlers may get another response (bot-wall)"),
    "error": (answer(500), 1, "unreachable: answers 500 (server-error)"),
    "empty": (answer(200, urlset()), 1, "empty: a sitemap without URLs (empty)"),
    "html": (answer(200, b"<!doctype html><title>no</title>"), 1, 'not-a-sitemap: an HTML page, titled "no" (not-a-sitemap)'),
    # A body that is shorter than announced may hold a whole sitemap, but is not accepted.
    "short": (Origin.cut(answer(200, PAGE, length=5000)), 1, "unreachable: truncated response: the body is shorter than Content-Length (broken-answer)"),
    "lengths": (answer(200, PAGE, Content_Length="7"), 1, "unreachable: malformed response: two different Content-Length headers (broken-answer)"),
    "list-of-lengths": (answer(200, PAGE, Content_Length=f"{len(PAGE)}, 7"), 1, "unreachable: malformed response: two different Content-Length headers (broken-answer)"),
    "same-lengths": (answer(200, PAGE, Content_Length=f"{len(PAGE)}"), 0, f"good: a sitemap of 1 URL, {len(PAGE)} bytes, the newest page of 2026-10-10"),
    "folded": (answer(200, PAGE, X_A="b\r\n c\r\n\td", Content_Encoding="\r\n\tidentity"), 0, f"good: a sitemap of 1 URL, {len(PAGE)} bytes, the newest page of 2026-10-10"),
    "folded-status": (answer(200, PAGE).replace(b"\r\n", b"\r\n folded\r\n", 1), 1, "unreachable: malformed response: a header line without a colon (broken-answer)"),
    "no-http": (Origin.cut(b"hello\r\n\r\n"), 1, "unreachable: malformed response: not HTTP/1.1 (broken-answer)"),
    "mute": (Origin.cut(b""), 1, "unreachable: truncated response: the connection was closed early (broken-answer)"),
    "truncated": (answer(200, PAGE[:-10]), 1, None),
    "bomb": (answer(200, bomb(200 << 20), Content_Encoding="gzip"), 1, None),
    "list": (answer(200, index(HOST + "/b.xml")), 0, "good as an upstream: a sitemap index of 1 sitemap, 0 with a date"),
    "list-of-none": (answer(200, index("/relative.xml")), 1, "broken as an upstream: it lists no sitemap (empty)"),
}
BROKEN = {"truncated": "(truncated)", "bomb": "(gzip-bomb)"}


@pytest.mark.parametrize("name", FAULTS)
def test_verdicts(origin, name):
    origin.answers["/a.xml"], code, result = FAULTS[name]
    done = probe(origin, "/a.xml")
    assert done.code == code, done
    if result:
        assert verdict(done) == result
    else:
        assert verdict(done).startswith("broken: ") and verdict(done).endswith(BROKEN[name])


def test_endless(origin):
    """Heads and bodies without end are given up, long before they are too much."""
    origin.answers["/head.xml"] = origin.endless(b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 1000 + b"\r\n")
    origin.answers["/line.xml"] = origin.endless(b"HTTP/1.1 200 OK\r\nX-More: ", b"x" * 65536)
    origin.answers["/early.xml"] = origin.endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    origin.answers["/body.xml"] = origin.endless(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE[:-10], b" " * 65536)
    for path in ("/head.xml", "/line.xml", "/early.xml"):
        done = probe(origin, path)
        assert done.code == 1 and "header is too large" in verdict(done), done
    done = probe(origin, "/body.xml")
    assert done.code == 1 and verdict(done).startswith("broken: ") and "(file-too-large)" in verdict(done), done


def test_silence(origin):
    origin.answers["/mute.xml"] = origin.silent()
    origin.answers["/stops.xml"] = origin.silent(answer(200, PAGE, length=5000))
    for path in ("/mute.xml", "/stops.xml"):
        assert verdict(probe(origin, path, "--timeout", "1")) == "unreachable: no response before the timeout (timeout)"


def test_when_to_come_again(origin):
    """Both forms of Retry-After, by the clock of who says so; and what Cache-Control and Age leave."""
    now = time.time() - 86400
    origin.answers["/seconds.xml"] = answer(503, Retry_After="120")
    origin.answers["/date.xml"] = answer(429, Date=email.utils.formatdate(now, usegmt=True), Retry_After=email.utils.formatdate(now + 90, usegmt=True))
    origin.answers["/fresh.xml"] = answer(200, PAGE, Cache_Control="public, max-age=600", Age="100", ETag='"a"')
    assert "it asks clients to wait for 120 s\n" in probe(origin, "/seconds.xml").out
    assert "it asks clients to wait for 90 s\n" in probe(origin, "/date.xml").out
    done = probe(origin, "/fresh.xml")
    assert "it stays fresh for another 500 s\n" in done.out and "no ETag" not in done.out, done
    origin.answers["/stale.xml"] = answer(200, PAGE, Cache_Control="max-age=100", Age="100", ETag='"a"')
    assert "it is fresh" not in probe(origin, "/stale.xml").out


SPELLINGS = (
    "127.0.0.1", "localhost", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::1]", "[fe80::1]", "169.254.169.254",
)  # fmt: skip


@pytest.mark.parametrize("host", SPELLINGS)
def test_private_addresses(secret, host):
    """By whatever spelling, as URL or as the name to connect to: nothing is asked of it."""
    done = sitemapd("probe", f"http://{host}:{secret.port}/secret.xml", "--timeout", "5")
    assert done.code in (1, 2), done
    if host[0] != "[" and host not in ("127.0.0.1", "169.254.169.254"):  # a literal is the caller's own
        done = sitemapd("probe", f"{HOST}/secret.xml", "--connect", f"{host}:{secret.port}", "--timeout", "5")
        assert done.code == 1 and "(address-not-allowed)" in done.out, done
    assert secret.asked == []


def test_redirects(origin, secret):
    here = f"{HOST}/good.xml"
    origin.answers["/good.xml"] = answer(200, PAGE)
    origin.answers["/one.xml"] = answer(302, Location="/good.xml")
    origin.answers["/three.xml"] = answer(301, Location="two.xml")
    origin.answers["/two.xml"] = answer(307, Location="/one.xml#part")
    origin.answers["/four.xml"] = answer(308, Location=f"{HOST}/three.xml")
    origin.answers["/round.xml"] = answer(301, Location="/round.xml")
    origin.answers["/secret.xml"] = answer(301, Location=f"http://127.0.0.1:{secret.port}/secret.xml")
    origin.answers["/file.xml"] = answer(301, Location="file:///etc/passwd")
    origin.answers["/nowhere.xml"] = answer(301)
    done = probe(origin, "/three.xml")
    assert done.code == 0 and done.out.count("\nurl ") == 4 and here in done.out, done
    assert origin.paths() == ["/three.xml", "/two.xml", "/one.xml", "/good.xml"]
    for path, why in (
        ("/four.xml", "too many redirects: more than three"),
        ("/round.xml", "too many redirects: more than three"),
        ("/secret.xml", f"it redirects to a host that does not belong to the site: http://{secret.address}:{secret.port}"),
        ("/file.xml", "it redirects to something that is not an http or https URL"),
        ("/nowhere.xml", "it redirects to something that is not an http or https URL"),
    ):
        assert verdict(probe(origin, path)) == f"unreachable: {why} (redirect)"
    assert secret.asked == []


def test_allowed_by_configuration(origin, secret, tmp_path):
    """[fetch] allow_address opens what it names and no more; a [source] is probed by its name."""
    (tmp_path / "site.conf").write_text(
        "[fetch]\nallow_address = 127.0.0.2/32\ncontact = https://www.example.com/bot\n"
        f"[site \"example\"]\norigin = http://127.0.0.2:{origin.port}\n"
        f"[source \"shop\"]\nupstream = http://127.0.0.2:{origin.port}/index.xml\n"
    )  # fmt: skip
    origin.answers["/index.xml"] = answer(200, index(f"{HOST}/a.xml", (f"{HOST}/b.xml", "2026-11-01"), "/relative.xml"))
    done = sitemapd("probe", "shop", "--config", tmp_path / "site.conf")
    assert done.code == 0 and verdict(done) == "good as an upstream: a sitemap index of 2 sitemaps, 1 with a date, 1 that cannot be listed", done
    assert "\r\nUser-Agent: sitemapd/" in origin.asked[0] and " (+https://www.example.com/bot)\r\n" in origin.asked[0]
    assert "\r\nAccept-Encoding: gzip" in origin.asked[0] and "Cookie" not in origin.asked[0]
    done = sitemapd("probe", f"http://127.0.0.1:{secret.port}/secret.xml", "--config", tmp_path / "site.conf")
    assert done.code == 1 and "(address-not-allowed)" in done.out and secret.asked == []


def test_a_sitemap_is_requested_as_its_source_polls_it(origin, tmp_path):
    """After the switch the public name of a sitemap is this server's, which serves its last good copy: only `connect` and `map`
    of the configuration lead to the sitemap."""
    here, config = f"127.0.0.2:{origin.port}", tmp_path / "site.conf"
    secret = tmp_path / "secret"
    secret.write_text("bearer x\n")
    secret.chmod(0o600)
    config.write_text(
        f"[fetch]\nallow_address = {origin.address}/32\n[site \"shop\"]\norigin = {HOST}\nhost_alias = alias.example.com\n"
        f"[source \"far\"]\nupstream = https://far.example.com/index.xml\ncredentials_file = {secret}\n"
        f"[source \"shop\"]\nupstream = {HOST}/index.xml\nconnect = {here}\nserve = yes\n"
        f"[site \"mapped\"]\norigin = http://mapped.example.com\n"
        f"[source \"cms\"]\nupstream = http://{here}/cms/index.xml\nmap = http://{here} http://mapped.example.com\nindex = http://mapped.example.com/sitemap.xml\n"
        f"[site \"blog\"]\norigin = http://blog.example.com\nconnect = {here}\ncheck = yes\n"
    )  # fmt: skip
    assert sitemapd("check-config", "--config", config).code == 0
    origin.answers["/a.xml"] = origin.answers["/cms/a.xml"] = answer(200, urlset(f"http://{here}/page")[:-5])
    for url, shown in (
        (f"{HOST}/a.xml", ("source    shop, whose upstream has this origin", f"connect   {here}", f"url       {HOST}/a.xml")),
        ("http://mapped.example.com/cms/a.xml", ("source    cms, whose map has this origin", f"map       http://{here} -> http://mapped.example.com", f"url       http://{here}/cms/a.xml")),
        ("http://blog.example.com/a.xml", ("site      http://blog.example.com", f"connect   {here}", "url       http://blog.example.com/a.xml")),
    ):
        origin.asked.clear()
        done = sitemapd("probe", url, "--config", config)
        assert set(shown) <= set(done.out.splitlines()), (url, done)
        assert verdict(done).startswith("broken: ") and len(origin.asked) == 1, done
    # What the map makes of it is verified, as by a poll: its pages are on its own host.
    origin.answers["/cms/a.xml"] = answer(200, urlset(f"http://{here}/page"))
    done = sitemapd("probe", "http://mapped.example.com/cms/a.xml", "--config", config)
    assert verdict(done).startswith("good: ") and "outside-site" not in done.out, done
    secret.chmod(0o644)  # reading it fails now
    assert sitemapd("probe", f"{HOST}/a.xml", "--config", config).err == ""
    done = sitemapd("probe", "https://far.example.com/a.xml", "--config", config)
    assert done.code == 1 and "far" in done.err and str(secret) in done.err, done


def test_a_redirect_to_another_host_of_the_configuration_is_followed(origin, tmp_path):
    other = f"{origin.address}:{origin.port}"
    origin.answers["/a.xml"] = answer(301, Location=f"http://{other}/b.xml")
    origin.answers["/b.xml"] = answer(200, PAGE)
    for hosts, found in ((f"cross_host = elsewhere.example\ncross_host = {other}\n", "good: "), ("cross_host = elsewhere.example\n", "unreachable: it redirects to a host that does not belong to the site")):
        (tmp_path / "site.conf").write_text(f'[fetch]\nallow_address = {origin.address}\n[site "example"]\norigin = {HOST}\n{hosts}')
        assert verdict(probe(origin, "/a.xml", "--config", tmp_path / "site.conf")).startswith(found)


def mounted(script, **files):
    """The script's output in a mount namespace of its own, where files of /etc are others."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mounts need root")
    mounts = "".join(f"mount --bind {path} /etc/{name.replace('_', '.')}\n" for name, path in files.items())
    return subprocess.run(["unshare", "-m", "sh", "-euc", mounts + script], env=environment(), capture_output=True, text=True, timeout=seconds(60))


def test_rebinding(origin, secret, tmp_path):
    """A name that was public a moment ago, and is not now; and one with both addresses."""
    (tmp_path / "hosts").write_text("127.0.0.1 rebound.example\n127.0.0.1 both.example\n127.0.0.2 both.example\n")
    (tmp_path / "site.conf").write_text("[fetch]\nallow_address = 127.0.0.2\n")
    origin.answers["/a.xml"] = answer(200, PAGE)
    done = mounted(f"{BIN} probe http://rebound.example:{secret.port}/secret.xml", hosts=tmp_path / "hosts")
    assert done.returncode == 1 and "(address-not-allowed)" in done.stdout, done
    done = mounted(f"{BIN} probe http://both.example:{origin.port}/a.xml --config {tmp_path}/site.conf", hosts=tmp_path / "hosts")
    assert done.returncode == 0 and "\naddress   127.0.0.2\n" in done.stdout, done
    assert secret.asked == []


def test_dead_resolver(tmp_path):
    """One that never answers holds nobody longer than the time-out."""
    try:
        resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # its own: another build runs this beside us
        resolver.bind((address, 53))
    except OSError:
        pytest.skip("port 53 needs root")
    with resolver:
        (tmp_path / "resolv").write_text(f"nameserver {address}\noptions timeout:30 attempts:5\n")
        begun = time.monotonic()
        done = mounted(f"{BIN} probe http://www.example.com/ --timeout 1", resolv_conf=tmp_path / "resolv")
        assert done.returncode == 1 and "(timeout)" in done.stdout, done
        assert time.monotonic() - begun < 100, "the resolver's own time is 150 s"


def test_import_url(origin, secret, tmp_path):
    database = tmp_path / "catalogue.db"
    assert sitemapd("site", "add", HOST, database=database).code == 0
    connect = ("--connect", f"{origin.address}:{origin.port}")
    origin.answers["/old.xml"] = answer(302, Location="/sitemap_index.xml")
    origin.answers["/sitemap_index.xml"] = answer(200, index((f"{HOST}/a.xml", "2026-11-01"), f"{HOST}/b.xml"))
    done = sitemapd("import", f"{HOST}/old.xml", *connect, database=database)
    assert done.code == 0 and done.out.startswith(f"{HOST}/old.xml: read 2: 2 created"), done
    origin.answers["/short.xml"] = Origin.cut(answer(200, index(f"{HOST}/c.xml"), length=5000))
    for url, why in (
        (f"{HOST}/none.xml", "cannot be fetched: it returned status 404"),
        (f"{HOST}/short.xml", "cannot be fetched: truncated response: the body is shorter than Content-Length"),
        (f"http://localhost:{secret.port}/secret.xml", "is not a public internet address; only [fetch] allow_address of the configuration can allow it"),
    ):
        done = sitemapd("import", url, *(connect if "www" in url else ()), database=database)
        assert done.code == 1 and why in done.err, done
    # What we serve ourselves is known as such.
    page = sitemapd("render", f"{HOST}/sitemap_index.xml", database=database).raw_out
    origin.answers["/sitemap_index.xml"] = answer(200, page)
    done = sitemapd("import", f"{HOST}/old.xml", *connect, database=database)
    assert done.code == 0 and "is what sitemapd itself serves at" in done.err, done
    assert secret.asked == []


def migrate(origin, *more, site=HOST):
    return sitemapd("migrate", site, "--connect", f"{origin.address}:{origin.port}", *more)


def checked(done, tmp_path, name="site.conf"):
    """The configuration that was printed, which the program accepts; its text without comments."""
    assert done.code == 0 and done.err == "", done
    (tmp_path / name).write_text(done.out)
    checked = sitemapd("check-config", "--config", tmp_path / name)
    assert checked.code == 0, (done.out, checked)
    return "".join(line + "\n" for line in done.out.splitlines() if line and line[0] != ";")


def test_migrate(origin, tmp_path):
    """What is printed is a configuration that is accepted as it is, or commands that run as they are."""
    connect = f"{origin.address}:{origin.port}"
    origin.answers["/robots.txt"] = answer(200, f"User-agent: *\nDisallow: /private/\nSitemap: {HOST}/sitemap_index.xml\nSitemap: {HOST}/pages.xml\n".encode())
    page = index((f"{HOST}/a.xml", "2026-11-01"), f"{HOST}/gone.xml", f"{HOST}/it's.xml", (f"{HOST}/nested.xml", "2026-11-01"), "/relative.xml", *(f"/{i}.xml" for i in range(4)))
    origin.answers["/sitemap_index.xml"] = answer(200, page)
    origin.answers["/nested.xml"] = answer(200, index(f"{HOST}/inner.xml"))
    for path in ("/a.xml", "/inner.xml", "/pages.xml", "/it's.xml"):
        origin.answers[path] = answer(200, PAGE)
    done = migrate(origin)
    shown, _, switch = done.out.partition("; For the switch:")
    assert shown == f"""[site "www.example.com"]
origin = {HOST}
index = /sitemap_index.xml
; robots.txt has 2 rules that the switch would lose: save it under this name
;robots_file = /etc/sitemapd/www.example.com-robots.txt

; {HOST}/sitemap_index.xml lists 4 sitemaps, in {len(page)} bytes
; - cannot be listed: /relative.xml (loc-relative)
; - cannot be listed: /0.xml (loc-relative)
; - cannot be listed: /1.xml (loc-relative)
; - and 2 more that cannot be listed
; - 2 of 4 have no valid date
; - {HOST}/gone.xml: answers 404 (gone)
; - {HOST}/nested.xml is an index itself, and an index may not list an index: its sitemaps are listed by a source of their own, and it is removed after drop_after (3 days)
; - checked 4 of them: 2 good, with 2 URLs
[source "www.example.com"]
upstream = {HOST}/sitemap_index.xml
index = {HOST}/sitemap_index.xml
connect = {connect}

; {HOST}/pages.xml is a sitemap of 1 URL, not an index: the index here lists it
[source "www.example.com-2"]
upstream = {HOST}/pages.xml
index = {HOST}/sitemap_index.xml
connect = {connect}

; {HOST}/nested.xml lists 1 sitemap, in {len(index(HOST + "/inner.xml"))} bytes
; - 1 of 1 have no valid date
; - checked 1 of them: 1 good, with 1 URL
[source "www.example.com-3"]
upstream = {HOST}/nested.xml
index = {HOST}/sitemap_index.xml
connect = {connect}

"""
    for name in ("nginx: in the server block of www.example.com", "Apache (", "Caddy: ", "HAProxy: "):
        assert f"\n; # {name}" in switch
    checked(done, tmp_path)
    assert migrate(origin, "--proxy", "nginx").out == """# nginx: in the server block of www.example.com, before other locations with ~
location ~ "^(/robots\\.txt|/sitemap_index(-([2-9]|[1-9][0-9]+))?\\.xml(\\.gz)?)$" {
    proxy_pass http://127.0.0.1:8080;
    proxy_set_header Host $host;
    gzip off;
}
"""
    done = migrate(origin, "--commands")
    assert done.code == 0, done
    listed = run_commands(done.out, tmp_path)
    assert listed == {f"{HOST}{path}" for path in ("/a.xml", "/gone.xml", "/it's.xml", "/inner.xml", "/pages.xml")}


def test_migrate_prints_no_source_for_what_another_lists(origin, tmp_path):
    """next-sitemap names its server-sitemap.xml in robots.txt and in the index: a source of its own would be rejected for ever."""
    origin.answers["/robots.txt"] = answer(200, "".join(f"Sitemap: {HOST}/{name}.xml\n" for name in ("server-sitemap", "sitemap", "other", "alone")).encode())
    origin.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml", f"{HOST}/b.xml", f"{HOST}/server-sitemap.xml"))
    origin.answers["/other.xml"] = answer(200, index(f"{HOST}/b.xml", f"{HOST}/a.xml", f"{HOST}/c.xml", f"{HOST}/c.xml"))
    for name in ("a", "b", "c", "server-sitemap", "alone"):
        origin.answers[f"/{name}.xml"] = answer(200, PAGE)
    done = migrate(origin)
    checked(done, tmp_path)
    assert re.findall(r"upstream = (.*)\n", done.out) == [f"{HOST}/{name}.xml" for name in ("sitemap", "other", "alone")], done
    assert f"; {HOST}/server-sitemap.xml is a sitemap of 1 URL, not an index: the index here lists it\n; - it is left out: {HOST}/sitemap.xml lists it already\n\n" in done.out, done
    assert done.out.count("owned-by-another") == 1 and f"; - 2 of them are in {HOST}/sitemap.xml, too, and an entry is in one index alone: " in done.out.partition("[source")[2], done
    done = migrate(origin, "--commands")
    assert "sitemapd add" in done.out and "'http://www.example.com/server-sitemap.xml'" not in done.out, done
    assert run_commands(done.out, tmp_path) == {f"{HOST}/{name}.xml" for name in ("a", "b", "c", "server-sitemap", "alone")}


def test_migrate_prints_no_character_that_cannot_be_seen(origin):
    """A terminal would show the line in another order than the shell or the program reads it."""
    unseen = "\u202e\u2066\u200f\x85"
    origin.answers["/robots.txt"] = answer(200, f"Sitemap: {HOST}/sitemap.xml\nSitemap: {HOST}/ {unseen}.xml\n".encode())
    origin.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml", f"/{unseen}.xml"))
    origin.answers["/a.xml"] = answer(200, PAGE)
    for more in ((), ("--commands",)):
        done = migrate(origin, *more)
        assert "line 2" in done.out and "cannot be listed: " in done.out, done.out
        assert not set(unseen) & set(done.out), done


# What robots.txt names, what is there, and the lines of the configuration that matter; what is listed in the end.
OLD = {
    "query": ("/?sitemap=index", ["/?sitemap=posts", "/?sitemap=pages"], ["index = /sitemap_index.xml"]),
    "route": ("/index.php?route=feed/sitemap", ["/index.php?route=feed/sitemap&page=1"], ["index = /sitemap_index.xml"]),
    "php": ("/sitemap.php", ["/sitemap.php?page=1", "/a.xml"], ["index = /sitemap_index.xml", "alias = /sitemap.php -> /sitemap_index.xml"]),
    "bare": ("/sitemap", ["/a.xml"], ["index = /sitemap_index.xml", "alias = /sitemap -> /sitemap_index.xml"]),
    "folder": ("/sitemap/", ["/sitemap/a.xml", "/b.xml"], ["index = /sitemap_index.xml", "alias = /sitemap/ -> /sitemap_index.xml"]),
    "gz": ("/sitemap.xml.gz", ["/a.xml.gz"], ["index = /sitemap.xml"]),
    "gz itself": ("/sitemap.xml", ["/sitemap.xml.gz", "/a.xml"], ["index = /sitemap_index.xml", "alias = /sitemap.xml -> /sitemap_index.xml"]),
    "aspx": ("/Sitemap.aspx", ["/Sitemap.aspx?id=1"], ["index = /sitemap_index.xml", "alias = /Sitemap.aspx -> /sitemap_index.xml"]),
    "txt": ("/sitemap.txt", ["/a.xml"], ["index = /sitemap_index.xml", "alias = /sitemap.txt -> /sitemap_index.xml"]),
    "capitals": ("/SiteMap.xml", ["/Maps/A.xml"], ["index = /SiteMap.xml"]),
    "capital suffix": ("/SITEMAP.XML", ["/A.XML"], ["index = /sitemap_index.xml", "alias = /SITEMAP.XML -> /sitemap_index.xml"]),
    "percent": ("/site%20map.xml", ["/a.xml"], ["index = /site%20map.xml"]),
    "drupal": ("/sitemap.xml", ["/sitemap.xml?page=1", "/sitemap.xml?page=2"], ["index = /sitemap.xml"]),
    "next": ("/sitemap.xml", ["/sitemap-0.xml", "/sitemap-1.xml"], ["index = /sitemap.xml", "page_pattern = {stem}-page-{n}{suffix}"]),
    "next, more": ("/sitemap.xml", [f"/sitemap-{n}.xml" for n in range(12)] + ["/sitemap-page-2.xml"], ["page_pattern = {stem}-index-{n}{suffix}"]),
    "deep": ("/maps/index.xml", ["/maps/a.xml"], ["index = /maps/index.xml"]),
    "deep, wide": ("/maps/index.xml", ["/maps/a.xml", "/b.xml"], ["index = /sitemap_index.xml", "alias = /maps/index.xml -> /sitemap_index.xml"]),
    "taken": ("/sitemap.php", ["/sitemap_index.xml", "/sitemap-index.xml?x"], ["index = /sitemaps.xml", "alias = /sitemap.php -> /sitemaps.xml"]),
    "itself": ("/sitemap.xml", ["/sitemap.xml", "/a.xml"], ["index = /sitemap.xml"]),
    "elsewhere": ("http://cdn.example.net/index.xml", ["http://cdn.example.net/a.xml"], ["index = /sitemap_index.xml", "cross_host = cdn.example.net"]),
    "port": ("http://www.example.com:8080/index.xml", ["http://www.example.com:8080/a.xml"], ["index = /sitemap_index.xml", "cross_host = www.example.com:8080"]),
    "https": ("https://www.example.com/sitemap.xml", ["/a.xml"], ["index = /sitemap.xml"]),
}  # fmt: skip


def path_of(text):
    return text.partition("://")[2].partition("/")[2].join(("/", "")) if "://" in text else text


@pytest.mark.parametrize("case", OLD)
def test_migrate_prints_what_works(case, tmp_path):
    """For every address that robots.txt may name: what is printed is accepted, and serves all sitemaps."""
    named, members, lines = OLD[case]
    locs = [member if "://" in member else HOST + member for member in members]
    # A site that is on other hosts, too, is reached by its names.
    with Origin() as origin:
        elsewhere = f"{origin.address}:{origin.port}"
        hosts = {"cdn.example.net": elsewhere, "www.example.com:8080": elsewhere}
        place = lambda text: "".join(text.replace(host, at) for host, at in hosts.items() if host in text) or text
        named, locs, lines = place(named), [place(loc) for loc in locs], [place(line) for line in lines]
        origin.answers["/robots.txt"] = answer(200, f"Sitemap: {named if '://' in named else HOST + named}\n".encode())
        for loc in locs:
            origin.answers[path_of(loc)] = answer(200, PAGE)
        origin.answers[path_of(named)] = answer(200, index(*(loc.replace("&", "&amp;") for loc in locs)))
        allow = {"SITEMAPD_FETCH_ALLOW_ADDRESS": "127.0.0.2"}
        done = sitemapd("migrate", HOST, "--connect", elsewhere, env=allow)
        printed = checked(done, tmp_path).splitlines()
        assert set(lines) <= set(printed), printed
        assert [line.split()[0] for line in printed if line.split()[0] in ("index", "alias", "page_pattern", "cross_host")].count("index") == 2
        for extra in ("alias", "page_pattern", "cross_host"):
            assert [line for line in printed if line.startswith(extra)] == [line for line in lines if line.startswith(extra)]
        commands = sitemapd("migrate", HOST, "--connect", elsewhere, "--commands", env=allow)
        assert commands.code == 0
        listed = run_commands(commands.out, tmp_path, allow)
    own = f"{HOST}{path_of(named)}"
    assert listed == {loc for loc in locs if loc != own}


def test_migrate_a_single_urlset(origin, tmp_path):
    """Magento and small shops have no index: ours lists the urlset, and is watched."""
    for named in ("/sitemap.xml", "/sitemap_index.xml", "/index.php?route=sitemap", "/sitemap.txt"):
        origin.answers.clear()
        origin.answers["/robots.txt"] = answer(200, f"Sitemap: {HOST}{named}\n".encode())
        origin.answers[named] = answer(200, f"{HOST}/page\n".encode() if "txt" in named else PAGE)
        printed = checked(migrate(origin), tmp_path)
        ours = "/sitemap-index.xml" if "index.xml" in named else "/sitemap_index.xml"
        site = f'[site "www.example.com"]\norigin = {HOST}\nindex = {ours}\n'
        source = f'[source "www.example.com"]\nupstream = {HOST}{named}\nindex = {HOST}{ours}\nconnect = {origin.address}:{origin.port}\n'
        assert printed == site + ("check = yes\n" if "txt" in named else source)
        (tmp_path / "catalogue.db").unlink(missing_ok=True)
        assert run_commands(migrate(origin, "--commands").out, tmp_path) == {HOST + named}
    origin.answers["/robots.txt"] = answer(200, b"")
    origin.answers["/sitemap.xml"] = answer(200, PAGE)
    found = migrate(origin, "--serve").out
    assert "sitemap of 1 URL" in found, "found at a usual address as well"
    assert f"\nindex = {HOST}/sitemap_index.xml\n" in found, "a usual address with nothing is free"
    assert "wp-sitemap" not in found, "and the rules do not pass it on"


def test_migrate_of_a_site_that_lists_its_other_scheme(tmp_path):
    """A CMS behind a TLS proxy lists http: as it is, all of it would be rejected. A map lists it with https."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=www.example.com", "-addext", "subjectAltName=DNS:www.example.com"]
    subprocess.run(command, check=True, capture_output=True)
    with Origin(tls=(cert, key)) as made:
        https = HOST.replace("http", "https")
        made.answers["/robots.txt"] = answer(200, f"Sitemap: {https}/sitemap.xml\n".encode())
        made.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml", f"{https}/b.xml", f"{HOST}/nested.xml"))
        made.answers["/nested.xml"] = answer(200, index(f"{https}/c.xml"))
        for path in ("/a.xml", "/b.xml", "/c.xml"):
            made.answers[path] = answer(200, urlset(f"{https}/page"))
        done = migrate(made, "--ca-file", cert, site=https)
        assert "; - 2 are http: map lists them as https\n" in done.out and "; - checked 3 of them: 2 good, with 2 URLs\n" in done.out, done
        checked(done, tmp_path)
        settings = tmp_path / "mirror.conf"
        settings.write_text(done.out.replace("connect = ", f"ca_file = {cert}\nconnect = "))
        sources = re.findall(r'\[source "(.*)"\]\nupstream = (.*)\n', done.out)
        assert sources == [("www.example.com", f"{https}/sitemap.xml"), ("www.example.com-2", f"{https}/nested.xml")], done
        assert done.out.count("map = ") == 1 and f"\nmap = {HOST} {https}\n" in done.out, done
        mirror = tmp_path / "mirror.db"
        assert sitemapd("site", "add", https, "--no-index", database=mirror).code == 0
        assert sitemapd("index", "add", f"{https}/sitemap.xml", database=mirror).code == 0
        for name, _ in sources:
            assert sitemapd("scan", name, "--config", settings, database=mirror).code == 0
        assert {line.split()[-1] for line in sitemapd("list", database=mirror).out.splitlines()[1:]} == {f"{https}/{name}.xml" for name in ("a", "b", "nested", "c")}
        # Commands cannot: they say so, and import the rest.
        done = migrate(made, "--ca-file", cert, "--commands", site=https)
        assert "# - cannot be listed: 2 are http, and the site is https; " in done.out and " --skip-invalid " in done.out, done


def test_migrate_of_an_http_site_that_lists_https(origin):
    origin.answers["/sitemap.xml"] = answer(200, index(HOST.replace("http", "https") + "/a.xml", f"{HOST}/b.xml"))
    done = migrate(origin, "--sample", "0")
    assert "; - cannot be listed: 1 is https, and the site is http; if it answers by https, run migrate with https\n" in done.out and "map = " not in done.out, done


def test_migrate_checks_sitemaps_as_polls_do(origin):
    """Pages of other hosts alone are good for nothing, unless the site has those hosts; an index that another index lists is not listed."""
    other = "http://app.example.net"
    origin.answers["/robots.txt"] = answer(200, f"Sitemap: {HOST}/sitemap.xml\nSitemap: {HOST}/all.xml\n".encode())
    origin.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml"))
    origin.answers["/all.xml"] = answer(200, index(f"{HOST}/a.xml", f"{HOST}/sitemap.xml"))
    origin.answers["/a.xml"] = answer(200, urlset(f"{other}/page"))
    done = migrate(origin)
    assert f'; - {HOST}/a.xml: its one URL cannot be used: "{other}/page" is on another host' in done.out and "; - checked 1 of them: 0 good" in done.out, done
    assert f"; - cannot be listed: {HOST}/sitemap.xml is an index itself, and an index may not list an index\n" in done.out, done
    origin.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml", f"{other}/b.xml"))
    assert "; - checked 1 of them: 1 good, with 1 URL\n" in migrate(origin, "--sample", "1").out


def test_migrate_names_sections_by_the_whole_host(origin, tmp_path):
    """Sites of one agency, appended to one file: no two sections have one name."""
    sites = ["http://shop.example.com", "http://shop.example.net", "http://shop.example.net:8080", "http://www.example.net", "http://example.net",
             f"http://{'a' * 40}.example.com", f"http://{'a' * 40}.example.net"]  # fmt: skip
    text = ""
    for site in sites:
        origin.answers["/robots.txt"] = answer(200, f"User-agent: *\nAllow: /\nSitemap: {site}/sitemap.xml\n".encode())
        origin.answers["/sitemap.xml"] = answer(200, index(f"{site}/a.xml"))
        done = migrate(origin, site=site)
        assert done.code == 0, done
        text += done.out
    (tmp_path / "all.conf").write_text(text)
    checked = sitemapd("check-config", "--config", tmp_path / "all.conf")
    assert checked.code == 0, (text, checked)
    # The site is found by the Host field: with a port by the whole of it.
    assert text.count("; #     proxy_set_header Host $http_host;") == 0 and text.count(";     proxy_set_header Host $http_host;") == 1
    files = [line for line in text.splitlines() if line.startswith(";robots_file")]
    assert len(set(files)) == len(sites) and ";robots_file = /etc/sitemapd/shop.example.net_8080-robots.txt" in files


def test_migrate_chooses_www_or_the_bare_host(origin):
    """The one that has the sitemaps is the site's origin, with a sentence."""
    bare = "http://example.com"
    origin.answers["/a.xml"] = answer(200, PAGE)
    origin.answers["/sitemap.xml"] = answer(200, index(f"{HOST}/a.xml"))

    def robots(text):
        """Of www; the bare host redirects there."""
        def send(connection, head):
            redirects = "\r\nHost: example.com" in head
            connection.sendall(answer(301, Location=f"{HOST}/robots.txt", Connection="close") if redirects else answer(200, text, Connection="close"))
        return send

    def has(says, text, site=bare):
        origin.answers["/robots.txt"] = text
        done = migrate(origin, site=site)
        assert done.code == 0 and done.out.startswith(f'; {site} {says}: that is the site\'s origin\n[site "www.example.com"]\norigin = {HOST}\n'), done

    has(f"redirects to {HOST}", robots(f"Sitemap: {HOST}/sitemap.xml\n".encode()))
    has(f"names sitemaps of {HOST}", answer(200, f"Sitemap: {HOST}/sitemap.xml\n".encode()))
    has(f"redirects to {HOST}", robots(b""))

    def www_alone(connection, head):
        found = "\r\nHost: www.example.com" in head
        connection.sendall(answer(200, index(f"{HOST}/a.xml"), Connection="close") if found else answer(404, Connection="close"))

    origin.answers["/sitemap.xml"] = www_alone
    has(f"has no sitemap that can be taken over, unlike {HOST}", answer(404))


def test_migrate_reads_robots_txt_as_crawlers_do_not(origin, tmp_path):
    """Relative, quoted and several URLs in a line: what is intended is used, and the line is named."""
    origin.answers["/robots.txt"] = answer(200, b"# B\xfccher\rSitemap: /1.xml\rSitemap: \"" + HOST.encode() + b"/2.xml\"\rSitemap: "
                                           + f"{HOST}/3.xml {HOST}/4.xml\r".encode())  # fmt: skip
    for n in range(1, 5):
        origin.answers[f"/{n}.xml"] = answer(200, index(f"{HOST}/a{n}.xml"))
        origin.answers[f"/a{n}.xml"] = answer(200, PAGE)
    done = migrate(origin)
    printed = checked(done, tmp_path)
    assert [f"index = /{n}.xml\n" in printed for n in range(1, 5)] == [True] * 4
    for line, words in ((2, "must be an absolute URL"), (3, "is in quotes"), (4, "is one of several in its line")):
        assert f"; robots.txt, line {line}: " in done.out and words in done.out, done.out


def test_migrate_takes_each_index_once(origin, tmp_path):
    """A robots.txt that names the gzip form too, and an address that redirects to the other."""
    origin.answers["/robots.txt"] = answer(200, "".join(f"Sitemap: {HOST}/{name}\n" for name in ("sitemap.xml", "sitemap.xml.gz", "old.xml")).encode())
    origin.answers["/sitemap.xml"] = origin.answers["/sitemap.xml.gz"] = answer(200, index(f"{HOST}/a.xml"))
    origin.answers["/old.xml"] = answer(301, Location="/sitemap.xml")
    origin.answers["/a.xml"] = answer(200, PAGE)
    done = migrate(origin)
    assert checked(done, tmp_path).count("[source") == 1 and done.out.count(f"is a duplicate of {HOST}/sitemap.xml") == 2, done


def run_commands(script, tmp_path, env=None):
    """What --commands printed, run by a shell as it is, but that curl finds no DNS here."""
    (tmp_path / "curl").write_text("#!/bin/sh\nfor file; do :; done; printf 'User-agent: *\\n' >\"$file\"\n")
    (tmp_path / "curl").chmod(0o755)
    (tmp_path / "sitemapd").unlink(missing_ok=True)
    os.symlink(BIN, tmp_path / "sitemapd")
    env = environment({"SITEMAPD_DATABASE": str(tmp_path / "catalogue.db"), "PATH": f"{tmp_path}:{os.environ['PATH']}", **(env or {})})
    ran = subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds(60))
    assert ran.returncode == 0, (script, ran)
    return {line["loc"] for line in sitemapd("export", database=tmp_path / "catalogue.db").lines()}


def test_migrate_prints_no_code_of_the_origin(origin, tmp_path):
    """Every text that an origin chooses is one word of a shell: where it redirects to, its indexes, their sitemaps."""
    code = "';touch$IFS'pwned';'"
    named = [f"/i{code}.xml", f"/m{code}.xml"]
    origin.answers["/robots.txt"] = answer(302, Location=f"/r{code}.txt")
    origin.answers[f"/r{code}.txt"] = answer(200, f"User-agent: *\nSitemap: {HOST}{named[0]}\nSitemap: {HOST}{named[1]}\n".encode())
    locs = [f"{HOST}/a{code}.xml", f"{HOST}/n{code}.xml", f"{HOST}/$(touch$IFS'pwned').xml"]
    origin.answers[named[0]] = answer(200, index(*locs))
    origin.answers[locs[1][len(HOST) :]] = answer(200, index(f"{HOST}/inner.xml"))
    for path in (locs[0][len(HOST) :], locs[2][len(HOST) :], named[1], "/inner.xml"):
        origin.answers[path] = answer(200, PAGE)
    done = migrate(origin, "--commands")
    assert done.code == 0 and done.out.count("pwned") > 6, done
    assert run_commands(done.out, tmp_path) == {locs[0], locs[2], HOST + named[1], f"{HOST}/inner.xml"}
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(("reply", "why"), [(answer(500), "answers 500"), (answer(403), "answers 403"), (answer(302, Location="ftp://x/"), "it redirects to something that is not an http or https URL")])
def test_migrate_says_that_robots_txt_was_not_read(origin, reply, why):
    """Its rules would be lost without a word."""
    origin.answers["/robots.txt"] = reply
    origin.answers["/sitemap.xml"] = answer(200, PAGE)
    out = migrate(origin).out
    assert f"; robots.txt: {why}; the switch would lose its rules: save it under this name\n;robots_file = /etc/sitemapd/www.example.com-robots.txt\n" in out, out
    out = migrate(origin, "--commands").out
    assert f"# robots.txt: {why}; the switch would lose its rules: serve it here\n# curl -sf " in out and "\n# sitemapd site update " in out, out
    del origin.answers["/sitemap.xml"]
    done = migrate(origin)
    assert done.code == 1 and f"{why}, and no sitemap was found at /sitemap_index.xml (answers 404), /" in done.err, done


def test_migrate_of_an_index_without_a_usable_sitemap(origin):
    """A source of it would fail for ever: it is not printed, and the reason is."""
    origin.answers["/sitemap.xml"] = answer(200, index("//www.example.com/a.xml"))
    done = migrate(origin)
    assert done.code == 1 and "/sitemap_index.xml (answers 404), /sitemap.xml (it lists no sitemap that can be listed here (empty)), /wp" in done.err, done
    origin.answers["/wp-sitemap.xml"] = answer(200, index(f"{HOST}/b.xml"))
    out = migrate(origin).out
    assert f"; {HOST}/sitemap.xml cannot be taken over: it lists no sitemap that can be listed here (empty)\n; - cannot be listed: //www.example.com/a.xml (loc-relative)\n" in out
    assert out.count("upstream = ") == 1 and f"upstream = {HOST}/wp-sitemap.xml\n" in out, out


def test_migrate_nothing(origin):
    done = sitemapd("migrate", HOST, "--connect", f"{origin.address}:{origin.port}")
    found = "/sitemap_index.xml (answers 404), /sitemap.xml (answers 404), /wp-sitemap.xml (answers 404), /sitemap-index.xml (answers 404)"
    assert done.code == 1 and f"names no sitemap, and none was found at {found}\n" in done.err, done
    origin.answers["/sitemap.xml"] = answer(302, Location="/sitemap.xml", Set_Cookie="seen=1")  # for who keeps cookies
    done = sitemapd("migrate", HOST, "--connect", f"{origin.address}:{origin.port}")
    assert done.code == 1 and "(answers 404), /sitemap.xml (too many redirects: more than three), /wp-sitemap.xml (" in done.err, done
    for named in ("www.example.com", "https://www.example.com/sitemap_index.xml"):
        done = sitemapd("migrate", named)
        assert done.code == 2 and "must be an origin; did you mean https://www.example.com?" in done.err, done


# What an old server lists; what its web server is to keep.
SERVED = {
    "yoast": (["/post-sitemap.xml", "/post-sitemap2.xml", "/page-sitemap.xml"], ["/", "/post/1", "/post-sitemap.xsl"]),
    "drupal": (["/sitemap_index.xml?page=1", "/sitemap_index.xml?page=27"], ["/?page=1", "/node?page=1"]),
    "query": (["/index.php?route=feed&page=1", "/a%20b.xml"], ["/index.php", "/index.php?route=cart", "/index.php?route=feed&page=1&x=1"]),
    "packed": (["/maps/2025/a.xml.gz", "/maps/2024/a.xml.gz", "/it's.xml"], ["/maps/", "/maps/2025/b.xml"]),
}


@pytest.mark.parametrize("name", SERVED)
def test_migrate_with_the_sitemaps(origin, tmp_path, name):
    """With --serve the sources serve what they list, and the web server's rules pass on just that."""
    listed, kept = SERVED[name]
    origin.answers["/robots.txt"] = answer(200, f"Sitemap: {HOST}/sitemap_index.xml\n".encode())
    origin.answers["/sitemap_index.xml"] = answer(200, index(*(HOST + path.replace("&", "&amp;") for path in listed)))
    for path in listed:
        origin.answers[path] = answer(200, gzip.compress(PAGE) if path.endswith(".gz") else PAGE)
    printed = checked(migrate(origin, "--serve"), tmp_path)
    assert printed.count("serve = yes\n") == 1 and "its sitemaps and robots.txt" in migrate(origin, "--serve").out
    rules = migrate(origin, "--serve", "--proxy", "nginx").out
    paths = re.findall(r'location ~ "(.*)" \{', rules)
    uris = re.findall(r'if \(\$request_uri ~ "(.*)"\) \{\n    rewrite', rules)
    passes = lambda uri: any(re.search(rule, uri.partition("?")[0]) for rule in paths) or any(re.search(rule, uri) for rule in uris)
    assert all(passes(uri) for uri in listed + ["/robots.txt", "/sitemap_index.xml"]), rules
    assert not any(passes(uri) for uri in kept), rules
    assert "$uri?" not in rules, "nginx drops the query of what it rewrites so"
    assert "serve = yes" not in migrate(origin).out and not all(re.search(rule, listed[-1]) for rule in re.findall(r'"(.*)" \{', migrate(origin, "--proxy", "nginx").out))
