# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sites and indexes: which host is whose, where a loc belongs, what the configuration owns, what
goes when one is removed, and the robots.txt of each."""

import os
import time

import pytest

from harness import INDEX, ORIGIN, eventually, locs, problem, q

XML = "/sitemap_index.xml"
SHOP = "https://shop.example.org"
BLOG = "http://blog.example.net:8080"


def index_add(server, url, **more):
    reply = server.api("POST", "/v1/indexes", {"url": url, **more})
    assert reply.status == 201, reply
    return reply.json()["id"]


def site_add(server, origin, **more):
    reply = server.api("POST", "/v1/sites", {"origin": origin, **more})
    assert reply.status == 201, reply
    return reply.json()["id"]


def site_id(server, origin):
    return {s["origin"]: s["id"] for s in server.api("GET", "/v1/sites").json()["sites"]}[origin]


def index_id(server, url):
    return {i["url"]: i["id"] for i in server.api("GET", "/v1/indexes").json()["indexes"]}[url]


def page(server, target=XML, **more):
    reply = server.get(target, **more)
    return locs(reply.body) if reply.status == 200 else reply.status


# ---- hosts --------------------------------------------------------------------------------------


def test_the_host_selects_the_site(start):
    server = start(sites=(ORIGIN, SHOP, BLOG))
    for origin in (ORIGIN, SHOP, BLOG):
        assert server.register(f"{origin}/a.xml").status == 201
    for host, origin in (
        ("www.example.com", ORIGIN), ("WWW.EXAMPLE.COM", ORIGIN), ("www.example.com:443", ORIGIN),
        ("www.example.com.", ORIGIN), ("shop.example.org", SHOP), ("shop.example.org:1234", SHOP), ("blog.example.net:8080", BLOG),
    ):
        assert page(server, host=host) == [f"{origin}/a.xml"], host
        assert server.get("/robots.txt", host=host).body.decode() == f"Sitemap: {origin}{XML}\n", host
    for host in ("", "example.com", "127.0.0.1", "www.example.com.evil.org", "shop.example.org:x", "a b", "[::1]"):
        for target in (XML, "/robots.txt", "/none"):
            reply = server.get(target, host=host)
            assert reply.status in (400, 421) and reply["Cache-Control"] == "no-store", (host, target, reply)
    for forwarded in ("shop.example.org", "shop.example.org, www.example.com"):
        assert page(server, headers={"X-Forwarded-Host": forwarded}) == [f"{ORIGIN}/a.xml"], "only a listed proxy may set it"
    # The same path is another page with each of them.
    tags = {server.get(XML, host=h)["ETag"] for h in ("www.example.com", "shop.example.org", "blog.example.net:8080")}
    assert len(tags) == 3


PROXY = """
[server]
strict_host = {strict}
trusted_proxies = {proxies}
"""


def test_a_listed_proxy_sets_the_host(start):
    server = start(sites=(ORIGIN, SHOP), config=PROXY.format(strict="no", proxies="10.0.0.1 127.0.0.1"))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{SHOP}/b.xml").status == 201
    ask = lambda forwarded, host="lb.internal": page(server, headers={"X-Forwarded-Host": forwarded}, host=host)
    assert ask("shop.example.org") == [f"{SHOP}/b.xml"]
    assert ask("www.example.com") == [f"{ORIGIN}/a.xml"]
    assert ask("www.example.com, shop.example.org") == [f"{SHOP}/b.xml"], "the last is what the proxy itself wrote"
    assert ask("shop.example.org", host="www.example.com") == [f"{SHOP}/b.xml"]
    assert ask("unknown.example", host="www.example.com") == 421
    assert page(server, host="www.example.com") == [f"{ORIGIN}/a.xml"]


def test_a_proxy_that_is_not_listed_sets_nothing(start):
    server = start(config=PROXY.format(strict="yes", proxies="10.0.0.1"))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert page(server) == [f"{ORIGIN}/a.xml"]
    assert page(server, host="lb.internal", headers={"X-Forwarded-Host": "www.example.com"}) == 421
    for host in ("lb.internal", "127.0.0.1", "example.com"):
        for target in (XML, XML + ".gz", "/robots.txt", "/none"):
            assert server.get(target, host=host).status == 421, (host, target)


def test_host_aliases(start):
    server = start(sites=(ORIGIN, SHOP))
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    me = site_id(server, ORIGIN)
    assert page(server, host="example.com") == 421
    reply = server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": ["Example.COM", "www2.example.com:8443"]})
    assert reply.status == 200 and sorted(reply.json()["host_aliases"]) == ["example.com", "www2.example.com:8443"]
    for host, found in (("example.com", 1), ("EXAMPLE.com:81", 1), ("www2.example.com:8443", 1), ("www2.example.com", 0)):
        assert page(server, host=host) == ([f"{ORIGIN}/a.xml"] if found else 421), host
    # Under another name the origin stays the catalogue's; and the alias is not an origin of locs.
    assert server.get("/robots.txt", host="example.com").body.decode() == f"Sitemap: {INDEX}\n"
    problem(server.register("https://example.com/b.xml"), 422, "site-unknown")
    # A site's own host is nobody else's alias: the origin counts.
    reply = server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": ["shop.example.org"]})
    assert page(server, host="shop.example.org") == 404, reply
    assert server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": []}).json()["host_aliases"] == []
    assert page(server, host="example.com") == 421
    for bad in (["a b"], [""], ["https://example.com"], ["ex/ample.com"]):
        assert problem(server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": bad}), 422)["field"] == "host_aliases"
    # The command line has them, too.
    done = server.cli("site", "update", ORIGIN, "--host-alias", "alias.example")
    assert done.code == 0, done
    eventually(lambda: page(server, host="alias.example") == [f"{ORIGIN}/a.xml"], "another process's change is seen")


def test_a_date_is_of_one_site_alone(start):
    """An address that another site answers at: what was there had a date, too."""
    server = start(sites=(ORIGIN, SHOP))
    me, shop = site_id(server, ORIGIN), site_id(server, SHOP)
    time.sleep(1.05 - time.time() % 1)  # so that both pages are of one second
    for origin in (SHOP, ORIGIN):
        assert server.register(f"{origin}/a.xml").status == 201
    time.sleep(1.1)
    move = lambda site, *aliases: server.api("PATCH", f"/v1/sites/{site}", {"host_aliases": list(aliases)})
    assert move(me, "alias.example").status == 200
    time.sleep(1.1)
    dates = []
    for loses, gains, body in ((me, shop, SHOP), (shop, me, ORIGIN)):
        dates.append(server.get(XML, host="alias.example")["Last-Modified"])
        assert page(server, headers={"If-Modified-Since": dates[-1]}, host="alias.example") != 304, "a name that may have been another's"
        assert server.get(XML, {"If-None-Match": server.get(XML, host="alias.example")["ETag"]}, host="alias.example").status == 304
        assert move(loses).status == 200 and move(gains, "alias.example").status == 200
        for date in dates:
            assert page(server, headers={"If-Modified-Since": date}, host="alias.example") == [f"{body}/a.xml"], dates
        time.sleep(1.1)
        for date in dates:
            assert page(server, headers={"If-Modified-Since": date}, host="alias.example") == [f"{body}/a.xml"], dates
    dates = [server.get(XML, host=host)["Last-Modified"] for host in ("alias.example", "www.example.com", "shop.example.org")]
    assert server.api("DELETE", f"/v1/sites/{me}?max_removed=9").status == 200
    for date in dates:  # one site is left: any host is its
        assert page(server, headers={"If-Modified-Since": date}, host="www.example.com") == [f"{SHOP}/a.xml"]
    time.sleep(1.1)
    # Another site may have answered at that host, with any date: only under the origin's own name are dates compared.
    date = server.get(XML, host="www.example.com")["Last-Modified"]
    assert server.get(XML, {"If-Modified-Since": date}, host="www.example.com").status == 200
    assert server.get(XML, {"If-Modified-Since": date}, host="shop.example.org").status == 304


def test_an_alias_moves_no_page(start):
    """Its pages are no others for being found at one more name: nobody fetches them again."""
    server = start(sites=(ORIGIN, SHOP))
    me = site_id(server, ORIGIN)
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    before = server.get(XML)
    at = server.api("GET", "/v1/changes?since=0").json()["next"]
    time.sleep(1.1)
    for aliases in (["alias.example"], [], ["alias.example", "www.alias.example"]):
        assert server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": aliases}).status == 200
        assert server.get(XML)["Last-Modified"] == before["Last-Modified"]
    assert [p["url"] for p in server.api("GET", f"/v1/changes?since={q(at)}").json()["pages"] if p["url"].endswith(XML)] == []
    assert server.get(XML, {"If-Modified-Since": before["Last-Modified"]}).status == 304


def test_an_alias_in_another_sites_domain_needs_a_token_for_all_sites(start):
    """The first caller does not get www.example.org, where example.org is a site of another."""
    me, deep, shop = ORIGIN, "https://blog.example.org", "https://example.org"
    server = start(sites=(me, deep, shop), config='[site "brand"]\norigin = https://brand.example\nhost_alias = example.net\n')
    ids = {origin: site_id(server, origin) for origin in (me, deep, shop)}
    tokens = {origin: server.make_token(f"t{n}", "--site", origin, "--role", "admin") for n, origin in enumerate((me, deep, shop))}
    claim = lambda origin, host: server.api("PATCH", f"/v1/sites/{ids[origin]}", {"add_host_aliases": [host]}, token=tokens[origin])
    for origin, host in ((me, "www.example.org"), (me, "WWW.example.org:8443"), (me, "a.b.example.org"), (me, "www.example.net"), (me, "www.blog.example.org"), (deep, "www.example.org"), (shop, "www.blog.example.org")):
        refused = problem(claim(origin, host), 409, "host-taken", "host_aliases")
        assert "://" not in refused["detail"], "whose it is stays unknown"
    for origin, host in ((me, "example.com"), (me, "a.www.example.com"), (me, "badexample.org"), (deep, "www.blog.example.org"), (shop, "www.example.org")):
        assert claim(origin, host).status == 200, (origin, host)
    assert server.api("PATCH", f"/v1/sites/{ids[me]}", {"add_host_aliases": ["cdn.example.org"]}).status == 200, "a token for all sites may"
    assert server.api("PATCH", f"/v1/sites/{ids[me]}", {"robots": "# mine"}, token=tokens[me]).status == 200, "what it has stays"
    assert claim(me, "m.example.com").status == 200


def test_www_is_not_part_of_a_sites_domain(start):
    """Beside https://www.example.com no other tenant gets m.example.com, even from a name of that domain."""
    me, bare, shop, deep = ORIGIN, "https://example.org", SHOP, "https://shop.example.com"
    server = start(sites=(me, bare, "https://www.example.org", shop, deep, "https://www.net"))
    tokens = {origin: server.make_token(f"t{n}", "--site", origin, "--role", "admin") for n, origin in enumerate((me, bare, shop, deep, "https://www.example.org"))}
    claim = lambda origin, host: server.api("PATCH", f"/v1/sites/{site_id(server, origin)}", {"add_host_aliases": [host]}, token=tokens[origin])
    for origin, host in ((shop, "m.example.com"), (shop, "example.com"), (deep, "example.com"), (deep, "m.example.com"), ("https://www.example.org", "m.example.org")):
        problem(claim(origin, host), 409, "host-taken", "host_aliases")
    for origin, host in ((me, "example.com"), (me, "m.example.com"), (deep, "m.shop.example.com"), (bare, "m.example.org"), (shop, "a.net")):
        assert claim(origin, host).status == 200, (origin, host)


def test_an_alias_of_one_sites_token_takes_no_name_below_it(start):
    """Otherwise one could have all of "co.uk", and no other site an alias there."""
    server = start(sites=(ORIGIN, SHOP))
    ids = [site_id(server, origin) for origin in (ORIGIN, SHOP)]
    tokens = [server.make_token(f"t{n}", "--site", origin, "--role", "admin") for n, origin in enumerate((ORIGIN, SHOP))]
    claim = lambda n, host: server.api("PATCH", f"/v1/sites/{ids[n]}", {"add_host_aliases": [host]}, token=tokens[n])
    for host in ("com", "localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]"):
        problem(claim(0, host), 403, "needs-token-of-all-sites", "host_aliases")
        assert server.api("PATCH", f"/v1/sites/{ids[0]}", {"add_host_aliases": [host]}).status == 200, "a token for all sites may"
    assert claim(0, "co.uk").status == 200
    for host in ("shop.co.uk", "www.shop.co.uk", "shop.com"):
        assert claim(1, host).status == 200, host
    problem(claim(1, "co.uk"), 409, "conflict", "host_aliases")
    problem(claim(0, "shop.co.uk"), 409, "conflict", "host_aliases")


def test_a_loc_that_several_sites_list_is_removed_from_the_index_that_is_named(start):
    server = start(sites=(ORIGIN, SHOP))
    loc, target = "https://cdn.example/a.xml", "/v1/sitemaps?loc=" + q("https://cdn.example/a.xml")
    for origin in (ORIGIN, SHOP):
        assert server.api("PATCH", f"/v1/sites/{site_id(server, origin)}", {"cross_hosts": ["cdn.example"]}).status == 200
        assert server.register(loc, index=origin + XML).status == 201
    problem(server.register(loc, lastmod="2026-01-31"), 422, "index-needed", "index")
    problem(server.api("DELETE", target), 422, "index-needed", "index")
    shop = server.make_token("shop", "--site", SHOP)
    problem(server.api("DELETE", target + "&index=" + q(INDEX), token=shop), 403, "token-of-another-site")
    refused = server.cli("remove", loc)
    assert refused.code == 1 and "index-needed" in refused.err and "--index" in refused.err, refused
    done = server.cli("remove", loc, "--index", INDEX)
    assert done.code == 0, done
    assert [row["index"] for row in server.api("GET", "/v1/sitemaps").json()["sitemaps"]] == [SHOP + XML]
    assert server.api("DELETE", target).status == 204
    problem(server.api("DELETE", target + "&index=" + q(INDEX)), 404, "not-found")


def test_a_host_belongs_to_the_site_of_its_origin(start):
    server = start(sites=(ORIGIN, SHOP))
    assert server.register(f"{SHOP}/products.xml").status == 201
    me = site_id(server, ORIGIN)
    token = server.cli("token", "add", "main", "--site", ORIGIN, "--role", "admin").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the new token")
    before = server.get(XML, host="shop.example.org").body, server.get("/robots.txt", host="shop.example.org").body
    for field in ("host_aliases", "cross_hosts"):
        for host in ("shop.example.org", "SHOP.example.org:8443"):
            problem(server.api("PATCH", f"/v1/sites/{me}", {field: [host]}, token=token), 409, "host-taken", field)
        assert server.api("PATCH", f"/v1/sites/{me}", {field: ["shop.example.org"]}).status == 200, "a token for all sites may"
    problem(server.api("PATCH", f"/v1/sites/{me}", {"max_indexes": 501}, token=token), 403, "needs-token-of-all-sites", "max_indexes")
    too_many = [f"h{i}.example" for i in range(101)]
    problem(server.api("PATCH", f"/v1/sites/{me}", {"host_aliases": too_many}, token=token), 409, "full", "host_aliases")
    # Allowed or not, the origin goes first: for requests, page names, and what is registered.
    index_add(server, f"{ORIGIN}/products.xml")
    again = server.register(f"{SHOP}/products.xml", lastmod="2026-01-31T00:00:00Z")
    assert again.status == 200 and again.json()["sitemap"]["index"] == f"{SHOP}{XML}"
    assert server.register(f"{SHOP}/products.xml", index=INDEX).status == 201, "named, it may be there as well"
    assert server.bulk([f"{SHOP}/products.xml", f"{SHOP}/new.xml"]).json()["created"] == 1
    assert page(server, host="shop.example.org") == [f"{SHOP}/products.xml", f"{SHOP}/new.xml"]
    assert page(server) == [f"{SHOP}/products.xml"]
    assert server.get("/robots.txt", host="shop.example.org").body == before[1]
    # http and https are one site, by API and by the hint of the command line.
    refused = server.api("POST", "/v1/sites", {"origin": "http://shop.example.org"})
    problem(refused, 409, "host-taken", "origin")
    assert "docs/migration.md" in refused.json()["detail"], "where the way is"
    done = server.cli("site", "add", "http://shop.example.org")
    assert done.code == 1 and "host-taken" in done.err and SHOP in done.err, done
    assert {s["origin"] for s in server.api("GET", "/v1/sites").json()["sites"]} == {ORIGIN, SHOP}
    # The command line may do all that a token for all sites may, and reports the result.
    done = server.cli("site", "update", ORIGIN, "--host-alias", "alias.example", "--host-alias", "shop.example.org")
    assert done.code == 0 and f"shop.example.org: is the host of {SHOP}" in done.err and "alias.example: is" not in done.err, done
    done = server.cli("site", "add", "https://alias.example")
    assert done.code == 0 and f"its host is an alias of {ORIGIN} as well" in done.err, done


# ---- where a loc belongs ------------------------------------------------------------------------


def test_the_deepest_index_that_may_hold_it(server):
    for path in ("/shop/index.xml", "/shop/de/index.xml", "/shop/de/other.xml"):
        index_add(server, ORIGIN + path)
    for path, index in (
        ("/a.xml", XML), ("/shop.xml", XML), ("/shopping/a.xml", XML), ("/Shop/a.xml", XML),
        ("/shop/a.xml", "/shop/index.xml"), ("/shop/dea/a.xml", "/shop/index.xml"), ("/shop/de", "/shop/index.xml"),
        ("/shop/de/", "/shop/de/index.xml"), ("/shop/de/a/b/c.xml", "/shop/de/index.xml"),
        ("/shop/../b.xml", XML), ("/x/%2e%2e/shop/de/c.xml", "/shop/de/index.xml"), ("/%73hop/d.xml", "/shop/index.xml"),
        ("/a?/shop/de/x.xml", XML),
    ):
        reply = server.register(ORIGIN + path)
        assert reply.status == 201 and reply.json()["sitemap"]["index"] == ORIGIN + index, (path, reply)
    for path, index in (("/b.xml", "/shop/index.xml"), ("/shop/b.xml", "/shop/de/index.xml"), ("/shop/x/../../b.xml", "/shop/index.xml")):
        problem(server.register(ORIGIN + path, index=ORIGIN + index), 422, "outside-directory")
    # A list goes to several.
    rows = [f"{ORIGIN}/l.xml", f"{ORIGIN}/shop/l.xml", f"{ORIGIN}/shop/de/l.xml"]
    assert server.bulk(rows).json()["created"] == 3
    for row, target in zip(rows, (XML, "/shop/index.xml", "/shop/de/index.xml")):
        assert row in page(server, target)


def test_without_an_index_at_the_root_the_rest_has_no_place(start):
    server = start(sites=())
    site_add(server, ORIGIN, index=False)
    problem(server.register(f"{ORIGIN}/a.xml"), 422, "outside-directory")
    index_add(server, f"{ORIGIN}/shop/sitemap.xml")
    assert server.register(f"{ORIGIN}/shop/a.xml").status == 201
    problem(server.register(f"{ORIGIN}/a.xml"), 422, "outside-directory")
    problem(server.register(f"{SHOP}/a.xml"), 422, "site-unknown")


def test_a_move_is_a_new_entry_at_both_ends(server):
    index_add(server, f"{ORIGIN}/shop/index.xml")
    rows = [f"{ORIGIN}/shop/{i}.xml" for i in range(3)]
    assert server.bulk([{"loc": r, "index": INDEX, "lastmod": "2026-01-31", "digest": "d"} for r in rows]).json()["created"] == 3
    entry = server.api("GET", f"/v1/sitemaps?loc={q(rows[1])}").json()["sitemaps"][0]
    moved = server.register(rows[1], index=f"{ORIGIN}/shop/index.xml").json()
    assert (moved["created"], moved["updated"]) == (0, 1)
    assert moved["sitemap"]["id"] != entry["id"] and moved["sitemap"]["index"] == f"{ORIGIN}/shop/index.xml"
    assert (moved["sitemap"]["lastmod"], moved["sitemap"]["digest"]) == ("2026-01-31", "d"), "absent fields keep what is stored"
    problem(server.api("GET", f"/v1/sitemaps/{entry['id']}"), 404)
    assert page(server) == [rows[0], rows[2]] and page(server, "/shop/index.xml") == [rows[1]]
    # There and back again: a third id; and in a list as well.
    back = server.bulk([{"loc": rows[1], "index": INDEX}]).json()
    assert back["updated"] == 1 and page(server) == rows and page(server, "/shop/index.xml") == 404
    third = server.api("GET", f"/v1/sitemaps?loc={q(rows[1])}").json()["sitemaps"][0]["id"]
    assert len({entry["id"], moved["sitemap"]["id"], third}) == 3


def test_cross_hosts(start):
    server = start(sites=(ORIGIN, SHOP))
    me = site_id(server, ORIGIN)
    index_add(server, f"{ORIGIN}/deep/index.xml")
    cdn = "https://cdn.example.net"
    problem(server.register(f"{cdn}/a.xml", index=INDEX), 422, "outside-site")
    assert server.api("PATCH", f"/v1/sites/{me}", {"cross_hosts": ["CDN.example.net", "shop.example.org"]}).status == 200
    problem(server.register(f"{cdn}/a.xml"), 422, "index-needed", "index")
    found = problem(server.bulk([f"{ORIGIN}/ok.xml", f"{cdn}/a.xml"]), 422)
    assert [(r["line"], r["code"]) for r in found["rejected"]] == [(2, "index-needed")]
    reply = server.register(f"{cdn}/a.xml", index=f"{ORIGIN}/deep/index.xml")
    assert reply.status == 201, "the directory rule is for the site's own locs"
    assert reply.json()["sitemap"]["warnings"] == ["cross-host"]
    assert page(server, "/deep/index.xml") == [f"{cdn}/a.xml"]
    # Registered, it is found again without the index.
    again = server.register(f"{cdn}/a.xml", lastmod="2026-01-31T00:00:00Z")
    assert again.status == 200 and again.json()["sitemap"]["index"] == f"{ORIGIN}/deep/index.xml"
    http = server.register("http://cdn.example.net/b.xml", index=INDEX)
    assert http.status == 201 and {"cross-host", "scheme-differs"} <= set(http.json()["sitemap"]["warnings"])
    # A cross host that is a site itself: without an index the loc belongs to its own site; the
    # same loc may be in both.
    assert server.register(f"{SHOP}/a.xml").json()["sitemap"]["index"] == f"{SHOP}{XML}"
    both = server.register(f"{SHOP}/a.xml", index=INDEX)
    assert both.status == 201 and both.json()["sitemap"]["warnings"] == ["cross-host"]
    assert len(server.api("GET", f"/v1/sitemaps?loc={q(SHOP + '/a.xml')}").json()["sitemaps"]) == 2
    problem(server.register(f"{SHOP}{XML}", index=INDEX), 422, "loc-is-index-page")
    # What is registered stays when the host is taken from the list; nothing new comes.
    assert server.api("PATCH", f"/v1/sites/{me}", {"cross_hosts": []}).status == 200
    assert page(server, "/deep/index.xml") == [f"{cdn}/a.xml"]
    problem(server.register(f"{cdn}/c.xml", index=INDEX), 422, "outside-site")
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(cdn + '/a.xml')}").status == 204


# ---- removal ------------------------------------------------------------------------------------


def test_an_index_goes_with_its_entries(server):
    shop = index_add(server, f"{ORIGIN}/shop/index.xml")
    rows = [f"{ORIGIN}/shop/{i}.xml" for i in range(1200)]
    assert server.bulk(rows).json()["created"] == 1200
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    one = server.api("GET", f"/v1/sitemaps?loc={q(rows[7])}").json()["sitemaps"][0]["id"]
    found = problem(server.api("DELETE", f"/v1/indexes/{shop}"), 409, "shrink-guard")
    assert found["would_remove"] == 1200
    problem(server.api("DELETE", f"/v1/indexes/{shop}?max_removed=1199"), 409, "shrink-guard")
    assert len(page(server, "/shop/index.xml")) == 1200
    reply = server.api("DELETE", f"/v1/indexes/{shop}?max_removed=1200")
    assert reply.status == 200 and (reply.json()["removed"], reply.json()["indexes"]) == (1200, 1), reply
    # Gone at once for everybody, though its rows go by and by.
    assert page(server, "/shop/index.xml") == 404 and server.get("/shop/index.xml.gz").status == 404
    assert server.get("/robots.txt").body.decode() == f"Sitemap: {INDEX}\n"
    assert server.metrics()["sitemapd_entries"] == 1
    problem(server.api("GET", f"/v1/sitemaps/{one}"), 404)
    assert server.api("GET", f"/v1/sitemaps?loc={q(rows[7])}").json()["sitemaps"] == []
    problem(server.api("GET", f"/v1/sitemaps?index={q(ORIGIN + '/shop/index.xml')}"), 404, "index-unknown")
    problem(server.register(rows[0], index="/shop/index.xml"), 422, "index-unknown")
    # The locs are free, and go where they now belong; the URL may be used again, with another id.
    assert server.bulk(rows[:600]).json() | {"revision": 0} == server.bulk([]).json() | {"created": 600, "revision": 0}
    assert len(page(server)) == 601
    assert index_add(server, f"{ORIGIN}/shop/index.xml") != shop
    assert page(server, "/shop/index.xml") == 404
    # An index that holds nothing needs no approval.
    assert server.api("DELETE", f"/v1/indexes/{index_id(server, ORIGIN + '/shop/index.xml')}").json()["removed"] == 0
    server.restart()
    assert len(page(server)) == 601 and server.cli("check").code == 0


def test_a_site_goes_with_its_indexes(start):
    server = start(sites=(ORIGIN, SHOP))
    shop = site_id(server, SHOP)
    index_add(server, f"{SHOP}/de/index.xml")
    rows = [f"{SHOP}/{i}.xml" for i in range(20)] + [f"{SHOP}/de/{i}.xml" for i in range(5)]
    assert server.bulk(rows + [f"{ORIGIN}/a.xml"]).status == 200
    token = server.cli("token", "add", "shop", "--site", SHOP, "--role", "admin").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the new token")
    problem(server.api("DELETE", f"/v1/sites/{shop}", token=token), 403)
    assert problem(server.api("DELETE", f"/v1/sites/{shop}"), 409, "shrink-guard")["would_remove"] == 25
    reply = server.api("DELETE", f"/v1/sites/{shop}?max_removed=25")
    assert reply.status == 200 and (reply.json()["removed"], reply.json()["indexes"]) == (25, 2), reply
    assert server.api("GET", "/v1/sites", token=token).status == 401, "its tokens are of no use any more"
    problem(server.api("GET", f"/v1/sites/{shop}"), 404)
    # One site is left: any host is its.
    assert page(server, host="shop.example.org") == [f"{ORIGIN}/a.xml"]
    problem(server.register(rows[0]), 422, "site-unknown")
    again = site_add(server, SHOP)
    assert again != shop and page(server, host="shop.example.org") == 404
    assert server.register(rows[0]).json()["created"] == 1
    # The command line, under the same guard.
    held = server.cli("site", "remove", SHOP)
    assert held.code == 1 and "shrink-guard" in held.err, held
    assert server.cli("site", "remove", SHOP, "--max-removed", "1").code == 0
    eventually(lambda: len(server.api("GET", "/v1/sites").json()["sites"]) == 1, "another process's removal is seen")


# ---- the configuration's sites ------------------------------------------------------------------

MANAGED = """
[site "main"]
origin = https://www.example.com
index = /sitemap_index.xml
index = /shop/index.xml
page_pattern = {{stem}}_{{n}}{{suffix}}
cross_host = cdn.example.net
host_alias = example.com
alias = /sitemap.xml -> /sitemap_index.xml
alias = /old/index.xml -> /shop/index.xml
robots_file = {robots}
max_indexes = 7

[site "shop"]
origin = https://shop.example.org
robots = off
"""


@pytest.fixture
def managed(start, tmp_path):
    robots = tmp_path / "robots.in"
    robots.write_text("User-agent: *\nDisallow: /cart")
    return start(sites=(), config=MANAGED.format(robots=robots))


def test_a_changed_pattern_is_reported(start, tmp_path):
    """The URLs of pages that crawlers know stay; if another pattern was configured, the log says so."""
    site = f'[site "main"]\norigin = {ORIGIN}\npage_pattern = '
    server = start(sites=(), config=site + "{stem}_{n}{suffix}\n")
    assert "page-pattern-kept" not in server.log()
    server.stop()
    with open(tmp_path / "sitemapd.conf", "w", encoding="utf-8") as file:
        file.write(site + "{stem}.{n}{suffix}\n")
    server.start()
    assert [i["page_pattern"] for i in server.api("GET", "/v1/indexes").json()["indexes"]] == ["{stem}_{n}{suffix}"]
    outcome = server.wait_for_log("page-pattern-kept")
    assert len(outcome) == 1 and INDEX in outcome[0] and "{stem}_{n}{suffix} stays, {stem}.{n}{suffix} is ignored" in outcome[0], outcome


def test_sites_of_the_configuration(managed):
    server = managed
    sites = {s["origin"]: s for s in server.api("GET", "/v1/sites").json()["sites"]}
    main = sites[ORIGIN]
    assert (main["managed"], main["cross_hosts"], main["host_aliases"], main["max_indexes"]) == (True, ["cdn.example.net"], ["example.com"], 7)
    assert (sites[SHOP]["managed"], sites[SHOP]["max_indexes"], sites[SHOP]["indexes"]) == (True, 500, 1)
    indexes = {i["url"]: i for i in server.api("GET", "/v1/indexes").json()["indexes"]}
    assert set(indexes) == {INDEX, f"{ORIGIN}/shop/index.xml", f"{SHOP}{XML}"}
    assert indexes[INDEX]["page_pattern"] == "{stem}_{n}{suffix}" and indexes[f"{SHOP}{XML}"]["page_pattern"] == "{stem}-{n}{suffix}"
    # Shown, and not changed here.
    for method, target, body in (
        ("PATCH", f"/v1/sites/{main['id']}", {"cross_hosts": []}),
        ("PATCH", f"/v1/sites/{main['id']}", {"max_indexes": 9}),
        ("DELETE", f"/v1/sites/{main['id']}", None),
        ("POST", "/v1/indexes", {"url": f"{ORIGIN}/new/index.xml"}),
        ("DELETE", f"/v1/indexes/{indexes[INDEX]['id']}", None),
    ):
        problem(server.api(method, target, body), 409, "managed-by-config")
    for args in (("site", "update", ORIGIN, "--max-indexes", "9"), ("site", "remove", ORIGIN), ("index", "add", f"{ORIGIN}/new/index.xml")):
        done = server.cli(*args)
        assert done.code == 1 and "config" in done.err, done
    problem(server.api("POST", "/v1/sites", {"origin": ORIGIN}), 409, "site-exists")
    # Its entries are the API's all the same.
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{ORIGIN}/shop/b.xml").json()["sitemap"]["index"] == f"{ORIGIN}/shop/index.xml"
    assert server.register("https://cdn.example.net/c.xml", index=INDEX).status == 201
    assert page(server, host="example.com") == [f"{ORIGIN}/a.xml", "https://cdn.example.net/c.xml"]


def test_index_aliases(managed):
    server = managed
    for path, target in (("/sitemap.xml", INDEX), ("/old/index.xml", f"{ORIGIN}/shop/index.xml")):
        for method in ("GET", "HEAD"):
            reply = server.get(path, method=method, host="example.com")
            assert reply.status == 301 and reply["Location"] == target and reply["Cache-Control"].startswith("public"), reply
        assert server.get(path + "?page=1").status == 404, "with a query it is another file"
        assert server.get(path, host="shop.example.org").status == 404
    assert server.get("/sitemap.xml.gz").status == 404


def test_robots_of_each_site(managed):
    server = managed
    assert server.get("/robots.txt").body == b"User-agent: *\nDisallow: /cart\n"
    assert server.get("/robots.txt", host="shop.example.org").status == 404, "left to the web server of that site"
    assert server.register(f"{ORIGIN}/shop/b.xml").status == 201
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{SHOP}/a.xml").status == 201
    wanted = f"User-agent: *\nDisallow: /cart\nSitemap: {ORIGIN}/shop/index.xml\nSitemap: {INDEX}\n"
    reply = server.get("/robots.txt")
    assert reply.body.decode() == wanted, "the operator's own, then every page of every index"
    assert server.get("/robots.txt", host="example.com").body.decode() == wanted
    assert server.get("/robots.txt", host="shop.example.org").status == 404
    assert server.get("/robots.txt?x=1").body.decode() == wanted
    assert server.get("/robots.txt", {"If-None-Match": reply["ETag"]}).status == 304


def test_a_section_that_goes_leaves_the_site_to_the_api(managed, tmp_path):
    server = managed
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.register(f"{SHOP}/a.xml").status == 201
    ids = {s["origin"]: s["id"] for s in server.api("GET", "/v1/sites").json()["sites"]}
    before = page(server), server.get(XML)["ETag"]
    server.stop()
    text = (tmp_path / "sitemapd.conf").read_text()
    (tmp_path / "sitemapd.conf").write_text(text[text.index('[site "shop"]') :])
    server.start()
    assert (page(server), server.get(XML)["ETag"]) == before
    assert "www.example.com" in server.wait_for_log("site-no-longer-configured")[0]
    sites = {s["origin"]: s for s in server.api("GET", "/v1/sites").json()["sites"]}
    assert {o: (s["id"], s["managed"]) for o, s in sites.items()} == {ORIGIN: (ids[ORIGIN], False), SHOP: (ids[SHOP], True)}
    # What only the file knew went with it; what the catalogue holds stays, and may be changed.
    assert server.get("/sitemap.xml").status == 404
    assert server.get("/robots.txt").body.decode() == f"Sitemap: {INDEX}\n"
    assert page(server, host="example.com") == before[0] and sites[ORIGIN]["max_indexes"] == 7
    assert server.api("PATCH", f"/v1/sites/{ids[ORIGIN]}", {"host_aliases": [], "max_indexes": 500}).status == 200
    assert page(server, host="example.com") == 421
    assert server.api("DELETE", f"/v1/indexes/{index_id(server, ORIGIN + '/shop/index.xml')}").status == 200
    # And back again: the file's, as the file says.
    server.stop()
    (tmp_path / "sitemapd.conf").write_text(text)
    server.start()
    site = server.api("GET", f"/v1/sites/{ids[ORIGIN]}").json()
    assert (site["managed"], site["max_indexes"], site["host_aliases"], site["indexes"]) == (True, 7, ["example.com"], 2)


def test_an_index_that_goes_from_a_section_stays_and_is_reported(managed, tmp_path):
    """It stays, entries and all: the file says what there is to be, not what is to be thrown away."""
    server = managed
    assert server.register(f"{ORIGIN}/shop/a.xml").status == 201
    server.stop()
    config = tmp_path / "sitemapd.conf"
    config.write_text(config.read_text().replace("index = /shop/index.xml\n", "").replace("alias = /old/index.xml -> /shop/index.xml\n", ""))
    server.start()
    assert page(server, "/shop/index.xml") == [f"{ORIGIN}/shop/a.xml"]
    assert f"{ORIGIN}/shop/index.xml" in server.wait_for_log("index-no-longer-configured")[0]


def test_restarts_with_the_same_configuration_change_nothing(managed):
    revision = managed.metrics()["sitemapd_catalogue_revision"]
    for _ in range(2):
        managed.restart()
        assert managed.metrics()["sitemapd_catalogue_revision"] == revision


# ---- the catalogue goes away --------------------------------------------------------------------


def test_robots_is_never_a_5xx(managed):
    server = managed
    assert server.register(f"{ORIGIN}/shop/a.xml").status == 201
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert page(server) == [f"{ORIGIN}/a.xml"]
    robots = server.get("/robots.txt")
    for name in ("", "-wal", "-shm"):
        if os.path.exists(server.database + name):
            os.rename(server.database + name, server.database + name + ".aside")
    eventually(lambda: server.api("GET", "/readyz").json().get("status") == "degraded", "/readyz reports it")
    for _ in range(3):
        again = server.get("/robots.txt", host="example.com")
        assert again.status == 200 and again.body == robots.body and again["ETag"] == robots["ETag"]
        assert server.get("/robots.txt", {"If-None-Match": robots["ETag"]}).status == 304
        assert server.get("/robots.txt", host="shop.example.org").status == 404
        assert server.get("/sitemap.xml").status == 301
        assert page(server) == [f"{ORIGIN}/a.xml"], "in memory"
        cold = server.get("/shop/index.xml")
        assert cold.status == 503 and cold["Retry-After"] and cold["Cache-Control"] == "no-store", cold
        refused = server.register(f"{ORIGIN}/b.xml")
        assert refused.status == 503 and refused["Retry-After"], refused
    for name in ("", "-wal", "-shm"):
        if os.path.exists(server.database + name + ".aside"):
            os.rename(server.database + name + ".aside", server.database + name)
    eventually(lambda: server.register(f"{ORIGIN}/b.xml").status in (200, 201), "it is back")
    assert page(server, "/shop/index.xml") == [f"{ORIGIN}/shop/a.xml"]
