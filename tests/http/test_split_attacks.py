# SPDX-License-Identifier: LicenseRef-Undeclared
"""[source] split, in a folder that somebody who means harm writes to: what he puts there is refused in bounded time and memory, no
other file of the machine is read, nobody else waits, and the good file beside it is split as ever."""

import gzip
import os
import threading
import time
import zlib

import pytest

from harness import ORIGIN, PLAIN, Server, eventually, seconds
from test_split import COUNT, url, xml

SECRET = "top-secret-of-another-tenant"
URLS = "".join(f"<url><loc>{url(i)}</loc></url>\n" for i in range(COUNT))
HEAD = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def bomb(head, filler, megabytes, tail=b""):
    """Packed piece by piece: nobody holds it whole."""
    packer, parts = zlib.compressobj(9, zlib.DEFLATED, 31), []
    parts.append(packer.compress(head))
    for _ in range(megabytes):
        parts.append(packer.compress(filler * (1_000_000 // len(filler))))
    return b"".join(parts + [packer.compress(tail), packer.flush()])


def laughs():
    entities = '<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    return f"<!DOCTYPE urlset [{entities}]>{HEAD}{URLS}<url><loc>&e11;</loc></url></urlset>".encode()


FILES = {  # name: (bytes, its problem)
    # Large when unpacked, and within 5 GB: read as streams.
    "bomb.xml.gz": (lambda: bomb((HEAD + URLS).encode(), b" ", 100, b"</urlset>"), None),
    "names.txt.gz": (lambda: bomb("".join(url(i) + "\n" for i in range(COUNT)).encode(), b"x", 100), None),
    "line.txt": (lambda: "".join(url(i) + "\n" for i in range(COUNT)).encode() + b"https://" + b"y" * 30_000_000, None),
    "laughs.xml": (laughs, {"doctype"}),
    "late.xml": (lambda: (HEAD + URLS + "</urlset><!DOCTYPE x>").encode(), {"malformed-xml"}),
    "deep.xml": (lambda: (HEAD + URLS + "<url>" + "<a>" * 100_000).encode(), {"nested-too-deep"}),
    "bytes.xml": (lambda: (HEAD + URLS + "<url><loc>").encode() + bytes(range(256)) * 1000, {"malformed-xml"}),
    "twice.xml.gz": (lambda: gzip.compress((HEAD + URLS).encode(), 1) * 2, {"truncated"}),
}


def memory_mb(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) / 1024


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    made = Server(tmp_path, config=(
        f'[site "main"]\norigin = {ORIGIN}\n[source "shop"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 100ms\nrescan = 1s\nserve = yes\nsplit = yes\n'), sites=())
    made.site = folder
    yield made
    if made.process is not None:  # else its test failed
        made.stop()


def problems_of(server):
    return {problem["path"]: problem for problem in server.api("GET", "/v1/sources").json()["sources"][0]["problems"]}


def lists(server):
    return {one["url"].removeprefix(ORIGIN) for one in server.api("GET", "/v1/urlsets").json()["urlsets"]}


@pytest.mark.masses
def test_files_that_are_attacks(shop, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.xml").write_text(xml((f"{ORIGIN}/{SECRET}/{i}", "") for i in range(COUNT)))
    shop.start()
    before = memory_mb(shop)
    for name, (make, _) in FILES.items():  # each whole: half of one has other problems, or none
        (shop.site / "part").write_bytes(make())
        (shop.site / "part").rename(shop.site / name)
    os.symlink(outside / "secret.xml", shop.site / "link.xml")
    os.symlink("../outside", shop.site / "linked")
    os.symlink("/dev/zero", shop.site / "zero.xml")
    os.mkfifo(shop.site / "fifo.xml")
    (shop.site / "part").write_text(xml((url(i), "") for i in range(COUNT)))
    (shop.site / "part").rename(shop.site / "good.xml")
    eventually(lambda: "/good.xml" in lists(shop) and shop.get("/good-2.xml").status == 200, "the good file is split", 240)
    refused = {name for name, (_, codes) in FILES.items() if codes}
    split = {"/good.xml", "/bomb.xml", "/names.xml", "/line.xml"}
    eventually(lambda: refused <= set(problems_of(shop)) and split <= lists(shop), "the others are reported, or split", 120)
    found = problems_of(shop)
    for name, (_, codes) in FILES.items():
        assert codes is None or found[name]["code"] in codes, (name, found[name])
    assert lists(shop) == split, "of what is broken at its end nothing is taken"
    everything = shop.log() + str(found) + shop.get("/sitemap_index.xml").body.decode() + shop.get("/good.xml").body.decode()
    assert SECRET not in everything
    for name in ("link", "linked/secret", "zero", "fifo"):
        assert shop.get(f"/{name}.xml").status == 404, name
    assert not PLAIN or memory_mb(shop) - before < 60, memory_mb(shop)
    assert shop.cli("check").code == 0


def test_a_file_that_is_another_each_time(shop, tmp_path):
    """Renamed over, cut, and made a pipe, a link and a folder by turns while it is read: the source goes on, and no secret is read."""
    outside = tmp_path / "secret.xml"
    outside.write_text(xml((f"{ORIGIN}/{SECRET}/{i}", "") for i in range(COUNT)))
    shop.start()
    target, part, stop = shop.site / "all.xml", shop.site / "part", threading.Event()
    text = xml((url(i), "") for i in range(COUNT))

    def turns():
        number = 0
        while not stop.is_set():
            number += 1
            try:
                if number % 4 == 0:
                    os.mkfifo(part)
                elif number % 4 == 1:
                    os.symlink(outside, part)
                else:
                    part.write_text(text)
                os.rename(part, target)
                time.sleep(0.05 * (number % 5))
                if number % 4 > 1:
                    os.truncate(target, 3_000_000 - number)
            except OSError:
                pass

    thread = threading.Thread(target=turns)
    thread.start()
    try:
        end = time.monotonic() + (8 if PLAIN else 3)
        while time.monotonic() < end:
            began = time.monotonic()
            assert shop.register(ORIGIN + "/other.xml").status in (200, 201)
            assert time.monotonic() - began < seconds(30)  # it waits for no file; a busy machine may take its time
            time.sleep(0.2)
    finally:
        stop.set()
        thread.join()
    part.unlink(missing_ok=True)
    part.write_text(text)
    os.rename(part, target)
    eventually(lambda: shop.get("/all-2.xml").status == 200 and not problems_of(shop), "it rests, and is split", 120)
    assert SECRET.encode() not in shop.get("/all.xml").body + shop.get("/all-2.xml").body
    assert shop.cli("check").code == 0
