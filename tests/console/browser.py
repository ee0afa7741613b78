# SPDX-License-Identifier: LicenseRef-Undeclared
"""What drives a browser at the console: Debian's chromium, by its driver."""

import json

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common import utils
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from harness import eventually

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


class Driver(Service):
    """Asked by its address, and asks the browser through a pipe: a bare machine knows no name "localhost"."""

    @property
    def service_url(self):
        return f"http://127.0.0.1:{self.port}"

    def is_connectable(self):
        return utils.is_connectable(self.port, "127.0.0.1")


def open_browser():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--disable-dev-shm-usage", "--window-size=1280,900",
                     # One renderer for all pages, and no page is kept for the way back: else each test starts five.
                     "--renderer-process-limit=1", "--disable-site-isolation-trials", "--disable-features=BackForwardCache,SpareRendererForSitePerProcess",
                     "--disable-extensions", "--disable-component-update", "--disable-background-networking"):
        options.add_argument(argument)
    options.add_experimental_option("perfLoggingPrefs", {"enablePage": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("unhandledPromptBehavior", "ignore")
    return webdriver.Chrome(service=Driver("/usr/bin/chromedriver"), options=options)


class Console:
    """The browser at one server's console."""

    def __init__(self, driver, server):
        self.driver, self.server = driver, server
        self.base = f"http://{server.admin}/console/"
        self.requests = []

    # ---- moving ----

    def leave(self):
        """Nobody is signed in, and nothing shows earlier data."""
        for handle in self.driver.window_handles[1:]:
            self.driver.switch_to.window(handle)
            self.driver.close()
        self.driver.switch_to.window(self.driver.window_handles[0])
        self.driver.get(self.base + "console.css")
        self.driver.execute_script("sessionStorage.clear()")
        self.media(False, 1280)
        self.errors()

    def open(self, view="overview", token=None):
        """The view, signed in as if by hand before."""
        if token is not None:
            self.driver.get(self.base + "console.css")
            self.driver.execute_script("sessionStorage.setItem('sitemapd-token', arguments[0])", token)
        self.driver.get("about:blank")
        self.driver.get(f"{self.base}#/{view}")
        self.wait(lambda: self.title())
        return self

    def go(self, view):
        """To another view, as a link does."""
        self.driver.execute_script("""
            document.querySelector('main').firstChild.earlier = true;
            if (location.hash === arguments[0]) dispatchEvent(new Event('hashchange')); else location.hash = arguments[0];""", "#/" + view)
        self.wait(lambda: self.driver.execute_script("return !document.querySelector('main').firstChild.earlier"), view)

    def media(self, dark, width, height=900):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    # ---- seeing ----

    def wait(self, check, what="the page"):
        def safely():
            try:
                return check()
            except Exception as error:  # replaced while it was looked at
                if "stale" in str(error).lower() or "no such element" in str(error).lower():
                    return None
                raise

        return eventually(safely, what)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.wait(lambda: next((e for e in self.all(selector) if e.is_displayed()), None), selector)

    def title(self):
        found = self.all("main h1")
        return found[0].text if found else ""

    def text(self, selector="main"):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_text(self, text, selector="main"):
        self.wait(lambda: text in self.text(selector), f"{text!r} in {selector}: {self.text(selector)[:500]!r}")

    def buttons(self, within="main"):
        """Their texts, also of those in rows."""
        return [b.text for b in self.all(f"{within} button") if b.is_displayed()]

    # ---- doing ----

    def press(self, text, within="main"):
        def pressed():  # in one: a view that is drawn again between the two has another button
            found = next((b for b in self.all(f"{within} button") if b.is_displayed() and b.text == text), None)
            return found is not None and (found.click() or True)

        self.wait(pressed, f"button {text}")

    def fill(self, name, text, within="main"):
        box = self.one(f"{within} [name={name}]")
        box.clear()
        box.send_keys(text)
        return box

    def keys(self, *keys):
        """To whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def sign_in(self, token):
        self.driver.get("about:blank")
        self.driver.get(self.base)
        self.fill("token", token).send_keys(Keys.ENTER)

    # ---- what must not be ----

    def errors(self):
        """What the browser's console prints, but for answers of the API that are refusals."""
        return [e["message"] for e in self.driver.get_log("browser")
                if e["level"] == "SEVERE" and not (e["source"] == "network" and "/v1/" in e["message"])]

    def asked(self):
        """The URLs that were asked for since the last call."""
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'
