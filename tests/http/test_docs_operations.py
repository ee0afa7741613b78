"""docs/operations.md, "After a bad deploy", is true: its commands are run in their order by a shell. Names and ports of
the page stand for those of the test."""

import json
import os
import re
import subprocess

from harness import BIN, INDEX, ORIGIN, environment, locs, seconds

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operations.md")
XML = "/sitemap_index.xml"


def test_after_a_bad_deploy(start, tmp_path):
    section = re.search(r"^## After a bad deploy\n.*?(?=^## )", open(PAGE, encoding="utf-8").read(), re.S | re.M)[0]
    steps = re.search(r"^```sh\n(.*?)^```$", section, re.S | re.M)[1]
    server = start()
    good, bad = [f"{ORIGIN}/{i}.xml" for i in range(100)], [f"{ORIGIN}/{i}.xml" for i in range(80)] + [f"{ORIGIN}/wrong.xml"]
    put = lambda list_: server.api("PUT", f"/v1/sitemaps?index={XML}", [{"loc": loc} for loc in list_])
    assert put(good).status == 200
    before = server.get(XML)
    harm = put(bad)
    assert harm.status == 200 and harm.json()["removed"] == 20
    steps = steps.replace("http://127.0.0.1:8081", f"http://{server.admin}").replace("https://www.example.com/sitemap_index.xml", INDEX)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "sitemapd").symlink_to(BIN)
    env = environment({"TOKEN": server.token, "SITEMAPD_DATABASE": server.database, "PATH": f"{bin_}:{os.environ['PATH']}"})
    done = subprocess.run(["sh", "-eux"], input=steps, env=env, capture_output=True, text=True, timeout=seconds(60))
    assert done.returncode == 0, done
    told = [line for line in done.stdout.splitlines() if line]
    assert told[0].startswith(f"{INDEX}: frozen") and told[-1] == f"{INDEX}: thawed", told
    history, rows, dry, undone = told[1:-1]
    newest = next(c for c in json.loads(history)["changes"] if c["kind"] == "replace")
    assert (newest["revision"], newest["by"], newest["removed"]) == (harm.json()["revision"], "environment", 20)
    assert rows.startswith('{"revision":%d,' % newest["revision"])
    for answer in (json.loads(dry), json.loads(undone)):
        assert (answer["created"], answer["removed"], answer["conflicts_total"]) == (20, 1, 0), answer
    after = server.get(XML)
    assert (after.body, after["ETag"]) == (before.body, before["ETag"]) and locs(after.body) == good
    assert put(good).status == 200, "it is thawed"
    # Who froze, and who thawed.
    assert server.cli("freeze", ORIGIN).code == 0
    site = server.api("GET", f"/v1/sites").json()["sites"][0]["id"]
    assert server.api("PATCH", f"/v1/sites/{site}", {"frozen": False}).status == 200
    for kind, via in (("index-freeze", "cli"), ("index-thaw", "cli"), ("site-freeze", "cli"), ("site-thaw", "api")):
        found = server.api("GET", f"/v1/history?kind={kind}").json()["changes"]
        assert [change["via"] for change in found] == [via], (kind, found)
