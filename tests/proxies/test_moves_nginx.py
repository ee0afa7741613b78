# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sites as programs make them move behind a real nginx, with the rules that `migrate` prints: a switch, a look from outside, and the CMS
switched off, under a crawl as well."""

import json
import os
import re
import subprocess
import time

import pytest

from harness import ask, environment, eventually, locs, seconds, sitemapd
from origin import Origin
from proxies import PATIENCE, Server, free_port
from test_moves import KINDS, sitemap

SPIDER = """
import json, sys
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider

seen = []

class Spider(SitemapSpider):
    name = "s"
    sitemap_urls = [sys.argv[1]]
    def sitemap_filter(self, entries):
        for entry in entries:
            if entries.type == "urlset":
                seen.append(entry["loc"])
            else:
                yield entry

process = CrawlerProcess({"LOG_LEVEL": "ERROR", "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False,
                          "CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.2, "RANDOMIZE_DOWNLOAD_DELAY": False,
                          "DOWNLOAD_TIMEOUT": 60, "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7"})
process.crawl(Spider)
process.start()
print(json.dumps(sorted(set(seen))))
"""


class Off(dict):
    """A CMS that is off: clients get no answer."""

    def get(self, *_):
        return Origin.cut(b"")


class Nginx:
    """In front of the old server: all of the site, but for the rules that are put in."""

    def __init__(self, folder, old):
        self.folder, self.old = str(folder), old
        self.address = f"127.0.0.1:{free_port()}"
        self.write("")
        self.process = subprocess.Popen(["nginx", "-p", self.folder, "-e", f"{self.folder}/error.log", "-c", f"{self.folder}/nginx.conf"], stdin=subprocess.DEVNULL)
        eventually(lambda: self.answers(), "nginx listens", PATIENCE)

    def answers(self):
        try:
            return ask(self.address, "GET", "/", host=self.address)
        except OSError:
            return None

    def write(self, rules):
        places = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.getuid() == 0 else ""
        with open(f"{self.folder}/nginx.conf", "w", encoding="utf-8") as out:
            out.write(f"{user}daemon off;\npid {self.folder}/pid;\nevents {{ }}\nhttp {{\naccess_log off;\n{places}"
                      f"server {{\nlisten {self.address};\nserver_name 127.0.0.1;\n{rules}\nlocation / {{\nproxy_pass http://{self.old};\nproxy_set_header Host $http_host;\n}}\n}}\n}}\n")

    def put(self, rules):
        """The rules, as they are printed, into the server block."""
        self.write(rules)
        subprocess.run(["nginx", "-p", self.folder, "-e", f"{self.folder}/error.log", "-c", f"{self.folder}/nginx.conf", "-s", "reload"], check=True)

    def get(self, path):
        return ask(self.address, "GET", path, host=self.address)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def moved(tmp_path, kind, run):
    """Takes the site over by the documented steps, then hands on to `run`."""
    old = KINDS[kind]
    with Origin() as origin:
        nginx = Nginx(tmp_path, f"{origin.address}:{origin.port}")
        site = f"http://{nginx.address}"
        server = None
        try:
            old.fill(origin, site)
            migrate = lambda *more: sitemapd("migrate", site, "--serve", "--connect", f"{origin.address}:{origin.port}", *more)
            printed = migrate()
            assert printed.code == 0, printed
            server = Server(tmp_path, sites=(), config=printed.out).start()
            direct = lambda path: ask(server.public, "GET", path, host=nginx.address)
            for path in old.children():
                eventually(lambda: direct(path).status == 200, f"{path} is served")
            rules = migrate("--proxy", "nginx").out
            # Each host has its name: that of this one is an address with a port.
            nginx.put(rules.replace("127.0.0.1:8080", server.public).replace("Host $host", "Host $http_host"))
            ours = re.search(r"^index = (\S+)$", printed.out, re.M)[1]
            eventually(lambda: nginx.get(ours).body == direct(ours).body, "nginx has the rules")
            run(old, origin, nginx, server, site, ours)
        finally:
            nginx.stop()
            if server:
                server.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_site_moves_behind_nginx(tmp_path, kind):
    def run(old, origin, nginx, server, site, ours):
        eventually(lambda: set(locs(nginx.get(ours).body)) == {site + path for path in old.children()}, "the index lists them all")
        time.sleep(1.1)  # within its first second a page has no 304 by date, and doctor would report that
        doctor = sitemapd("doctor", site + ours, "--sample", "10")
        assert doctor.code == 0 and "\n0 wrong, 0 warnings" in doctor.out, doctor
        assert nginx.get("/about").body == b"a page" and f"Sitemap: {site}{ours}".encode() in nginx.get("/robots.txt").body
        before = {path: nginx.get(path) for path in old.children()}
        origin.answers.clear()
        assert nginx.get("/about").status == 404
        for path, reply in before.items():
            after = nginx.get(path)
            assert (after.status, after.body, after["ETag"]) == (200, sitemap(path, site=site), reply["ETag"]), path

    moved(tmp_path, kind, run)


@pytest.mark.parametrize("kind", ["WordPress", "Shopify", "Drupal"])
def test_no_sitemap_is_lost_to_a_crawl_while_the_cms_is_off(tmp_path, kind):
    pytest.importorskip("scrapy")

    def run(old, origin, nginx, server, site, ours):
        eventually(lambda: set(locs(nginx.get(ours).body)) == {site + path for path in old.children()}, "the index lists them all")
        crawl = subprocess.Popen(["/usr/bin/python3", "-c", SPIDER, f"{site}/robots.txt"], stdout=subprocess.PIPE, env=environment(), text=True)
        origin.answers = Off()
        out, _ = crawl.communicate(timeout=seconds(PATIENCE))
        wanted = {loc for path in old.children() for loc in re.findall("<loc>(.*?)</loc>", sitemap(path, site=site).decode())}
        assert set(json.loads(out.splitlines()[-1])) == wanted

    moved(tmp_path, kind, run)
