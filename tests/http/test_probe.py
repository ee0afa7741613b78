"""What is asked of hosts elsewhere (probe, import URL, migrate), against an origin of many faults:
where requests may go, what they take, and what is told."""

import email.utils
import os
import socket
import subprocess
import sys
import time

import pytest

from harness import BIN, environment, seconds, sitemapd

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from origin import Origin, answer, bomb, index, urlset  # noqa: E402

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
    "refused": (answer(403), 1, "refused: answers 403 to us; that says nothing about what crawlers are answered (refused)"),
    "wall": (answer(503, cf_mitigated="challenge"), 1, "refused: answers 503 to us; that says nothing about what crawlers are answered (bot-wall)"),
    "error": (answer(500), 1, "unreachable: answers 500 (server-error)"),
    "empty": (answer(200, urlset()), 1, "empty: a sitemap without URLs (empty)"),
    "html": (answer(200, b"<!doctype html><title>no</title>"), 1, 'not-a-sitemap: an HTML page, titled "no" (not-a-sitemap)'),
    # A body that is shorter than announced may hold a whole sitemap, and is none.
    "short": (Origin.cut(answer(200, PAGE, length=5000)), 1, "unreachable: the body is shorter than announced (broken-answer)"),
    "no-http": (Origin.cut(b"hello\r\n\r\n"), 1, "unreachable: it answers something other than HTTP/1.1 (broken-answer)"),
    "mute": (Origin.cut(b""), 1, "unreachable: the connection ends in mid-answer (broken-answer)"),
    "truncated": (answer(200, PAGE[:-10]), 1, None),
    "bomb": (answer(200, bomb(200 << 20), Content_Encoding="gzip"), 1, None),
    "list": (answer(200, index(HOST + "/b.xml")), 0, "good as an upstream: a sitemap index of 1 sitemap, 0 with a date"),
    "list-of-none": (answer(200, index("/relative.xml")), 1, "broken as an upstream: it names no sitemap (empty)"),
}
BROKEN = {"truncated": "(truncated)", "bomb": "(gzip-bomb)"}


@pytest.mark.parametrize("name", FAULTS)
def test_verdicts(origin, name):
    origin.answers["/a.xml"], code, told = FAULTS[name]
    done = probe(origin, "/a.xml")
    assert done.code == code, done
    if told:
        assert verdict(done) == told
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
        assert verdict(probe(origin, path, "--timeout", "1")) == "unreachable: no answer in time (timeout)"


def test_when_to_come_again(origin):
    """Both forms of Retry-After, by the clock of who says so; and what Cache-Control and Age leave."""
    now = time.time() - 86400
    origin.answers["/seconds.xml"] = answer(503, Retry_After="120")
    origin.answers["/date.xml"] = answer(429, Date=email.utils.formatdate(now, usegmt=True), Retry_After=email.utils.formatdate(now + 90, usegmt=True))
    origin.answers["/fresh.xml"] = answer(200, PAGE, Cache_Control="public, max-age=600", Age="100", ETag='"a"')
    assert "it asks to wait for 120 s\n" in probe(origin, "/seconds.xml").out
    assert "it asks to wait for 90 s\n" in probe(origin, "/date.xml").out
    done = probe(origin, "/fresh.xml")
    assert "it is fresh for 500 s more\n" in done.out and "no ETag" not in done.out


SPELLINGS = (
    "127.0.0.1", "localhost", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::1]", "[fe80::1]", "169.254.169.254",
)  # fmt: skip


@pytest.mark.parametrize("host", SPELLINGS)
def test_private_addresses(secret, host):
    """By whatever spelling, as URL or as the name to connect to: nothing is asked of it."""
    done = sitemapd("probe", f"http://{host}:{secret.port}/secret.xml", "--timeout", "5")
    assert done.code in (1, 2), done
    if host[0] != "[" and host not in ("127.0.0.1", "169.254.169.254"):  # a literal is who asks's own word
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
        ("/four.xml", "it redirects more than three times"),
        ("/round.xml", "it redirects more than three times"),
        ("/secret.xml", "it redirects to a host that is not the site's"),
        ("/file.xml", "it redirects, but not to a URL of http or https"),
        ("/nowhere.xml", "it redirects, but not to a URL of http or https"),
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
        (f"{HOST}/none.xml", "cannot be fetched: it answers 404"),
        (f"{HOST}/short.xml", "cannot be fetched: the body is shorter than announced"),
        (f"http://localhost:{secret.port}/secret.xml", "is no address of the public internet, and not allowed here"),
    ):
        done = sitemapd("import", url, *(connect if "www" in url else ()), database=database)
        assert done.code == 1 and why in done.err, done
    # What we serve ourselves is known as such.
    page = sitemapd("render", f"{HOST}/sitemap_index.xml", database=database).raw_out
    origin.answers["/sitemap_index.xml"] = answer(200, page)
    done = sitemapd("import", f"{HOST}/old.xml", *connect, database=database)
    assert done.code == 0 and "is what sitemapd itself serves at" in done.err, done
    assert secret.asked == []


def test_migrate(origin, tmp_path):
    """What is printed is a configuration that is taken as it is, or commands that run as they are."""
    connect = f"{origin.address}:{origin.port}"
    origin.answers["/robots.txt"] = answer(200, f"User-agent: *\nDisallow: /private/\nSitemap: {HOST}/sitemap_index.xml\nSitemap: {HOST}/pages.xml\n".encode())
    page = index((f"{HOST}/a.xml", "2026-11-01"), f"{HOST}/gone.xml", f"{HOST}/it's.xml", (f"{HOST}/nested.xml", "2026-11-01"), "/relative.xml")
    origin.answers["/sitemap_index.xml"] = answer(200, page)
    origin.answers["/nested.xml"] = answer(200, index(f"{HOST}/inner.xml"))
    for path in ("/a.xml", "/inner.xml", "/pages.xml", "/it's.xml"):
        origin.answers[path] = answer(200, PAGE)
    done = sitemapd("migrate", HOST, "--connect", connect)
    assert done.code == 0, done
    assert done.out == f"""[site "example"]
origin = {HOST}
index = /sitemap_index.xml
; robots.txt has 2 lines of its own, which would be lost with the switch; saved, it is named here
;robots_file = /etc/sitemapd/example-robots.txt

; {HOST}/sitemap_index.xml lists 4 sitemaps, in {len(page)} bytes
; - cannot be listed: /relative.xml (loc-relative)
; - 2 of 4 have no date: they get true ones
; - {HOST}/gone.xml: answers 404 (gone)
; - {HOST}/nested.xml is an index itself, which no index may list: its sitemaps are taken instead
; - looked into 4 of them: 2 good, with 2 URLs
[source "example"]
upstream = {HOST}/sitemap_index.xml
index = {HOST}/sitemap_index.xml
; once the name leads to this server: where the old one is
;connect = {connect}

; {HOST}/pages.xml is a sitemap of 1 URL, no index; once the site is made:
; sitemapd add '{HOST}/pages.xml'

; {HOST}/nested.xml lists 1 sitemap, in {len(index(HOST + "/inner.xml"))} bytes
; - 1 of 1 have no date: they get true ones
; - looked into 1 of them: 1 good, with 1 URL
[source "example-2"]
upstream = {HOST}/nested.xml
index = {HOST}/sitemap_index.xml
; once the name leads to this server: where the old one is
;connect = {connect}

"""
    (tmp_path / "site.conf").write_text(done.out)
    assert sitemapd("check-config", "--config", tmp_path / "site.conf").code == 0

    done = sitemapd("migrate", HOST, "--connect", connect, "--commands")
    assert done.code == 0, done
    script = done.out.replace("sitemapd import", f"sitemapd import --connect {connect}")
    listed = run_commands(script, tmp_path)
    assert listed == {f"{HOST}{path}" for path in ("/a.xml", "/gone.xml", "/it's.xml", "/inner.xml", "/pages.xml")}


def run_commands(script, tmp_path):
    """What --commands printed, run by a shell as it is, but that curl finds no DNS here."""
    (tmp_path / "curl").write_text("#!/bin/sh\nprintf 'User-agent: *\\n' >robots.txt\n")
    (tmp_path / "curl").chmod(0o755)
    (tmp_path / "sitemapd").unlink(missing_ok=True)
    os.symlink(BIN, tmp_path / "sitemapd")
    env = environment({"SITEMAPD_DATABASE": str(tmp_path / "catalogue.db"), "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    ran = subprocess.run(["sh", "-eu", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds(60))
    assert ran.returncode == 0, (script, ran)
    return {line["loc"] for line in sitemapd("export", database=tmp_path / "catalogue.db").lines()}


def test_migrate_prints_no_code_of_the_origin(origin, tmp_path):
    """Every text that an origin chooses is one word of a shell: where it redirects to, its indexes, their sitemaps."""
    connect = f"{origin.address}:{origin.port}"
    code = "';touch$IFS'pwned';'"
    named = [f"/i{code}.xml", f"/m{code}.xml"]
    origin.answers["/robots.txt"] = answer(302, Location=f"/r{code}.txt")
    origin.answers[f"/r{code}.txt"] = answer(200, f"User-agent: *\nSitemap: {HOST}{named[0]}\nSitemap: {HOST}{named[1]}\n".encode())
    locs = [f"{HOST}/a{code}.xml", f"{HOST}/n{code}.xml", f"{HOST}/$(touch$IFS'pwned').xml"]
    origin.answers[named[0]] = answer(200, index(*locs))
    origin.answers[locs[1][len(HOST) :]] = answer(200, index(f"{HOST}/inner.xml"))
    for path in (locs[0][len(HOST) :], locs[2][len(HOST) :], named[1], "/inner.xml"):
        origin.answers[path] = answer(200, PAGE)
    done = sitemapd("migrate", HOST, "--connect", connect, "--commands")
    assert done.code == 0 and done.out.count("pwned") > 6, done
    script = done.out.replace("sitemapd import", f"sitemapd import --connect {connect}")
    assert run_commands(script, tmp_path) == {locs[0], locs[2], HOST + named[1], f"{HOST}/inner.xml"}
    assert not (tmp_path / "pwned").exists()


def test_migrate_nothing(origin):
    done = sitemapd("migrate", HOST, "--connect", f"{origin.address}:{origin.port}")
    assert done.code == 1 and "names no sitemap, and there is none at /sitemap_index.xml (answers 404)" in done.err, done
    for named in ("www.example.com", "https://www.example.com/sitemap_index.xml"):
        done = sitemapd("migrate", named)
        assert done.code == 2 and "must be an origin; did you mean https://www.example.com?" in done.err, done
