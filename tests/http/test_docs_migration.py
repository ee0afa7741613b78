"""docs/migration.md is true: its commands are run in their order by a shell, against a site whose index a
plug-in makes. Names and ports of the page stand for those of the test."""

import os
import re
import subprocess

import pytest

from harness import BIN, environment, seconds
from test_doctor import Proxy, URLSET

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/migration.md")

with open(PAGE, encoding="utf-8") as file:
    TEXT = file.read()
BLOCKS = [re.sub(r"^  ", "", b, flags=re.M) for b in re.findall(r"^ *```sh\n(.*?)^ *```$", TEXT, re.M | re.S)]


def free_port():
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.mark.parametrize("second", ["", "https://shop.example.org"], ids=["one site", "two sites"])
def test_the_page(tmp_path, second):
    site = Proxy()
    locs = [f"{site.origin}/{name}-sitemap.xml" for name in ("post", "page")]
    entries = "".join(f"<sitemap><loc>{loc}</loc><lastmod>2026-11-21T08:30:00Z</lastmod></sitemap>" for loc in locs)
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>'
    site.pages = {"/sitemap_index.xml": (200, {"Content-Type": "text/xml"}, index.encode())}
    # As WordPress makes it: no file has it.
    virtual = f"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\nSitemap: {site.origin}/sitemap_index.xml\n"
    site.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, virtual.encode())
    for name in ("post", "page"):
        urls = f"<url><loc>https://www.example.com/{name}</loc></url>"
        site.pages[f"/{name}-sitemap.xml"] = (200, {"Content-Type": "text/xml"}, URLSET.format(urls).encode())
    ports = {"8080": free_port(), "8081": free_port()}
    look, take, beside, hook, cron = BLOCKS

    def named(text):
        text = text.replace("https://www.example.com", site.origin)
        text = re.sub(r"\b(8080|8081)\b", lambda m: str(ports[m.group()]), text)
        host = site.origin.split("//")[1]
        return text.replace("www.example.com", host).replace("sleep 2", f"sleep {seconds(2)}")

    # A plug-in's index has no validators: that is what doctor is to find, so it exits 1 there alone.
    script = "\n".join(
        [
            "set -u",
            named(look).replace("xml\n", "xml >doctor.txt; test $? = 1 || exit 1; set -e\n", 1),
            named(take),
            "test -z \"$SECOND\" || sitemapd site add $SECOND",
            'TOKEN=$(sitemapd token add test)',
            named(beside).replace(" &\n", " >/dev/null 2>serve.log & server=$!; trap 'kill $server' EXIT\n"),
            named(hook),
            named(cron),
            "sitemapd list --json >list.txt",
            "sitemapd import new.xml 2>own.txt",
        ]
    )
    env = environment({"SITEMAPD_DATABASE": str(tmp_path / "catalogue.db"), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SECOND": second})
    (tmp_path / "sitemapd").symlink_to(BIN)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds(60))
    site.close()
    assert done.returncode == 0, done
    assert "neither ETag nor Last-Modified" in (tmp_path / "doctor.txt").read_text()
    listed = (tmp_path / "list.txt").read_text()
    assert all(loc in listed for loc in locs) and len(listed.splitlines()) == 2
    assert "0 wrong" in done.stdout
    assert (tmp_path / "new-robots.txt").read_text() == virtual, "nothing lost, no line twice"
    told = (tmp_path / "own.txt").read_text()
    assert f"is what sitemapd itself serves at {site.origin}/sitemap_index.xml: importing that never changes anything" in told
