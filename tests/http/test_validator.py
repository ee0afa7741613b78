# SPDX-License-Identifier: LicenseRef-Undeclared
"""One validator of a sitemap's bytes: `probe`, polls, folders, `import` and `doctor` call the same bytes by
the same code. The codes are those of docs/remote.md, "Codes"."""

import bz2
import gzip
import io
import lzma
import re
import tarfile
from pathlib import Path

from harness import eventually, sitemapd
from origin import Origin, answer

DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
EXTENSIONS = (
    'xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" '
    'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"'
)
BASE = "{base}"  # in a body: the origin that answers


def sitemap(inside="", extensions=EXTENSIONS):
    page = f"<url><loc>{BASE}/a</loc>{inside}</url>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{NAMESPACE}" {extensions}>\n{page}\n</urlset>\n'.encode()


def link(language, href=BASE + "/b"):
    return f'<xhtml:link rel="alternate" hreflang="{language}" href="{href}"/>'


def news(language="<news:language>en</news:language>", date="2026-11-25T09:00:00Z"):
    publication = f"<news:publication><news:name>N</news:name>{language}</news:publication>"
    return f"<news:news>{publication}<news:publication_date>{date}</news:publication_date><news:title>T</news:title></news:news>"


def tar(data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("sitemap.xml")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


GOOD = sitemap()
LIST = f"{BASE}/a\n{BASE}/b\n{BASE}/c\n"
PLAIN, GZ = "xml", "xml.gz"
# Name: what the URL ends in, header fields, body, code ("": nothing is wrong). What `import` says where
# it has another word for it, or cannot say it.
CASES = {
    "good": (PLAIN, {}, GOOD, ""),
    "gz": (GZ, {"Content_Type": "application/gzip"}, lambda body: gzip.compress(body), ""),
    "coded": (PLAIN, {"Content_Encoding": "gzip"}, lambda body: gzip.compress(body), ""),
    "gz-coded": (GZ, {"Content_Encoding": "gzip", "Content_Type": "application/gzip"}, lambda body: gzip.compress(gzip.compress(body)), ""),
    "gz-uncoded": (GZ, {"Content_Encoding": "gzip"}, lambda body: gzip.compress(body), ""),
    "coding-empty": (PLAIN, {"Content_Encoding": ""}, GOOD, ""),
    "coding-none": (PLAIN, {"Content_Encoding": "none"}, GOOD, "encoding-odd"),
    "coding-aws": (PLAIN, {"Content_Encoding": "aws-chunked"}, GOOD, "encoding-odd"),
    "coding-br": (PLAIN, {"Content_Encoding": "br"}, GOOD, "encoding"),
    "coding-false": (PLAIN, {"Content_Encoding": "gzip"}, GOOD, "encoding"),
    "plain-gz": (GZ, {}, GOOD, "not-gzip"),
    "gzip-xml": (PLAIN, {}, lambda body: gzip.compress(body), "gzip-unmarked"),
    "packed-twice": (GZ, {}, lambda body: gzip.compress(gzip.compress(body)), "packed-twice"),
    "chunk-size": (PLAIN, {}, b"148e2\n" + GOOD, "malformed-xml"),
    "php-warning": (PLAIN, {}, b"<br />\n<b>Warning</b>: x\n" + GOOD, "malformed-xml"),
    "head": (PLAIN, {}, GOOD.replace(b"?>\n", b"?>\n<head/>"), "malformed-xml"),
    "relative-namespace": (PLAIN, {}, GOOD.replace(b'="http://www.sitemaps', b'="//www.sitemaps'), "wrong-namespace"),
    "blank-namespace": (PLAIN, {}, GOOD.replace(b"sitemap/0.9", b"sitemap/0.9 "), "wrong-namespace"),
    "typo-namespace": (PLAIN, {}, GOOD.replace(b"www.sitemaps", b"www.sitemap"), "wrong-namespace"),
    "https-namespace": (PLAIN, {}, GOOD.replace(b'="http://www.sitemaps', b'="https://www.sitemaps'), "namespace"),
    "https-image": (PLAIN, {}, sitemap(f"<image:image><image:loc>{BASE}/i.jpg</image:loc></image:image>", EXTENSIONS.replace("http://www.google.com", "https://www.google.com")), "extension-namespace"),
    "language": (PLAIN, {}, sitemap(link("zh_CN")), "language-malformed"),
    "x-default": (PLAIN, {}, sitemap(link("x-default") + link("x-default", BASE + "/c")), "duplicate"),
    "relative-href": (PLAIN, {}, sitemap(link("de", "/b")), "loc-relative"),
    "relative-image": (PLAIN, {}, sitemap("<image:image><image:loc>/i.jpg</image:loc></image:image>"), "loc-relative"),
    "news": (PLAIN, {}, sitemap(news()), ""),
    "news-language": (PLAIN, {}, sitemap(news(language="")), "field-missing"),
    "news-en-US": (PLAIN, {}, sitemap(news(language="<news:language>en-US</news:language>")), "language-malformed"),
    "news-zone": (PLAIN, {}, sitemap(news(date="2026-11-25T09:00:00")), "lastmod-no-zone"),
    "thumbnail": (PLAIN, {}, sitemap("<video:video><video:thumbnail_loc/><video:title>T</video:title></video:video>"), "field-missing"),
    "images": (PLAIN, {}, sitemap("".join(f"<image:image><image:loc>{BASE}/{n}.jpg</image:loc></image:image>" for n in range(1001))), "too-many-images"),
}
IMPORTED = {
    "images": "extensions-too-long",
}
LEFT = {"one-lastmod", "hint-dropped", "lastmod-date-only", "outside-directory"}


def path_of(name):
    return f"/sitemap-{name}.{CASES[name][0]}"


def body_of(name, base):
    body = CASES[name][2]
    placed = lambda given: given.replace(BASE.encode(), base.encode())
    return body(placed(GOOD)) if callable(body) else placed(body)


def codes(text):
    """Of lines for people: the words in brackets at the end of a remark or verdict."""
    return {word for word in re.findall(r"\(([a-z0-9]+(?:-[a-zA-Z0-9]+)*)\)", text)} - LEFT


def of_probe(base, config):
    for name in CASES:
        done = sitemapd("probe", base + path_of(name), *config)
        assert "line 0" not in done.out, done
        yield name, codes("\n".join(line for line in done.out.splitlines() if line.startswith(("verdict", "remark"))))


def of_import(base, config, database):
    for name in CASES:
        done = sitemapd("import", base + path_of(name), "--urlset", base + "/u.xml", "--dry-run", *config, database=database)
        yield name, codes(done.err)


def of_folder(base, folder, database):
    found = {name: set() for name, case in CASES.items() if not case[1] or name == "gz"}
    folder.mkdir()
    for name in found:
        (folder / path_of(name)[1:]).write_bytes(body_of(name, base))
    result = sitemapd("scan", str(folder), "--url", base + "/", "--dry-run", database=database).out
    for line in result.splitlines():
        what = re.match(r"(?:problem|remark) +sitemap-([a-zA-Z-]+)\.xml(?:\.gz)?(?::\d+)*: ([a-z-]+):", line)
        if what:
            found[what[1]] |= {what[2]} - LEFT
    assert len(re.findall("^(?:new|problem) ", result, re.M)) == len(found), result
    return found.items()


def of_doctor(base):
    findings = sitemapd("doctor", base + "/list.xml", "--sample", str(len(CASES)), "--json").lines()
    for name in CASES:
        about = [f for f in findings if f["url"] == base + path_of(name)]
        assert about, (name, findings)
        yield name, {f["code"] for f in about if f["level"] != "ok"} - LEFT


def of_polls(server, base):
    def checks():
        found = {c["loc"]: c["check"] for c in server.api("GET", "/v1/checks?limit=1000").json()["checks"]}
        return found if len(found) == len(CASES) and all(c["checked_at"] for c in found.values()) else None

    found = eventually(checks, "all are polled")
    for name in CASES:
        check = found[base + path_of(name)]
        remarks = {remark["code"] for remark in check["page_remarks"]}
        yield name, ({check["code"]} if check["code"] else remarks) - LEFT


def test_all_five_say_the_same(start, tmp_path):
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        for name, (_, headers, _, _) in CASES.items():
            origin.answers[path_of(name)] = answer(200, body_of(name, base), **headers)
        members = "".join(f"<sitemap><loc>{base}{path_of(name)}</loc></sitemap>" for name in CASES)
        listed = f'<?xml version="1.0"?>\n<sitemapindex xmlns="{NAMESPACE}">{members}</sitemapindex>'
        origin.answers["/list.xml"] = answer(200, listed.encode(), Content_Type="application/xml")
        fetch = "[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n"
        source = f'[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n[source "shop"]\nupstream = {base}/list.xml\n'
        server = start(sites=(), config=fetch + source)
        alone, database = tmp_path / "fetch.conf", tmp_path / "own.db"
        alone.write_text(fetch)
        config = ("--config", str(alone))
        assert sitemapd("site", "add", base, database=database).code == 0
        assert sitemapd("urlset", "add", base + "/u.xml", "--with", "images,videos,alternates,news", "--expires", "never", database=database).code == 0
        said = {
            "probe": of_probe(base, config),
            "import": of_import(base, config, database),
            "folder": of_folder(base, tmp_path / "files", database),
            "doctor": of_doctor(base),
            "poll": of_polls(server, base),
        }
        said = {who: dict(found) for who, found in said.items()}
    wanted = {who: {name: {CASES[name][3]} - {""} for name in found} for who, found in said.items()}
    for name, code in IMPORTED.items():
        wanted["import"][name] = {code}
    assert said == wanted


def test_each_code_is_in_the_table():
    table = (DOCUMENTS / "remote.md").read_text().split("## Codes")[1].split("\n## ")[0]
    source = (DOCUMENTS.parent / "server/input/sitemap_verifier.c").read_text()
    words = set(re.findall(r'"([a-z-]+)"', source.split("bool sitemap_file_has_code")[1].split("};")[0]))
    assert len(words) > 20
    missing = {word for word in words | {case[3] for case in CASES.values()} - {""} if f"`{word}`" not in table}
    assert not missing


FOREIGN = {
    "sitemap-u16.txt": (LIST.encode("utf-16"), "not-utf8"),
    "urls-header.txt": (("URL\n" + LIST).encode(), "malformed-list"),
    "urls-comment.txt": (("# all\n" + LIST).encode(), "malformed-list"),
    "urls-quoted.txt": ("".join(f'"{line}"\n' for line in LIST.split()).encode(), "malformed-list"),
    "sitemap-relative.txt": (b"/a\n/b\n", "not-a-sitemap"),
    "urls-nul.txt": (LIST.encode() + bytes(9), "not-text"),
    "sitemap-nul.xml": (bytes(5000), "not-text"),
    "tar.xml.gz": (tar(GOOD), "not-gzip"),
    "xz.xml.gz": (lzma.compress(GOOD), "not-gzip"),
    "bzip2.xml.gz": (bz2.compress(GOOD), "not-gzip"),
    "random.xml.gz": (bytes(range(7, 256)) * 4, "not-gzip"),
    "tar-gz.xml.gz": (gzip.compress(tar(GOOD)), "not-a-sitemap"),
    "sitemap-page.xml": (b"<!doctype html><title>Not found</title>", "not-a-sitemap"),
    "sitemap-wall.xml": (b"<!doctype html><script id='anubis_challenge'>", "bot-wall"),
    "u16.xml": (GOOD.decode().encode("utf-16"), "not-utf8"),
    # Beside the sitemaps of a web root, and nobody's mistake.
    "feed.xml": (b"<rss><channel><item><link>https://www.example.com/</link></item></channel></rss>", None),
    "page.xml": (b"<!doctype html><title>Not found</title>", None),
    "humans.txt": (b"/* TEAM */\nSite: https://www.example.com/\n", None),
    "robots.txt": (b"User-agent: *\nSitemap: https://www.example.com/sitemap_index.xml\n", None),
}


def test_what_is_named_like_a_sitemap_but_is_not_one_is_reported(tmp_path):
    database, folder = tmp_path / "own.db", tmp_path / "files"
    folder.mkdir()
    for name, (body, _) in FOREIGN.items():
        (folder / name).write_bytes(body.replace(BASE.encode(), b"https://www.example.com"))
    assert sitemapd("site", "add", "https://www.example.com", database=database).code == 0
    result = sitemapd("scan", str(folder), "--url", "https://www.example.com/", "--dry-run", database=database).out
    found = dict(re.findall(r"^problem +([a-z0-9.-]+?)(?::\d+)*: ([a-z0-9-]+):", result, re.M))
    assert found == {name: code for name, (_, code) in FOREIGN.items() if code}, result


def test_import_names_what_it_ignores(tmp_path):
    """Each element once, with its prefix; and those that contain a loc apart."""
    database, file = tmp_path / "own.db", tmp_path / "a.xml"
    base = "https://www.example.com"
    inside = "<image:image><image:loc>https://www.example.com/1.jpg</image:loc><image:title>T</image:title></image:image><video:clip><video:title>V</video:title></video:clip>"
    page = sitemap(inside * 2 + "<group><loc>https://www.example.com/lost</loc></group>").replace(BASE.encode(), base.encode())
    file.write_bytes(page)
    assert sitemapd("site", "add", base, database=database).code == 0
    assert sitemapd("urlset", "add", base + "/u.xml", "--with", "images", database=database).code == 0
    done = sitemapd("import", str(file), "--urlset", base + "/u.xml", "--dry-run", database=database)
    assert done.code == 0, done
    assert "(extra-element): 5 in all, first in line 3: <image:title>, <video:clip>, <group>\n" in done.err, done
    assert "(loc-ignored): 1 in all, first in line 3: <group>\n" in done.err, done
