# SPDX-License-Identifier: LicenseRef-Undeclared
"""Pages of urlsets under schemas of our own: the frame, images, videos, alternates and news."""

import os
import random
import subprocess

import pytest

from harness import DATA, ORIGIN, gunzip

URLSET = ORIGIN + "/all.xml"
NEWS = {"publication": {"name": "N", "language": "EN"}, "publication_date": "2026-01-31", "title": "T"}
VIDEO = {"thumbnail_loc": "https://cdn.example.net/t.jpg", "title": "Grill & <smoke>", "description": "How\n to", "player_loc": "https://cdn.example.net/p?a=1&b=2"}
ROWS = [
    {"loc": ORIGIN + "/plain"},
    {"loc": ORIGIN + "/p?a=1&b=€", "lastmod": "2026-01-31", "images": ["https://cdn.example.net/1.jpg?w=1&h=2", "https://CDN.example.net:443/2.jpg"]},
    {"loc": ORIGIN + "/languages", "lastmod": "2026-01-31T10:20:30+01:00", "alternates": {
        "zh-hant": "https://zh.example.net/", "X-DEFAULT": ORIGIN + "/languages", "de-ch": ORIGIN + "/de/?a=1&b=2"}},
    {"loc": ORIGIN + "/article", "news": {"publication": {"name": " Q&A\n <Weekly> ", "language": "zh-CN"}, "publication_date": "2026-01-31T10:20Z", "title": "\"]]>\" isn't the end — 新闻"}},
    {"loc": ORIGIN + "/videos", "videos": [VIDEO, VIDEO | {
        "content_loc": "https://CDN.example.net/v.mp4", "duration": 600, "expiration_date": "2030-01-31T10:20Z", "rating": 4.25, "view_count": 12345,
        "publication_date": "2026-01-31", "tag": ["steak", "meat & fire"], "family_friendly": True, "restriction": {"allow": ["de", "AT"]},
        "requires_subscription": False, "uploader": {"name": "G. \"Grill\" M.", "info": ORIGIN + "/users/g"}, "platform": {"deny": ["tv"]}, "live": False}]},
    {"loc": ORIGIN + "/all", "lastmod": "2026-01-31T10:20:30.5Z", "images": ["https://cdn.example.net/1.jpg"], "alternates": {"fr": "https://fr.example.net/"}, "news": NEWS, "videos": [VIDEO]},
]


def why_invalid(xml):
    """"" where the page is valid."""
    done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", os.path.join(DATA, "urlset.xsd"), "-"], input=xml, capture_output=True)
    return "" if done.returncode == 0 else done.stderr.decode()[-500:]


@pytest.fixture
def made(server):
    body = {"url": URLSET, "with": ["images", "videos", "alternates", "news"], "expires": None}
    assert server.api("POST", "/v1/urlsets", body).status == 201
    return server


def golden():
    with open(os.path.join(DATA, "golden-urlset.xml"), "rb") as file:
        return file.read()


def test_every_extension_byte_for_byte(made):
    for row in ROWS:
        reply = made.api("POST", "/v1/urls", {**row, "urlset": URLSET})
        assert reply.status == 201, reply
    page = made.get("/all.xml").xml()
    assert page == golden() and gunzip(made.get("/all.xml.gz").body) == page
    assert why_invalid(page) == ""
    assert made.cli("render", URLSET).out.encode() == page


WRONG = [
    (b"<loc>https://www.example.com/plain</loc>", b"", "loc"),
    (b"<loc>https://www.example.com/plain</loc>", b"<loc>https://www.example.com/all</loc>", "loc"),
    (b'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"', b'xmlns:image="http://www.google.com/schemas/sitemap-image/1.0"', "image"),
    (b"<image:loc>https://cdn.example.net/2.jpg</image:loc>", b"<image:loc>2.jpg</image:loc>", "loc"),
    (b'hreflang="fr"', b'hreflang="en_US"', "hreflang"),
    (b' rel="alternate"', b"", "rel"),
    (b"<news:title>T</news:title>", b"", "news"),
    (b"<news:language>en<", b"<news:language>english<", "language"),
    (b"<video:title>Grill &amp; &lt;smoke&gt;</video:title>", b"", "description"),
    (b"<video:rating>4.25<", b"<video:rating>5.25<", "rating"),
    (b' relationship="allow"', b"", "relationship"),
    (b"<video:live>", b"<video:price>1</video:price><video:live>", "price"),
]


@pytest.mark.parametrize("what, other, where", WRONG)
def test_the_schemas_refuse(what, other, where):
    assert what in golden()
    assert where in why_invalid(golden().replace(what, other, 1))


def test_pages_of_chance_are_valid(made):
    chance = random.Random(18)
    word = lambda letters="aé&'/?=新<>\"% ": "".join(chance.choice(letters) for _ in range(chance.randint(1, 9))) + "z"
    query = lambda: word("aé&'/?=新")
    rows = []
    for i in range(3000):
        row = {"loc": f"{ORIGIN}/{i}?q={query()}", "urlset": URLSET}
        if chance.random() < 0.5:
            row["images"] = [f"https://cdn.example.net/{i}-{k}?{query()}" for k in range(chance.randint(0, 9))]
        if chance.random() < 0.5:
            row["alternates"] = {l: f"https://{l}.example.net/{i}".lower() for l in chance.sample(["de", "de-CH", "zh-Hant-TW", "es-419", "x-default", "sr-Latn"], 3)}
        if chance.random() < 0.5:
            row["videos"] = [VIDEO | {"title": word(), "description": word(), "tag": [word() for _ in range(chance.randint(0, 5))], "rating": chance.randint(0, 500) / 100,
                                      "duration": chance.randint(1, 28800), "uploader": {"name": word()}} for _ in range(chance.randint(0, 3))]
        if chance.random() < 0.5:
            row["news"] = {"publication": {"name": word(), "language": chance.choice(["en", "fil", "zh-tw"])},
                           "publication_date": chance.choice(["2026-01-31", "2026-01-31T10:20Z", "2026-01-31T10:20:30.25+02:00"]), "title": word()}
        rows.append(row)
    reply = made.api("POST", "/v1/urls", rows)
    assert reply.status == 200 and reply.json()["created"] == 3000, reply
    entries = [e["loc"] for e in made.api("GET", "/v1/sitemaps").json()["sitemaps"]]
    assert entries == [URLSET, ORIGIN + "/all-2.xml", ORIGIN + "/all-3.xml"]  # 1,000 of news a page
    for loc in entries:
        page = made.get(loc.removeprefix(ORIGIN)).xml()
        assert page.count(b"<url>") == 1000 and why_invalid(page) == ""
