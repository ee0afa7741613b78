# SPDX-License-Identifier: LicenseRef-Undeclared
"""A crawler that sites really meet: Scrapy's SitemapSpider reads the index, the gzipped index and
robots.txt, and follows what they list."""

import http.server
import json
import subprocess
import sys
import threading

import pytest

from harness import environment, seconds

pytest.importorskip("scrapy")

SPIDER = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider

seen = []

class Spider(SitemapSpider):
    name = "s"
    sitemap_urls = [sys.argv[1]]
    def parse(self, response):
        seen.append(response.url)

process = CrawlerProcess({"LOG_LEVEL": "ERROR", "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False,
                          "RETRY_ENABLED": False, "DOWNLOAD_TIMEOUT": 60, "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7"})
process.crawl(Spider)
process.start()
print(json.dumps(sorted(seen)))
"""


class Site(http.server.BaseHTTPRequestHandler):
    """The site itself: sitemap files with two pages each, and the pages."""

    def do_GET(self):
        body = b"<html><title>page</title></html>"
        kind = "text/html"
        if self.path.startswith("/s"):
            number = self.path[2]
            urls = "".join(f"<url><loc>{self.server.origin}/p{number}-{i}</loc></url>" for i in "ab")
            body = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()
            kind = "application/xml"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.origin = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def crawl(url, spider=SPIDER):
    done = subprocess.run(
        [sys.executable, "-c", spider, url], capture_output=True, timeout=seconds(60), env=environment({"HTTP_PROXY": "", "no_proxy": "*"})
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout.decode().splitlines()[-1])


def test_scrapy_crawls_it_all(start, site):
    server = start(sites=(site.origin,))
    own = f"http://{server.public}"
    for i in range(4):
        assert server.register(f"{site.origin}/s{i}.xml?x=1&y={i}").status == 201
    wanted = sorted(f"{site.origin}/p{i}-{c}" for i in range(4) for c in "ab")
    for path in ("/sitemap_index.xml", "/sitemap_index.xml.gz"):
        assert crawl(own + path) == wanted, path

    # robots.txt names the site's origin; a crawler asks this server for it, as behind a proxy that
    # sends these paths here.
    class Front(Site):
        def do_GET(self):
            if self.path == "/robots.txt" or self.path.startswith("/sitemap_index"):
                reply = server.get(self.path, {"Accept-Encoding": self.headers.get("Accept-Encoding", "")}, host=self.headers["Host"])
                self.send_response(reply.status)
                for name, value in reply.headers:
                    if name.lower() not in ("connection", "date"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)
            else:
                super().do_GET()

    site.RequestHandlerClass = Front
    assert crawl(site.origin + "/robots.txt") == wanted


ONLY_SITEMAPS = """
    def sitemap_filter(self, entries):
        for entry in entries:
            if "/p/" in entry["loc"]:
                seen.append(entry["loc"])
            else:
                yield entry
"""


def test_from_robots_txt_to_every_page_url(start):
    """A urlset of three pages (of news each has a thousand)."""
    server = start(sites=())
    own = f"http://{server.public}"
    assert server.cli("site", "add", own).code == 0
    assert server.api("POST", "/v1/urlsets", {"url": own + "/news.xml", "with": ["news"]}).status == 201
    locs = sorted(f"{own}/p/{i}" for i in range(2100))
    assert server.bulk([{"loc": loc, "urlset": own + "/news.xml"} for loc in locs], "/v1/urls").status == 200
    assert crawl(own + "/robots.txt", SPIDER.replace("    def parse(self, response):\n        seen.append(response.url)\n", ONLY_SITEMAPS)) == locs
