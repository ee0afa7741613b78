# SPDX-License-Identifier: LicenseRef-Undeclared
"""A urlset and its index under random changes and a clock that jumps. Each page equals, byte for byte, the page that a naive
renderer makes of a model's rows at the positions of an export; its tag, and its date in the index, change exactly when its
bytes do. A page of news has 1,000 rows at most, so a few thousand rows make several pages. The test counts that there were
several pages, emptied pages, and the other cases that it is for."""

import collections
import email.utils
import itertools
import json
import random
import sqlite3
import time

import pytest

from harness import INDEX, ORIGIN, Clock, escape, eventually, gunzip, q, render

URLSET = ORIGIN + "/news.xml"
ROWS = 1000  # of a page of news
MOST_PAGES = 5
COARSE = 5  # CLOCK_REALTIME_COARSE, as the server's clock.c has it: a few milliseconds behind
EXPIRES, JUMP = 3900, 600  # seconds; no row's age is ever near the limit
FRAME = (b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
         b' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n')


def render_urls(rows):
    parts = [FRAME]
    for loc, (lastmod, image) in rows:
        dated = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        shown = f"<image:image><image:loc>{escape(image)}</image:loc></image:image>" if image else ""
        parts.append(f"<url><loc>{escape(loc)}</loc>{dated}{shown}</url>\n".encode())
    return b"".join(parts + [b"</urlset>\n"])


def page_of(position):
    """Positions are dealt by 50,000 a page, of which one of news fills 1,000."""
    return position // 50000 + 1


def page_url(number):
    return URLSET if number == 1 else f"{ORIGIN}/news-{number}.xml"


class Model:
    """The rows and entries as they must be, and what was served before."""

    def __init__(self, server, folder, clock, seed):
        self.server, self.folder, self.clock, self.chance, self.ahead = server, folder, clock, random.Random(seed), 0
        self.rows, self.born, self.others, self.filed = {}, {}, {}, {}  # filed: the rows that a file has
        self.dates, self.served, self.pages = {}, {}, {}  # pages: {loc: number of its page}
        self.max_pages, self.limits, self.reached = 3, itertools.cycle([MOST_PAGES, 1, 4]), collections.Counter()
        self.undoable = None
        self.began = self.now()

    def now(self):
        return int(time.clock_gettime(COARSE)) + self.ahead

    def row(self, loc):
        """One that was registered long ago keeps a date of its own: without it would be too old."""
        lastmod = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now() + 80000 - self.chance.randrange(40)))
        return (lastmod if self.born.get(loc, self.ahead) < self.ahead else self.chance.choice([None, lastmod]), self.chance.choice([None, None, "https://cdn.example.net/1.png?a=1&b='2'"]))

    def names(self, count):
        return [f"{ORIGIN}/{self.chance.choice('abc')}/{self.chance.randrange(4000)}?x=1&y='" for _ in range(count)]

    def is_full(self, rows):
        return len(rows) > ROWS * self.max_pages

    def refused(self, reply):
        assert reply.status == 422 and "urlset-full" in reply.body.decode(), reply
        self.reached["full"] += 1

    def body(self, rows):
        return [{"loc": loc, "lastmod": lastmod, "images": [image] if image else None} for loc, (lastmod, image) in rows.items()]

    def take(self, rows, reply):
        """They are as registered; the model's state before is what an undo brings back."""
        self.undoable = (dict(self.rows), dict(self.born), reply.json().get("revision"))
        for loc in rows:
            self.born.setdefault(loc, self.ahead)
        self.rows.update(rows)

    def forget(self, gone):
        for loc in gone:
            del self.rows[loc], self.born[loc]

    # What may happen.

    def add(self, count):
        rows = {loc: self.row(loc) for loc in self.names(count)}
        reply = self.server.api("POST", "/v1/urls?urlset=" + q(URLSET), self.body(rows))
        if self.is_full(set(self.rows) | set(rows)):
            self.refused(reply)
        else:
            assert reply.status == 200, reply
            self.take(rows, reply)

    def one(self):
        self.add(1)

    def some(self):
        self.add(200)

    def many(self):
        self.add(1200)

    def fill(self):
        """To the brim, and one more."""
        self.add(max(1, ROWS * self.max_pages - len(self.rows) - 300))
        self.add(900)

    def put(self, rows):
        reply = self.server.api("PUT", f"/v1/urls?urlset={q(URLSET)}&max_removed=100000", self.body(rows))
        if self.is_full(set(self.filed) | set(rows)):
            self.refused(reply)
            return
        assert reply.status == 200, reply
        self.take(rows, reply)
        self.forget([loc for loc in self.rows if loc not in rows and loc not in self.filed])

    def own(self):
        return sorted(set(self.rows) - set(self.filed))

    def replace(self):
        """Another order, a few gone, a few others, a few new."""
        kept = self.chance.sample(self.own(), len(self.own()) * self.chance.choice([0, 3, 9, 10]) // 10)
        rows = {loc: self.rows[loc] if self.chance.random() < 0.97 else self.row(loc) for loc in kept}
        rows.update({loc: self.row(loc) for loc in self.names(20)})
        self.put(rows)

    def empty(self):
        """All but one page's; the file's stay."""
        page = self.chance.choice(sorted({self.pages[loc] for loc in self.own()}) or [1])
        self.put({loc: self.rows[loc] for loc in self.own() if self.pages[loc] != page})

    def remove(self):
        for loc in self.chance.sample(self.own(), min(len(self.own()), 3)):
            reply = self.server.api("DELETE", f"/v1/urls?urlset={q(URLSET)}&loc={q(loc)}")
            assert reply.status in (200, 204), reply
            self.forget([loc])
        self.undoable = None

    def undo(self):
        if self.undoable is None or self.undoable[2] is None:
            return
        rows, born, revision = self.undoable
        reply = self.server.api("POST", f"/v1/history/{revision}/undo?max_removed=100000")
        assert reply.status == 200 or reply.json()["code"] == "unchanged", reply
        self.rows, self.born, self.undoable = rows, born, None
        self.reached["undo"] += 1

    def limit(self):
        """Other max_pages: never fewer than there are."""
        pages, last = next(self.limits), max(self.pages.values(), default=0)
        reply = self.server.api("PATCH", "/v1/urlsets/" + self.server.urlset, {"max_pages": pages})
        if pages < last:
            self.refused(reply)
        else:
            assert reply.status == 200, reply
            self.reached["less pages" if pages < self.max_pages else "more pages"] += pages != self.max_pages
            self.max_pages = pages
        self.undoable = None

    def split(self, gone=8):
        """The file says something else: so many tenths of it gone, a few changed, 1,400 new, another order. In steps of 1,000."""
        before = dict(self.rows), dict(self.born)
        kept = self.chance.sample(sorted(self.filed), len(self.filed) * (10 - gone) // 10)
        rows = {loc: self.filed[loc] if self.chance.random() < 0.97 else self.dated(loc) for loc in kept}
        room = ROWS * self.max_pages - len(set(self.rows) - set(self.filed)) - len(rows)
        new = [f"{ORIGIN}/f/{self.chance.randrange(100000)}?'" for _ in range(min(room, 1400))]
        rows.update({loc: self.dated(loc) for loc in new})
        if not rows:
            return None
        self.server.stop()
        part = self.folder / "news.part"
        part.write_bytes(render_urls(rows.items()))
        part.rename(self.folder / "news.xml")
        scan = lambda: self.server.cli("scan", "shop", "--config", self.server.folder / "sitemapd.conf", "--max-removed", "100000",
                                       env={**self.clock.environment, "SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "4ms"})  # a step has a quarter
        eventually(lambda: "0 files with a problem" in scan().out, "it is taken, where a machine is slow by more than one scan", 60)
        self.server.start()
        self.forget(self.filed)
        self.filed = rows
        self.rows.update(rows)
        self.born.update({loc: self.ahead for loc in rows})
        self.undoable = None
        last = self.server.api("GET", "/v1/history?kind=split&limit=1").json()["changes"][0]
        self.reached["split"] += 1
        with sqlite3.connect(f"file:{self.server.database}?mode=ro", uri=True) as db:
            self.reached["steps"] += db.execute("SELECT part_of FROM history WHERE revision = ?", (last["revision"],)).fetchone()[0] != 0
        return before, last["revision"]

    def dated(self, loc):
        """A row of the file, none of which is ever too old."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now() + 80000 - self.chance.randrange(40))), self.chance.choice([None, "https://cdn.example.net/f.png"])

    def undo_split(self):
        """All steps of it; thawed, its source says the same again."""
        done = self.split(gone=0)
        if done is None:
            return
        self.check()
        (rows, born), revision = done
        after = self.rows, self.born
        assert self.server.cli("freeze", URLSET).code == 0
        reply = self.server.api("POST", f"/v1/history/{revision}/undo?max_removed=100000")
        assert reply.status == 200, reply
        self.rows, self.born = rows, born
        self.check()
        self.reached["group undone"] += 1
        assert self.server.cli("thaw", URLSET).code == 0
        self.rows, self.born = after

    def entry(self):
        loc, date = f"{ORIGIN}/own/{self.chance.randrange(9)}.xml", f"2026-01-{self.chance.randrange(1, 29):02d}"
        if loc in self.others and self.chance.random() < 0.5:
            assert self.server.api("DELETE", "/v1/sitemaps?loc=" + q(loc)).status in (200, 204)
            del self.others[loc]
        else:
            assert self.server.register(loc, lastmod=date).status in (200, 201)
            self.others[loc] = date
        self.undoable = None

    def jump(self):
        """Rows leave by themselves; those that say a date live a day longer here."""
        self.ahead += JUMP * self.chance.randrange(1, 5)
        self.clock.set(self.ahead)
        self.undoable = None

    def restart(self):
        self.server.restart()

    # What must be so then.

    def expire(self):
        self.forget([loc for loc in self.rows if not self.rows[loc][0] and self.ahead - self.born[loc] > EXPIRES])

    def listed(self):
        """{loc: (position, lastmod, image)} of the urlset; {loc: (position, lastmod)} of the index."""
        lines = self.server.api("GET", "/v1/urls?urlset=" + q(URLSET), headers=[("Accept", "application/x-ndjson")]).body.splitlines()
        urls = {l["loc"]: (l["position"], l.get("lastmod"), (l.get("images") or [None])[0]) for l in map(json.loads, lines)}
        index = {l["loc"]: (l["position"], l.get("lastmod")) for l in self.server.cli("export", "--index", INDEX).lines()}
        return urls, index

    def same(self, path, wanted):
        """The bytes of a page in each of its forms, and whether they are others than before."""
        plain, encoded, file = self.server.get(path), self.server.get(path, {"Accept-Encoding": "gzip"}), self.server.get(path + ".gz")
        assert plain.status == encoded.status == file.status == 200, (path, plain)
        assert plain.body == wanted, path
        assert gunzip(encoded.body) == wanted and gunzip(file.body) == wanted, path
        now = [(reply.body, reply["ETag"]) for reply in (plain, encoded, file)]
        before, dated = self.served.get(path, ([(b"", ""), (b"", ""), (b"", "")], ""))
        for (had_body, had_tag), (body, tag) in zip(before, now):
            assert (had_body != body) == (had_tag != tag), (path, had_tag, tag)
        assert before[0][0] != wanted or dated == plain["Last-Modified"], (path, dated, plain["Last-Modified"])
        seconds = email.utils.parsedate_to_datetime(plain["Last-Modified"]).timestamp()
        assert before[0][0] == wanted or self.began <= seconds <= self.now(), (path, plain["Last-Modified"])
        self.served[path] = (now, plain["Last-Modified"])
        return before[0][0] != wanted

    def is_published(self):
        """What nobody waits for, such as an expiry, is in the catalogue before it is in a page."""
        with sqlite3.connect(f"file:{self.server.database}?mode=ro", uri=True) as db:
            return self.server.metrics()["sitemapd_catalogue_revision"] == db.execute("SELECT revision FROM catalogue").fetchone()[0]

    def check(self):
        self.expire()
        eventually(lambda: {loc: result[1:] for loc, result in self.listed()[0].items()} == self.rows, "the rows are those of the model", 60)
        eventually(self.is_published, "the pages have all that the catalogue has")
        urls, index = self.listed()
        self.pages = {loc: page_of(result[0]) for loc, result in urls.items()}
        numbers = set(self.pages.values())
        self.reached[f"{len(numbers)} pages"] += 1
        entries = {page_url(n): index.get(page_url(n), (None, None))[1] for n in numbers}
        entries.update(self.others)
        assert {loc: result[1] for loc, result in index.items()} == entries
        for number in range(1, MOST_PAGES + 1):
            url, path = page_url(number), page_url(number).removeprefix(ORIGIN)
            rows = sorted((result[0], loc) for loc, result in urls.items() if page_of(result[0]) == number)
            assert len(rows) <= ROWS
            if not rows:
                assert self.server.get(path).status == (200 if number == 1 and not urls else 404), path
                self.reached["emptied"] += self.served.pop(path, None) is not None and len(numbers) > 0
                self.reached["emptied below others"] += url in self.dates and number < max(numbers, default=0)
                self.dates.pop(url, None)
                continue
            changed = self.same(path, render_urls([(loc, self.rows[loc]) for _, loc in rows]))
            if changed:
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began)), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now()))
                assert at[0] <= index[url][1] <= at[1], (url, at, index[url])
            else:
                assert index[url][1] == self.dates[url], url
            self.dates[url] = index[url][1]
        self.same("/sitemap_index.xml", render([(loc, result[1]) for loc, result in sorted(index.items(), key=lambda item: item[1][0])]))
        self.began = self.now()


STEPS = [(Model.one, 4), (Model.some, 3), (Model.many, 1), (Model.fill, 1), (Model.replace, 2), (Model.empty, 2), (Model.remove, 3),
         (Model.undo, 3), (Model.limit, 2), (Model.entry, 2), (Model.jump, 3), (Model.restart, 1), (Model.split, 2), (Model.undo_split, 1)]
REACHED = ["1 pages", "2 pages", "3 pages", "emptied", "emptied below others", "full", "undo", "less pages", "more pages", "split", "steps", "group undone"]


@pytest.mark.parametrize("seed", [1, 2])
def test_pages_are_what_a_naive_renderer_makes(start, tmp_path, seed):
    clock, folder = Clock(str(tmp_path)), tmp_path / "site"
    folder.mkdir()
    server = start(sites=(), env=clock.environment, config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nsplit = yes\n'))
    model = Model(server, folder, clock, seed)
    made = server.api("POST", "/v1/urlsets", {"url": URLSET, "with": ["news", "images"], "expires": f"{EXPIRES // 60}m", "max_pages": model.max_pages})
    assert made.status == 201, made
    server.urlset = made.json()["id"]
    model.entry()
    always = [Model.one, Model.many, Model.many, Model.limit, Model.empty, Model.undo, Model.limit, Model.split, Model.limit,
              Model.undo_split, Model.fill, Model.replace, Model.undo]
    for step in always + model.chance.choices(*zip(*STEPS), k=7):
        step(model)
        model.check()
    assert not [name for name in REACHED if not model.reached[name]], model.reached
    assert server.cli("check").code == 0
