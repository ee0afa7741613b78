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
        assert server.bulk(entries).status == 200
        return server

    yield start
    for server in servers:
        server.stop()


def style_of(driver, selector, name):
    return driver.execute_script("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name)


def show(driver, server, dark, width):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500})
    driver.get(f"http://{server.public}{PAGE}")


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
