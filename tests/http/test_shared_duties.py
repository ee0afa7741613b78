# SPDX-License-Identifier: LicenseRef-Undeclared
"""Jobs that one node does for all nodes of a shared catalogue (folders, upstreams, IndexNow), and nodes whose
configurations differ."""

import pathlib
import signal
import sqlite3
import threading

from engines import Google
from harness import ORIGIN, Server, ask, eventually, faster, problem, sitemapd, write_gzip
from nodes import equal, joined, loc, no_list_begins, ready, reasons, served
from origin import Origin, answer, index, urlset

URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.example.com/%s</loc></url></urlset>'


def test_configurations_that_differ_are_reported_and_undo_nothing(cluster):
    site = "[site \"{}\"]\norigin = https://{}.example\n"
    both = site.format("one", "one") + site.format("two", "two")
    a = cluster.node("a", config=both, env=faster(10))
    managed = lambda node: {s["origin"] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}
    eventually(lambda: managed(a) == {"https://one.example", "https://two.example"}, "declared")
    eventually(lambda: "a" in {n["name"] for n in ready(a)[1]["shared"]["nodes"]}, "reported", within=60)
    b = cluster.node("b", config=site.format("one", "one"), env=faster(10))
    joined(b)
    eventually(lambda: "configuration-differs" in reasons(b) and "configuration-differs" in reasons(a), "both report it", within=60)
    assert managed(b) == managed(a) == {"https://one.example", "https://two.example"}
    problem(b.api("PATCH", f"/v1/sites/{next(s['id'] for s in b.api('GET', '/v1/sites').json()['sites'] if s['managed'])}", {"cross_hosts": []}), 409, "managed-by-config")


def test_a_node_that_reloads_knows_what_another_has_just_declared(cluster):
    """Nodes say what they declare every ten seconds: who has not said so yet is not taken for a node that does not."""
    site = "[site \"{0}\"]\norigin = https://{0}.example\n"
    managed = lambda node: {s["origin"][8:-8] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}

    def reload(node, *names):
        before = node.log().count(" reloaded:")
        config = pathlib.Path(node.folder) / "sitemapd.conf"
        config.write_text(config.read_text() + "".join(map(site.format, names)))
        node.process.send_signal(signal.SIGHUP)
        eventually(lambda: node.log().count(" reloaded:") > before, "reloaded", within=60)

    a, b = (cluster.node(name, config=site.format("one"), env=faster(10)) for name in "ab")
    for node in (a, b):
        eventually(lambda node=node: managed(node) == {"one"} and len(ready(node)[1]["shared"]["nodes"]) == 2, "each knows of the other", within=60)
    reload(a, "two")
    reload(b, "three")
    for node in (a, b):
        eventually(lambda node=node: managed(node) == {"one", "two", "three"}, "neither is undone", within=60)
    assert "site-no-longer-configured" not in a.log() + b.log()


def test_what_a_node_declared_stays_before_it_reports_it(cluster):
    site = "[site \"{}\"]\norigin = https://{}.example\n"
    managed = lambda node: {s["origin"] for s in node.api("GET", "/v1/sites").json()["sites"] if s["managed"]}
    a = cluster.node("a", config=site.format("one", "one"))
    eventually(lambda: managed(a) == {"https://one.example"}, "declared")
    a.stop()
    cluster.postgres.sql("UPDATE sitemapd.node SET state = '' WHERE name = 'a'")
    b = cluster.node("b", config=site.format("two", "two"))
    joined(b)
    eventually(lambda: "https://two.example" in managed(b), "declared")
    assert managed(b) == {"https://one.example", "https://two.example"}


def test_a_folder_is_led_by_a_node_that_has_it(cluster):
    folder, missing = cluster.folder / "files", cluster.folder / "none"
    folder.mkdir()
    write_gzip(folder / "a.xml.gz", URLSET % b"a")
    config = f'[source "files"]\ndirectory = {{}}\nurl = {ORIGIN}/files/\nsettle = 100ms\n'
    a = cluster.node("a", config=config.format(missing), env=faster(10))
    b = cluster.node("b", config=config.format(folder), env=faster(10))
    c = cluster.node("c", config=config.format(folder), env=faster(10))
    everywhere = lambda name: all(f"{ORIGIN}/files/{name}.xml.gz" in served(node) for node in (a, b, c) if node.process)
    eventually(lambda: everywhere("a"), "one that has it scans", within=60)
    eventually(lambda: "a has no folder of files" in reasons(b).get("folder-missing", ""), "named", within=60)
    result = sitemapd("doctor", f"{ORIGIN}/sitemap_index.xml", "--connect", b.public, "--sample", "0", "--json", "--server", f"http://{b.admin}", env={"SITEMAPD_TOKEN": b.token})
    assert [line["level"] for line in result.lines() if line["check"] == "server" and "a has no folder of files" in line["what"]] == ["warning"], result
    scans = eventually(lambda: [node for node in (b, c) if "source-scanned" in node.log()], "who scans says so")
    assert len(scans) == 1
    scans[0].kill()
    write_gzip(folder / "b.xml.gz", URLSET % b"b")
    eventually(lambda: everywhere("b"), "another leads", within=60)


def test_one_node_notifies_search_engines(cluster):
    """Refused twice, which is half a minute apart, by one node alone; killed, another begins with what was not taken."""
    result, taken = [], []
    with Origin() as endpoint:

        def take(connection, _head):
            result.append(1)
            taken.extend([1] if len(result) > 2 else [])
            connection.sendall(answer(200 if len(result) > 2 else 429, Connection="close"))

        endpoint.answers["/indexnow"] = take
        nodes = cluster.three(config=(
            f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
            f"indexnow_key = 5f1c6a0e7d2b49c8\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"), env=faster(10))
        begun = lambda: sqlite3.connect(f"file:{nodes[0].database}?mode=ro", uri=True).execute("SELECT 1 FROM indexnow").fetchone()
        eventually(begun, "it begins with what comes next", within=60)
        assert nodes[1].api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/shop.xml"}).status == 201
        assert nodes[1].api("POST", "/v1/urls", {"urlset": f"{ORIGIN}/shop.xml", "loc": f"{ORIGIN}/p/1"}).status == 201
        eventually(lambda: len(result) == 2, "it is notified again", within=120)
        leaders = eventually(lambda: [node for node in nodes if "indexnow-failed" in node.log()], "it says so")
        assert len(leaders) == 1
        leaders[0].kill()
        eventually(lambda: taken, "another node reports it", within=120)


def test_one_node_asks_search_engines(cluster):
    with Google() as google:
        nodes = cluster.three(config=f'[fetch]\nallow_address = 127.0.0.2\n{google.config()}')
        assert nodes[0].register(ORIGIN + "/a.xml").status == 201
        state = lambda node: node.api("GET", "/v1/engines").json()["engines"][0]["state"]
        eventually(lambda: [state(node) for node in nodes].count("ok") == 1, "one asks")
        leader = next(node for node in nodes if state(node) == "ok")
        assert google.count("submit") == 1 and google.count("list") == 1
        # Another takes over, and finds what was submitted in the engine's own list.
        leader.kill()
        others = [node for node in nodes if node is not leader]
        eventually(lambda: [state(node) for node in others].count("ok") == 1, "another asks", 120)
        assert google.count("submit") == 1 and google.count("list") == 2


def test_what_was_accepted_is_sent_once_though_nothing_can_be_written(cluster):
    """The position cannot be moved behind it while another has the lock: that alone is tried again."""
    result = []
    with Origin() as endpoint:

        def take(connection, _head):
            result.append(1)
            holding.wait(60)  # what cannot be written then is its position
            connection.sendall(answer(200, Connection="close"))

        holding = threading.Event()
        endpoint.answers["/indexnow"] = take
        a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "5s" if faster(5) else "1s"} | faster(5), config=(
            f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
            f"indexnow_key = 5f1c6a0e7d2b49c8\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"))
        joined(a)
        position = lambda: sqlite3.connect(f"file:{a.database}?mode=ro", uri=True).execute("SELECT revision FROM indexnow").fetchone()
        begun = eventually(position, "it begins with what comes next", within=60)
        assert a.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/shop.xml"}).status == 201
        assert a.api("POST", "/v1/urls", {"urlset": f"{ORIGIN}/shop.xml", "loc": f"{ORIGIN}/p/1"}).status == 201
        eventually(lambda: result, "it is reported", within=60)
        with no_list_begins(cluster, "write", "pg_advisory_lock"):
            before = a.metrics()['sitemapd_catalogue_failed_writes_total{reason="busy"}']
            holding.set()
            eventually(lambda: a.metrics()['sitemapd_catalogue_failed_writes_total{reason="busy"}'] >= before + 3, "its position is refused", within=120)
        eventually(lambda: position() > begun, "its position moves", within=60)
        assert len(result) == 1


def test_upstreams_are_polled_by_a_node_that_has_them(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        shop.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        site = f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n'
        a = cluster.node("a", config=site, env=faster(10))  # leads first
        b = cluster.node("b", config=f'{site}[source "shop"]\nupstream = {base}/list.xml\n', env=faster(10))
        joined(b)
        listed = lambda node: base.encode() + b"/a.xml" in ask(node.public, "GET", "/sitemap_index.xml", host=f"{shop.address}:{shop.port}").body
        eventually(lambda: listed(b) and listed(a), "polled", within=90)


def test_what_is_watched_for_another_nodes_upstream_stays(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/theirs.xml"] = answer(200, index(base + "/kept.xml"))
        stay = [f"{number}.xml" for number in range(4)]
        own = lambda names: answer(200, index(*(f"{base}/{name}" for name in names)))
        shop.answers["/own.xml"] = own(stay + ["goes.xml"])
        for name in ("kept.xml", "goes.xml", *stay):
            shop.answers["/" + name] = answer(200, urlset(base + "/page"))
        site = f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n'
        checks = lambda node: {check["loc"].rpartition("/")[2]: check["check"]["state"] for check in node.api("GET", "/v1/checks").json()["checks"]}
        b = cluster.node("b", config=f'{site}[source "theirs"]\nupstream = {base}/theirs.xml\n', env=faster(10))
        joined(b)
        eventually(lambda: checks(b) == {"kept.xml": "good"}, "polled by the one that has it", within=90)
        a = cluster.node("a", config=f'{site}[source "own"]\nupstream = {base}/own.xml\n', env=faster(10))
        joined(a)
        eventually(lambda: "configuration-differs" in reasons(a), "each knows what the other has", within=60)
        b.kill()
        kept = dict.fromkeys(["kept.xml", *stay], "good")
        eventually(lambda: checks(a) == {**kept, "goes.xml": "good"}, "another polls, and what it has not stays", within=90)
        shop.answers["/own.xml"] = own(stay)
        assert a.api("POST", "/v1/sources/own/scan").status < 300
        eventually(lambda: "goes.xml" not in checks(a), "it looked at all that is watched", within=90)
        assert checks(a) == kept


def test_an_upstream_is_polled_once_its_site_is_there(cluster):
    with Origin() as shop:
        base = f"http://{shop.address}:{shop.port}"
        shop.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        shop.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        a = cluster.node("a", config=f'[fetch]\nallow_address = {shop.address}\n[site "m"]\norigin = {base}\n[source "shop"]\nupstream = {base}/list.xml\n')
        b = cluster.node("b")
        joined(b)
        listed = lambda: base.encode() + b"/a.xml" in ask(a.public, "GET", "/sitemap_index.xml", host=f"{shop.address}:{shop.port}").body
        eventually(lambda: listed() or "source-scan-failed" in a.log(), "polled", within=90)
        assert "source-scan-failed" not in a.log() and "check-not-kept" not in a.log() + b.log(), a.log() + b.log()


def test_two_nodes_of_one_name_are_reported(cluster):
    """A copied configuration: all is written and served, and one of them says what is wrong until it has another name."""
    a, b = cluster.node("a", env=faster(10)), cluster.node("b", env=faster(10))
    joined(a), joined(b)
    cluster.database("twin")
    twin = Server(cluster.folder / "twin", sites=(), env=faster(10), config=f"\n[shared]\ndatabase = {cluster.postgres.url()}\nnode = b\n")
    cluster.nodes["twin"] = twin
    twin.start()
    joined(twin)
    named = lambda node: "shared-name-taken" in reasons(node)
    # The second, unless the first lost its connection meanwhile, and with it the name.
    result = eventually(lambda: [node for node in (b, twin) if named(node)], "one of them says so", within=120)
    assert len(result) == 1 and not named(a)
    eventually(lambda: "shared-name-taken: conflict: another node has the same name, b" in result[0].log(), "and in its log")
    assert twin.register(loc("one")).status == 201 and b.register(loc("two")).status == 201
    equal([a, b, twin])
    b.stop()
    eventually(lambda: not named(twin), "the only one of its name", within=60)
    assert not named(a)
