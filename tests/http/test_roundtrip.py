# SPDX-License-Identifier: LicenseRef-Undeclared
"""Export and import: the copy serves the same bytes under the same tags, page by page, free positions
and all; and a second run of the same is not a change."""

import gzip
import json
import random

import pytest

from harness import HEAD, INDEX, ORIGIN, PAGE_ENTRIES, Server, eventually, gunzip, locs, q, render_export, sitemapd

SHOP = "https://shop.example.org"
CDN = "https://cdn.example.net"
INDEXES = {  # url: pattern
    INDEX: None,
    f"{ORIGIN}/deep/index.xml": "{stem}_p{n}{suffix}",
    f"{ORIGIN}/empty/index.xml": None,
    f"{SHOP}/sitemap_index.xml": None,
    f"{SHOP}/de/index.xml": None,
}
GZIP = {"Accept-Encoding": "gzip"}


def done(command):
    assert command.code == 0, command
    return command


def lay_out(database):
    """The sites and indexes, which an export of entries does not hold."""
    done(sitemapd("site", "add", ORIGIN, "--cross-host", "cdn.example.net", database=database))
    done(sitemapd("site", "add", SHOP, database=database))
    for url, pattern in INDEXES.items():
        if not url.endswith("/sitemap_index.xml"):
            done(sitemapd("index", "add", url, *(["--pattern", pattern] if pattern else []), database=database))


def load(database, rows, *args):
    return sitemapd("import", *args, "-", input="".join(json.dumps(r) + "\n" for r in rows), database=database)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Two sites, five indexes, several pages, free positions at their beginning, middle and end."""
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("original")
    database = str(folder / "catalogue.db")
    lay_out(database)
    dates = [None, "2026-01-31", "2026-01-31T10:20:30Z", "2020", "2026-01-31T10:20:30.123456789+14:00"]
    row = lambda loc, **more: {"loc": loc, "lastmod": chance.choice(dates), "digest": chance.choice([None, f"d{chance.random()}"]), **more}
    rows = [row(f"{ORIGIN}/s/{i}.xml?a=1&b='{i}'") for i in range(1700)]
    rows += [row(f"{ORIGIN}/deep/{p}.xml", position=p) for p in chance.sample(range(3 * PAGE_ENTRIES), 300)]
    rows += [row(f"{CDN}/{i}.xml", index=INDEX) for i in range(20)]
    rows += [row(f"{SHOP}/{i}/grüße.xml") for i in range(600)] + [row(f"{SHOP}/de/{i}.xml") for i in range(3)]
    done(load(database, rows))
    done(load(database, [row(f"{ORIGIN}/feed/{i}.xml") for i in range(40)], "--source", "feeds"))
    gone = [r["loc"] for r in rows[:1700:7]] + [f"{SHOP}/{i}/grüße.xml" for i in (0, 1, 599)]
    server = Server(folder, database=database, sites=()).start()
    for loc in gone:
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204
    yield server
    try:
        server.stop()
    finally:
        server.kill()


def pages_of(server):
    """Every page that robots.txt names, in all its forms: url → (body, tags, dates apart)."""
    found = {}
    for site in (ORIGIN, SHOP):
        host = site.split("://")[1]
        robots = server.get("/robots.txt", host=host)
        found[f"{site}/robots.txt"] = robots.body, robots["ETag"]
        for line in robots.body.decode().splitlines():
            url = line.split(": ", 1)[1]
            path = url[len(site) :]
            plain, packed, file = server.get(path, host=host), server.get(path, GZIP, host=host), server.get(path + ".gz", host=host)
            assert plain.status == packed.status == file.status == 200, url
            assert plain.body == gunzip(packed.body) == gunzip(file.body)
            found[url] = [(r.body, r["ETag"]) for r in (plain, packed, file)]
    return found


def exported(database, *args):
    return done(sitemapd("export", *args, database=database))


def shown(lines):
    """What an import brings over: all but ids and the times of this catalogue."""
    return [{k: v for k, v in l.items() if k not in ("id", "registered_at", "changed_at")} for l in lines]


def copy_of(tmp_path, text, *args, name="copy"):
    folder = tmp_path / name
    folder.mkdir()
    database = str(folder / "catalogue.db")
    lay_out(database)
    done(sitemapd("import", *args, "-", input=text, database=database))
    return folder, database


@pytest.mark.parametrize("args", [(), ("--replace",)], ids=["into an empty catalogue", "replace"])
def test_the_copy_serves_the_same_bytes_and_tags(original, start, tmp_path, args):
    text = exported(original.database).out
    folder, database = copy_of(tmp_path, text, *args)
    copy = start(folder=folder, database=database, sites=())
    wanted, found = pages_of(original), pages_of(copy)
    assert sorted(found) == sorted(wanted) and len(wanted) == 8
    for url in wanted:
        assert found[url] == wanted[url], url
    assert shown(exported(database).lines()) == shown(exported(original.database).lines())
    assert done(copy.cli("check")).code == 0
    # What is free is free there as well: the next entry comes to the same place.
    for server in (original, copy):
        entry = server.register(f"{ORIGIN}/next.xml").json()
        assert entry["created"] == 1
    assert pages_of(copy)[INDEX] == pages_of(original)[INDEX]
    for server in (original, copy):
        assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/next.xml").status == 204
    assert pages_of(original) == wanted


def test_a_second_run_is_no_change(original, start, tmp_path):
    text = exported(original.database).out
    folder, database = copy_of(tmp_path, text)
    copy = start(folder=folder, database=database, sites=())
    state = copy.metrics()["sitemapd_catalogue_revision"], pages_of(copy), exported(database).out
    for args in ((), ("--replace",), ("--skip-invalid",)):
        result = done(sitemapd("import", *args, "-", input=text, database=database))
        assert "unchanged" in result.out + result.err
    # Lines in another order are the same catalogue.
    lines = text.splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    for args in ((), ("--replace",)):
        done(sitemapd("import", *args, "-", input="".join(lines), database=database))
    # And it may be packed.
    done(sitemapd("import", "--replace", "-", input=gzip.compress(text.encode()), database=database))
    assert (copy.metrics()["sitemapd_catalogue_revision"], pages_of(copy), exported(database).out) == state


def test_replace_makes_another_catalogue_the_same(original, start, tmp_path):
    """Entries that are to go, that stand elsewhere, in other indexes, with other dates: after it, the
    same bytes."""
    chance = random.Random(9)
    lines = exported(original.database).lines()
    folder = tmp_path / "other"
    folder.mkdir()
    database = str(folder / "catalogue.db")
    lay_out(database)
    mixed = [{"loc": l["loc"], "lastmod": "2025-12-31", "index": l["index"]} for l in lines]
    chance.shuffle(mixed)
    mixed = mixed[: len(mixed) * 4 // 5] + [{"loc": f"{ORIGIN}/old/{i}.xml"} for i in range(200)] + [{"loc": f"{SHOP}/old/{i}.xml"} for i in range(50)]
    for row in mixed[::17]:
        if row["loc"].startswith(f"{ORIGIN}/deep/"):
            row["index"] = INDEX
    done(load(database, mixed))
    copy = start(folder=folder, database=database, sites=())
    assert copy.get("/sitemap_index.xml", host="www.example.com").status == 200
    text = exported(original.database).out
    for _ in range(2):
        done(sitemapd("import", "--replace", "--max-removed", "1000", "-", input=text, database=database))
        # Who owns an entry that is there already is not changed by a list.
        of = lambda path: [{**l, "source": None} for l in shown(exported(path).lines())]
        assert of(database) == of(original.database)
    eventually(lambda: pages_of(copy) == pages_of(original), "the other process's import is served")
    assert done(copy.cli("check")).code == 0


def test_one_index_at_a_time(original, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    database = str(folder / "catalogue.db")
    lay_out(database)
    whole = []
    for index in INDEXES:
        part = exported(original.database, "--index", index)
        assert {l["index"] for l in part.lines()} <= {index}
        whole += part.lines()
        done(sitemapd("import", "--index", index, "-", input=part.out, database=database))
        for args in ((), ("--index", index)):
            again = exported(database, "--index", index)
            assert shown(again.lines()) == shown(part.lines())
    assert sorted(l["loc"] for l in whole) == sorted(l["loc"] for l in exported(original.database).lines())


def test_export_is_what_is_served(original):
    for index in INDEXES:
        lines = exported(original.database, "--index", index).lines()
        assert [l["position"] for l in lines] == sorted({l["position"] for l in lines})
        site = SHOP if index.startswith(SHOP) else ORIGIN
        pages = {url: forms for url, forms in pages_of(original).items() if url.startswith(index.removesuffix(".xml")) and not url.endswith("robots.txt")}
        assert len(pages) == len({l["position"] // PAGE_ENTRIES for l in lines}), (index, site)
        for number in {l["position"] // PAGE_ENTRIES + 1 for l in lines}:
            wanted = render_export(lines, number)
            rendered = done(sitemapd("render", next(u for u, f in pages.items() if f[0][0] == wanted), database=original.database))
            assert rendered.raw_out == wanted and wanted.startswith(HEAD) and locs(wanted)


def test_who_owns_what_comes_along(original, start, tmp_path):
    """Or a pipeline's next replace would find that nothing in the copy is its own."""
    text = exported(original.database).out
    folder, database = copy_of(tmp_path, text)
    feeds = [l["loc"] for l in exported(database).lines() if l["source"] == "feeds"]
    assert len(feeds) == 40
    copy = start(folder=folder, database=database, sites=())
    reply = copy.replace(feeds[:-1], index=INDEX, source="feeds")
    assert reply.status == 200 and (reply.json()["removed"], reply.json()["unchanged"]) == (1, 39), reply
    _, taken = copy_of(tmp_path, text, "--source", "new", name="taken")
    assert {l["source"] for l in exported(taken).lines()} == {"new"}
    for bad, code in (("a b", "name-malformed"), (7, "wrong-type")):
        refused = load(taken, [{"loc": f"{ORIGIN}/bad.xml", "source": bad}])
        assert refused.code == 1 and code in refused.err, refused
    done(load(taken, [{"loc": f"{ORIGIN}/x.xml", "source": None}, {"loc": f"{ORIGIN}/y.xml"}]))
    assert [l["source"] for l in exported(taken).lines() if l["loc"][-6:] in ("/x.xml", "/y.xml")] == ["cli", "cli"]


def test_skip_invalid_keeps_the_places_of_the_rest(original, tmp_path):
    lines = exported(original.database, "--index", INDEX).out.splitlines(keepends=True)
    broken = list(lines)
    broken[5] = '{"loc": "relative"}\n'
    broken[9] = "{\n"
    folder = tmp_path / "broken"
    folder.mkdir()
    database = str(folder / "catalogue.db")
    lay_out(database)
    assert sitemapd("import", "-", input="".join(broken), database=database).code == 1
    assert exported(database).out == "", "all or nothing"
    result = sitemapd("import", "--skip-invalid", "-", input="".join(broken), database=database)
    assert "loc-relative" in result.err + result.out, result
    kept = [json.loads(l) for i, l in enumerate(lines) if i not in (5, 9)]
    assert shown(exported(database).lines()) == shown(kept)
