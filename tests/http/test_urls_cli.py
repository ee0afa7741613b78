# SPDX-License-Identifier: LicenseRef-Undeclared
"""Page URLs by the command line: what a shop and a news site do with them, and what is reported."""

import gzip
import json
import os
import shlex
import time

import pytest

from harness import ORIGIN, sitemapd

SHOP, PLAIN, NEWS = (f"{ORIGIN}/{name}.xml" for name in ("shop", "plain", "news"))
ROWS = [
    {"loc": ORIGIN + "/1", "lastmod": "2026-01-31T10:20:30Z", "images": ["https://cdn.example.net/1.jpg"], "alternates": {"de": ORIGIN + "/de/1"}},
    {"loc": ORIGIN + "/2", "alternates": {"de": ORIGIN + "/de/2"}},
    {"loc": ORIGIN + "/3", "images": ["https://cdn.example.net/3.jpg"]},
]


@pytest.fixture
def run(tmp_path):
    def run(*words, code=0):
        result = sitemapd(*words, database=str(tmp_path / "catalogue.db"))
        assert result.code == code, result
        return result

    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run("site", "add", ORIGIN)
    run("urlset", "add", SHOP, "--with", "images,alternates")
    run("urlset", "add", PLAIN, "--with", "images")
    run("urlset", "add", NEWS, "--with", "news")
    return run


def rows(run, urlset):
    return {row["loc"].removeprefix(ORIGIN): row for row in map(json.loads, run("url", "list", "--urlset", urlset, "--json").out.splitlines())}


def revision(run):
    return json.loads(run("history", "--limit", "1", "--json").out)["revision"]


def test_extensions_that_the_urlset_was_not_made_for(run, tmp_path):
    refused = run("import", "--urlset", PLAIN, tmp_path / "rows", code=1)
    assert "rows:1: https://www.example.com/1: has an extension that its urlset does not support (extension-foreign)" in refused.err
    assert "--drop-extensions drops" in refused.err and "2 of 3 entries rejected" in refused.err
    result = run("import", "--urlset", PLAIN, "--drop-extensions", tmp_path / "rows")
    assert "2 page URLs have extensions that the urlset does not support; they were dropped" in result.err and "3 created" in result.out
    kept = rows(run, PLAIN)
    assert [kept[loc].get("images") for loc in ("/1", "/2", "/3")] == [["https://cdn.example.net/1.jpg"], None, ["https://cdn.example.net/3.jpg"]]
    assert not any("alternates" in row for row in kept.values())
    assert "rows: read 3: 0 created, 0 updated, 3 unchanged" in run("import", "--urlset", PLAIN, "--drop-extensions", tmp_path / "rows").out.replace(str(tmp_path) + "/", "")
    whole = run("import", "--urlset", SHOP, "--drop-extensions", tmp_path / "rows")
    assert "dropped" not in whole.err and rows(run, SHOP)["/1"]["alternates"] == {"de": ORIGIN + "/de/1"}


def test_extensions_to_drop_are_not_validated(run, tmp_path):
    wrong = {"images": ["no URL"], "alternates": {"en_US": ORIGIN + "/en"}}
    (tmp_path / "wrong").write_text(json.dumps({"loc": ORIGIN + "/w", **wrong}) + "\n" + json.dumps({"loc": ORIGIN + "/v", "alternates": {"de": ORIGIN + "/de"}}) + "\n")
    (tmp_path / "wrong.xml").write_text(sitemap(f"<url><loc>{ORIGIN}/w</loc>{IMAGE.format('https://cdn.example.net/a b.jpg')}</url>"))
    bare = f"{ORIGIN}/bare.xml"
    run("urlset", "add", bare)
    for name, urls in ("wrong", 2), ("wrong.xml", 1):
        result = run("import", "--urlset", bare, "--replace", "--max-removed", "2", "--drop-extensions", tmp_path / name)
        assert f"read {urls}: " in result.out and " 0 rejected (rev" in result.out, result
        assert f"{urls} page URL{'s have' if urls > 1 else ' has'} extensions that the urlset does not support; they were dropped" in result.err
        assert "left out" not in result.err and "extension-dropped" not in result.err and len(rows(run, bare)) == urls
    # Those of the urlset are.
    result = run("import", "--urlset", PLAIN, "--drop-extensions", tmp_path / "wrong", code=1)
    assert f"wrong:1: {ORIGIN}/w: images[0]" in result.err and "alternates" not in result.err, result
    result = run("import", "--urlset", PLAIN, "--drop-extensions", "--skip-invalid", tmp_path / "wrong")
    assert "1 of 1 image left out" in result.out and "(extension-dropped): 1 in all" in result.err, result


def test_history_diff_and_undo_of_a_urlset(run, tmp_path):
    run("import", "--urlset", SHOP, tmp_path / "rows")
    before, page = revision(run), run("render", SHOP).out
    run("url", "add", ORIGIN + "/4", "--urlset", SHOP)
    run("url", "remove", ORIGIN + "/2", "--urlset", SHOP)
    run("url", "add", ORIGIN + "/4", "--urlset", PLAIN)
    kinds = [json.loads(line)["kind"] for line in run("history", "--urlset", SHOP, "--json").out.splitlines()]
    assert kinds == ["removal", "registration", "list", "urlset-add"]
    shop = f"- {ORIGIN}/2\n+ {ORIGIN}/4\n"
    assert sorted(run("diff", "--from", str(before), "--urlset", SHOP).out.splitlines()) == sorted(shop.splitlines() + [f"+1 ~0 -1 since revision {before}"])
    whole = [line.split("  ")[0] for line in run("diff", "--from", str(before)).out.splitlines()]
    assert whole.count(f"+ {ORIGIN}/4") == 2 and f"- {ORIGIN}/2" in whole and f"+ {PLAIN}" in whole
    result = run("undo", "--urlset", SHOP, "--to", str(before), "--dry-run")
    assert f"{SHOP} to revision {before}: would restore +1 ~0 -1" in result.out and "/4" in "".join(rows(run, SHOP))
    assert "restored +1 ~0 -1" in run("undo", "--urlset", SHOP, "--to", str(before), "--max-removed", "1").out
    assert run("render", SHOP).out == page and "/4" in rows(run, PLAIN)
    assert "cannot be combined with --index" in run("undo", "--urlset", SHOP, "--index", SHOP, "--to", "1", code=2).err
    assert "urlset not found in this catalogue; did you mean" in run("history", "--urlset", SHOP[:-4] + "s.xml", code=1).err


def test_an_article(run):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    article = ["url", "add", ORIGIN + "/a", "--urlset", NEWS, "--news-name", "The Times", "--news-title", "A & B", "--news-date", now]
    assert "news.publication.language is required (field-missing)" in run(*article, code=1).err
    run(*article, "--news-language", "en")
    assert rows(run, NEWS)["/a"]["news"] == {"publication": {"name": "The Times", "language": "en"}, "publication_date": now, "title": "A & B"}
    run("url", "add", ORIGIN + "/a", "--urlset", NEWS, "--lastmod", now)
    assert rows(run, NEWS)["/a"]["news"]["title"] == "A & B"
    old = [*article[:-1], "2026-01-01", "--news-language", "en"]
    assert "(expired)" in run(*old, code=1).err
    assert "(expired)" in run("url", "add", ORIGIN + "/b", "--urlset", NEWS, "--lastmod", "2026-01-01", code=1).err  # news or not
    run("urlset", "add", ORIGIN + "/archive.xml", "--with", "news", "--expires", "never")
    old[4] = ORIGIN + "/archive.xml"
    run(*old)


def test_what_is_reported(run):
    assert '--with: unknown extension "audio"' in run("urlset", "add", ORIGIN + "/v.xml", "--with", "images,audio", code=2).err
    assert run("urlset", "set", SHOP, "--max-pages", "7").out == f"{SHOP}: changed\n"
    run("url", "add", ORIGIN + "/1", "--urlset", SHOP)
    assert "\n3 urlsets, 1 page, 1 page URL, " in run("status").out
    status = json.loads(run("status", "--json").out)
    assert (status["indexes"], status["entries"], status["urlsets"], status["urls"]) == (1, 1, 3, 1)
    assert "  urlset      /shop.xml\n" in run("site", "list").out
    for words, text in (
        (["https://elsewhere.example/x", "--urlset", SHOP], "is on another host than its index or urlset"),
        ([ORIGIN + "/1", "--urlset", ORIGIN + "/none.xml"], "/1: urlset not found in this catalogue (urlset-unknown); `sitemapd urlset list` shows them"),
        ([ORIGIN + "/1", "--urlset", NEWS, "--image", ORIGIN + "/1.jpg"], "`sitemapd urlset add --with`"),
    ):
        assert text in run("url", "add", *words, code=1).err


def test_what_was_wrong_with_what_is_left_out(run, tmp_path):
    news = {"publication": {"name": "The Example Times", "language": "english"}, "publication_date": "2026-01-31T10:20:30Z", "title": "Shoes"}
    run("urlset", "set", NEWS, "--expires", "never")
    for number, (row, urlset, why) in enumerate((
        ({"news": news}, NEWS, "news.publication.language "),
        ({"news": {key: news[key] for key in ("publication", "title")} | {"publication": news["publication"] | {"language": "en"}}}, NEWS, "news.publication_date "),
        ({"alternates": {"en_US": ORIGIN + "/en"}}, SHOP, "alternates.en_US "),
        ({"images": [f"https://cdn.example.net/{n}.jpg" for n in range(1001)]}, SHOP, "images "),
    )):
        (tmp_path / "some").write_text(json.dumps({"loc": ORIGIN + "/first"}) + "\n" + json.dumps({"loc": ORIGIN + f"/{number}"} | row) + "\n")
        result = run("import", "--urlset", urlset, tmp_path / "some", code=1)
        assert f"some:2: {ORIGIN}/{number}: {why}" in result.err and "nothing was applied; --skip-invalid" in result.err, result
        result = run("import", "--urlset", urlset, "--skip-invalid", tmp_path / "some")
        assert "(extension-dropped): 1 in all, first in line 2" in result.err and f"first in line 2: {why.strip()}" in result.err, result


IMAGE = "<image:image><image:loc>{}</image:loc></image:image>"


def sitemap(*rows):
    return ('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
            ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n' + "\n".join(rows) + "\n</urlset>\n")


def test_a_page_with_a_thousand_images(run, tmp_path):
    images = [f"{ORIGIN}/images/palm%20reading-consultation-in-some-town-{n:04d}-{'x' * 80}.webp" for n in range(1001)]
    for count in (200, 1000):
        (tmp_path / "i.xml").write_text(sitemap(f"<url><loc>{ORIGIN}/gallery</loc>{''.join(map(IMAGE.format, images[:count]))}</url>"))
        result = run("import", "--urlset", SHOP, tmp_path / "i.xml")
        assert f", 0 of {count} images left out" in result.out and result.err == "", result
        assert rows(run, SHOP)["/gallery"]["images"] == images[:count]
    for name, count in (("same", 1000), ("more", 1001)):
        (tmp_path / name).write_text(json.dumps({"loc": ORIGIN + "/gallery", "images": images[:count]}) + "\n")
    assert ", 1 unchanged," in run("import", "--urlset", SHOP, tmp_path / "same").out
    result = run("import", "--urlset", SHOP, tmp_path / "more", code=1)
    assert "1 image invalid: has too many extensions" in result.err and rows(run, SHOP)["/gallery"]["images"] == images[:1000]
    result = run("import", "--urlset", SHOP, "--skip-invalid", tmp_path / "more")
    assert ", 1 of 1001 images left out" in result.out, result


def test_an_import_counts_what_it_leaves_out(run, tmp_path):
    """Each distinct reason once, whatever the number of page URLs and fields."""
    link = '<xhtml:link rel="alternate" hreflang="en_US" href="https://www.example.com/en"/>'
    (tmp_path / "bad.xml").write_text(sitemap(
        f"<url><loc>{ORIGIN}/a</loc>{IMAGE.format('/1.jpg')}{IMAGE.format('/2.jpg')}{IMAGE.format(ORIGIN + '/3.jpg')}{link}</url>",
        f"<url><loc>{ORIGIN}/b</loc>{IMAGE.format('4.jpg')}</url>",
        f"<url><loc>{ORIGIN}/c</loc></url>",
    ))
    before = rows(run, SHOP)
    result = run("import", "--urlset", SHOP, tmp_path / "bad.xml", code=1)
    assert result.err.count("3 images invalid: must be an absolute URL (https://host/path) (loc-relative); first in line 2: images[0].loc\n") == 1, result
    assert result.err.count("1 alternate invalid: ") == 1 and "first in line 2: alternates.en_US\n" in result.err, result
    assert "2 of 3 entries rejected, nothing was applied; --skip-invalid applies the good ones, without" in result.err
    assert "left out" not in result.err and rows(run, SHOP) == before
    result = run("import", "--urlset", SHOP, "--skip-invalid", tmp_path / "bad.xml")
    assert ", 0 rejected, 3 of 4 images left out, 1 of 1 alternate left out (" in result.out, result
    assert result.err.count("3 images left out: ") == 1 and result.err.count("1 alternate left out: ") == 1, result
    assert rows(run, SHOP)["/a"]["images"] == [ORIGIN + "/3.jpg"]


def test_an_export_that_names_pages_of_urlsets(start, run, tmp_path):
    """As docs/operations.md copies a catalogue; also into the same catalogue and over HTTP."""
    run("import", "--urlset", SHOP, tmp_path / "rows")
    run("add", ORIGIN + "/a.xml")
    text, page = run("export").out, run("render", SHOP).out
    assert [(row["loc"], row["source"]) for row in map(json.loads, text.splitlines())] == [(SHOP, "urlset:/shop.xml"), (ORIGIN + "/a.xml", "cli")]
    (tmp_path / "entries").write_text(text)
    for options in (["--replace", "--source", "*"], ["--replace"], []):
        done = run("import", *options, tmp_path / "entries")
        assert "0 created, 0 updated, 2 unchanged, 0 removed, 0 rejected" in done.out and run("export").out == text
        assert ("(of-urlset): 1 in all, first in line 1" in done.err) == (options == [])
    (tmp_path / "served").mkdir()
    server = start(folder=tmp_path / "served")
    assert server.api("POST", "/v1/urlsets", {"url": SHOP, "with": ["images", "alternates"]}).status == 201
    over = {"SITEMAPD_SERVER": "http://" + server.admin, "SITEMAPD_TOKEN": server.token}
    made = sitemapd("import", "--replace", "--source", "*", tmp_path / "entries", env=over)
    assert made.code == 0 and "1 created, 0 updated, 1 unchanged, 0 removed, 0 rejected" in made.out, made
    copied = lambda *words: sitemapd(*words, database=str(tmp_path / "copy.db"))
    assert copied("site", "add", ORIGIN).code == copied("import", "--replace", "--source", "*", tmp_path / "entries").code == 0
    (tmp_path / "urls").write_text(run("url", "export", "--urlset", SHOP).out)
    assert copied("urlset", "add", SHOP, "--with", "images,alternates").code == copied("import", "--urlset", SHOP, tmp_path / "urls").code == 0
    places = lambda lines: [(row["loc"], row["position"], row["source"]) for row in map(json.loads, lines.splitlines())]
    assert places(copied("export").out) == places(text) and copied("render", SHOP).out == page


def test_a_page_of_a_urlset_is_no_page_url(run, tmp_path):
    (tmp_path / "list").write_text(SHOP + "\n")
    for options in ([], ["--replace"]):
        assert f"{SHOP}: is a page of a urlset" in run("import", *options, "--urlset", PLAIN, tmp_path / "list", code=1).err


def test_a_table_is_not_a_list(run, tmp_path):
    (tmp_path / "rows.csv").write_text(f"{ORIGIN}/1,2026-01-31\n{ORIGIN}/2,2026-01-31\n")
    result = run("import", "--urlset", SHOP, "--skip-invalid", tmp_path / "rows.csv", code=1)
    assert "rows.csv:1: is a table, not a list of URLs: write the URL alone" in result.err and "(not-a-list); nothing was applied" in result.err
    assert rows(run, SHOP) == {}


def test_a_path_is_enough_with_one_site(run):
    assert run("urlset", "add", "/blog/posts.xml").out == f"{ORIGIN}/blog/posts.xml: added\n"
    assert run("index", "add", "/blog/index.xml").out == f"{ORIGIN}/blog/index.xml: added\n"
    run("site", "add", "https://two.example.com")
    for what in ("urlset", "index"):
        assert "/x.xml: a path is only valid with exactly one site; give the URL" in run(what, "add", "/x.xml", code=1).err
    for words in (("url", "add", f"{ORIGIN}/1", "--urlset", "/blog/posts.xml"), ("url", "remove", f"{ORIGIN}/1", "--urlset", "/blog/posts.xml"),
                  ("add", f"{ORIGIN}/1.xml", "--index", "/blog/index.xml"), ("urlset", "add", f"{ORIGIN}/2.xml", "--index", "/blog/index.xml"),
                  ("urlset", "set", f"{ORIGIN}/blog/posts.xml", "--index", "/blog/index.xml"),
                  ("source", "add", "cms", "--upstream", f"{ORIGIN}/u.xml", "--index", "/blog/index.xml")):
        assert "; a path is only valid with exactly one site; give the URL" in run(*words, code=1).err, words


def test_lists_report_what_there_is(run, tmp_path):
    run("import", "--urlset", SHOP, tmp_path / "rows")
    listed = [line.split() for line in run("url", "list", "--urlset", SHOP).out.splitlines()]
    assert listed == [
        ["LASTMOD", "PAGE", "HAS", "LOC"],
        ["2026-01-31T10:20:30Z", "1", "images,alternates", ORIGIN + "/1"],
        ["-", "1", "alternates", ORIGIN + "/2"],
        ["-", "1", "images", ORIGIN + "/3"],
    ]
    assert run("url", "list", "--urlset", NEWS).err == "sitemapd: url list: no matching page URLs\n"
    assert run("url", "remove", ORIGIN + "/nope", "--urlset", SHOP, code=1).err == f"sitemapd: {ORIGIN}/nope: page URL not found\n"
    lists = {line.split("https://")[-1].split()[0]: line.split() for line in run("urlset", "list").out.splitlines()[1:]}
    assert lists["www.example.com/news.xml"][4:] == ["news", "2d", NEWS, "(of", "/sitemap_index.xml)"]
    assert lists["www.example.com/shop.xml"][5:7] == ["-", SHOP] and lists["www.example.com/shop.xml"][4] == "images,alternates"


def test_the_commands_of_the_page(tmp_path):
    database = str(tmp_path / "catalogue.db")
    old = tmp_path / "products.xml.gz"
    old.write_bytes(gzip.compress(b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.example.com/products/fez</loc></url></urlset>'))
    with open(os.path.join(os.path.dirname(__file__), "../../docs/urls.md"), encoding="utf-8") as file:
        commands = file.read().split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 4
    assert sitemapd("site", "add", ORIGIN, database=database).code == 0
    for line in commands:
        words = shlex.split(line.replace("old/products.xml.gz", str(old)), comments=True)
        done = sitemapd(*words[1:], database=database)
        assert words[0] == "sitemapd" and done.code == 0, (line, done)
    result = sitemapd("render", ORIGIN + "/products.xml", database=database).out
    assert "/products/trilby<" in result and "/products/fez<" in result
