# SPDX-License-Identifier: LicenseRef-Undeclared
"""A page's gzip member is made of pieces: a decoder must read it as one plain member."""

import gzip
import io
import random
import shutil
import subprocess
import tempfile
import zlib

import pytest

from harness import HOST, ORIGIN, environment, render, seconds

XML = "/sitemap_index.xml"


@pytest.fixture(scope="module")
def member(shared):
    """The bytes after changes in several segments, with holes, and the page that they make."""
    chance = random.Random(7)
    names = [f"{ORIGIN}/{chance.randrange(10**9)}/{i:05d}.xml" for i in range(2600)]
    assert shared.bulk(names).status == 200
    for name in [names[0]] + names[500:1000:5] + [names[-1]]:
        assert shared.api("DELETE", "/v1/sitemaps?loc=" + name).status == 204
    keep = [n for i, n in enumerate(names) if not (i in (0, 2599) or (500 <= i < 1000 and i % 5 == 0))]
    assert shared.register(keep[1700], lastmod="2026-01-31").status == 200
    page = render([(n, "2026-01-31" if i == 1700 else None) for i, n in enumerate(keep)])
    reply = shared.get(XML, {"Accept-Encoding": "gzip"})
    assert shared.get(XML + ".gz").body == reply.body
    return reply.body, page


def pipe(command, data):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    return subprocess.run(command, input=data, capture_output=True, timeout=seconds(60))


@pytest.mark.parametrize("command", [["gzip", "-t"], ["pigz", "-t"], ["zcat"], ["gzip", "-dc"], ["pigz", "-dc"], ["7z", "t", "-si", "-tgzip"]], ids=" ".join)
def test_tools(member, command):
    data, page = member
    done = pipe(command, data)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    if "-t" not in command and command[0] != "7z":
        assert done.stdout == page


def test_listed_size(member, tmp_path):
    data, page = member
    (tmp_path / "page.gz").write_bytes(data)
    done = subprocess.run(["gzip", "-l", str(tmp_path / "page.gz")], capture_output=True)
    assert done.stdout.split()[4:6] == [str(len(data)).encode(), str(len(page)).encode()]


def test_python(member):
    data, page = member
    assert gzip.decompress(data) == page
    assert gzip.GzipFile(fileobj=io.BytesIO(data)).read() == page
    for step in (1, 7, 4096):
        stream, out = zlib.decompressobj(31), []
        for at in range(0, len(data), step):
            out.append(stream.decompress(data[at : at + step]))
        assert b"".join(out) == page and stream.eof and stream.unused_data == b"", "one member"
    assert zlib.decompress(data, 47) == page


NODE = """
const zlib = require("zlib"), chunks = [];
process.stdin.on("data", c => chunks.push(c)).on("end", () => {
  const data = Buffer.concat(chunks), whole = zlib.gunzipSync(data), parts = [];
  const stream = zlib.createGunzip();
  stream.on("data", c => parts.push(c)).on("end", () => {
    if (Buffer.compare(whole, Buffer.concat(parts)) !== 0) process.exit(3);
    process.stdout.write(whole);
  });
  for (let i = 0; i < data.length; i += 1000) stream.write(data.subarray(i, i + 1000));
  stream.end();
});
"""


def test_node(member):
    data, page = member
    done = pipe(["node", "-e", NODE], data)
    assert done.returncode == 0, done.stderr
    assert done.stdout == page


@pytest.mark.parametrize("option", ["--compressed", "--raw"])
def test_curl(member, shared, option):
    if shutil.which("curl") is None:
        pytest.skip("curl is not here")
    data, page = member
    command = ["curl", "-sS", "--noproxy", "*", "-H", f"Host: {HOST}", "-H", "Accept-Encoding: gzip", option, f"http://{shared.public}{XML}"]
    if option == "--raw":
        assert subprocess.run(command, capture_output=True, timeout=seconds(60)).stdout == data
    else:
        assert subprocess.run(command, capture_output=True, timeout=seconds(60)).stdout == page


def test_chromium(member, shared):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        pytest.skip("chromium is not here")
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", "--dump-dom",
             "--proxy-server=direct://", f"http://{shared.public}{XML}"],
            capture_output=True, timeout=seconds(60), env=environment({"HOME": home}),
        )
    assert done.stdout.count(b"/02500.xml") >= 1, done.stderr[-500:]
