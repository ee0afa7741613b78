# SPDX-License-Identifier: LicenseRef-Undeclared
"""Sites that are divided between servers: which host is whose, for proxies, and the sums of all."""

import json
import os

import pytest

from harness import TOKEN, Server, sitemapd
from origin import Origin, answer

SITES = {
    "a": [{"origin": "https://www.example.com", "host_aliases": ["example.com", "localhost:8080"]}, {"origin": "https://news.example.com:8443"}],
    "b": [{"origin": "https://shop.example.net"}, {"origin": "https://a.example.net"}],
}
HAPROXY = "a.example.net b\nexample.com a\nlocalhost:8080 a\nnews.example.com:8443 a\nshop.example.net b\nwww.example.com a\n"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    made = {}
    for name, sites in SITES.items():
        made[name] = Server(tmp_path_factory.mktemp(name), sites=()).start()
        for site in sites:
            assert made[name].api("POST", "/v1/sites", site).status == 201
    yield made
    for server in made.values():
        server.stop()


def servers(shards, names="ab"):
    return [word for name in names for word in ("--server", f"{name}=http://{shards[name].admin}")]


def run(*args):
    return sitemapd(*args, env={"SITEMAPD_TOKEN": TOKEN})


def test_a_map_for_haproxy(shards):
    assert run("shard", "map", *servers(shards)).out == HAPROXY
    assert run("shard", "map", *servers(shards, "ba"), "--format", "haproxy").out == HAPROXY


def test_a_map_for_nginx(shards):
    result = run("shard", "map", *servers(shards), "--format", "nginx")
    assert result.code == 0
    assert result.out == (
        'map $host $sitemapd_shard_of_host {\n    "a.example.net" b;\n    "example.com" a;\n    "shop.example.net" b;\n    "www.example.com" a;\n}\n'
        'map $http_host $sitemapd_shard {\n    default $sitemapd_shard_of_host;\n    "localhost:8080" a;\n    "news.example.com:8443" a;\n}\n')


def test_a_map_for_envoy(shards):
    route = "  routes:\n  - match: {{prefix: \"/\"}}\n    route: {{cluster: \"{0}\"}}\n"
    assert run("shard", "map", *servers(shards), "--format", "envoy").out == (
        'virtual_hosts:\n- name: "a"\n  domains:\n  - "example.com"\n  - "example.com:*"\n  - "localhost:8080"\n  - "news.example.com:8443"\n'
        '  - "www.example.com"\n  - "www.example.com:*"\n' + route.format("a")
        + '- name: "b"\n  domains:\n  - "a.example.net"\n  - "a.example.net:*"\n  - "shop.example.net"\n  - "shop.example.net:*"\n' + route.format("b"))


def test_httproutes_have_sixteen_hosts_at_most(shards, tmp_path):
    many = Server(tmp_path, sites=()).start()
    aliases = [f"h{i:02}.example.org" for i in range(20)] + ["127.0.0.1:81", "[::1]"]
    assert many.api("POST", "/v1/sites", {"origin": "https://z.example.org", "host_aliases": aliases}).status == 201
    result = run("shard", "map", "--server", f"many=http://{many.admin}", "--format", "httproute", "--gateway", "outer")
    many.stop()
    first, second = result.out.split("---\n")[1:]
    for number, route in ((1, first), (2, second)):
        assert f'kind: HTTPRoute\nmetadata:\n  name: "sitemapd-many-{number}"\n' in route and '  - name: "outer"\n' in route and '    - name: "many"\n      port: 8080\n' in route
    hosts = [line.strip()[3:-1] for route in (first, second) for line in route.split("hostnames:\n")[1].splitlines()]
    assert hosts == aliases[:20] + ["z.example.org"]  # an address is nobody's host name
    assert first.split("hostnames:\n")[1].count("\n") == 16
    refused = run("shard", "map", "--server", f"A_1=http://{many.admin}", "--format", "httproute")
    assert refused.code == 2 and "A_1 is not the name of a Kubernetes service" in refused.err, refused


@pytest.mark.parametrize("form", ["haproxy", "nginx", "envoy", "httproute"])
def test_what_is_deployed_is_compared(shards, tmp_path, form):
    check = lambda text: (file.write_text(text), run("shard", "map", *servers(shards), "--format", form, "--check", str(file)))[1]
    file = tmp_path / "map"
    good = run("shard", "map", *servers(shards), "--format", form).out
    same = check("# made by hand\n\n" + good.replace(" ", "\t") + "\n")
    assert (same.code, same.out, same.err) == (0, "", "")
    gone = check("".join(line for line in good.splitlines(True) if "shop" not in line))
    assert gone.code == 1 and gone.out.startswith("missing: ") and "shop.example.net" in gone.out and gone.out.count("\n") == (2 if form == "envoy" else 1), gone
    more = check(good + "evil\x1b[31m b\n")
    assert more.code == 1 and more.out.startswith("not in the catalogues: evil\\x1b[31m b"), more
    assert "1 line differs" in more.err
    swapped = check(good.replace("www.example.com", "X").replace("shop.example.net", "www.example.com").replace("X", "shop.example.net"))
    assert swapped.code == 1 and "differ" in swapped.err, swapped  # each has the other's host
    assert check("").code == 1
    assert run("shard", "map", *servers(shards), "--check", str(tmp_path / "nothing")).code == 1


def test_a_host_of_two_sites_on_two_shards_is_a_conflict(shards, tmp_path):
    other = Server(tmp_path, sites=()).start()
    assert other.api("POST", "/v1/sites", {"origin": "https://shop.example.net"}).status == 201
    for more in ((), ("--check", os.devnull)):
        result = run("shard", "map", *servers(shards), *servers({"c": other}, "c"), *more)
        assert result.code == 1 and result.out == "" and "shop.example.net: conflict: shards b and c both have it" in result.err, result
    other.stop()
    gone = run("shard", "map", *servers(shards), *servers({"c": other}, "c"))
    assert gone.code == 1 and gone.out == ""


def test_an_alias_of_two_sites_on_two_shards_is_left_out(shards, tmp_path):
    """Otherwise a tenant could end all new maps. One of the configuration wins."""
    for name in ("tenant", "configured"):
        (tmp_path / name).mkdir()
    other = Server(tmp_path / "tenant", sites=()).start()
    site = {"origin": "https://other.example.org", "host_aliases": ["localhost:8081", "m.other.example.org"]}
    assert other.api("POST", "/v1/sites", site).status == 201
    three = servers(shards) + servers({"c": other}, "c")
    expected = sorted(set(HAPROXY.splitlines()) - {"localhost:8080 a"} | {"other.example.org c", "m.other.example.org c"})
    for order in (three, servers({"c": other}, "c") + servers(shards, "ba")):
        result = run("shard", "map", *order)
        assert (result.code, result.out.splitlines()) == (0, expected), result
        assert "not in the map: it is a host alias of https://" in result.err and "www.example.com on shard a" in result.err and "other.example.org on shard c" in result.err, result
    config = '[site "main"]\norigin = https://third.example.org\nindex = /sitemap_index.xml\nhost_alias = localhost\n'
    configured = Server(tmp_path / "configured", sites=(), config=config).start()
    result = run("shard", "map", *three, *servers({"d": configured}, "d"))
    assert result.code == 0 and [line for line in result.out.splitlines() if line.startswith("localhost")] == ["localhost d"], result
    assert result.err.count("is ignored: it belongs to https://third.example.org on shard d") == 2, result
    other.stop()
    configured.stop()


@pytest.mark.parametrize("form", ["haproxy", "nginx", "envoy", "httproute"])
def test_an_alias_of_two_sites_stays_where_the_deployed_map_has_it(shards, tmp_path, form):
    """Otherwise a tenant could end another's alias. Also while the other's site moves."""
    other = Server(tmp_path, sites=()).start()
    alias = {"host_aliases": ["alias.example.info"]}
    path = shards["a"].api("POST", "/v1/sites", {"origin": "https://first.example.org", **alias})["Location"]
    listed, form = form in ("envoy", "httproute"), ("--format", form)
    before = run("shard", "map", *servers(shards), *form)
    (tmp_path / "deployed").write_text(before.out)
    second = {"origin": "https://second.example.org", **alias}
    assert other.api("POST", "/v1/sites", second).status == 201
    three = servers(shards) + servers({"c": other}, "c")
    lines = lambda result: [line for line in result.out.splitlines() if "alias.example.info" in line]
    try:
        undecided = run("shard", "map", *three, *form)
        assert undecided.code == 0 and lines(undecided) == [] and "not in the map" in undecided.err, undecided
        only = run("shard", "map", *servers({"c": other}, "c"), *form)
        for order in (three, servers({"c": other}, "c") + servers(shards)):
            result = run("shard", "map", *order, *form, str(tmp_path / "deployed"))
            assert result.code == 0 and lines(result) == lines(before), result
            assert not listed or order is not three or result.out.startswith(before.out), result
            assert "the host alias of https://second.example.org on shard c is ignored: it belongs to https://first.example.org on shard a" in result.err, result
            (tmp_path / "new").write_text(result.out)
            assert run("shard", "map", *order, *form, "--check", str(tmp_path / "new")).code == 0
        assert shards["a"].api("PATCH", path, {"leaving": True}).status == 200
        moving = run("shard", "map", *three, *form, str(tmp_path / "deployed"))
        assert moving.code == 0 and lines(moving) == lines(result), moving
        (tmp_path / "deployed").write_text(only.out)
        moved = run("shard", "map", *three, *form, str(tmp_path / "deployed"))
        assert moved.code == 0 and lines(moved) == lines(only), moved
        assert not listed or moved.out.endswith(only.out.removeprefix("virtual_hosts:\n")), moved
    finally:
        assert shards["a"].api("DELETE", path).status == 200
        other.stop()
    assert run("shard", "map", *servers(shards), str(tmp_path / "nothing")).code == 1


def test_an_alias_takes_no_host_of_a_site_on_another_shard(shards, tmp_path):
    """A site's own token can add it there, where nobody knows the other site; nor while that site moves."""
    other = Server(tmp_path, sites=()).start()
    site = {"origin": "https://other.example.org", "host_aliases": ["shop.example.net", "example.com", "free.example.net"]}
    assert other.api("POST", "/v1/sites", site).status == 201
    expected = "".join(sorted(HAPROXY.splitlines(True) + ["free.example.net c\n", "other.example.org c\n"]))
    ids = {name: next(s["id"] for s in shards[name].api("GET", "/v1/sites").json()["sites"] if s["origin"] == origin) for name, origin in (("a", "https://www.example.com"), ("b", "https://shop.example.net"))}
    for state in ({"leaving": True}, {"frozen": False}):
        for name, site_id in ids.items():
            assert shards[name].api("PATCH", f"/v1/sites/{site_id}", state).status == 200
        for order in (servers(shards) + servers({"c": other}, "c"), servers({"c": other}, "c") + servers(shards)):
            result = run("shard", "map", *order)
            assert (result.code, result.out) == (0, expected), result
            for host, why in (("shop.example.net", "belongs to https://shop.example.net on shard b"), ("example.com", "is in or above the domain of https://www.example.com on shard a")):
                assert f"{host}: the host alias of https://other.example.org on shard c is ignored: it {why}" in result.err, result
    other.stop()


def alias_token(server, origin):
    """A token with which a tenant can add aliases of its own site; and the site's path."""
    made = server.api("POST", "/v1/sites", {"origin": origin})
    assert made.status == 201
    return made["Location"], sitemapd("token", "add", "tenant", "--role", "admin", "--site", origin, database=server.database).out.strip()


def add_aliases(server, tenant, *hosts):
    path, token = tenant
    assert server.api("PATCH", path, {"add_host_aliases": hosts}, token=token).status == 200


@pytest.mark.parametrize("form", ["haproxy", "nginx", "envoy", "httproute"])
def test_an_alias_with_a_port_takes_no_host_of_a_site_on_another_shard(shards, tmp_path, form):
    """A proxy looks for www.example.com:443 before www.example.com, or for the name alone."""
    other = Server(tmp_path, sites=()).start()
    tenant = alias_token(other, "https://other.example.org")
    third = servers({"c": other}, "c")
    clean = run("shard", "map", *servers(shards), *third, "--format", form)
    assert clean.code == 0 and clean.err == "", clean
    add_aliases(other, tenant, "www.example.com:443", "shop.example.net:443", "shop.example.net:8443", "news.example.com:444")
    for order in (servers(shards) + third, third + servers(shards, "ba")):
        result = run("shard", "map", *order, "--format", form)
        assert result.code == 0 and sorted(result.out.splitlines()) == sorted(clean.out.splitlines()), result
        assert result.err.count("is ignored") == 4, result
        assert "the host alias of https://other.example.org on shard c is ignored: it belongs to https://www.example.com on shard a" in result.err, result
    other.stop()


def test_an_alias_is_not_in_or_above_the_domain_of_a_site_on_another_shard(shards, tmp_path):
    """As within one catalogue. Aliases of the configuration may be there, and have a domain, too."""
    for name in ("tenant", "configured"):
        (tmp_path / name).mkdir()
    other = Server(tmp_path / "tenant", sites=()).start()
    tenant = alias_token(other, "https://other.example.org")
    config = '[site "main"]\norigin = https://third.example.org\nindex = /sitemap_index.xml\nhost_alias = c.example.com\nhost_alias = cdn.example.info\n'
    configured = Server(tmp_path / "configured", sites=(), config=config).start()
    four = servers(shards) + servers({"c": other, "d": configured}, "cd")
    clean = run("shard", "map", *four)
    assert clean.code == 0 and clean.err == "" and {"c.example.com d", "cdn.example.info d"} < set(clean.out.splitlines()), clean
    ignored = {"m.example.com": "www.example.com on shard a", "a.b.example.com:81": "www.example.com on shard a", "x.shop.example.net": "shop.example.net on shard b",
               "example.net": ".example.net on shard b", "example.info:443": "third.example.org on shard d", "x.cdn.example.info": "third.example.org on shard d"}
    add_aliases(other, tenant, "m.other.example.org", "free.example.net", "notexample.com", *ignored)
    for order in (four, servers({"d": configured, "c": other}, "dc") + servers(shards, "ba")):
        result = run("shard", "map", *order)
        assert result.code == 0 and set(result.out.splitlines()) - set(clean.out.splitlines()) == {"m.other.example.org c", "free.example.net c", "notexample.com c"}, result
        assert set(clean.out.splitlines()) < set(result.out.splitlines()) and result.err.count("is ignored") == len(ignored), result
        for host, owner in ignored.items():
            line = next(line for line in result.err.splitlines() if f" {host}: " in line)
            assert "the host alias of https://other.example.org on shard c is ignored: it is in or above the domain of https://" in line and owner in line, result
    other.stop()
    configured.stop()


def test_sites_with_one_name_and_different_ports(shards, tmp_path):
    """Each may be on its own shard, but not if the format has no ports. No host is printed twice on the same shard."""
    other = Server(tmp_path, sites=()).start()
    site = {"origin": "https://shop.example.net:8443", "host_aliases": ["example.org:81", "example.org", "example.org.uk"]}
    assert other.api("POST", "/v1/sites", site).status == 201
    result = run("shard", "map", *servers(shards), *servers({"c": other}, "c"))
    assert result.code == 0 and {"shop.example.net b", "shop.example.net:8443 c"} < set(result.out.splitlines()), result
    result = run("shard", "map", *servers(shards), *servers({"c": other}, "c"), "--format", "httproute")
    assert result.code == 1 and result.out == "" and "shop.example.net: conflict: shards b and c both have it" in result.err, result
    alone = run("shard", "map", *servers({"c": other}, "c"), "--format", "httproute")
    assert alone.out.split("hostnames:\n")[1] == '  - "example.org"\n  - "example.org.uk"\n  - "shop.example.net"\n', alone
    other.stop()


@pytest.mark.parametrize("site", [
    {"origin": "https://a.example.org\n evil b"}, {"origin": "https://a.example.org", "host_aliases": ['x" b; } evil {']},
    {"origin": 5}, {"origin": "https://a.example.org", "host_aliases": [None]}, {"origin": "https://" + "a" * 300 + ".org"}, "text",
])
def test_what_is_not_a_host_ends_in_no_map(site):
    with Origin() as lies:
        lies.answers["/v1/sites?limit=1000"] = answer(body=json.dumps({"sites": [site], "next": None}).encode(), Content_Type="application/json")
        result = run("shard", "map", "--server", f"lies=http://{lies.address}:{lies.port}")
        assert result.code == 1 and result.out == "" and "malformed" in result.err and "\n evil" not in result.err, result


@pytest.mark.parametrize("args, words", [
    ([], "the servers are missing"),
    (["--server", "a b=http://127.0.0.1:1"], "has no usable name"),
    (["--server", "http://[::1]:1"], "has no usable name"),
    (["--server", "nothing"], "must be NAME=URL"),
    (["--server", "a=http://127.0.0.1:1", "--server", "a=http://127.0.0.1:2"], "two servers are named a"),
    (["--server", "a=http://127.0.0.1:1", "--check"], "needs the FILE"),
    (["--server", "a=http://127.0.0.1:1", "--format", "apache"], "must be haproxy, nginx, envoy or httproute"),
    (["--server", "a=http://127.0.0.1:1", "--format", "httproute", "--gateway", "x\ny"], "is not the name of a Kubernetes object"),
])
def test_wrong_usage(args, words):
    result = run("shard", "map", *args)
    assert result.code == 2 and words in result.err and result.out == "", result


def test_each_server_may_have_a_token_of_its_own(shards, tmp_path):
    files = []
    for name in "ab":
        made = sitemapd("token", "add", "maps", "--role", "read", database=shards[name].database)
        assert made.code == 0, made
        files.append(tmp_path / name)
        files[-1].write_text(made.out)
    named = [word for file in files for word in ("--token-file", str(file))]
    assert sitemapd("shard", "map", *servers(shards), *named).out == HAPROXY
    assert sitemapd("shard", "map", *servers(shards, "ba"), *named).code == 1  # each other's
    assert sitemapd("shard", "map", *servers(shards), *named, "--token-file", "x").code == 2


def test_status_sums(shards):
    assert shards["a"].register("https://www.example.com/a.xml").status == 201
    for name in "ab":
        assert shards[name].register({"a": "https://news.example.com:8443/b.xml", "b": "https://shop.example.net/c.xml"}[name]).status == 201
    result = run("status", *servers(shards))
    assert result.code == 0, result
    a, b, both = result.out.splitlines()
    assert a.startswith("a: ok; 2 sites, 2 indexes, 0 urlsets, 2 pages, 2 entries, 0 page URLs, ") and b.startswith("b: ok; 2 sites, 2 indexes, ")
    assert both.startswith("all shards: ok; 4 sites, 4 indexes, 0 urlsets, ") and " 3 entries, " in both
    lines = [json.loads(line) for line in run("status", *servers(shards), "--json").out.splitlines()]
    assert [line.get("shard") for line in lines] == ["a", "b", None] and lines[2]["all"] == "all shards"
    for member in ("sites", "indexes", "pages", "entries", "bytes"):
        assert lines[2][member] == lines[0][member] + lines[1][member]
    away = run("status", *servers(shards), "--server", "away=http://127.0.0.1:1")
    assert away.code == 1 and "all shards: degraded; 4 sites" in away.out, away
