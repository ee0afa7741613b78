# SPDX-License-Identifier: LicenseRef-Undeclared
"""Random registrations, changes and removals from the API and from other processes at once: what is
served in the end is what a naive renderer makes of the catalogue, byte for byte."""

import random
import threading
import urllib.parse

import pytest

from harness import INDEX, ORIGIN, eventually, gunzip, render_export

XML = "/sitemap_index.xml"
DATES = [None, "2026-01-31", "2026-01-31T10:20:30Z", "2025-12-24T01:02:03.456+01:00", "2020", "2021-06"]


def api_steps(server, chance, names, failures):
    """One client: registers, changes, removes, in bulk too; names of its own and shared ones."""
    try:
        for _ in range(120):
            name, what = chance.choice(names), chance.random()
            if what < 0.55:
                reply = server.register(name, lastmod=chance.choice(DATES))
                ok = reply.status in (200, 201)
            elif what < 0.85:
                reply = server.api("DELETE", "/v1/sitemaps?loc=" + urllib.parse.quote(name, safe=""))
                ok = reply.status in (204, 404)
            else:
                some = [{"loc": n, "lastmod": chance.choice(DATES)} for n in chance.sample(names, 60)]
                reply = server.bulk(some)
                ok = reply.status == 200
            if not ok:
                failures.append(reply)
    except Exception as error:  # the test's own thread reports it
        failures.append(error)


def cli_steps(server, chance, names, failures):
    """Another process on the same file."""
    try:
        for _ in range(25):
            name, what = chance.choice(names), chance.random()
            if what < 0.5:
                date = chance.choice([d for d in DATES if d])
                command = server.cli("add", name, "--lastmod", date)
                ok = command.code == 0
            elif what < 0.8:
                command = server.cli("remove", name)
                ok = command.code == 0 or "sitemapd: " in command.err
            else:
                command = server.cli("import", "--index", INDEX, "-", input="\n".join(chance.sample(names, 40)))
                ok = command.code == 0
            if not ok:
                failures.append(command)
    except Exception as error:
        failures.append(error)


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_served_is_what_a_naive_renderer_makes(start, tmp_path, seed):
    server = start()
    chance = random.Random(seed)
    # Entries that fill some segments, so that splices have neighbours; short and long ones, and
    # characters that XML and URLs treat in their own way.
    base = [f"{ORIGIN}/base/{i:05d}.xml" for i in range(3200)]
    assert server.bulk([{"loc": n, "lastmod": chance.choice(DATES)} for n in base]).status == 200
    names = base[::16] + [f"{ORIGIN}/x/{i}/" + "y" * chance.randrange(1500) + f".xml?a={i}&b='" for i in range(300)]
    failures = []
    actors = [
        threading.Thread(target=api_steps, args=(server, random.Random(seed * 10 + 1), names, failures)),
        threading.Thread(target=api_steps, args=(server, random.Random(seed * 10 + 2), names, failures)),
        threading.Thread(target=cli_steps, args=(server, random.Random(seed * 10 + 3), names, failures)),
    ]
    for actor in actors:
        actor.start()
    # Readers meanwhile see whole pages only.
    while any(actor.is_alive() for actor in actors):
        page = gunzip(server.get(XML, {"Accept-Encoding": "gzip"}).body)
        assert page.startswith(b"<?xml") and page.endswith(b"</sitemapindex>\n")
    for actor in actors:
        actor.join()
    assert not failures, failures[:3]

    export = server.cli("export")
    wanted = render_export(export.lines())
    eventually(lambda: server.get(XML).body == wanted, "everything is published")
    plain, encoded, file = server.get(XML), server.get(XML, {"Accept-Encoding": "gzip"}), server.get(XML + ".gz")
    assert gunzip(encoded.body) == wanted and gunzip(file.body) == wanted
    assert server.cli("check").code == 0

    # The same entries at the same positions have the same tags: from a cold start, and in a copy
    # with another history.
    tags = [reply["ETag"] for reply in (plain, encoded, file)]
    server.restart()
    ask = lambda s: [s.get(XML)["ETag"], s.get(XML, {"Accept-Encoding": "gzip"})["ETag"], s.get(XML + ".gz")["ETag"]]
    assert ask(server) == tags
    assert server.get(XML + ".gz").body == file.body
    folder = tmp_path / "copy"
    folder.mkdir()
    copy = start(folder=folder)
    assert copy.bulk([f"{ORIGIN}/other/{i}.xml" for i in range(700)]).status == 200
    done = copy.cli("import", "--index", INDEX, "--replace", "--source", "*", "--max-removed", "700", "-", input=export.out)
    assert done.code == 0, done
    eventually(lambda: copy.get(XML).body == wanted, "the copy is published")
    assert ask(copy) == tags
    assert copy.get(XML + ".gz").body == file.body
