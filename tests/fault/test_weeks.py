# SPDX-License-Identifier: LicenseRef-Undeclared
"""Weeks of a remote source in seconds: an origin whose sitemaps behave as those of WordPress, Yoast, Shopify, Next.js and a bucket do,
and a clock that is set ahead. Also: a server killed in mid-poll, and a clock that is set back."""

import email.utils
import re
import signal
import threading
import time

import pytest

from harness import Clock, ask, eventually
from origin import Origin, answer, index, urlset

HOUR, DAY = 3600, 86400


class World:
    """A site that is the origin's, a source that mirrors its list, and a clock for both."""

    def __init__(self, start, folder, origin, **more):
        self.clock, self.origin, self.ahead = Clock(str(folder)), origin, 0
        self.base = f"http://{origin.address}:{origin.port}"
        self.list, self.files, self.headers, self.made = {}, {}, {}, []
        self.lock = threading.Lock()  # an answer is of one moment: its Date, and the dates that are made for it
        self.laid = threading.Event()  # all that the first list names; until then nobody is answered
        origin.answers = self
        settings = "".join(f"{key} = {value}\n" for key, value in more.items())
        self.server = start(
            sites=(),
            env=self.clock.environment,
            config=f"[fetch]\nallow_address = 127.0.0.0/8\nrate = 1000\n[site \"m\"]\norigin = {self.base}\nindex = /sitemap_index.xml\n"
            f'[source "shop"]\nupstream = {self.base}/list.xml\n{settings}',
        )

    def now(self):
        return time.time() + self.ahead

    def iso(self, seconds=None):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now() if seconds is None else seconds))

    def get(self, path, _):
        """What the origin answers, as a dict's get."""
        self.laid.wait(300)
        with self.lock:
            made = self.make(path)
            self.made.append(path)
        return made

    def make(self, path):
        dated = {"Date": email.utils.formatdate(self.now(), usegmt=True)}
        if path == "/list.xml":
            members = [(self.base + p, claim() if callable(claim) else claim) for p, claim in self.list.items()]
            return answer(200, index(*members), **dated)
        made = self.files.get(path)
        if made is None:
            return answer(404, **dated)
        body, headers = made() if callable(made) else made, self.headers.get(path, {})
        etag = headers.get("ETag")
        if etag and f"If-None-Match: {etag}" in self.origin.asked[-1]:
            return answer(304, ETag=etag, **dated)
        return answer(200, body, **headers, **dated)

    def set_clock(self, seconds):
        with self.lock:
            self.ahead += seconds
            self.clock.set(int(self.ahead))

    def step(self, seconds, listed=True):
        """The clock is set; a reload makes the server look at it at once, where it would within a second."""
        self.laid.set()
        self.set_clock(seconds)
        lists = len(self.polls("/list.xml"))
        self.server.process.send_signal(signal.SIGHUP)
        if listed:
            eventually(lambda: len(self.polls("/list.xml")) > lists, "the list is read")
        self.quiet()

    def quiet(self):
        """Until nothing more is asked for, and all that was has its answer."""
        while True:
            asked = len(self.origin.asked)
            time.sleep(0.05)
            if asked == len(self.origin.asked) == len(self.made):
                return

    def dates(self):
        """What the index says: the path and the date of each member."""
        body = ask(self.server.public, "GET", "/sitemap_index.xml", host=f"{self.origin.address}:{self.origin.port}").body.decode()
        return {
            path: date or None
            for path, date in re.findall(r"<loc>" + re.escape(self.base) + r"([^<]*)</loc>(?:<lastmod>([^<]*)</lastmod>)?", body.replace("&amp;", "&"))
        }

    def polls(self, path, since=0):
        return [head for head in self.origin.asked[since:] if head.split(" ")[1] == path]


@pytest.fixture
def world(start, tmp_path):
    with Origin() as origin:
        yield lambda **more: World(start, tmp_path, origin, **more)


def test_two_weeks(world):
    w = world()
    pages = lambda *names, date=None: urlset(*(f"{w.base}/{name}" for name in names), lastmod=date)
    # WordPress: a list without dates. Yoast: with dates, which fall when the newest post goes. Next.js: stamped with each answer. A bucket:
    # never another, with validators. Shopify: the URL itself moves. And one that is empty for a week.
    posts = [w.iso(w.now() - 9 * DAY), w.iso(w.now() - DAY)]
    w.files["/wp.xml"] = lambda: b"".join(
        [pages()[:-10]] + [pages(f"p{i}", date=date).partition(b"0.9\">")[2][:-10] for i, date in enumerate(posts)] + [b"</urlset>"]
    )
    yoast = {"names": ["y1", "y2"], "claim": w.iso(w.now() - 2 * DAY)}
    w.files["/yoast.xml"] = lambda: pages(*yoast["names"])
    w.files["/next.xml"] = lambda: pages("n1", "n2", date=w.iso())
    w.files["/bucket.xml"] = pages("b1")
    w.headers["/bucket.xml"] = {"ETag": '"b"', "Last-Modified": email.utils.formatdate(w.now() - 30 * DAY, usegmt=True)}
    w.files["/shop_1.xml?from=1&to=2"] = w.files["/shop_1.xml?from=1&to=3"] = pages("s1")
    w.files["/tags.xml"] = pages("t1")
    w.list = {path: None for path in ("/wp.xml", "/bucket.xml", "/next.xml", "/tags.xml")}
    w.list["/yoast.xml"] = lambda: yoast["claim"]
    w.list["/shop_1.xml?from=1&amp;to=2"] = None
    w.step(0, listed=False)
    eventually(lambda: len({head.split(" ")[1] for head in w.origin.asked}) == 7, "all are read")
    w.step(0, listed=False)  # what was found is handed over now, not in ten seconds
    eventually(lambda: w.dates()["/bucket.xml"] and w.dates()["/wp.xml"], "what was found is handed over")
    seen = {path: [] for path in w.dates()}
    assert len(seen) == 6
    tags_left = None
    for hour in range(3, 14 * 24, 3):
        day, of_day = divmod(hour, 24)
        if of_day == 12:
            posts.append(w.iso())
        if hour == 5 * 24:
            yoast.update(names=["y1"], claim=w.iso(w.now() - 40 * DAY))
        if hour == 6 * 24:
            w.list["/shop_1.xml?from=1&amp;to=3"] = w.list.pop("/shop_1.xml?from=1&amp;to=2")
        if hour == 2 * 24:
            del w.files["/tags.xml"]
        if hour == 9 * 24:
            w.files["/tags.xml"] = pages("t1", "t2")
        w.step(3 * HOUR)
        dates = w.dates()
        for path, date in dates.items():
            seen.setdefault(path, []).append(date)
        if "/tags.xml" not in dates and tags_left is None:
            tags_left = day
    w.step(HOUR)
    w.step(HOUR)
    dates = w.dates()
    # Never backwards, whatever is claimed.
    for path, history in seen.items():
        dated = [date for date in history if date]
        assert dated == sorted(dated), (path, dated)
    # Each post is seen within hours, and dated by itself.
    assert len(set(filter(None, seen["/wp.xml"]))) >= 12
    assert dates["/wp.xml"] == posts[-1]
    # One page less is a change, of the moment it was seen.
    assert len(set(seen["/yoast.xml"])) == 2 and dates["/yoast.xml"] > w.iso(w.now() - 10 * DAY)
    # A build stamp is not a date.
    assert len(set(seen["/next.xml"])) == 1
    # Never another: dated by its Last-Modified, asked for what is new, and once a week as a whole.
    assert set(seen["/bucket.xml"]) == {time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(email.utils.parsedate_to_datetime(w.headers["/bucket.xml"]["Last-Modified"]).timestamp()))}
    bucket = w.polls("/bucket.xml")
    whole = [head for head in bucket if "If-None-Match" not in head]
    assert 2 <= len(whole) <= 3, len(whole)
    assert 12 <= len(bucket) <= 30, len(bucket)
    # A moved URL is another member.
    assert "/shop_1.xml?from=1&to=3" in dates and "/shop_1.xml?from=1&to=2" not in dates
    # Gone for three days it left, and came back.
    assert tags_left is not None and 5 <= tags_left <= 7, tags_left
    assert "/tags.xml" in dates


def test_a_kill_and_a_clock_set_back(world):
    w = world(poll="1h")
    for i in range(40):
        w.files[f"/{i}.xml"] = urlset(f"{w.base}/page{i}", lastmod="2025-01-01")
        w.list[f"/{i}.xml"] = None
    w.step(0, listed=False)
    eventually(lambda: len(w.origin.asked) >= 20, "it polls")
    w.server.kill()
    w.server.start()
    w.quiet()
    w.step(0, listed=False)  # what was found is handed over now, not in ten seconds
    eventually(lambda: set(w.dates().values()) == {"2025-01-01"}, "all are read in the end")
    w.server.restart()
    asked = len(w.origin.asked)
    w.step(30, listed=False)
    assert [head for head in w.origin.asked[asked:] if "/list.xml" not in head] == [], "before its time"
    # A year back: what was due in hours is due in hours, not in a year.
    w.step(-365 * DAY, listed=False)
    asked = len(w.origin.asked)
    w.step(2 * DAY)
    eventually(lambda: len({head.split(" ")[1] for head in w.origin.asked[asked:]}) == 41, "all are due again")


def test_a_clock_that_jumps_before_a_poll_is_kept(world):
    """What a poll found is handed over within seconds. A sitemap that is due again before that, as after a sleep of the machine, waits for
    it: polled from what was known before, it would be taken for new, and the stamp of its build for a date."""
    w = world()
    w.files["/next.xml"] = lambda: urlset(f"{w.base}/n1", f"{w.base}/n2", lastmod=w.iso())
    w.list = {"/next.xml": None}
    w.step(0, listed=False)
    first = eventually(lambda: w.dates().get("/next.xml"), "it is dated")
    for _ in range(12):
        made = w.made.count("/next.xml")
        w.set_clock(2 * DAY)
        # Not once it is asked for: an answer that is half of one day and half of the next does not look like a build's.
        eventually(lambda: w.made.count("/next.xml") > made, "it is due again", longest_pause=0.01)
    w.step(0, listed=False)
    w.step(2 * DAY)
    w.step(2 * DAY)
    assert w.dates()["/next.xml"] == first
