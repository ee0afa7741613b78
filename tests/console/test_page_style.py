# SPDX-License-Identifier: LicenseRef-Undeclared
"""An index page as a browser shows it, with page_style: a list under a sentence, light and dark, on a desk and on a
phone; and how long a full page takes to be painted, beside the browser's own tree."""

import os
import time

import pytest

from harness import ORIGIN, Server

PAGE = "/sitemap_index.xml"
SENTENCE = "A sitemap index for search engines: each line is one sitemap of this site and when it last changed."
LONG = ORIGIN + "/" + "a-long-name-without-a-place-to-break" * 12 + ".xml"


@pytest.fixture
def pages(tmp_path):
    """A server of these pages; `style` is what its configuration says."""
    servers = []

    def start(style, entries):
        folder = tmp_path / style
        folder.mkdir()
        server = Server(folder, config=f"[server]\npage_style = {style}\n").start()
        servers.append(server)
        assert entries == [] or server.bulk(entries).status == 200
        return server

    yield start
    for server in servers:
        server.stop()


def style_of(driver, selector, name):
    return driver.execute_script("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name)


def show(driver, server, dark, width, path=PAGE):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500})
    driver.get(f"http://{server.public}{path}")


def test_a_page_is_a_list(driver, pages):
    server = pages("yes", [{"loc": f"{ORIGIN}/products-{n}.xml", "lastmod": f"2026-11-{n:02}T08:30:00Z"} for n in range(1, 13)] + [{"loc": LONG}, {"loc": f"{ORIGIN}/day.xml", "lastmod": "2026-11-20"}])
    for dark, width in ((False, 1280), (True, 1280), (False, 390), (True, 390)):
        show(driver, server, dark, width)
        assert style_of(driver, "sitemap", "display") == "flex"
        told = driver.execute_script("return getComputedStyle(document.documentElement, '::before').content")
        assert told == f'"{SENTENCE}"'
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (dark, width)
        shown = float(style_of(driver, "sitemapindex", "font-size")[:-2]) * driver.execute_script("return screen.width / Math.max(innerWidth, screen.width)")
        assert width > 500 or shown > 13, "a phone lays it out as wide as a desk, and shows it as small as that"
        red, green, blue = (int(n) for n in style_of(driver, "loc", "color")[4:-1].split(", "))
        assert (red + green + blue > 600) == dark, "the text is light on dark, and dark on light"
        if folder := os.environ.get("SITEMAPD_SCREENSHOTS"):
            driver.save_screenshot(f"{folder}/page-{'dark' if dark else 'light'}-{width}.png")


def test_a_page_of_a_urlset_is_a_list(driver, pages):
    """With what its rows have; and with the style off it has the bytes and the tag that it has if none exists."""
    server = pages("yes", [])
    urlset = ORIGIN + "/all.xml"
    assert server.api("POST", "/v1/urlsets", {"url": urlset, "with": ["images", "videos", "alternates", "news"], "expires": None}).status == 201
    rows = [{"loc": f"{ORIGIN}/p/{n}", "lastmod": f"2026-11-{n:02}T08:30:00Z"} for n in range(1, 9)] + [{"loc": LONG}]
    rows[0] |= {"images": [ORIGIN + "/1.jpg", LONG], "alternates": {"de": ORIGIN + "/de/1"},
                "videos": [{"thumbnail_loc": ORIGIN + "/1.png", "title": "A video", "description": "Of it", "content_loc": ORIGIN + "/1.mp4", "duration": 60, "tag": ["one"]}],
                "news": {"publication": {"name": "The Times", "language": "en"}, "publication_date": "2026-11-01", "title": "A title"}}
    assert server.api("POST", "/v1/urls?urlset=" + urlset, rows).json()["created"] == 9
    styled = server.get("/all.xml")
    for dark, width in ((False, 1280), (True, 1280), (False, 390), (True, 390)):
        show(driver, server, dark, width, "/all.xml")
        assert style_of(driver, "url", "display") == "flex" and style_of(driver, "publication", "display") == "none"
        assert "each line is one page of this site" in driver.execute_script("return getComputedStyle(document.documentElement, '::before').content")
        lines = driver.execute_script("return [...document.querySelectorAll('url:first-of-type > *')].filter((e) => e.getClientRects().length > 0).map((e) => [e.textContent, e.getBoundingClientRect().top])")
        assert [text for text, _ in lines] == [ORIGIN + "/p/1", "2026-11-01T08:30:00Z", "The Timesen2026-11-01A title", ORIGIN + "/1.jpg", LONG, f"{ORIGIN}/1.pngA videoOf it{ORIGIN}/1.mp460one"]
        assert driver.execute_script("return [...document.querySelectorAll('video *')].filter((e) => e.getClientRects().length > 0).map((e) => e.textContent)") == ["A video"]
        assert lines[1][1] < lines[2][1] < lines[3][1] < lines[4][1] < lines[5][1], lines
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (dark, width)
        if folder := os.environ.get("SITEMAPD_SCREENSHOTS"):
            driver.save_screenshot(f"{folder}/urlset-{'dark' if dark else 'light'}-{width}.png")
    head, instruction, rest = styled.body.partition(b"<?xml-stylesheet")
    plain = head + rest.partition(b"?>\n")[2]
    with open(server.args[server.args.index("--config") + 1], "w", encoding="utf-8") as file:
        file.write("[server]\npage_style = no\n")
    server.restart()
    again = server.get("/all.xml")
    assert instruction and again.body == plain and again["ETag"] != styled["ETag"]
    assert server.cli("render", urlset).out.encode() == plain


@pytest.mark.skipif("SITEMAPD_LONG" not in os.environ, reason="takes a minute: tests/console/run --full")
def test_a_full_page_is_painted_sooner(driver, pages):
    """From the request until the second frame: what a person waits for."""
    entries = [f"{ORIGIN}/sitemaps/products-{n:05}.xml" for n in range(50000)]
    took = {}
    driver.set_page_load_timeout(600)
    driver.set_script_timeout(600)
    for style in ("no", "yes"):
        server = pages(style, entries)
        driver.get("about:blank")
        begun = time.monotonic()
        show(driver, server, False, 1280)
        driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")
        took[style] = time.monotonic() - begun
    print(f"painted in {took['no']:.1f} s as a tree, in {took['yes']:.1f} s as a list")
    assert took["yes"] <= took["no"] / 3
