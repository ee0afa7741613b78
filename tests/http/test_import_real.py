# SPDX-License-Identifier: LicenseRef-Undeclared
"""Index files as they are found in the world. Each oddity has a twin here in words of our own, which
always runs; the files themselves, where they lie beside the repository (SITEMAPD_SAMPLES), must
come out exactly as the table says."""

import os
import re
import shutil
import sqlite3

import pytest

from harness import DATA, render, sitemapd, write_gzip

SHARED = os.environ.get("SITEMAPD_SAMPLES", os.path.join(DATA, "../../../../shared"))
FOLDER = os.path.join(SHARED, "data", "indexes")
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"

# What import may say of an index: None is whole; otherwise the reasons of the refused entries, or the
# reason why the document as a whole was refused and the line of its cause.
GOOD, ODD, BROKEN = "good", "odd", "broken"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A catalogue with a site, its index and /before.xml, as `export` says it: made once for each
    origin, and copied for each test."""
    known = {}

    def make(origin):
        if origin not in known:
            path = str(tmp_path_factory.mktemp("made") / "catalogue.db")
            assert sitemapd("site", "add", origin, database=path).code == 0
            index = origin + "/sitemap_index.xml"
            if index not in sitemapd("index", "list", database=path).out:
                assert sitemapd("index", "add", index, database=path).code == 0
            assert sitemapd("add", origin + "/before.xml", database=path).code == 0
            assert not os.path.exists(path + "-wal"), "the file is all there is"
            known[origin] = (path, index, sitemapd("export", database=path).lines())
        return known[origin]

    return make


def catalogue(tmp_path, made, origin):
    whole, index, before = made(origin)
    return shutil.copy(whole, tmp_path / "catalogue.db"), index, before


def revision_of(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT revision FROM catalogue").fetchone()[0]


def verify(tmp_path, made, origin, source, kind, taken, reasons=(), line=None, remarks=(), entries=None):
    """Imports `source` strictly, then with --skip-invalid, and looks at what is in the catalogue.
    `reasons`: (line or None, code) of every refused entry, in order."""
    path, index, before = catalogue(tmp_path, made, origin)
    skip_code = 1 if kind == ODD and taken == 0 else 0  # a list of which nothing is left is a failure
    stored = lambda: sitemapd("export", database=path).lines()

    strict = sitemapd("import", "--index", index, source, database=path)
    result = strict.out + strict.err
    if kind != GOOD:
        assert strict.code == 1, strict
        assert stored() == before, "the catalogue is untouched"
    if kind == BROKEN:
        assert reasons[0][1] in result, strict
        if line is not None:
            assert re.search(rf"\b{line}\b", strict.err), strict
        skip = sitemapd("import", "--index", index, "--skip-invalid", source, database=path)
        assert skip.code == 1 and stored() == before, "a broken document gives nothing, not even its good part"
        return
    if kind == ODD:
        for number, code in reasons:
            assert re.search(rf"\b{number}\b.*\b{code}\b" if number else rf"\b{code}\b", result), (number, code, strict)
        skip = sitemapd("import", "--index", index, "--skip-invalid", source, database=path)
        result = skip.out + skip.err
        assert skip.code == skip_code, skip
        found = re.findall(r"\b(loc-[a-z-]+|outside-[a-z]+|duplicate|site-unknown)\b", skip.err)
        assert len(found) >= len(reasons), skip
    else:
        assert strict.code == 0, strict
    for remark in remarks:
        assert remark in result, (remark, result)
    after, revision = stored(), revision_of(path)
    added = [e for e in after if e["loc"] != origin + "/before.xml"]
    assert len(added) == taken, (len(added), result)
    if entries is not None:
        assert [(e["loc"], e["lastmod"]) for e in added] == entries
    options = ["--skip-invalid"] if kind == ODD else []
    assert sitemapd("import", "--index", index, *options, source, database=path).code == skip_code
    assert (stored(), revision_of(path)) == (after, revision), "a second import changes nothing"
    assert sitemapd("check", database=path).code == 0
    assert sitemapd("render", index, database=path).code == 0


# file, origin of the site, kind, entries taken, [(line, reason)], line of the cause, remarks
REAL = [
    ("01-articulorum-2000-entries.xml", "https://articulorum.github.io", GOOD, 2000, [], None, []),
    ("02-594212-zara-gz.xml", "https://www.zara.com", GOOD, 241, [], None, []),
    ("03-nelsonjchen-233-entries.xml", "https://github-wiki-see.page", GOOD, 233, [], None, ["loc-padded"]),
    ("04-iish-vufind.xml", "https://search.iisg.amsterdam", GOOD, 121, [], None, []),
    ("07-hoangvu12-next-sitemap.xml", "https://kaguya.app", GOOD, 28, [], None, []),
    ("08-antriksh-infoicon-yoast-w3tc.xml", "https://natuerlich-fuer-uns.at", GOOD, 8, [], None, []),
    ("12-tx2z-aioseo-cdata.xml", "https://revista-exegesis.com", GOOD, 9, [], None, []),
    ("16-valenieksvladislavs-shopify.xml", "https://purecane.com", GOOD, 4, [], None, []),
    ("17-1mangesh1-astro.xml", "https://mangeshbide.tech", GOOD, 1, [], None, []),
    ("18-21ideas-org-hugo-multilingual.xml", "http://localhost:1313", GOOD, 2, [], None, []),
    ("20-fossasia-drupal-xmlsitemap.xml", "http://fossasia.org", GOOD, 2, [], None, []),
    ("22-soheilpaper-prestashop.xml", "http://shop2.elasa.ir", GOOD, 3, [], None, []),
    ("28-18978909244-google084.xml", "https://tennis.kuashou.com", GOOD, 3, [], None, ["namespace"]),
    ("30-uhaciogullari-bom.xml", "https://www.example.com", ODD, 0, [(3, "loc-relative"), (6, "loc-relative")], None, []),
    ("33-emurasoft-nested-hosts.xml", "https://www.emeditor.com", ODD, 1, [(2, "outside-site"), (5, "outside-site")], None, []),
    ("39-benbalter-extra-elements.xml", "https://raw.githubusercontent.com", GOOD, 2, [], None, ["extra-element"]),
    ("42-4what-empty-commented.xml", "http://www.example.com", GOOD, 0, [], None, []),
    ("48-bart-turczynski-duplicate-invalid-lastmod.xml", "https://example.com", ODD, 2, [(11, "duplicate")], None, ["lastmod-invalid"]),
    ("50-crawler-commons-missing-loc.xml", "https://example.com", ODD, 0, [(3 + 3 * i, "loc-missing") for i in range(15)], None, []),
    ("55-crawler-commons-truncated.xml", "http://www.example.com", BROKEN, 0, [(None, "truncated")], 1, []),
    ("58-420tax-urlset.xml", "https://420tax.github.io", BROKEN, 0, [(None, "urlset-not-index")], 3, []),
    ("60-594212-derived-cut-16000.xml", "https://www.zara.com", BROKEN, 0, [(None, "truncated")], 485, []),
]


@pytest.mark.parametrize("row", REAL, ids=[r[0] for r in REAL])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_real(tmp_path, made, row, packed):
    name, origin, kind, taken, reasons, line, remarks = row
    source = os.path.join(FOLDER, name)
    if not os.path.exists(source):
        pytest.skip("the real index files are not beside the repository")
    if packed:
        with open(source, "rb") as file:
            data = file.read()
        source = str(tmp_path / "packed")
        write_gzip(source, data)
    verify(tmp_path, made, origin, source, kind, taken, reasons, line, remarks)


def test_no_real_file_is_left_out():
    if not os.path.isdir(FOLDER):
        pytest.skip("the real index files are not beside the repository")
    assert {n for n in os.listdir(FOLDER) if n.endswith(".xml")} == {r[0] for r in REAL}


# ---- twins --------------------------------------------------------------------------------------

S = "https://www.example.com"


def index(*inner, head='<?xml version="1.0" encoding="UTF-8"?>\n', namespace=NS, attributes=""):
    return f'{head}<sitemapindex xmlns="{namespace}"{attributes}>\n' + "".join(i + "\n" for i in inner) + "</sitemapindex>\n"


def entry(loc, lastmod=None, more=""):
    return f"<sitemap><loc>{loc}</loc>" + (f"<lastmod>{lastmod}</lastmod>" if lastmod else "") + more + "</sitemap>"


TWINS = {
    # name: (bytes or text, kind, [(loc, lastmod)], [(line, reason)], line of the cause, remarks)
    "no_final_newline": (index(entry(S + "/a.xml")).rstrip(), GOOD, [(S + "/a.xml", None)], [], None, []),
    "one_line": (index(entry(S + "/a.xml", "2026-01-31T10:20:30.620Z")).replace("\n", ""), GOOD, [(S + "/a.xml", "2026-01-31T10:20:30.620Z")], [], None, []),
    "crlf": (index(entry(S + "/a.xml")).replace("\n", "\r\n"), GOOD, [(S + "/a.xml", None)], [], None, []),
    "padded": (index(f"<sitemap>\n  <loc>\n\t {S}/a.xml \n </loc>\n <lastmod>\n 2026-01-31 \n</lastmod></sitemap>"), GOOD, [(S + "/a.xml", "2026-01-31")], [], None, ["loc-padded"]),
    "comments_and_instructions": (
        index("<!-- one -->", "<sitemap><!-- in --><loc>" + S + "/<!-- split -->a.xml</loc></sitemap>", "<?php echo ?>",
              head='<?xml version="1.0"?><?xml-stylesheet href="//x.example/x.xsl"?>\n<!-- grüße -->\n') + "<!-- after -->\r\n<!-- \r\n -->",
        GOOD, [(S + "/a.xml", None)], [], None, []),
    "cdata": (index(f"<sitemap><loc><![CDATA[{S}/a.xml?x=1&y=2]]></loc><lastmod><![CDATA[2026-01-31]]></lastmod></sitemap>"), GOOD, [(S + "/a.xml?x=1&y=2", "2026-01-31")], [], None, []),
    "entities": (index(entry(S + "/a.xml?x=1&amp;y=&apos;2&#39;&#x26;z=3")), GOOD, [(S + "/a.xml?x=1&y='2'&z=3", None)], [], None, []),
    "schema_location": (index(entry(S + "/a.xml"), attributes=f' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="{NS} {NS}/siteindex.xsd"'), GOOD, [(S + "/a.xml", None)], [], None, []),
    "prefixed": (f'<s:sitemapindex xmlns:s="{NS}"><s:sitemap><s:loc>{S}/a.xml</s:loc></s:sitemap></s:sitemapindex>', GOOD, [(S + "/a.xml", None)], [], None, []),
    "no_declaration": (index(entry(S + "/a.xml"), head=""), GOOD, [(S + "/a.xml", None)], [], None, []),
    "byte_order_mark": ("\ufeff" + index(entry(S + "/a.xml")), GOOD, [(S + "/a.xml", None)], [], None, []),
    "latin_1": (index(entry(S + "/gr\u00fc\u00dfe.xml"), head='<?xml version="1.0" encoding="ISO-8859-1"?>\n').encode("latin-1"), GOOD, [(S + "/gr%C3%BC%C3%9Fe.xml", None)], [], None, []),
    "utf_16": (index(entry(S + "/a.xml"), head='<?xml version="1.0" encoding="UTF-16"?>\n').encode("utf-16"), GOOD, [(S + "/a.xml", None)], [], None, []),
    "namespace_084": (index(entry(S + "/a.xml"), namespace="http://www.google.com/schemas/sitemap/0.84"), GOOD, [(S + "/a.xml", None)], [], None, ["namespace"]),
    "no_namespace": (f"<sitemapindex>{entry(S + '/a.xml')}</sitemapindex>", GOOD, [(S + "/a.xml", None)], [], None, ["namespace"]),
    "https_namespace": (index(entry(S + "/a.xml"), namespace="https://www.sitemaps.org/schemas/sitemap/0.9"), GOOD, [(S + "/a.xml", None)], [], None, ["namespace"]),
    "extra_elements": (index(entry(S + "/a.xml", "2026-01-31", "<changefreq>daily</changefreq><priority>1</priority>")), GOOD, [(S + "/a.xml", "2026-01-31")], [], None, ["extra-element"]),
    "minutes": (index(entry(S + "/s.xml?page=1", "2013-06-23T14:09Z")), GOOD, [(S + "/s.xml?page=1", "2013-06-23T14:09:00Z")], [], None, []),
    "lastmod_first": (index(f"<sitemap><lastmod>2026-01-31</lastmod><loc>{S}/a.xml</loc></sitemap>"), GOOD, [(S + "/a.xml", "2026-01-31")], [], None, []),
    "bad_lastmods": (
        index(entry(S + "/a.xml", "not-a-date"), entry(S + "/b.xml", "2026-01-31T10:00:00"), entry(S + "/c.xml", "2199-01-01"), entry(S + "/d.xml", "2026")),
        GOOD, [(S + "/a.xml", None), (S + "/b.xml", None), (S + "/c.xml", None), (S + "/d.xml", "2026")], [], None,
        ["lastmod-invalid", "lastmod-no-zone", "lastmod-in-future"]),
    "empty": (index("<!--", entry("x"), "-->"), GOOD, [], [], None, []),
    "relative": (index(entry("abc"), entry(S + "/a.xml")), ODD, [(S + "/a.xml", None)], [(3, "loc-relative")], None, []),
    "other_hosts": (index(entry("https://help.example.com/sitemap_index.xml"), entry(S + "/a.xml")), ODD, [(S + "/a.xml", None)], [(3, "outside-site")], None, []),
    "duplicate": (index(entry(S + "/a.xml", "2026-01-31"), entry(S + "/b.xml"), entry(S + "/./a.xml", "2026-01-01")), ODD, [(S + "/a.xml", "2026-01-31"), (S + "/b.xml", None)], [(5, "duplicate")], None, []),
    "loc_missing": (index(f"<sitemap>\n{S}/a.xml?x&amp;y\n</sitemap>", "<sitemap><lastmod>2026-01-31</lastmod></sitemap>", "<sitemap><loc></loc></sitemap>", "<sitemap/>", entry(S + "/b.xml")), ODD, [(S + "/b.xml", None)], [(None, "loc-missing")] * 4, None, []),
    "an_index_page": (index(entry(S + "/sitemap_index-2.xml"), entry(S + "/a.xml")), ODD, [(S + "/a.xml", None)], [(3, "loc-is-index-page")], None, []),
    "too_long": (index(entry(S + "/" + "a" * 2100), entry(S + "/a.xml")), ODD, [(S + "/a.xml", None)], [(3, "loc-too-long")], None, []),
    "truncated_in_a_tag": (index(entry(S + "/a.xml"), entry(S + "/b.xml"))[:-70], BROKEN, [], [(None, "truncated")], 4, []),
    "truncated_in_text": (index(entry(S + "/a.xml"), entry(S + "/b.xml", "2026-01-31")).partition("-01-31")[0], BROKEN, [], [(None, "truncated")], 4, []),
    "truncated_before_the_end_tag": (index(entry(S + "/a.xml")).replace("</sitemapindex>\n", ""), BROKEN, [], [(None, "truncated")], 4, []),
    "urlset": (f'<?xml version="1.0"?>\n\n<urlset xmlns="{NS}"><url><loc>{S}/</loc></url></urlset>', BROKEN, [], [(None, "urlset-not-index")], 3, []),
    "html": ("<!DOCTYPE html>\n<html><body><p>404 Not Found</body></html>", BROKEN, [], [(None, "html-not-index")], 1, []),
    "doctype": ('<?xml version="1.0"?>\n<!DOCTYPE s [<!ENTITY a "b">]>\n' + index(entry(S + "/&a;.xml"), head=""), BROKEN, [], [(None, "doctype")], 2, []),
    "feed": ('<?xml version="1.0"?>\n<rss version="2.0"><channel/></rss>', BROKEN, [], [(None, "-not-index")], 2, []),
    "mismatched_tags": (index("<sitemap><loc>" + S + "/a.xml</lco></sitemap>"), BROKEN, [], [(None, "malformed-xml")], 3, []),
    "raw_ampersand": (index(entry(S + "/a.xml?x=1&y=2")), BROKEN, [], [(None, "malformed-xml")], 3, []),
    "text_behind": (index(entry(S + "/a.xml")) + "<more/>", BROKEN, [], [(None, "malformed-xml")], None, []),
    "utf_16_list": ((S + "/a.xml\r\n").encode("utf-16"), BROKEN, [], [(None, "not-utf8")], None, []),
    "utf_16_json": (('{"loc": "%s/a.xml"}\n' % S).encode("utf-16-be"), BROKEN, [], [(None, "not-utf8")], None, []),
    "bad_utf8": (index(entry(S + "/a.xml")).encode().replace(b"/a.xml", b"/\xff.xml"), BROKEN, [], [(None, "malformed-xml")], 3, []),
    "deep": (index("<sitemap>" + "<x>" * 20000 + "</x>" * 20000 + "</sitemap>"), BROKEN, [], [(None, "deep")], 3, []),
    "nothing": ("", GOOD, [], [], None, []),
    "binary": (bytes(range(256)) * 40, BROKEN, [], [(None, "")], None, []),
}


@pytest.mark.parametrize("name", TWINS)
def test_twin(tmp_path, made, name):
    data, kind, entries, reasons, line, remarks = TWINS[name]
    source = tmp_path / "index.xml"
    source.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    verify(tmp_path, made, S, source, kind, len(entries), reasons, line, remarks, entries)


@pytest.mark.parametrize("cut", [3, 20, -9, -4])
def test_a_cut_gzip_gives_nothing(tmp_path, made, cut):
    whole = tmp_path / "whole.gz"
    write_gzip(whole, render([(f"{S}/{i}.xml", None) for i in range(2000)]))
    (tmp_path / "cut.gz").write_bytes(whole.read_bytes()[:cut])
    path, index_url, before = catalogue(tmp_path, made, S)
    command = sitemapd("import", "--index", index_url, tmp_path / "cut.gz", database=path)
    assert command.code == 1 and command.err.startswith("sitemapd: "), command
    assert sitemapd("export", database=path).lines() == before
