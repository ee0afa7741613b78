# SPDX-License-Identifier: LicenseRef-Undeclared
"""A day under a set clock: how often search engines are asked, and that a token is renewed."""

import time

import pytest

from engines import Google
from harness import ORIGIN, Clock, eventually

HOUR = 3600
INDEX = ORIGIN + "/sitemap_index.xml"


@pytest.fixture
def clock(tmp_path):
    return Clock(str(tmp_path))


def test_a_site_is_asked_about_four_times_a_day_and_once_for_a_submission(start, clock):
    with Google() as google:
        ahead = 0
        google.now = lambda: time.time() + ahead
        server = start(sites=(), env=clock.environment, config=f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n{google.config()}')
        assert server.register(ORIGIN + "/a.xml").status == 201
        site = lambda: server.api("GET", "/v1/engines/google/sitemaps").json()["sites"][0]
        eventually(lambda: site()["state"] == "ok", "it is asked at once")
        assert google.count("submit") == 1 and google.count("list") == 1
        google.sitemaps[INDEX].update(isPending=False, lastDownloaded="2026-11-27T12:00:00Z")
        for hour in range(1, 25):
            ahead = hour * HOUR
            clock.set(ahead)
            if hour in (2, 9, 16, 24):  # later than it is due: a look more or less makes no difference
                before = google.count("list")
                eventually(lambda before=before: google.count("list") > before and site()["state"] == "ok", f"it is due at hour {hour}")
        assert google.count("list") <= 6 and google.count("submit") == 1 and google.refused == []
        assert google.count("token") > 1, "a token ends after an hour"
        eventually(lambda: len(site()["days"]) == 2, "both days are kept")
        # A clock that is set back leaves no site unasked for years.
        ahead = 400 * 24 * HOUR
        clock.set(ahead)
        before = google.count("list")
        eventually(lambda: google.count("list") > before, "it is due")
        eventually(lambda: len(site()["days"]) == 1, "days that are too old go")
        ahead = 0
        clock.set(0)
        before = google.count("list")
        eventually(lambda: google.count("list") > before, "it is due at once")
