# SPDX-License-Identifier: LicenseRef-Undeclared
"""docs/operations.md, "After a bad deploy", is true: its commands are run in their order by a shell. Names and ports of
the page are replaced by those of the test."""

import os
import re
import subprocess

from harness import BIN, INDEX, ORIGIN, environment, eventually, locs, seconds

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
    assert steps.count("REVISION=124 ") == 1
    steps = steps.replace("REVISION=124 ", f"REVISION={harm.json()['revision']} ").replace("https://www.example.com/sitemap_index.xml", INDEX)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "sitemapd").symlink_to(BIN)
    env = environment({"SITEMAPD_DATABASE": server.database, "PATH": f"{bin_}:{os.environ['PATH']}"})
    done = subprocess.run(["sh", "-eux"], input=steps, env=env, capture_output=True, text=True, timeout=seconds(60))
    assert done.returncode == 0, done
    result = [line for line in done.stdout.splitlines() if line]
    assert result[0].startswith(f"{INDEX}: frozen") and result[-1] == f"{INDEX}: thawed", result
    revision = harm.json()["revision"]
    newest = next(line for line in result if line.split()[:1] == [str(revision)])
    assert " replace " in newest and " environment " in newest and "-20 " in newest, result
    would = next(i for i, line in enumerate(result) if line.startswith(f"revision {revision}: would restore +20 ~0 -1"))
    entries, dry = result[result.index(newest) + 1 : would], [line for line in result[:would] if line.startswith("+ ")]
    assert {f"- {loc}" for loc in good[80:]} | {f"+ {ORIGIN}/wrong.xml"} <= set(entries)
    assert {f"+ {loc}" for loc in good[80:99]} <= set(dry), "the first 20 lines are shown"
    assert result[-2].startswith(f"revision {revision}: restored +20 ~0 -1"), result
    # The commands changed the file beside the server, which shows it within 200 ms.
    eventually(lambda: server.get(XML)["ETag"] == before["ETag"], "the page of before")
    after = server.get(XML)
    assert after.body == before.body and locs(after.body) == good
    eventually(lambda: put(good).status == 200, "it is thawed")
    # Who froze, and who thawed.
    assert server.cli("freeze", ORIGIN).code == 0
    site = server.api("GET", f"/v1/sites").json()["sites"][0]["id"]
    assert server.api("PATCH", f"/v1/sites/{site}", {"frozen": False}).status == 200
    for kind, via in (("index-freeze", "cli"), ("index-thaw", "cli"), ("site-freeze", "cli"), ("site-thaw", "api")):
        found = server.api("GET", f"/v1/history?kind={kind}").json()["changes"]
        assert [change["via"] for change in found] == [via], (kind, found)
