# SPDX-License-Identifier: LicenseRef-Undeclared
"""[fetch] allow_address: open to what the configuration names, and to nobody who names hosts by the API."""

import contextlib
import os
import socket
import subprocess

import pytest

from harness import BIN, Clock, Server, eventually, q, sitemapd
from origin import Origin, answer, index, urlset
from test_ipv6 import network_of_our_own

ADDRESS = "127.0.0.2"


class Inner:
    """A server at the address that is opened, with a list of one sitemap, and how often each was asked."""

    def __init__(self, origin):
        self.origin, self.host = origin, f"{origin.address}:{origin.port}"
        self.base = "http://" + self.host
        origin.answers["/list.xml"] = answer(200, index(self.base + "/a.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(self.base + "/page"))

    def asked(self):
        return [head.split(" ")[1] for head in self.origin.asked]


@pytest.fixture
def inner():
    with Origin(ADDRESS) as origin:
        yield Inner(origin)


@pytest.fixture
def mine():
    with Origin(ADDRESS) as origin:
        yield Inner(origin)


def begin(start, sites=""):
    return start(sites=(), config=f"[fetch]\nallow_address = {ADDRESS}\nrate = 1000\n{sites}")


def admin_of(server, origin):
    """The token of a tenant."""
    made = server.cli("token", "add", "tenant", "--site", origin, "--role", "admin")
    eventually(lambda: server.api("GET", "/v1/token", token=made.out.strip()).status == 200, "the token is known")
    return made.out.strip()


def watched(server, token, loc):
    """What its poll came to, once one can be asked for."""
    poll = lambda: server.api("POST", f"/v1/checks?loc={q(loc)}", token=token)
    return eventually(lambda: (lambda reply: reply.status == 200 and reply.json()["check"])(poll()), "it is watched")


def is_refused(reply):
    """A scan that was held by the guard of addresses."""
    return reply.status == 503 and f"{ADDRESS} is not a public internet address; only [fetch] allow_address of the configuration can allow it" in reply.body.decode()


def listed(server):
    """How many sitemaps the catalogue has. The answer to a scan need not say: a source that is made begins by itself."""
    return len(server.api("GET", "/v1/sitemaps").json()["sitemaps"])


def test_a_tenant_by_the_api(start, inner, mine):
    """A site that is not the file's: its token names the cross host, and makes a source of it, checks it, and polls it."""
    server = begin(start, '[site "main"]\norigin = http://www.example.com\nindex = /sitemap_index.xml\n'
                          f'cross_host = {mine.host}\n[source "mirror"]\nupstream = {mine.base}/list.xml\nindex = http://www.example.com/sitemap_index.xml\n')
    tenant = "http://tenant.example"
    site = server.api("POST", "/v1/sites", {"origin": tenant}).json()["id"]
    token = admin_of(server, tenant)
    changed = server.api("PATCH", f"/v1/sites/{site}", {"cross_hosts": [inner.host, mine.host], "check": True}, token=token)
    assert changed.status == 200, changed

    made = server.api("POST", "/v1/sources", {"name": "mine", "upstream": inner.base + "/list.xml", "index": tenant + "/sitemap_index.xml"}, token=token)
    assert made.status == 201 and made.json()["site"] == tenant, made
    assert is_refused(server.api("POST", "/v1/sources/mine/scan", token=token))
    dry = server.api("POST", "/v1/sources/mine/scan?dry_run=1", token=token)
    assert is_refused(dry), dry
    local = sitemapd("scan", "mine", "--database", server.database, "--config", server.folder / "sitemapd.conf")
    assert local.code == 1 and "address-not-allowed" in local.err, local

    named = {"loc": inner.base + "/a.xml", "index": tenant + "/sitemap_index.xml"}
    assert server.api("POST", "/v1/sitemaps", named, token=token).status == 201
    polled = lambda loc: watched(server, token, loc)
    found = polled(named["loc"])
    assert (found["state"], found["code"]) == ("unreachable", "address-not-allowed"), found
    assert inner.asked() == []

    # The operator's own is read all the while, over connections that are kept and no way in for others.
    eventually(lambda: {"/list.xml", "/a.xml"} <= set(mine.asked()), "the mirror is read")
    before = mine.asked()
    of_mirror = {"loc": mine.base + "/b.xml", "index": tenant + "/sitemap_index.xml"}
    assert server.api("POST", "/v1/sitemaps", of_mirror, token=token).status == 201
    assert polled(of_mirror["loc"])["code"] == "address-not-allowed"
    assert mine.asked() == before
    assert server.api("POST", "/v1/sources/mirror/scan").status == 200


def test_a_site_of_the_file(start, inner):
    """Its hosts are the operator's word: what the API makes on them is read there."""
    server = begin(start, f'[site "main"]\norigin = http://www.example.com\nindex = /sitemap_index.xml\ncross_host = {inner.host}\ncheck = yes\n')
    token = admin_of(server, "http://www.example.com")
    made = server.api("POST", "/v1/sources", {"name": "made", "upstream": inner.base + "/list.xml", "index": "/sitemap_index.xml", "check": False}, token=token)
    assert made.status == 201, made
    scanned = server.api("POST", "/v1/sources/made/scan", token=token)
    assert scanned.status == 200 and listed(server) == 1, scanned
    named = {"loc": inner.base + "/b.xml", "index": "/sitemap_index.xml"}
    inner.origin.answers["/b.xml"] = answer(200, urlset(inner.base + "/page"))
    assert server.api("POST", "/v1/sitemaps", named, token=token).status == 201
    assert watched(server, token, named["loc"])["state"] == "good"


def test_a_source_of_the_file_on_a_site_that_is_not(start, inner):
    """The upstream is the file's word, wherever its sitemaps are listed."""
    server = begin(start, f'[source "mirror"]\nupstream = {inner.base}/list.xml\npoll = 1h\n')
    assert server.api("POST", "/v1/sites", {"origin": inner.base}).status == 201
    scanned = server.api("POST", "/v1/sources/mirror/scan")
    assert scanned.status == 200, scanned
    good = lambda: [check["check"]["state"] for check in server.api("GET", "/v1/checks").json()["checks"]]
    eventually(lambda: good() == ["good"], "its sitemap is read")


def test_a_reload_closes_what_is_kept(start, inner):
    """An address that is not opened any more is not asked by connections of before."""
    config = f'[site "main"]\norigin = {inner.base}\n[source "mirror"]\nupstream = {inner.base}/list.xml\ncheck = no\n'
    server = begin(start, config)
    assert server.api("POST", "/v1/sources/mirror/scan").status == 200
    asked = len(inner.asked())
    conf = server.folder / "sitemapd.conf"
    conf.write_text(conf.read_text().replace(f"allow_address = {ADDRESS}\n", ""))
    server.process.send_signal(1)
    server.wait_for_log("reloaded")
    eventually(lambda: is_refused(server.api("POST", "/v1/sources/mirror/scan")), "it is refused")
    assert len(inner.asked()) <= asked + 1, "a scan may have been asked for before the reload was taken"


def test_commands_are_the_operators(inner, tmp_path):
    """What the command line fetches for who sits at the machine is open to the file's addresses, whatever the sites are."""
    (tmp_path / "site.conf").write_text(f"[fetch]\nallow_address = {ADDRESS}\n")
    more = ("--config", tmp_path / "site.conf", "--database", tmp_path / "c.db")
    assert sitemapd("site", "add", inner.base, *more).code == 0
    done = sitemapd("probe", inner.base + "/a.xml", *more)
    assert done.code == 0, done
    done = sitemapd("import", inner.base + "/list.xml", *more)
    assert done.code == 0 and inner.base + "/a.xml" in sitemapd("list", *more).out, done


PUBLIC, NOBODY = "2600::1", "2600::2"  # of the public internet, in a network of the test's own


class Tenant:
    """A server in a network where public addresses are, too, whose names are a file's; one site, made by the API, and its token."""

    def __init__(self, folder, names, origin, cross_hosts):
        self.hosts = folder / "hosts"
        self.call(names)
        self.clock = Clock(folder)
        clock = " ".join(f"{name}={value}" for name, value in self.clock.environment.items())  # not of the shell
        within = folder / "within"
        within.write_text(f"#!/bin/sh\nexec unshare -m sh -euc 'mount --bind {self.hosts} /etc/hosts; exec env {clock} {BIN} \"$@\"' sh \"$@\"\n")
        within.chmod(0o755)
        self.server = Server(folder, sites=(), config="[fetch]\nrate = 1000\n")
        self.server.binary = str(within)
        self.server.start()
        self.index = origin + "/sitemap_index.xml"
        assert self.server.api("POST", "/v1/sites", {"origin": origin, "cross_hosts": cross_hosts, "check": True}).status == 201
        self.token = admin_of(self.server, origin)

    def call(self, names):
        self.hosts.write_text("".join(f"{address} {name}\n" for address, name in names))

    def scan(self, name, upstream):
        made = self.server.api("POST", "/v1/sources", {"name": name, "upstream": upstream, "index": self.index}, token=self.token)
        assert made.status == 201, made
        return self.server.api("POST", f"/v1/sources/{name}/scan", token=self.token)

    def code(self, loc):
        polled = self.server.api("POST", f"/v1/checks?loc={q(loc)}", token=self.token)
        return polled.status == 200 and (polled.json()["check"]["code"] or polled.json()["check"]["state"])


@pytest.fixture
def network():
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mounts need root")
    with network_of_our_own(PUBLIC, NOBODY):
        yield


def test_a_public_host_leads_a_tenant_nowhere_else(network, tmp_path):
    """Each hop is checked by the address that it is connected to: of a list, of a sitemap, behind a public hop, where a name has a
    public address that nobody answers at, and once the name that was public has another."""
    with Origin(PUBLIC) as outer, Origin(ADDRESS, outer.port) as inner, contextlib.ExitStack() as ending:
        base, within, both = (f"http://{name}.example:{outer.port}" for name in ("outer", "inner", "both"))
        names = [(ADDRESS, "inner.example"), (NOBODY, "both.example"), (ADDRESS, "both.example")]
        good = answer(200, urlset(base + "/page"), Connection="close")
        inner.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        inner.answers["/a.xml"] = inner.answers["/secret.xml"] = answer(200, urlset(base + "/page"))
        outer.answers.update({
            "/a.xml": good,
            "/well.xml": answer(302, Location="/a.xml"),
            "/hop.xml": answer(302, Location=within + "/secret.xml"),
            "/hops.xml": answer(302, Location="/hop.xml"),
            "/both.xml": answer(302, Location=both + "/secret.xml"),
            "/moved.xml": answer(302, Location=within + "/list.xml"),
        })
        outer.answers["/list.xml"] = answer(200, index(*(base + path for path in ("/a.xml", "/well.xml", "/hop.xml", "/hops.xml", "/both.xml"))))
        tenant = Tenant(tmp_path, [(PUBLIC, "outer.example"), *names], base, [f"{name}.example:{outer.port}" for name in ("inner", "both")])
        ending.callback(tenant.server.stop)
        assert tenant.scan("mine", base + "/list.xml").status == 200
        assert listed(tenant.server) == 5
        assert is_refused(tenant.scan("moved", base + "/moved.xml"))
        assert is_refused(tenant.scan("inner", within + "/list.xml"))
        for path, code in (("/a.xml", "good"), ("/well.xml", "good"), ("/hop.xml", "address-not-allowed"),
                           ("/hops.xml", "address-not-allowed"), ("/both.xml", "address-not-allowed")):
            eventually(lambda: tenant.code(base + path), f"{path} is watched")
            assert tenant.code(base + path) == code, path
        tenant.call([(ADDRESS, "outer.example"), *names])
        tenant.clock.set(120)  # for which what a name had is kept
        eventually(lambda: tenant.code(base + "/a.xml") == "address-not-allowed", "the name is looked up again", 120, longest_pause=1)
        assert inner.asked == []
        socket.create_connection((ADDRESS, outer.port)).close()  # it can be reached
