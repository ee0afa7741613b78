# SPDX-License-Identifier: LicenseRef-Undeclared
"""docs/migration.md is true: its commands are run in their order by a shell, against a site whose index a
plug-in makes, then those of docs/pipeline.md for one sitemap more. Names and ports of the page are replaced by those of the test."""

import contextlib
import os
import re
import subprocess
import threading

import pytest

from harness import BIN, HOST, ask, environment, locs, seconds
from postgres import free_port
from test_doctor import Proxy, URLSET

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


def blocks(page):
    with open(f"{DOCS}/{page}", encoding="utf-8") as text:
        return [re.sub(r"^  ", "", b, flags=re.M) for b in re.findall(r"^ *```sh\n(.*?)^ *```$", text.read(), re.M | re.S)]


BLOCKS = blocks("migration.md")
RULE = r"""location ~ "^(/robots\.txt|/sitemap_index(-([2-9]|[1-9][0-9]+))?\.xml(\.gz)?)$" {
    proxy_pass http://127.0.0.1:8080;
    proxy_set_header Host $http_host;
    gzip off;
}
"""


@pytest.mark.parametrize("second, end", [("", "\n"), ("https://shop.example.org", "\n"), ("", "\r"), ("", "\r\n")], ids=["one site", "two sites", "CR", "CRLF"])
def test_the_page(tmp_path, second, end):
    site = Proxy()
    locs = [f"{site.origin}/{name}-sitemap.xml" for name in ("post", "page")]
    entries = "".join(f"<sitemap><loc>{loc}</loc><lastmod>2026-11-21T08:30:00Z</lastmod></sitemap>" for loc in locs)
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'
    site.pages = {"/sitemap_index.xml": (200, {"Content-Type": "text/xml"}, index.encode())}
    # As WordPress makes it: no file has it.
    virtual = f"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\nSitemap: {site.origin}/sitemap_index.xml\n".replace("\n", end)
    site.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, virtual.encode())
    for name in ("post", "page"):
        urls = f"<url><loc>https://www.example.com/{name}</loc></url>"
        site.pages[f"/{name}-sitemap.xml"] = (200, {"Content-Type": "text/xml"}, URLSET.format(urls).encode())
    ports = {"8080": free_port(), "8081": free_port()}
    look, mirror, beside, probe, switch, cron = BLOCKS[:6]
    token, one, several = blocks("pipeline.md")

    def named(text):
        text = text.replace("www.example.com-robots.txt", site.origin.split("//")[1].replace(":", "_") + "-robots.txt")
        text = text.replace("https://www.example.com", site.origin)
        text = re.sub(r"\b(8080|8081)\b", lambda m: str(ports[m.group()]), text)
        host = site.origin.split("//")[1]
        return text.replace("www.example.com", host).replace("sleep 2", f"sleep {seconds(2)}")

    # A plug-in's index has no validators: that is what doctor is to find, so it exits 1 there alone.
    script = "\n".join(
        [
            "set -u",
            "ready() { until test -s ready.txt && sitemapd list 2>>serve.log | grep -q page-sitemap; do kill -0 $server; sleep 0.1; done; }",
            named(look).replace("xml\n", "xml >doctor.txt; test $? = 1 || exit 1; set -e\n", 1),
            "test -z \"$SECOND\" || sitemapd site add $SECOND",
            # The list is there once it is read, and not by the clock.
            named(mirror).replace(" &\n", " >ready.txt 2>serve.log & server=$!; trap 'kill $server' EXIT\nready\n"),
            named(beside),
            named(probe).replace("10.0.0.5:443", site.origin.split("//")[1]).rstrip() + " >probe.txt",
            named(switch).rstrip() + " >switch.txt",
            "TOKEN=$(" + named(token) + ")",
            named(one),
            named(cron),
            "sitemapd list --json >list.txt",
            f"echo '{{\"loc\": \"{site.origin}/sitemaps/more.xml\"}}' >list.ndjson",
            named(several).rstrip() + " >several.txt",
            named(next(line for line in beside.splitlines() if "-o new.xml" in line)),
            "sitemapd import new.xml 2>own.txt",
        ]
    )
    env = environment({"SITEMAPD_DATABASE": str(tmp_path / "catalogue.db"), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SECOND": second, "SITEMAPD_FETCH_ALLOW_ADDRESS": "127.0.0.1"})
    (tmp_path / "sitemapd").symlink_to(BIN)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds(60))
    site.close()
    assert done.returncode == 0, done
    assert "ETag and Last-Modified are missing" in (tmp_path / "doctor.txt").read_text()
    listed = (tmp_path / "list.txt").read_text()
    assert all(loc in listed for loc in [*locs, f"{site.origin}/news.xml"]) and len(listed.splitlines()) == 3
    assert "good as an upstream: a sitemap index of 2 sitemaps, 2 with a date\n" in (tmp_path / "probe.txt").read_text()
    assert '"created":1,"updated":0,"unchanged":0,"removed":1,' in (tmp_path / "several.txt").read_text(), "a dry run: nothing of the mirror"
    assert (tmp_path / "switch.txt").read_text().endswith("with ~\n" + RULE)
    assert "0 wrong" in done.stdout
    assert (tmp_path / "new-robots.txt").read_text().split() == virtual.split(), "nothing lost, no line twice"
    result = (tmp_path / "own.txt").read_text()
    assert f"is what sitemapd itself serves at {site.origin}/sitemap_index.xml: importing it changes nothing" in result


class Crawler(threading.Thread):
    """Asks for the index all the time: what it was answered, and which bodies it saw. Nobody there is no answer."""

    def __init__(self, port):
        super().__init__()
        self.address, self.ended, self.statuses, self.bodies = f"127.0.0.1:{port}", threading.Event(), set(), []
        self.start()

    def run(self):
        while not self.ended.wait(0.02):
            with contextlib.suppress(OSError, EOFError, AssertionError):
                reply = ask(self.address, "GET", "/sitemap_index.xml")
                self.statuses.add(reply.status)
                if reply.body not in self.bodies:
                    self.bodies.append(reply.body)


@pytest.mark.parametrize("managed", (False, True), ids=("made by a command", "of the configuration"))
def test_from_http_to_https(tmp_path, managed):
    """Crawlers see the index of the one site or of the other, and no 404 in between."""
    public, admin = free_port(), free_port()
    config = tmp_path / "site.conf"
    config.write_text('[site "www"]\norigin = http://www.example.com\n' if managed else "")
    (tmp_path / "text.txt").write_text("User-agent: *\nDisallow: /private/\n")
    copy, export, release, move, urlset, check, switch = (block.replace(":8080", f":{public}") for block in BLOCKS[6:])
    to_begin = f"""
        ready() {{ until test -s $1; do kill -0 $2; sleep 0.1; done; }}
        serve() {{ rm -f ready.txt; sitemapd serve --listen 127.0.0.1:{public} --admin-listen 127.0.0.1:{admin} >ready.txt 2>>serve.log & server=$!
                  ready ready.txt $server; }}
        systemctl() {{ if test $1 = start; then serve; else kill $server; wait $server; fi; }}
        trap 'kill $server' EXIT
    """
    site = (
        f"printf 'robots_file = {tmp_path}/text.txt\\n' >>site.conf"
        if managed
        else "sitemapd site add http://www.example.com; sitemapd site update http://www.example.com --robots text.txt"
    )
    script = "\n".join(
        [
            "set -eu",
            to_begin,
            site,
            "serve",
            *(f"sitemapd add http://www.example.com/{name}.xml" for name in "abc"),
            "sitemapd remove http://www.example.com/b.xml",
            "sitemapd urlset add http://www.example.com/products.xml",
            *(f"sitemapd url add http://www.example.com/{page} --urlset /products.xml" for page in ("hat", "cap")),
            "sitemapd token add other >/dev/null",
            "echo begun; read go",
            copy,
            export,
            # It is ended once it is ready, and not by the clock.
            release.replace("timeout 5 ", "").replace("127.0.0.1:0\n", "127.0.0.1:0 >let.txt & copy=$!\n")
            + "ready let.txt $copy; kill $copy; wait $copy"
            if managed
            else "",
            move.replace("--robots robots.txt", "") if managed else move,
            urlset,
            check,
            switch.replace("systemctl start", "sed -i s/http:/https:/ site.conf\nsystemctl start"),
            "echo ended; read go",
        ]
    )
    env = environment(
        {"SITEMAPD_DATABASE": str(tmp_path / "catalogue.db"), "SITEMAPD_CONFIG": str(config), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    )
    (tmp_path / "sitemapd").symlink_to(BIN)
    with open(tmp_path / "out.txt", "w+", encoding="utf-8") as result:
        shell = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=result, text=True)
        wait_for(shell, "begun", result)
        crawler = Crawler(public)
        try:
            shell.stdin.write("\n")
            shell.stdin.flush()
            wait_for(shell, "ended", result)
            after = ask(f"127.0.0.1:{public}", "GET", "/sitemap_index.xml")
            robots = ask(f"127.0.0.1:{public}", "GET", "/robots.txt").body.decode()
            pages = ask(f"127.0.0.1:{public}", "GET", "/products.xml")
        finally:
            crawler.ended.set()
            crawler.join()
            shell.communicate("\n", timeout=seconds(60))
    assert locs(after.body) == [f"https://{HOST}/{name}.xml" for name in ("a", "products", "c")]
    assert locs(pages.body) == [f"https://{HOST}/hat", f"https://{HOST}/cap"]
    assert robots == f"User-agent: *\nDisallow: /private/\nSitemap: https://{HOST}/sitemap_index.xml\n"
    assert crawler.statuses == {200} and len(crawler.bodies) <= 2, crawler.statuses


def wait_for(shell, word, result):
    lines = []
    for line in shell.stdout:
        if line.strip() == word:
            return
        lines.append(line)
    result.seek(0)
    raise AssertionError(f"ended before it was {word}: {''.join(lines)}{result.read()}")
