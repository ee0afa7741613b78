# SPDX-License-Identifier: LicenseRef-Undeclared
"""The command line on a server (--server) and on a file: the same script of commands prints the same
and exits the same on both. What differs is what the two are called, and when things happened."""

import http.server
import json
import os
import pwd
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from harness import BIN, environment, INDEX, ORIGIN, TOKEN, Connection, eventually, request_bytes, sitemapd
from origin import Origin, answer

SHOP = "https://shop.example.org"
NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
XML = "/sitemap_index.xml"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LISTS = {
    "list.txt": f"{ORIGIN}/t1.xml\n{ORIGIN}/t2.xml\n\n{ORIGIN}/folder/\n",
    "entries.ndjson": "".join(
        json.dumps(entry) + "\n"
        for entry in (
            {"loc": ORIGIN + "/n1.xml", "lastmod": "2026-01-02T03:04:05Z"},
            {"loc": ORIGIN + "/n2.xml", "lastmod": "2026-01-03", "digest": "abc"},
            {"loc": SHOP + "/s1.xml"},
        )
    ),
    "placed.ndjson": "".join(
        json.dumps({"loc": f"{ORIGIN}/p{at}.xml", "source": "elsewhere", "index": INDEX, "position": at * 70}) + "\n" for at in (1, 4, 2)
    ),
    "bad.ndjson": f'{{"loc": "{ORIGIN}/g.xml"}}\n\n{{"loc": "/relative.xml"}}\n{{"loc": "https://elsewhere.example/x.xml"}}\n'
    f'{{"loc": "{ORIGIN}/g.xml"}}\n{{"loc": "{ORIGIN}{XML}"}}\n',
    "dates.ndjson": f'{{"loc": "{ORIGIN}/d1.xml", "lastmod": "yesterday"}}\n{{"loc": "{ORIGIN}/d2.xml", "lastmod": "2026-02-03"}}\n',
    "back.ndjson": f'{{"loc": "{ORIGIN}/n1.xml", "lastmod": "2020-01-02T03:04:05Z"}}\n',
    "empty.txt": "",
    "urlset.xml": '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>',
    "pages.xml": '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:v="http://www.google.com/schemas/sitemap-video/1.1">'
    f"<url><loc>{ORIGIN}/shop/1</loc><lastmod>2026-02-03</lastmod><changefreq>daily</changefreq>"
    "<image:image><image:loc>https://cdn.example.net/1.jpg</image:loc></image:image>"
    "<image:image><image:loc>relative.jpg</image:loc></image:image></url>"
    f'<url><loc>{ORIGIN}/shop/2?a=1&amp;b=2</loc><xhtml:link rel="alternate" hreflang="de-ch" href="{ORIGIN}/de/2"/><v:clip/></url></urlset>',
    "pages.ndjson": json.dumps({"loc": ORIGIN + "/shop/3", "images": ["https://cdn.example.net/3.jpg"], "alternates": {"x-default": ORIGIN + "/"}}) + "\n",
    "pages.txt": f"{ORIGIN}/shop/4\n{ORIGIN}/shop/5\n",
    "robots.txt": "User-agent: *\nDisallow: /private/\n",
}
SCRIPT = [
    "site list", "index list", "list", "list --json", "export", "source list", "source list --json",
    "list --contains a.xml", f"list --contains .xml --index {INDEX} --json",
    f"site add {SHOP}", f"site add {SHOP}", "site add shop.example.org", "site add https://a.example/path",
    f"site add https://b.example --no-index --cross-host cdn.example.net --host-alias b2.example --max-indexes 7",
    "site list", "site list --json", "index list",
    f"index add {SHOP}/deep/index.xml", f"index add {SHOP}/deep/index.xml", f"index add {SHOP}/x.txt", "index add https://nowhere.example/i.xml",
    f"index add {SHOP}/p/i.xml --pattern {{stem}}_{{n}}{{suffix}}", "index add /i.xml", "index list", "index list --json",
    f"site update {SHOP} --add-host-alias s2.example --add-cross-host cdn.example.com",
    f"site update {SHOP} --add-host-alias s2.example", f"site update {SHOP} --remove-host-alias other.example",
    f"site update {SHOP} --remove-cross-host cdn.example.com", f"site update {SHOP} --host-alias a.example --host-alias b.example",
    f"site update {SHOP} --no-host-aliases --max-indexes 9", f"site update {SHOP} --max-indexes 0", f"site update {SHOP}",
    f"site update {SHOP} --robots robots.txt", f"site update {SHOP} --robots robots.txt", f"site update {SHOP} --robots-off",
    f"site update {SHOP} --no-robots", "site update https://ww.example.com --max-indexes 3", f"site update {SHOP} --host-alias www.example.com",
    "site list", "site list --json",
    f"add {ORIGIN}/a.xml", f"add {ORIGIN}/a.xml", f"add {ORIGIN}/a.xml --lastmod 2026-01-31T10:20:30Z", f"add {ORIGIN}/b.xml --json --lastmod 2026-01-31",
    f"add {ORIGIN}/b.xml --digest 12ab --source job --json", f"add {ORIGIN}/b.xml --digest 12ab --lastmod 2026-03-01", f"add {ORIGIN}/folder/",
    "add www.example.com/x.xml", "add /x.xml", "add https://nowhere.example/x.xml", f"add {ORIGIN}/a.xml --lastmod soon", f"add {ORIGIN}/a.xml --source 'a b'",
    f"add {ORIGIN}/a.xml --index {SHOP}{XML}", f"add {ORIGIN}/a.xml --index {ORIGIN}/none.xml", f"add {SHOP}/deep/d.xml", f"add {ORIGIN}{XML}",
    f"add {ORIGIN}/a.xml --lastmod 2020-01-01", f"add {ORIGIN}/%C3%BC.xml --json",
    f"add https://cdn.example.net/c.xml --index https://b.example/none.xml", f"add https://cdn.example.net/c.xml",
    "list", "list --json", f"list --index {SHOP}/deep/index.xml", f"list --prefix {ORIGIN}/a", f"list --index {SHOP}/dep/index.xml",
    "list --contains b.xm", "list --contains nowhere --json", f"list --contains .xml --warned --index {INDEX}", "list --warned --json", "list --warned", "list --source job", "list --source job --contains b.xml --json", "list --source nobody", "list --source ''", "list --contains ab", f"list --contains .XML --prefix {ORIGIN}/a", f"list --contains .xml --prefix {SHOP}/", f"list --contains .xml --index {SHOP}/none.xml", f"list --contains .xml --limit 1", "export", f"export --index {INDEX}",
    "import list.txt", "import list.txt", "import entries.ndjson", "import --dry-run placed.ndjson", "import placed.ndjson", "import back.ndjson",
    "import bad.ndjson", "import --skip-invalid bad.ndjson", "import dates.ndjson", "import --drop-lastmod dates.ndjson", "import none.txt", "import urlset.xml",
    f"import --index {SHOP}{XML} list.txt", "import --source job list.txt", "import --source '*' list.txt",
    f"import --if-match x {INDEX} list.txt", "import --if-match x list.txt", f"import --if-match 'x y' --index {INDEX} list.txt",
    f"import --if-match x-1 --index {INDEX} list.txt", f"import --replace --if-match x-1 --index {INDEX} list.txt", f"import --dry-run --if-match x-1 --index {INDEX} list.txt",
    f"import --replace --index {INDEX} list.txt", f"import --replace --index {INDEX} empty.txt", f"import --replace --index {INDEX} --max-removed 9 list.txt",
    f"import --replace --source '*' --index {INDEX} list.txt", f"import --replace --source '*' --max-removed 100 --index {INDEX} list.txt",
    "import --replace entries.ndjson", "import --replace --max-removed 100 entries.ndjson", "import --replace --dry-run --source '*' --max-removed 100 entries.ndjson",
    "export", f"render {INDEX}", f"render {SHOP}/deep/index.xml", f"render {SHOP}/p/i.xml", f"render {ORIGIN}/sitemap_index-2.xml", "render /sitemap_index.xml",
    f"render {ORIGIN}/robots.txt", f"render {INDEX}.gz", f"render {ORIGIN}/nothing.xml",
    f"freeze {SHOP}", f"freeze {SHOP}", f"add {SHOP}/frozen.xml", f"import --index {SHOP}{XML} list.txt", "index list", "site list --json", f"thaw {SHOP}",
    "site list", "index list --json",
    f"freeze {INDEX}", "index list", "index list --json", "site list", f"remove {ORIGIN}/n1.xml", f"thaw {INDEX}", f"thaw {INDEX}", "freeze https://nowhere.example", f"freeze {ORIGIN}/none.xml",
    f"remove {ORIGIN}/n1.xml", f"remove {ORIGIN}/n1.xml", "remove nonsense", f"index remove {SHOP}/p/i.xml", f"index remove {SHOP}/deep/index.xml",
    f"index remove {SHOP}/deep/index.xml --max-removed 1", f"index remove {SHOP}/deep/index.xml", f"site remove {SHOP}", f"site remove {SHOP} --max-removed 5",
    f"site remove {SHOP}", f"site remove {ORIGIN} --max-removed x", f"site update {ORIGIN} --check", f"site update {ORIGIN} --check", f"site update {ORIGIN} --no-check", "source add up --upstream https://nobody.example/i.xml", f"source add up --upstream {ORIGIN}/i.xml --poll 1h", "source add up --upstream https://a/i.xml", f"source add up --upstream {ORIGIN}/j.xml", f"source add 'a b' --upstream {ORIGIN}/i.xml", "source list", "source list --json", f"source set up --index {INDEX}", f"source set up --index {ORIGIN}/none.xml", "source list", "source set up --poll 2h --no-check", "source set up --poll 2h", f"source set up --map 'https://cms.example.com {ORIGIN}'", "source set up --map ''", "source set up --map ''", "source set up --poll 1s", "source set up --serve", "source set up", "source set none --poll 1h", "source remove up", "source remove up",
    "token revoke nobody", "token list", "token list --json", "token revoke deploy", "token list", "token list --json", "backup there.db", "backup nowhere/there.db",
    "list", "index list", "export",
]


URLSETS = [
    "urlset list", "urlset list --json", f"url list --urlset {ORIGIN}/products.xml", "url list",
    f"urlset add {ORIGIN}/products.xml --with images,alternates", f"urlset add {ORIGIN}/products.xml", f"urlset add {ORIGIN}/plain.xml --max-pages 3 --expires 12w",
    f"urlset add {ORIGIN}/x.xml --with audio", f"urlset add {ORIGIN}/x.xml --expires soon", f"urlset add {ORIGIN}/x.xml --max-pages 0", "urlset add /x.xml",
    f"urlset add {ORIGIN}/x.xml --index {ORIGIN}/none.xml", "urlset add https://nowhere.example/x.xml", f"urlset add {INDEX}",
    "urlset list", "urlset list --json", "index list",
    f"url add {ORIGIN}/shop/0 --urlset /products.xml --lastmod 2026-01-31 --image https://cdn.example.net/0.jpg --alternate de={ORIGIN}/de/0 --json",
    f"url add {ORIGIN}/shop/0 --urlset {ORIGIN}/products.xml", f"url add {ORIGIN}/shop/00", f"url add {ORIGIN}/shop/00 --urlset {ORIGIN}/none.xml",
    f"url add {ORIGIN}/shop/00 --urlset /products.xml --image x", f"url add {ORIGIN}/shop/00 --urlset /products.xml --alternate x",
    f"url add {ORIGIN}/shop/00 --urlset /plain.xml --image https://cdn.example.net/0.jpg", f"url add {SHOP}/x --urlset /products.xml", f"add {ORIGIN}/products.xml",
    "import --urlset /products.xml pages.xml", "import --skip-invalid --urlset /products.xml pages.xml", "import --urlset /products.xml pages.ndjson", "import --urlset /products.xml pages.txt", "import --dry-run --urlset /plain.xml pages.txt",
    "import --urlset /products.xml --index /sitemap_index.xml pages.txt", "import --urlset /none.xml pages.txt", "import --urlset /plain.xml pages.xml",
    "import --urlset /plain.xml --drop-extensions --dry-run pages.xml", "import --urlset /plain.xml --drop-extensions pages.ndjson", "import --drop-extensions pages.txt", "url export --urlset /plain.xml", "status --json",
    "url list --urlset /products.xml", "url list --urlset /products.xml --json", "url list --urlset /products.xml --contains shop/3 --json",
    f"url list --urlset /products.xml --prefix {ORIGIN}/shop/2", "url list --urlset /products.xml --warned", "url list --urlset /products.xml --source nobody", "url list --urlset /products.xml --source deploy --json", "url export --urlset /products.xml", "list", "list --json",
    f"render {ORIGIN}/products.xml", "import --replace --urlset /products.xml pages.txt", "import --replace --max-removed 9 --urlset /products.xml pages.txt",
    f"url remove {ORIGIN}/shop/4", f"url remove {ORIGIN}/shop/4 --urlset /products.xml", f"url remove {ORIGIN}/shop/4 --urlset /products.xml",
    f"urlset add {ORIGIN}/news.xml --with news,images", f"urlset add {ORIGIN}/kept.xml --with news --expires never", "urlset list --json",
    *(f"url add {ORIGIN}/n/1 --urlset /news.xml --news-name 'The Times' --news-date {date} {rest}" for date, rest in (
        (NOW, ""), (NOW, "--news-language e --news-title T"), ("soon", "--news-language en --news-title T"), (NOW, "--news-language en --news-title 'A & B' --json"),
        (NOW, "--news-language en --news-title T --image https://cdn.example.net/n.jpg"), ("2026-01-01", "--news-language en --news-title T"))),
    f"render {ORIGIN}/news.xml", "site list", "diff --from 9 --urlset /products.xml", "diff --from 9 --urlset /none.xml", "diff --from 9 --urlset /products.xml --index /sitemap_index.xml", "diff --from 9",
    "history --urlset /products.xml --kind undo", "history --urlset /product.xml", f"history --urlset /news.xml --site {SHOP}", "history 9 --urlset /news.xml", "undo --urlset /plain.xml --to 4", "undo --urlset /plain.xml --to 9 --dry-run",
    "undo --urlset /none.xml --to 4", "undo --urlset /plain.xml", "undo 9 --urlset /plain.xml", "undo --urlset /plain.xml --index /sitemap_index.xml --to 9",
    "urlset set /products.xml", "urlset set /products.xml --max-pages 9", "urlset list --json", f"freeze {ORIGIN}/products.xml", f"url add {ORIGIN}/shop/9 --urlset /products.xml", "urlset list",
    f"thaw {ORIGIN}/products.xml", "urlset remove /products.xml", "urlset remove /products.xml --max-removed 1", "urlset remove /products.xml", "urlset list", "list", f"render {ORIGIN}/products.xml",
]


def words(line):
    return [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line)]


class Place:
    """A catalogue that commands are run on, with a folder of its own to run them in."""

    def __init__(self, folder, *options, env=None):
        self.folder, self.options, self.env = folder, options, {"TMPDIR": str(folder), **(env or {})}
        for name, text in LISTS.items():
            (folder / name).write_text(text)
        (folder / "there.db").write_text("not ours")

    def run(self, line):
        return sitemapd(*words(line), *self.options, env=self.env, cwd=str(self.folder))


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "file"
    folder.mkdir()
    database = str(folder / "catalogue.db")
    place = Place(folder, "--database", database)
    place.name, place.owner = database, "cli"
    assert place.run(f"site add {ORIGIN}").code == 0
    assert place.run("token add deploy").code == 0
    return place


@pytest.fixture
def served(start, tmp_path):
    folder, home = tmp_path / "served", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    server = start(folder=home)
    assert server.cli("token", "add", "deploy").code == 0
    place = Place(folder, env={"SITEMAPD_SERVER": f"http://{server.admin}", "SITEMAPD_TOKEN": TOKEN})
    place.name, place.owner, place.server = f"http://{server.admin}", "environment", server
    return place


def shown(place, command):
    """What it says, but for times, revisions, what the catalogue is called, and who is the owner by default."""
    text = f"exit {command.code}\n{command.out}--\n{command.err}".replace(place.name, "CATALOGUE")
    text = text.replace(f'"source":"{place.owner}"', '"source":"OWNER"')
    text = re.sub(r'"id":"[^"]*"', '"id":"ID"', TIME.sub("TIME", text))
    text = re.sub(r'"state":"[0-9a-f]{32}-\d+-[0-9a-f]+"', '"state":"STATE"', text)
    text = re.sub(r'"(etag|etag_gz)":("(\\"|[^"])*"|null)', r'"\1":"TAG"', text)
    # How polls of a source went only the server knows that made them.
    text = re.sub(r'"scanning":false,("last_poll_at".*?"members":\d+,)?', "", text)
    text = re.sub(r'"failed_at":("TIME"|null),"failure":("[^"]*"|null)', '"failed_at":"TIME"', text)
    return re.sub(r"\(revision \d+\)", "(revision N)", text)


@pytest.mark.parametrize("script", [SCRIPT, URLSETS], ids=["entries", "urlsets"])
def test_one_script_two_backends(file, served, script):
    differ = []
    for line in script:
        if line.startswith("url remove"):  # in a later second than what `diff` compares it with, by both ways
            before = int(time.time())
            eventually(lambda before=before: int(time.time()) > before, "the next second")
        here, there = shown(file, file.run(line)), shown(served, served.run(line))
        if here != there:
            differ.append(f"=== {line}\n--- file:\n{here}--- server:\n{there}")
    assert not differ, "\n".join(differ)


def state_of(place, url=INDEX):
    lines = map(json.loads, place.run("index list --json").out.splitlines())
    return next(line["state"] for line in lines if line["url"] == url)


@pytest.mark.parametrize("kind", ["file", "served"])
def test_of_two_that_saw_the_same_state_one_imports(kind, request):
    """And what the other one has is applied once it has seen what the first one did."""
    place = request.getfixturevalue(kind)
    for number in range(2):
        (place.folder / f"{number}.txt").write_text(f"{ORIGIN}/if-{number}.xml\n")
    seen, done = state_of(place), {}
    line = f"import --if-match {seen} --index {INDEX} " + "{}.txt"
    clients = [threading.Thread(target=lambda n=n: done.update({n: place.run(line.format(n))})) for n in range(2)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    first, second = sorted(done, key=lambda n: done[n].code)
    assert (done[first].code, done[second].code) == (0, 1), done
    assert done[second].err == (
        f"sitemapd: {INDEX}: conflict: has changed since the state given to --if-match (precondition-failed); "
        "nothing was applied; `sitemapd index list --json` shows its state\n"
    )
    assert f"{ORIGIN}/if-{second}.xml" not in place.run("export").out
    # Also a replace, and a check alone; and nothing that changes nothing moves the state.
    now = state_of(place)
    assert now != seen
    for options in ("--replace --source '*' --max-removed 9", "--dry-run"):
        assert place.run(f"import {options} --if-match {seen} --index {INDEX} {second}.txt").code == 1
        assert state_of(place) == now
    assert place.run(f"import --if-match {now} --index {INDEX} {first}.txt").code == 0
    replaced = place.run(f"import --replace --source '*' --max-removed 9 --if-match {now} --index {INDEX} {second}.txt")
    assert (replaced.code, "1 created, 0 updated, 0 unchanged, 1 removed" in replaced.out) == (0, True), replaced


def test_a_copy_of_a_urlset_keeps_its_bytes(file, served):
    """With images and alternates, which a sitemap brought, by NDJSON to a server; the page lists them."""
    for place in (file, served):
        assert place.run(f"urlset add {ORIGIN}/products.xml --with images,alternates").code == 0
    for line in ("import --skip-invalid --urlset /products.xml pages.xml", "import --urlset /products.xml pages.ndjson"):
        assert file.run(line).code == 0
    export = file.run("url export --urlset /products.xml").out
    (served.folder / "copy.ndjson").write_text(export)
    copied = served.run("import --replace --source * --urlset /products.xml copy.ndjson")
    assert copied.code == 0, copied
    assert served.run("url export --urlset /products.xml").out == export
    page = served.server.get("/products.xml").body.decode()
    assert page == served.run(f"render {ORIGIN}/products.xml").out == file.run(f"render {ORIGIN}/products.xml").out
    assert page.splitlines()[2:] == [
        f"<url><loc>{ORIGIN}/shop/1</loc><lastmod>2026-02-03</lastmod><image:image><image:loc>https://cdn.example.net/1.jpg</image:loc></image:image></url>",
        f'<url><loc>{ORIGIN}/shop/2?a=1&amp;b=2</loc><xhtml:link rel="alternate" hreflang="de-CH" href="{ORIGIN}/de/2"/></url>',
        f'<url><loc>{ORIGIN}/shop/3</loc><image:image><image:loc>https://cdn.example.net/3.jpg</image:loc></image:image>'
        f'<xhtml:link rel="alternate" hreflang="x-default" href="{ORIGIN}/"/></url>',
        "</urlset>",
    ]


def test_a_copy_keeps_its_bytes(file, served, tmp_path):
    """Owners and places go along, there and back."""
    for line in ("import list.txt", "import placed.ndjson", f"remove {ORIGIN}/t1.xml"):
        assert file.run(line).code == 0
    export = file.run("export").out
    (served.folder / "copy.ndjson").write_text(export)
    copied = served.run("import --replace --source * copy.ndjson")
    assert copied.code == 0, copied
    assert served.run("export").out == export
    assert served.run(f"render {INDEX}").out == file.run(f"render {INDEX}").out == served.server.get(XML).body.decode()


def test_backup_over_the_network(served, tmp_path):
    assert served.run("import list.txt").code == 0
    copied = served.run("backup copy.db")
    assert (copied.code, copied.out) == (0, f"copy.db: a copy of {served.name}\n"), copied
    copy = str(served.folder / "copy.db")
    assert os.stat(copy).st_mode & 0o077 == 0  # it has the hashes of tokens
    assert sitemapd("check", database=copy).code == 0
    assert sitemapd("export", database=copy).out == served.run("export").out
    streamed = served.run("backup -")
    assert streamed.code == 0 and streamed.raw_out[:15] == b"SQLite format 3"
    (served.folder / "streamed.db").write_bytes(streamed.raw_out)
    assert sitemapd("check", database=str(served.folder / "streamed.db")).code == 0
    assert [name for name in os.listdir(os.path.dirname(served.server.database)) if "copy-" in name] == []


def test_backup_of_a_file_to_stdout(file):
    streamed = file.run("backup -")
    assert streamed.code == 0 and streamed.raw_out[:15] == b"SQLite format 3"


def test_the_history_says_who(file):
    assert file.run(f"add {ORIGIN}/a.xml --source job").code == 0
    with sqlite3.connect(file.name) as catalogue:
        result = catalogue.execute("SELECT via, who FROM history ORDER BY revision DESC LIMIT 1").fetchone()
    assert result == ("cli", pwd.getpwuid(os.getuid()).pw_name)


def test_a_kind_of_change_that_there_is_not(file, served):
    for place in (file, served):
        for typed, result in (("replce", "did you mean replace?"), ("undone", "did you mean undo?"), ("nonsense", "use list")):
            command = place.run(f"history --kind {typed}")
            assert (command.code, command.out) == (2, "") and result in command.err, command
        assert place.run("history --kind replace").code == 0


def test_a_first_token_is_not_the_api_s(start):
    server = start(token=None)
    with sqlite3.connect(server.database) as catalogue:
        assert catalogue.execute("SELECT via FROM history WHERE kind = 'token-add'").fetchone() == ("cli",)


def test_the_history_says_who_through_a_server(served):
    """The token made the change; that it was the command line, and whose, is a note, which gives no right."""
    api, user = served.server.api, pwd.getpwuid(os.getuid()).pw_name
    assert served.run(f"add {ORIGIN}/a.xml").code == 0
    change = api("GET", "/v1/history?limit=1").json()["changes"][0]
    token = api("GET", "/v1/token").json()["name"]
    assert (change["via"], change["by"], change["note"]) == ("cli", token, user), change
    for said in ("cli", "cli; user=", "cli; user=a b", "cli; user=" + "x" * 300, "config; user=root", ""):
        loc = f"{ORIGIN}/said{len(said)}.xml"
        assert api("POST", "/v1/sitemaps", {"loc": loc}, headers=[("Sitemapd-Via", said)]).status == 201
        change = api("GET", "/v1/history?limit=1").json()["changes"][0]
        assert (change["via"], change["by"], change["note"]) == ("api", token, None), (said, change)
    reader = served.server.make_token("reader", "--role", "read")
    refused = api("POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/no.xml"}, token=reader, headers=[("Sitemapd-Via", "cli; user=root")])
    assert refused.status == 403, refused


def nameless(server):
    """Files without a name that the server holds: what it takes of the disk for slow readers."""
    folder, found = f"/proc/{server.process.pid}/fd", []
    for fd in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{fd}").endswith(" (deleted)"):
                found.append(os.stat(f"{folder}/{fd}").st_size)
        except OSError:
            pass  # closed meanwhile
    return found


def test_slow_readers_of_exports_keep_nobody_waiting(served):
    """Few are sent at once of a site, however slowly; neither others nor a site's next export wait for them."""
    server = served.server
    assert served.run(f"site add {SHOP}").code == 0
    assert server.bulk([f"{ORIGIN}/{'long' * 100}/{i}.xml" for i in range(20000)]).status == 200
    assert server.bulk([f"{SHOP}/{i}.xml" for i in range(3)]).status == 200
    tokens = {}
    for scope in (ORIGIN, SHOP):
        tokens[scope] = server.make_token(scope[8:12], "--site", scope)

    def export(token=TOKEN):
        return server.api("GET", "/v1/sitemaps", headers=[("Accept", "application/x-ndjson")], token=token)

    ask = request_bytes("GET", "/v1/sitemaps", [("Authorization", f"Bearer {tokens[ORIGIN]}"), ("Accept", "application/x-ndjson")],
                        host=server.admin)
    readers = []
    try:
        for _ in range(4):
            reader = Connection(server.admin)
            readers.append(reader)
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            reader.send(ask)
            assert reader.take(15) == b"HTTP/1.1 200 OK"
        refused = export(tokens[ORIGIN])
        assert refused.status == 503 and refused.json()["code"] == "too-many-copies" and int(refused["Retry-After"]) > 0
        assert len(nameless(server)) == 4  # and no more of the disk
        assert export(tokens[SHOP]).body.count(b"\n") == 3
        assert served.run("export").out.count("\n") == 20003
        assert server.api("GET", "/v1/sitemaps?limit=1").status == 200
    finally:
        for reader in readers:
            reader.close()
    # Their places are free, and their files gone, once the server saw that they are.
    eventually(lambda: export(tokens[ORIGIN]).status == 200, "there is a place again")
    eventually(lambda: nameless(server) == [], "their files are gone")


def test_who_leaves_while_an_export_is_made_ends_it(served):
    """Otherwise clients that request and leave would occupy the disk and the threads of exports."""
    server = served.server
    assert server.bulk([f"{ORIGIN}/{'long' * 400}/{i}.xml" for i in range(20000)]).status == 200
    whole = sum(len(line) for line in served.run("export").out.splitlines())
    ask = request_bytes("GET", "/v1/sitemaps", [("Authorization", f"Bearer {TOKEN}"), ("Accept", "application/x-ndjson")], host=server.admin)
    written = lambda: int(next(line for line in open(f"/proc/{server.process.pid}/io") if line.startswith("wchar")).split()[1])
    def at_rest():  # the bulk's log is in the file, its page on the disk
        so_far = written()
        time.sleep(1)
        return written() - so_far < whole // 100 and server.metrics()["sitemapd_catalogue_wal_bytes"] == 0

    assert eventually(at_rest, "a server that writes no more")
    before = written()
    for _ in range(4):
        with Connection(server.admin) as reader:
            reader.socket.send(ask, socket.MSG_MORE)
            reader.socket.shutdown(socket.SHUT_WR)  # in one packet: it has left before it is seen
    assert eventually(lambda: server.api("GET", "/v1/sitemaps", headers=[("Accept", "application/x-ndjson")]).status == 200, "a place")
    assert written() - before < 3 * whole, "four that nobody reads were made"


def test_commands_that_work_only_on_the_servers_machine(served):
    """It says so, and touches no file of this machine."""
    for line in ("check", "check-config", "restore x.db", "serve", "token add me", f"scan {served.folder} --url {ORIGIN}/", "crawlers import x.log"):
        command = served.run(line)
        assert command.code != 0 and command.out == "", (line, command)
        assert "on this machine" in command.err or "server's" in command.err, (line, command)


def test_server_is_refused_where_none_is_asked(served, tmp_path):
    """An option is not ignored; the environment is for other commands and stops none of these."""
    for line in ("probe https://www.example.com/a.xml", "migrate https://www.example.com", "completion bash", "check", "check-config", "restore x.db", "serve", "token add me", f"scan {tmp_path} --url {ORIGIN}/"):
        command = served.run(f"{line} --server {served.name}")
        assert command.code == 2 and command.out == "" and "server" in command.err, (line, command)
    assert served.run("completion bash").code == 0
    asked = sitemapd("healthcheck", env={"SITEMAPD_SERVER": served.name, "SITEMAPD_ADMIN_LISTEN": "127.0.0.1:1"})
    assert asked.code == 1 and "127.0.0.1:1" in asked.err, asked
    assert served.run(f"healthcheck {served.name}").code == 0
    assert sitemapd("healthcheck", "--server", served.name).code == 0


def test_the_token(served, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    served.env["SITEMAPD_TOKEN"] = ""
    result = served.run("list")
    assert result.code == 1 and "the token is missing" in result.err
    assert served.run(f"site list --token-file {token}").code == 0
    token.write_text("smd_" + "X" * 43)
    result = served.run(f"list --token-file {token}")
    assert result.code == 1 and "(unauthorized)" in result.err, result
    assert TOKEN not in result.err and "XXX" not in result.err
    token.write_text("a\r\nHost: elsewhere")
    assert served.run(f"list --token-file {token}").code == 1
    for file, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        result = served.run(f"list --token-file {file}")
        assert result.code == 1 and result.err == f"sitemapd: {file}: cannot be read: {why}\n", result
    alone = sitemapd("list", "--token-file", str(token))
    assert alone.code == 2 and "can only be used with --server" in alone.err


def test_a_token_of_one_site(served):
    """It sees and changes its own, and has no copy of the whole."""
    assert served.run(f"site add {SHOP}").code == 0
    served.env["SITEMAPD_TOKEN"] = served.server.make_token("shop", "--site", SHOP)
    assert served.run(f"add {SHOP}/a.xml").code == 0
    assert ORIGIN not in served.run("index list").out
    assert [json.loads(line)["loc"] for line in served.run("list --json").out.splitlines()] == [SHOP + "/a.xml"]
    for line in (f"add {ORIGIN}/a.xml", f"site add https://c.example", "backup copy.db"):
        result = served.run(line)
        assert result.code == 1 and "token" in result.err, (line, result)
    assert not (served.folder / "copy.db").exists()


def test_a_token_of_a_prefix(served):
    """An export, too, is only of what is under it."""
    for name in ("blog/a", "blog/b", "shop/c"):
        assert served.run(f"add {ORIGIN}/{name}.xml").code == 0
    served.env["SITEMAPD_TOKEN"] = served.server.make_token("blog", "--prefix", f"{ORIGIN}/blog/")
    assert [json.loads(line)["loc"] for line in served.run("export").out.splitlines()] == [f"{ORIGIN}/blog/a.xml", f"{ORIGIN}/blog/b.xml"]
    assert served.run(f"list --prefix {ORIGIN}/shop/ --json").out == ""
    assert served.run("backup copy.db").code == 1
    # How much the whole index holds is not for it to know: that is reported as unknown, not as nothing.
    assert re.search(rf"^ +- +1 +- +\S+ +{INDEX}$", served.run("index list").out, re.M), served.run("index list")
    assert "1 page; changed" in served.run("status").out
    for command in ("index list --json", "status --json"):
        result = json.loads(served.run(command).out)
        pages = result["pages"] if isinstance(result["pages"], int) else len(result["pages"])
        assert (result["entries"], result["bytes"], pages) == (None, None, 1), result
    (served.folder / "as.ndjson").write_text(json.dumps({"loc": f"{ORIGIN}/blog/a.xml", "source": "another"}) + "\n")
    assert served.run("import as.ndjson").code == 1  # names no other owner


def test_a_token_owns_what_it_makes(served):
    """By whichever client; so one that may change its own entries alone works from the command line, and a replace
    of one token leaves another's entries alone."""
    assert served.run(f"add {ORIGIN}/theirs.xml").code == 0
    served.env["SITEMAPD_TOKEN"] = token = served.server.make_token("nightly", "--site", ORIGIN, "--own")
    assert served.run(f"add {ORIGIN}/mine.xml").code == 0
    replaced = served.run("import --replace --max-removed 9 list.txt")
    assert replaced.code == 0 and "1 removed" in replaced.out and "1 entry of other sources was left" in replaced.err, replaced
    owners = {e["loc"]: e["source"] for e in map(json.loads, served.run("export").out.splitlines())}
    assert owners.pop(f"{ORIGIN}/theirs.xml") == "environment"
    assert set(owners.values()) == {"nightly"} and f"{ORIGIN}/mine.xml" not in owners, owners
    put = served.server.api("PUT", "/v1/sitemaps?index=" + XML + "&max_removed=9", [{"loc": f"{ORIGIN}/t1.xml"}], token=token)
    assert put.status == 200 and put.json()["removed"] == 2, put.body
    refused = served.run(f"add {ORIGIN}/theirs.xml --lastmod 2026-01-01")
    assert refused.code == 1 and "(outside-token-scope)" in refused.err, refused


def test_lines_outside_of_the_tokens_scope(served):
    """Each is reported by its line, and nothing of the list is applied."""
    served.env["SITEMAPD_TOKEN"] = served.server.make_token("blog", "--prefix", f"{ORIGIN}/blog/")
    (served.folder / "mixed.txt").write_text(f"{ORIGIN}/blog/a.xml\n{ORIGIN}/shop/b.xml\n{ORIGIN}/blog/c.xml\n{ORIGIN}/shop/d.xml\n")
    for command in ("import mixed.txt", "import --replace mixed.txt", "import --dry-run mixed.txt"):
        refused = served.run(command)
        assert refused.code == 1, refused
        assert f"mixed.txt:2: {ORIGIN}/shop/b.xml: permission denied: outside the scope of this token (outside-token-scope)" in refused.err, refused
        assert "mixed.txt:4: " in refused.err and "mixed.txt:1: " not in refused.err and "mixed.txt:3: " not in refused.err, refused
        assert "blog/" not in served.run("list").out
    # What is another site's, too.
    served.env["SITEMAPD_TOKEN"] = served.server.make_token("ours", "--site", ORIGIN)
    (served.folder / "mixed.txt").write_text(f"{ORIGIN}/blog/a.xml\nhttps://nobody.example.net/b.xml\n")
    refused = served.run("import mixed.txt")
    assert refused.code == 1 and "mixed.txt:2: https://nobody.example.net/b.xml: " in refused.err, refused


def test_an_unreachable_server(file, tmp_path):
    for url, words_ in (
        ("http://127.0.0.1:9", "onnect"), ("http://no-such-host.invalid", "no-such-host.invalid"),
        ("127.0.0.1:8081", "must be the URL"), ("http://127.0.0.1:8081/v1", "must be the URL"),
    ):
        result = sitemapd("list", "--server", url, env={"SITEMAPD_TOKEN": TOKEN})
        assert result.code == 1 and words_ in result.err and result.err.count("\n") == 1, result
    for command in ("undo 3", f"add {ORIGIN}/a.xml", f"freeze {ORIGIN}/sitemap_index.xml"):
        result = sitemapd(*command.split(), "--server", "http://127.0.0.1:9", env={"SITEMAPD_TOKEN": TOKEN})
        assert result.code == 1 and "http://127.0.0.1:9: " in result.err, result
    result = file.run("list --server http://127.0.0.1:9")
    assert result.code == 2 and "cannot be combined with --server" in result.err


def test_a_scan_of_the_servers_source(start, tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "good.xml").write_text(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{ORIGIN}/1</loc></url></urlset>')
    server = start(config=f'[source "maps"]\ndirectory = {folder}\nurl = {ORIGIN}/\nrescan = 1h\n')
    place = Place(tmp_path, "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": TOKEN})
    (folder / "bad.xml").write_text("<urlset><url></urlset>")
    # A file that is young may be in the making, and is not checked yet.
    eventually(lambda: "problem   bad.xml" in place.run("scan maps").out, "the broken file is reported")
    result = place.run("scan maps")
    assert result.code == 0 and result.out.splitlines()[-1].endswith("1 file with a problem"), result
    result = place.run("scan nothing")
    assert result.code == 2 and "source not found on the server" in result.err, result
    result = place.run("status")
    assert result.code == 1 and "(source-problems)" in result.out and "1 of 2 files listed, 1 with a problem" in result.out, result
    assert "  maps: bad.xml: line 1: " in result.out and "(malformed-xml)\n" in result.out, result


def test_a_freeze_is_seen(file, served):
    for place in (file, served):
        assert place.run(f"freeze {INDEX}").code == 0
        result = place.run("status")
        unserved = "" if place is served else "; no server runs on this catalogue"
        assert result.code == 1 and f", degraded{unserved}\n" in result.out, result
        assert f"  {INDEX} is frozen (read-only) until it is thawed (frozen)\n" in result.out, result
        assert place.run("index list").out.endswith("  (frozen)\n")
        assert place.run(f"thaw {INDEX}").code == 0 and place.run("status").code == 0
        assert place.run(f"freeze {ORIGIN}").code == 0
        assert "; frozen by a token for all sites)" in place.run("site list").out and place.run("status").code == 1


def test_a_reader_that_closes_the_pipe(served):
    """As `list | head`: it ends without a word, as on a file."""
    assert served.server.bulk([f"{ORIGIN}/{'long' * 100}/{i}.xml" for i in range(3000)]).status == 200
    for command in ("list", "export"):
        child = subprocess.Popen([BIN, command], env=environment(served.env), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout.readline() != b""
        child.stdout.close()
        result = child.stderr.read()
        assert (child.wait(), result) == (-signal.SIGPIPE, b""), command


def test_status(file, served):
    for place in (file, served):
        assert place.run("import list.txt").code == 0
        result = place.run("status")
        assert result.code == 0, result
        assert place.name in result.out and "3 entries" in result.out and "1 site" in result.out, result
        head = result.out.splitlines()[0]
        assert head.endswith(", ok" if place is served else ", ok; no server runs on this catalogue"), head
        result = json.loads(place.run("status --json").out)
        assert (result["sites"], result["indexes"], result["entries"], result["healthy"]) == (1, 1, 3, True), result
        assert re.fullmatch(r"\d+\.\d+\.\d+", result["version"])
    head = lambda: sitemapd("status", database=served.server.database).out.splitlines()[0]
    assert head().endswith(", ok"), head()
    served.server.stop()
    assert head().endswith(", ok; no server runs on this catalogue"), head()
    result = served.run("status")
    assert result.code == 1 and result.out == "", result


def test_crawlers_on_both(served):
    """One catalogue, read through its server and from the file: crawlers' visits, and which pages they lack."""
    server, kept = served.server, "read from the catalogue, which a running server updates once a minute"
    file = Place(served.folder, "--database", server.database)
    file.name, file.owner = server.database, served.owner
    for place in (file, served):
        none = place.run("crawlers")
        assert (none.code, none.out) == (0, "") and "no crawler has visited yet" in none.err, none
        assert (kept in none.err) == (place is file), none
    for line in (f"site add {SHOP}", f"add {ORIGIN}/a.xml", f"add {SHOP}/a.xml"):
        assert served.run(line).code == 0, line
    for host, agent in (("www.example.com", "Googlebot/2.1"), ("shop.example.org", "Googlebot/2.1"), ("www.example.com", "bingbot/2.0")):
        assert server.get(XML, [("User-Agent", agent)], host=host).status == 200
    fetched = lambda: [json.loads(line) for line in served.run("crawlers --json").out.splitlines()]
    ok = lambda crawler: sum(day["ok"] for day in crawler["days"])
    eventually(lambda: sum(map(ok, fetched())) == 3, "three fetches are counted")
    assert served.run(f"add {ORIGIN}/b.xml").code == 0
    eventually(lambda: sum(crawler["stale"] for crawler in fetched()) == 2, "both lack it")
    server.stop()
    assert file.run("crawlers").out.count("\n") > 1
    off = sitemapd("crawlers", database=server.database, env={"SITEMAPD_SERVER_CRAWLERS": "no"})
    assert (off.code, off.out) == (0, ""), "what a server that counts none says, though there are rows of before"
    assert file.run(f"add {SHOP}/b.xml").code == 0, "while nobody serves"
    server.start()
    served.env["SITEMAPD_SERVER"] = served.name = f"http://{server.admin}"
    answers, differ = {}, []
    for line in ("crawlers", "crawlers --json", "crawlers --stale", f"crawlers --site {SHOP}", f"crawlers --json --site {SHOP}", "crawlers googlebot",
                 "crawlers googlebot --json", "crawlers bingbot --stale", "crawlers bingbot --stale --json", f"crawlers googlebot --site {SHOP} --stale --json",
                 f"crawlers bingbot --site {SHOP}", "crawlers nobody", "crawlers a/b", "crawlers --site https://ww.example.com"):
        here, there = file.run(line), served.run(line)
        assert (kept in here.err) == (here.code == 0 and "--json" not in line) and kept not in there.err, (here, there)
        here = re.sub(rf".*{kept}.*\n", "", shown(file, here))
        answers[line] = here
        if here != shown(served, there):
            differ.append(f"=== {line}\n--- file:\n{here}--- server:\n{shown(served, there)}")
    assert not differ, "\n".join(differ)
    result = {crawler["name"]: crawler for crawler in fetched()}
    assert [(ok(result[name]), result[name]["current"], result[name]["stale"]) for name in ("googlebot", "bingbot")] == [(2, 0, 2), (1, 0, 1)], result
    assert f'"url":"{SHOP}{XML}","fetched_at":"TIME","status":200' in answers[f"crawlers googlebot --site {SHOP} --stale --json"]
    assert INDEX not in answers[f"crawlers googlebot --site {SHOP} --stale --json"] and INDEX in answers["crawlers bingbot --stale"]
    assert re.search(r"^googlebot +TIME  TIME +0 +2 +0$", answers["crawlers"], re.M), answers["crawlers"]
    for line in ("crawlers nobody", f"crawlers bingbot --site {SHOP}"):
        assert "exit 1" in answers[line] and "crawler not found" in answers[line], answers[line]


# ---- the history: the same on both -------------------------------------------------------------

def newest(place):
    result = place.run("history --limit 1 --json")
    assert result.code == 0 and result.out, result
    return json.loads(result.out)["revision"]


def history_shown(place, command, names):
    """As shown(), with revisions by the names that the test gave them, and without who and when."""
    text = shown(place, command)
    for name, revision in names.items():
        text = re.sub(rf"(^ *|\brevision |\"revision\":|\"undoes\":)({revision})\b", rf"\g<1>{name}", text, flags=re.M)
    text = re.sub(r'"by":"[^"]*"', '"by":"WHO"', text)
    text = re.sub(r'"via":"[^"]*"', '"via":"DOOR"', text)
    text = re.sub(r'"request_id":(null|"[^"]*")', '"request_id":"ID"', text)
    text = re.sub(r'"note":(null|"[^"]*")', '"note":null', text)
    text = re.sub(r"^ +(\w+)  TIME  (\S+) +\S+ +\S+ +(\+\S+ ~\S+ -\S+)(.*)$", lambda m: " ".join((*m.groups()[:3], m[4] if "of " in m[4] or "back" in m[4] else "")), text, flags=re.M)
    return re.sub(r" +(of|back to) ", r" \1 ", text)


STEPS = [  # what it is called from then on, and the command that makes it
    ("FIRST", "import entries.ndjson"),
    ("SECOND", f"import --replace --index {INDEX} --max-removed 9 list.txt"),
    ("THIRD", f"add {ORIGIN}/n1.xml --lastmod 2026-05-06"),
]
QUESTIONS = [
    "history --limit 4", "history --limit 4 --json", "history FIRST", "history FIRST --json", "history SECOND", "history SECOND --limit 1",
    f"history --loc {ORIGIN}/n1.xml", "history --kind replace", "history --kind replace --json", f"history --index {INDEX} --limit 3",
    f"history --site {SHOP}", f"history --index {SHOP}{XML} --site {ORIGIN}", "history --site https://ww.example.com", "history --since 2030-01-01",
    "history --until 2020-01-01", "history --since yesterday", "history --loc /x", "history --by nobody", "history 999999", "history x", "history 0",
    "history --limit 0", "history FIRST --by me", "history --since 1h --kind list",
    "diff --from FIRST", "diff --from FIRST --json", "diff --from FIRST --to SECOND", f"diff --from FIRST --index {SHOP}{XML}", "diff --from THIRD",
    "diff", "diff --from x", "diff --from THIRD --to FIRST", "diff --from FIRST --index /none.xml",
    "undo SECOND --dry-run", "undo SECOND --dry-run --max-removed 9", "undo SECOND --dry-run --max-removed 9 --json", "undo", f"undo SECOND --index {INDEX} --to FIRST", "undo --to FIRST", "undo x",
    "undo 999999", "undo --index /none.xml --to FIRST", f"undo --index {INDEX} --to FIRST --dry-run", f"undo --index {INDEX} --to FIRST --dry-run --json --overwrite",
    f"undo SITE", f"undo SITE --json",
]


def test_history_on_both(file, served):
    for place in (file, served):
        place.names = {}
        assert place.run(f"site add {SHOP}").code == 0
        place.names["SITE"] = newest(place)
        for name, line in STEPS:
            assert place.run(line).code == 0, line
            place.names[name] = newest(place)

    def ask(place, line):
        for name, revision in place.names.items():
            line = re.sub(rf"\b{name}\b", str(revision), line)
        return history_shown(place, place.run(line), place.names)

    differ, answers = [], {}
    for line in QUESTIONS:
        here, there = ask(file, line), ask(served, line)
        answers[line] = here
        if here != there:
            differ.append(f"=== {line}\n--- file:\n{here}--- server:\n{there}")
    assert not differ, "\n".join(differ)
    assert "+0 ~0 -0" not in answers["history FIRST"] and f"+ {ORIGIN}/n2.xml  lastmod 2026-01-03" in answers["history FIRST"]
    assert f"+ {ORIGIN}/t1.xml" in answers["diff --from FIRST"] and f"- {ORIGIN}/n2.xml" in answers["diff --from FIRST"]
    assert f"~ {ORIGIN}/n1.xml  lastmod TIME -> 2026-05-06\n" in answers["diff --from FIRST"]
    assert "+3 ~1 -1 since revision FIRST" in answers["diff --from FIRST"]
    for line in ("history 999999", "undo 999999"):
        assert re.search(r"revision 999999: the history does not have this change$", answers[line], re.M), answers[line]
    assert "exit 1" in answers["undo SITE"] and "(not-undoable)" in answers["undo SITE"]
    assert "(shrink-guard)" in answers["undo SECOND --dry-run"]
    undone = answers["undo SECOND --dry-run --max-removed 9"]
    assert "1 entry was changed since (changed-since), and stays as it is:" in undone and f"  {ORIGIN}/n1.xml\n" in undone, undone


def test_a_dry_run_reports_what_would_change(file, served):
    """The first rows, what is behind them by number, then the counts; and nothing is written."""
    old = [f'{{"loc": "{ORIGIN}/{n:02}.xml", "lastmod": "2026-01-01T00:00:00Z"}}\n' for n in range(30)]
    (file.folder / "old.ndjson").write_text("".join(old))
    (file.folder / "new.ndjson").write_text("".join(old[2:]).replace("02.xml", "x.xml").replace("2026-01-01", "2026-01-02", 2))
    for name in ("old.ndjson", "new.ndjson"):
        (served.folder / name).write_text((file.folder / name).read_text())
    result = []
    for place in (file, served):
        assert place.run("import old.ndjson --source me").code == 0
        before = place.run(f"render {INDEX}").out
        dry = place.run("import --replace --source me --max-removed 9 --dry-run new.ndjson")
        assert place.run(f"render {INDEX}").out == before
        assert place.run("import --replace --source me --max-removed 9 new.ndjson").code == 0
        undo = place.run(f"undo {newest(place)} --dry-run --max-removed 9")
        assert (dry.code, undo.code) == (0, 0), (dry, undo)
        result.append((dry.out, undo.out.replace(str(newest(place)), "N")))
    assert result[0] == result[1]
    dry, undo = result[0]
    assert dry == (
        f"- {ORIGIN}/00.xml  lastmod 2026-01-01T00:00:00Z\n- {ORIGIN}/01.xml  lastmod 2026-01-01T00:00:00Z\n"
        f"- {ORIGIN}/02.xml  lastmod 2026-01-01T00:00:00Z\n"
        f"+ {ORIGIN}/x.xml  lastmod 2026-01-02T00:00:00Z\n"
        f"~ {ORIGIN}/03.xml  lastmod 2026-01-01T00:00:00Z -> 2026-01-02T00:00:00Z\n"
        "new.ndjson: read 28: a dry run, nothing applied: 1 created, 1 updated, 26 unchanged, 3 removed, 0 rejected\n"
    )
    assert undo.endswith("revision N: would restore +3 ~1 -1; nothing is written\n"), undo
    assert f"~ {ORIGIN}/03.xml  lastmod 2026-01-02T00:00:00Z -> 2026-01-01T00:00:00Z\n" in undo, undo


def test_undo_on_both(file, served):
    """A bad deploy is taken back: what somebody changed since stays, or not; pages get their bytes back."""
    for place in (file, served):
        assert place.run("import entries.ndjson --skip-invalid").code == 0
        good, page = newest(place), place.run(f"render {INDEX}").out
        assert place.run(f"import --replace --index {INDEX} --max-removed 9 list.txt").code == 0
        bad = newest(place)
        assert place.run(f"add {ORIGIN}/n1.xml --lastmod 2026-05-06").code == 0
        before = place.run("export").out
        dry = place.run(f"undo {bad} --dry-run --max-removed 3")
        assert dry.code == 0 and "would restore +1 ~0 -3; nothing is written" in dry.out, dry
        assert place.run("export").out == before
        held = place.run(f"undo {bad} --max-removed 1")
        assert held.code == 1 and "(shrink-guard)" in held.err, held
        done = place.run(f"undo {bad} --max-removed 3")
        assert done.code == 0 and f"revision {bad}: restored +1 ~0 -3" in done.out and f"  {ORIGIN}/n1.xml\n" in done.out, done
        assert "--overwrite restores it, too" in done.out
        undone = json.loads(place.run("history --limit 1 --json").out)
        assert (undone["kind"], undone["undoes"], undone["removed"]) == ("undo", bad, 3), undone
        assert f"`sitemapd undo {undone['revision']}`" in done.out
        back = place.run(f"undo --index {INDEX} --to {good} --overwrite --max-removed 9 --json")
        assert back.code == 0 and json.loads(back.out)["dry_run"] is False, back
        assert place.run(f"render {INDEX}").out == page
        nothing = place.run(f"undo {bad}")
        assert nothing.code == 0 and "nothing to restore" in nothing.out, nothing


def test_history_is_read_beyond_a_page(file, served):
    """More changes, and more rows, than the API returns at once."""
    many = "".join(f"{ORIGIN}/many/{i:05d}.xml\n" for i in range(2500))
    for place in (file, served):
        (place.folder / "many.txt").write_text(many)
        assert place.run("import many.txt").code == 0
        result = place.run(f"history {newest(place)} --limit 2400 --json")
        assert result.code == 0 and result.out.count("\n") == 2401, result.err
        assert len({json.loads(line)["loc"] for line in result.out.splitlines()[1:]}) == 2400
        cut = place.run(f"history {newest(place)} --limit 3")
        assert cut.out.count("\n") == 5 and "the first 3" in cut.err, cut


class Spoiler:
    """Before a server: hands its answers on, the 2xx of `path` as `spoil` makes them."""

    def __init__(self, server, path, spoil):
        self.server, self.path, self.spoil = server, path, spoil

    def get(self, target, _):
        reply = self.server.api("GET", target, headers=[("Accept", "application/x-ndjson")] if self.lines(target) else ())
        spoilt = reply.status == 200 and target.partition("?")[0] == self.path
        return answer(reply.status, self.spoil(reply.body) if spoilt else reply.body)

    def lines(self, target):
        return target.startswith("/v1/diff") or target.startswith("/v1/sitemaps")


def first(body, line):
    return line + b"\n" + body.partition(b"\n")[2]


@pytest.mark.parametrize(
    "command, path, spoil",
    [
        ("diff --from 1", "/v1/diff", lambda body: first(body, b"<html>")),
        ("diff --from 1", "/v1/diff", lambda body: body + b"{}\n"),
        ("diff --from 1", "/v1/diff", lambda body: body[:-1]),
        ("list", "/v1/sitemaps", lambda body: first(body, b"<html>")),
        ("list", "/v1/sitemaps", lambda body: first(body, b"{}")),
        ("list", "/v1/sitemaps", lambda body: body[:-5]),
        ("history", "/v1/history", lambda _: b"{}"),
        ("history 2", "/v1/history/2", lambda _: b"{}"),
        ("history 2", "/v1/history/2", lambda body: body.replace(b'"after"', b'"afterwards"')),
        ("site list", "/v1/sites", lambda _: b"{}"),
        ("index list", "/v1/indexes", lambda _: b"{}"),
        ("source list", "/v1/sources", lambda _: b"{}"),
        ("crawlers", "/v1/crawlers", lambda _: b"{}"),
        ("token list", "/v1/tokens", lambda _: b"{}"),
    ],
)
def test_answers_that_are_not_the_apis_are_errors(start, command, path, spoil):
    """Never passed over as if there were nothing: an error, and an exit status that says so."""
    server = start()
    assert server.bulk([f"{ORIGIN}/{n}.xml" for n in "abc"]).status == 200
    with Origin() as between:
        say = lambda: sitemapd(*command.split(), "--server", f"http://{between.address}:{between.port}", env={"SITEMAPD_TOKEN": TOKEN})
        between.answers = Spoiler(server, "", None)
        assert say().code == 0
        between.answers = Spoiler(server, path, spoil)
        spoilt = say()
        assert spoilt.code == 1 and ("malformed" in spoilt.err or "not from the API of sitemapd" in spoilt.err), spoilt


def test_json_is_the_form_of_the_api(file, served):
    """With --json a command prints what the API returns, a line for each object, on a server and on a file."""
    for place in (file, served):
        for line in ("import list.txt", f"urlset add {ORIGIN}/products.xml"):
            assert place.run(line).code == 0
    for line, path, member in (
        ("index list", "/v1/indexes", "indexes"), ("urlset list", "/v1/urlsets", "urlsets"), ("token list", "/v1/tokens", "tokens"),
        ("history", "/v1/history", "changes"), ("crawlers", "/v1/crawlers", "crawlers"), ("source list", "/v1/sources", "sources"),
    ):
        result = served.server.api("GET", path).json()[member]
        printed = {place.name: [json.loads(row) for row in place.run(line + " --json").out.splitlines()] for place in (file, served)}
        assert printed[served.name] == result, line
        assert [list(row) for row in printed[file.name]] == [list(row) for row in result], line
    (site,) = served.server.api("GET", "/v1/sites").json()["sites"]
    assert json.loads(served.run("site list --json").out) == served.server.api("GET", f"/v1/sites/{site['id']}").json()


def test_an_update_of_a_site_reads_no_other(served):
    for n in range(5):
        assert served.run(f"site add https://s{n}.example").code == 0
    asked = lambda: sum(n for name, n in served.server.metrics().items() if "requests_total" in name and 'route="site"' in name)
    before = asked()
    assert served.run("site update https://s3.example --max-indexes 7").code == 0
    assert asked() - before == 2, "the site before, and the write, whose answer has the site after"


# ---- a server that is hostile ---------------------------------------------------------------------


class Pages(http.server.BaseHTTPRequestHandler):
    """Answers every list with a page that names a next one."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    asked = 0

    def do_GET(self):
        Pages.asked += 1
        member = {"sites": "sites", "indexes": "indexes", "urlsets": "urlsets", "tokens": "tokens", "history": "changes",
                  "pages": "pages", "sources": "sources"}.get(self.path.split("?")[0].rsplit("/", 1)[-1], "sites")
        rows, cursor = self.server.turn(Pages.asked)
        body = json.dumps({member: [{"revision": 7, "name": "x", **self.server.members}] * rows, "next": cursor}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *words):
        pass


@pytest.fixture
def endless():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.members = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


TURNS = {
    "the same cursor again": lambda asked: (1, "5"),
    "a page without rows": lambda asked: (0, str(asked)),
    "always another cursor": lambda asked: (1, str(asked + 1)),
}


@pytest.mark.parametrize("turn", TURNS)
def test_no_list_of_a_server_is_endless(endless, turn):
    endless.turn = TURNS[turn]
    where = f"http://127.0.0.1:{endless.server_port}"
    lists = (["site", "list"], ["index", "list"], ["token", "list"], ["history", "--limit", "100000"])
    for words in lists[: 1 if turn == "always another cursor" else None]:
        Pages.asked = 0
        command = sitemapd(*words, "--server", where, env={"SITEMAPD_TOKEN": "x" * 43}, database=None)
        assert command.code != 0 and "malformed list" in command.err and Pages.asked <= 1000, (words, command)
    command = sitemapd("complete", "--", "site", "show", "--server", where, "", env={"SITEMAPD_TOKEN": "x" * 43}, database=None)
    assert command.code in (0, 1)


@pytest.mark.stress
def test_no_list_of_a_server_fills_the_memory(endless):
    """Each page is as long as one may be, and there is always another."""
    endless.turn, endless.members = TURNS["always another cursor"], {"origin": "x" * (60 << 20)}
    Pages.asked = 0
    command = sitemapd("token", "list", "--server", f"http://127.0.0.1:{endless.server_port}", env={"SITEMAPD_TOKEN": "x" * 43}, database=None)
    assert command.code == 1 and "malformed list" in command.err and Pages.asked <= 6, (Pages.asked, command)


def test_no_text_of_a_server_controls_the_terminal(endless):
    """Nor does it add lines of its own."""
    evil = "\x1b]0;x\x07\x1b[2J\r\nforged \u009b1m\u202e"
    words = ("name", "origin", "url", "path", "site", "role", "prefix", "expires", "expires_at", "created_at", "last_used_at", "upstream", "directory", "index",
             "detail", "code", "by", "via", "note", "at", "kind", "frozen_by", "page_pattern", "state", "loc", "request_id")
    endless.turn = lambda asked: (1, None)
    endless.members = {word: evil for word in words} | {"host_aliases": [evil], "cross_hosts": [evil], "map": [evil]}
    where = f"http://127.0.0.1:{endless.server_port}"
    lists = (["site", "list"], ["index", "list"], ["urlset", "list"], ["token", "list"], ["source", "list"], ["crawlers"], ["history"], ["status"],
             ["status", "--server", f"b={where}"], ["shard", "map"])
    for command in lists:
        result = sitemapd(*command, "--server", f"a={where}" if len(command) > 2 or command[0] == "shard" else where, env={"SITEMAPD_TOKEN": "x" * 43}, database=None)
        assert not [c for c in result.out + result.err if c != "\n" and not c.isprintable()] and "\nforged" not in result.out + result.err, (command, result)
