# SPDX-License-Identifier: LicenseRef-Undeclared
"""Every view and dialog by axe-core (WCAG 2.2 AA and its best practices): no violation, in light, dark and at
390 px, and nothing is wider than the screen. Run by tests/console/run --full."""

import os

import pytest
from harness import q
from test_console import HOSTILE, INDEX, ORIGIN, VIEWS, elsewhere, there  # noqa: F401 (fixtures)

LOOKS = [("light", False, 1280), ("dark", True, 1280), ("phone", False, 390), ("phone dark", True, 390)]
DIALOGS = [
    ("entries", "Register a sitemap"), ("entries", "Change"), ("entries", "Remove"), ("sites", "Add a site"), ("sites", "Add an index"),
    ("index/1", "Replace from a file"), ("index/1", "Restore"), ("index/1", "Freeze"), ("sources", "Scan now"),
    ("change/{list}", "Undo"), ("access", "Revoke"), ("access", "New token"), ("sources", "Add a source"),
]


@pytest.fixture(scope="module")
def axe():
    with open(os.environ["AXE"], encoding="utf-8") as file:
        return file.read()


def verify(console, axe, where):
    """axe's findings, and whether the page is wider than the screen."""
    console.driver.execute_script(axe)
    found = console.driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations), (e) => done([String(e)]));")
    told = [f"{where}: {v['id']}: {n['html'][:160]}: {n['failureSummary']}" for v in found for n in v["nodes"]]
    assert told == []
    wide, screen = console.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen, f"{where} is {wide} px wide"


@pytest.mark.parametrize("look, dark, width", LOOKS, ids=[look for look, _, _ in LOOKS])
def test_no_violation(console, server, axe, look, dark, width):
    console.media(dark, width)
    console.driver.get("about:blank")
    console.driver.get(console.base)
    console.one("[name=token]")
    verify(console, axe, f"{look}: sign-in")
    console.open("overview", server.tokens["boss"])
    entry = server.api("GET", f"/v1/sitemaps?loc={q(ORIGIN + '/shop/')}").json()["sitemaps"][0]
    for view in VIEWS + ("entry/" + entry["id"], f"entries?index={q(INDEX)}&warned=1", "entries?text=%2Fnone", "change/0", "nowhere", "crawler/" + q(HOSTILE)):
        console.go(view)
        verify(console, axe, f"{look}: {view}")
    changed = server.api("GET", "/v1/history?kind=list").json()["changes"][0]["revision"]
    for view, opener in DIALOGS:
        console.go(view.replace("{list}", str(changed)))
        console.press(opener)
        console.one("dialog[open]")
        verify(console, axe, f"{look}: {view}: {opener}")
        submit = next(b for b in console.all("dialog button[type=submit]"))
        if opener in ("Register a sitemap", "Add a site", "Undo"):
            submit.click()  # refused, or tried
            console.wait(lambda: console.text("dialog [role=alert]") + console.text("dialog [role=status]"), "the dialog's message")
            verify(console, axe, f"{look}: {view}: {opener}: told")
        console.press("Cancel", "dialog")


@pytest.mark.parametrize("look, dark, width", LOOKS, ids=[look for look, _, _ in LOOKS])
def test_no_violation_of_what_is_elsewhere(there, elsewhere, axe, look, dark, width):  # noqa: F811
    there.open("overview", elsewhere.token)
    there.media(dark, width)
    for view in ("overview", "sources", "checks", "checks?source=shop&state=gone", "problems", "sites"):
        there.go(view)
        verify(there, axe, f"{look}: {view}")
