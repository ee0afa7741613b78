# SPDX-License-Identifier: LicenseRef-Undeclared
"""Several catalogues in one database of PostgreSQL, each in a schema of its own."""

from concurrent import futures

import pytest

from harness import TOKEN, ask, eventually, sitemapd
from nodes import Cluster, equal, joined, loc, reasons, served, until_applied, until_its_end


@pytest.fixture
def beside(cluster, tmp_path):
    yield from until_its_end(Cluster(tmp_path / "beside", cluster.postgres, schema="shop_2"))


def test_two_catalogues_in_one_database_do_not_see_each_other(cluster, beside):
    """Nodes of equal names write to both at once: lists, single entries, sources of commands."""
    nodes = {of: [of.node(name) for name in "ab"] for of in (cluster, beside)}
    for of in nodes:
        for node in nodes[of]:
            joined(node)

    def write(node, name):
        for i in range(20):
            assert node.register(loc(f"{name}-{i}")).status == 201
            assert node.bulk([loc(f"{name}-list-{i}-{j}") for j in range(20)]).status == 200
        return {loc(f"{name}-{i}") for i in range(20)} | {loc(f"{name}-list-{i}-{j}") for i in range(20) for j in range(20)}

    with futures.ThreadPoolExecutor(4) as pool:
        writes = {of: [pool.submit(write, node, f"{of.schema}-{at}") for at, node in enumerate(nodes[of])] for of in nodes}
        written = {of: set().union(*(each.result() for each in writes[of])) for of in nodes}
    for of in nodes:
        equal(nodes[of])
        assert served(nodes[of][1]) == written[of]
        for node in nodes[of]:
            assert "shared-name-taken" not in reasons(node) and "configuration-differs" not in reasons(node)
    count = lambda schema: int(cluster.postgres.sql(f"SELECT max(seq) FROM {schema}.log"))
    assert count("sitemapd") >= 80 and count("shop_2") >= 80
    status = lambda *more: sitemapd("share", "status", "--shared", cluster.postgres.url(), *more).out
    for more in ((), ("--schema", "shop_2")):
        eventually(lambda more=more: status(*more).count(" ago") == 3, "two nodes each, and the snapshot")
    assert status().split()[1] != status("--schema", "shop_2").split()[1]
    of_file = sitemapd("add", loc("by-command"), "--shared", cluster.postgres.url(), env={"SITEMAPD_SHARED_SCHEMA": "shop_2"}, database=nodes[beside][0].database)
    assert of_file.code == 0, of_file
    eventually(lambda: loc("by-command") in served(nodes[beside][1]), "followed")
    assert loc("by-command") not in served(nodes[cluster][1])


def test_a_file_belongs_to_the_catalogue_of_its_schema(cluster, beside):
    a = cluster.node("a", env={"SITEMAPD_SHARED_SCHEMA": "shop_2"})
    eventually(lambda: "is not this node's" in reasons(a).get("shared-unavailable", ""), "reported")
    assert a.register(loc("one")).status == 503
    none = sitemapd("share", "status", "--shared", cluster.postgres.url(), "--schema", "nowhere")
    assert none.code == 1 and "no shared catalogue in schema nowhere of this database" in none.err, none
    again = sitemapd("share", "init", "--shared", cluster.postgres.url(), "--schema", "shop_2", database=cluster.database("d"))
    assert again.code == 1 and "schema shop_2 of this database already has a shared catalogue" in again.err, again


@pytest.mark.parametrize("name", ["", "Shop", "9shop", "a-b", 'a"b', "a b", "pg_shop", "public", "information_schema", "a" * 64, "größe"])
def test_a_schema_that_postgresql_would_not_take_as_it_is_is_refused(tmp_path, name):
    database, url = str(tmp_path / "catalogue.db"), "postgresql://nobody@127.0.0.1:1/none"
    for refused in (
        sitemapd("share", "init", "--shared", url, "--schema", name, database=database),
        sitemapd("share", "init", "--shared", url, env={"SITEMAPD_SHARED_SCHEMA": name}, database=database) if name else None,
    ):
        assert refused is None or (refused.code == 2 and "must be made of a-z, 0-9 and _" in refused.err) or (refused.code == 1 and "SITEMAPD_SHARED_SCHEMA" in refused.err), refused
    file = tmp_path / "sitemapd.conf"
    file.write_text(f"[shared]\nschema = {name}\n", encoding="utf-8")
    refused = sitemapd("check-config", str(file))
    assert refused.code == 1 and "sitemapd.conf:2: schema" in refused.err, refused


def test_a_site_moves_from_one_shared_catalogue_to_another(cluster, beside):
    """Through any node: every node of the other catalogue has it, to the byte, and none of the first."""
    shop, host = "https://shop.example.org", "shop.example.org"
    a, b = cluster.node("a"), cluster.node("b")
    x, y = beside.node("a"), beside.node("b")
    for node in (a, b, x, y):
        joined(node)
    assert a.api("POST", "/v1/sites", {"origin": shop, "robots": "User-agent: *\n"}).status == 201
    assert a.bulk([f"{shop}/{i}.xml" for i in range(600)]).status == 200
    for i in range(0, 600, 7):
        assert b.api("DELETE", f"/v1/sitemaps?loc={shop}/{i}.xml").status in (204, 404)
    equal([a, b])
    page = lambda node, path: (reply := ask(node.public, "GET", path, [("Accept-Encoding", "gzip")], host=host)) and (reply.status, reply.body, reply["ETag"], reply["Last-Modified"])
    paths = ("/sitemap_index.xml", "/robots.txt")
    first = {path: page(a, path) for path in paths}
    assert first["/sitemap_index.xml"][0] == 200
    move = lambda: sitemapd("site", "move", shop, "--server", f"http://{b.admin}", "--to", f"http://{y.admin}", "--finish", env={"SITEMAPD_TOKEN": TOKEN})
    moved = until_applied([b, y], move, lambda done: "nothing was applied, retry (shared-unavailable)" in done.err)
    assert moved.code == 0, moved
    equal([a, b])
    equal([x, y])
    for node in (x, y):
        eventually(lambda node=node: {path: page(node, path) for path in paths} == first, "the same pages")
    for node in (a, b):
        assert shop not in [site["origin"] for site in node.api("GET", "/v1/sites").json()["sites"]]
