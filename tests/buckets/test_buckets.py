# SPDX-License-Identifier: LicenseRef-Undeclared
"""A folder source that rclone keeps in step with a bucket, and pages that are published to one."""

import gzip
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

from harness import ORIGIN, TOKEN, Server, eventually, locs, seconds
from origin import urlset

S3RVER = ROOT / "build" / "buckets" / "node_modules" / ".bin" / "s3rver"
PUBLISH = ROOT / "deploy" / "buckets" / "publish"


class Bucket:
    """An S3 server with one bucket, and rclone's configuration for it."""

    def __init__(self, folder):
        self.folder, self.data = folder, folder / "s3"
        self.data.mkdir()
        self.config = folder / "rclone.conf"
        self.start()

    def start(self, port=0):
        self.process = subprocess.Popen(["node", str(S3RVER), "-d", str(self.data), "-a", "127.0.0.1", "-p", str(port), "--no-vhost-buckets", "--configure-bucket", "bucket"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = next(line for line in self.process.stdout if "listening" in line)
        self.port = re.search(r":(\d+)\s*$", line)[1]
        self.config.write_text(f"[s3]\ntype = s3\nprovider = Other\nendpoint = http://127.0.0.1:{self.port}\naccess_key_id = S3RVER\nsecret_access_key = S3RVER\nforce_path_style = true\n")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(seconds(60))
        self.process.stdout.close()

    def env(self, **more):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RCLONE_"))}
        return {**clean, "RCLONE_CONFIG": str(self.config), "RCLONE_LOW_LEVEL_RETRIES": "1", "RCLONE_RETRIES": "1", **more}

    def rclone(self, *arguments, **more):
        return subprocess.run(["rclone", *arguments], env=self.env(), capture_output=True, timeout=seconds(60), check=False, **more)

    def put(self, name, body):
        assert self.rclone("rcat", f"s3:bucket/{name}", input=body).returncode == 0

    def cat(self, name):
        done = self.rclone("cat", f"s3:bucket/{name}")
        return done.stdout if done.returncode == 0 else None

    def names(self):
        return set(self.rclone("lsf", "-R", "--files-only", "s3:bucket").stdout.decode().split())


@pytest.fixture
def bucket(tmp_path):
    one = Bucket(tmp_path)
    yield one
    one.stop()


@pytest.fixture
def serve(tmp_path):
    servers = []

    def make(config, **more):
        servers.append(Server(tmp_path, config=config, sites=(), **more).start())
        return servers[-1]

    yield make
    for one in servers:
        one.stop()


def unit(name, **values):
    """The command of a unit of deploy/buckets, as systemd would run it."""
    text = (ROOT / "deploy" / "buckets" / name).read_text()
    command = re.search("^ExecStart=(.*)$", text, re.M)[1]
    for key, value in {"MAX_DELETE": re.search("MAX_DELETE=(.*)", text)[1], **values}.items():
        command = command.replace("${%s}" % key, value)
    return shlex.split(command)


def test_a_folder_follows_a_bucket(bucket, serve, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    sync = lambda: subprocess.run(unit("sitemapd-bucket@.service", BUCKET="s3:bucket/maps", FOLDER=str(folder)), env=bucket.env(), capture_output=True, timeout=seconds(60), check=False)
    bucket.put("maps/a.xml", urlset(ORIGIN + "/maps/1"))
    for n in range(4):
        bucket.put(f"maps/more{n}.xml", urlset(f"{ORIGIN}/maps/more{n}"))
    more = {f"{ORIGIN}/maps/more{n}.xml" for n in range(4)}
    bucket.put("maps/deep/b.xml.gz", gzip.compress(urlset(ORIGIN + "/maps/deep/2")))
    assert sync().returncode == 0
    server = serve(f'[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n[source "maps"]\ndirectory = {folder}\nurl = {ORIGIN}/maps/\nserve = yes\nsettle = 100ms\n')
    listed = lambda: set(locs(server.get("/sitemap_index.xml").body))
    eventually(lambda: listed() == {ORIGIN + "/maps/a.xml", ORIGIN + "/maps/deep/b.xml.gz"} | more, "all are listed")
    # What changes in the bucket changes here, what goes there goes here.
    bucket.put("maps/a.xml", urlset(ORIGIN + "/maps/other"))
    assert bucket.rclone("deletefile", "s3:bucket/maps/deep/b.xml.gz").returncode == 0
    assert sync().returncode == 0
    eventually(lambda: server.get("/maps/a.xml").body == urlset(ORIGIN + "/maps/other"), "the new one is served")
    eventually(lambda: listed() == {ORIGIN + "/maps/a.xml"} | more, "it is gone")
    # A bucket that does not answer, or is empty all of a sudden, takes nothing away.
    port = bucket.port
    bucket.stop()
    assert sync().returncode != 0 and (folder / "a.xml").exists()
    bucket.start(port)
    done = subprocess.run(unit("sitemapd-bucket@.service", BUCKET="s3:nobucket/maps", FOLDER=str(folder)), env=bucket.env(), capture_output=True, timeout=seconds(60), check=False)
    assert done.returncode != 0 and (folder / "a.xml").exists()


def test_pages_are_published(bucket, serve, tmp_path):
    server = serve(f'[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n[site "other"]\norigin = https://other.example\n')
    state, purged = tmp_path / "state", tmp_path / "purged"
    purge = tmp_path / "purge"
    purge.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{purged}\n')
    purge.chmod(0o755)
    command = [str(PUBLISH), f"http://{server.admin}", f"http://{server.public}", ORIGIN, "s3:bucket", "--state", str(state), "--then", str(purge), "--once"]
    publish = lambda: subprocess.run(command, env=bucket.env(SITEMAPD_TOKEN=TOKEN), capture_output=True, text=True, timeout=seconds(120), check=False)
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert server.register("https://other.example/o.xml").status == 201
    done = publish()
    assert (done.returncode, done.stderr) == (0, "")
    assert bucket.names() == {"sitemap_index.xml", "sitemap_index.xml.gz", "robots.txt"}, bucket.names()
    assert bucket.cat("sitemap_index.xml") == server.get("/sitemap_index.xml").body
    assert gzip.decompress(bucket.cat("sitemap_index.xml.gz")) == server.get("/sitemap_index.xml").body
    assert set(purged.read_text().split()) == {f"{ORIGIN}/{name}" for name in bucket.names()}
    # A second run has nothing to do; a change is one page in its two forms.
    purged.unlink()
    assert publish().returncode == 0 and not purged.exists()
    assert server.register(ORIGIN + "/b.xml").status == 201
    assert publish().returncode == 0
    assert ORIGIN.encode() + b"/b.xml" in bucket.cat("sitemap_index.xml")
    assert set(purged.read_text().split()) == {ORIGIN + "/sitemap_index.xml", ORIGIN + "/sitemap_index.xml.gz"}
    # A urlset is published with its page, which the index lists, and removed with it; what is gone is deleted.
    assert server.cli("urlset", "add", ORIGIN + "/all.xml").code == 0
    assert server.cli("url", "add", ORIGIN + "/page", "--urlset", ORIGIN + "/all.xml").code == 0
    assert publish().returncode == 0
    assert b"/page<" in bucket.cat("all.xml") and b"/all.xml<" in bucket.cat("sitemap_index.xml")
    assert server.cli("urlset", "remove", ORIGIN + "/all.xml", "--max-removed", "9").code == 0
    assert publish().returncode == 0
    assert "all.xml" not in bucket.names()
    # A bucket that does not answer: nothing is forgotten.
    assert server.register(ORIGIN + "/c.xml").status == 201
    port = bucket.port
    bucket.stop()
    failed = publish()
    assert failed.returncode == 1 and "rclone copyto" in failed.stderr
    bucket.start(port)
    assert publish().returncode == 0
    assert ORIGIN.encode() + b"/c.xml" in bucket.cat("sitemap_index.xml")
