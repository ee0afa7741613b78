# SPDX-License-Identifier: LicenseRef-Undeclared
"""Traces: the header that is taken, logged and handed on, and the spans that a collector gets."""

import itertools
import json
import re
import threading

import pytest

from harness import ORIGIN, Server, eventually, faster
from origin import Origin, answer, index

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{PARENT}-01"
KEY = "0123456789abcdef"


class Collector(Origin):
    """`status` is what it answers (0: nothing, as long as `hold` is set); `spans` are those of accepted batches."""

    def __init__(self):
        self.status, self.spans, self.batches, self.posts = 200, [], [], 0
        self.hold = threading.Event()
        super().__init__()
        self.answers["/v1/traces"] = self.take
        self.url = f"http://127.0.0.2:{self.port}"

    def take(self, connection, head):
        length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
        body = self.body
        while len(body) < length:
            body += connection.recv(65536)
        self.posts += 1
        if self.status == 0:
            self.hold.wait(30)
            return
        if self.status == 200:
            batch = json.loads(body)["resourceSpans"][0]
            self.batches.append((head, batch))
            self.spans += batch["scopeSpans"][0]["spans"]
        connection.sendall(answer(self.status, b"{}", Connection="close", Retry_After="0"))

    def named(self, name):
        return [span for span in self.spans if span["name"] == name]


def attributes(span):
    return {each["key"]: each["value"].get("stringValue", each["value"].get("intValue")) for each in span["attributes"]}


def headers_of(head):
    return {line.split(": ")[0].lower(): line.split(": ", 1)[1] for line in head.split("\r\n")[1:] if ": " in line}


@pytest.fixture
def collector():
    with Collector() as made:
        yield made
        made.hold.set()


def site(tmp_path, more=""):
    return f'[site "main"]\norigin = {ORIGIN}\n{more}'


def put(server, number, header=HEADER, **more):
    reply = server.api("POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/{number}.xml"}, headers={"traceparent": header} if header else {}, **more)
    assert reply.status == 201, reply


def test_a_write_is_one_span(collector, tmp_path):
    server = Server(tmp_path, config=f"[trace]\nendpoint = {collector.url}\n" + site(tmp_path), sites=())
    server.start()
    try:
        put(server, 1)
        assert server.api("POST", "/v1/sitemaps", {"loc": "no"}).status == 422
        server.api("GET", "/v1/sitemaps", headers={"traceparent": HEADER})
        eventually(lambda: len(collector.spans) >= 2, "both writes are sent")
        good, bad = sorted(collector.spans, key=lambda span: len(span["attributes"]), reverse=True)
        assert (good["traceId"], good["parentSpanId"]) == (TRACE, PARENT) and re.fullmatch("[0-9a-f]{16}", good["spanId"]) and good["spanId"] != PARENT
        assert (good["name"], good["kind"], good["status"]) == ("POST /v1/sitemaps", 2, {})
        revision = server.api("GET", "/v1/history").json()["changes"][0]["revision"]
        assert attributes(good) == {"http.request.method": "POST", "http.route": "/v1/sitemaps", "http.response.status_code": "201",
                                    "sitemapd.site": ORIGIN, "sitemapd.revision": str(revision)}
        assert 0 < int(good["endTimeUnixNano"]) - int(good["startTimeUnixNano"]) < 60e9
        assert "parentSpanId" not in bad and bad["traceId"] != TRACE
        assert attributes(bad)["http.response.status_code"] == "422" and attributes(bad)["error.type"]
        head, batch = collector.batches[0]
        assert headers_of(head)["content-type"] == "application/json"
        assert {"key": "service.name", "value": {"stringValue": "sitemapd"}} in batch["resource"]["attributes"]
        eventually(lambda: server.metrics()['sitemapd_trace_spans_total{result="sent"}'] == 2, "both are counted")
        assert f"(trace {TRACE})" in server.wait_for_log("sitemap-put")[0]
    finally:
        server.stop()


@pytest.mark.parametrize("header", ["", "00-" + TRACE.upper() + f"-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", HEADER + "-x", "x" * 4000, f"ff-{TRACE}-{PARENT}-01"])
def test_an_invalid_header_is_ignored(collector, tmp_path, header):
    server = Server(tmp_path, config=f"[trace]\nendpoint = {collector.url}\n" + site(tmp_path), sites=(), env=faster(10))
    server.start()
    try:
        put(server, 1, header)
        eventually(lambda: collector.spans, "the span is sent")
        assert "parentSpanId" not in collector.spans[0] and collector.spans[0]["traceId"] != TRACE
        assert TRACE not in server.log() and "xxxx" not in server.log()
        twice = server.api("POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/2.xml"}, headers=[("traceparent", HEADER), ("traceparent", HEADER)])
        assert twice.status == 201
        eventually(lambda: len(collector.spans) == 2, "the other span is sent")
        assert collector.spans[1]["traceId"] != TRACE
    finally:
        server.stop()


def test_off_sampled_and_reloaded(collector, tmp_path):
    """Off, the caller's header is handed on as it came; a caller that does not record is followed; a reload moves both settings."""
    there = f"http://127.0.0.2:{collector.port}"
    collector.answers["/index.xml"] = answer(200, index(there + "/a.xml"))
    sections = (f'[fetch]\nallow_address = 127.0.0.2\n[site "there"]\norigin = {there}\nindex = /sitemap_index.xml\n'
                f'[source "shop"]\nupstream = {there}/index.xml\ncheck = no\npoll = 1d\n')
    server = Server(tmp_path, config=sections, sites=(), env=faster(10))
    server.start()
    asked = lambda: [headers_of(head).get("traceparent") for head in collector.asked if head.startswith("GET /index.xml ")]
    scan = lambda header: server.api("POST", "/v1/sources/shop/scan", headers={"traceparent": header})
    try:
        eventually(lambda: asked() == [None], "the first poll, which nobody asked for")
        assert scan(HEADER).status == 200
        assert asked()[1:] == [HEADER]
        server.reload(f"[trace]\nendpoint = {collector.url}\n" + sections)
        not_recorded = HEADER[:-1] + "0"
        assert scan(not_recorded).status == 200 and scan(HEADER).status == 200
        assert asked()[2] == not_recorded
        eventually(lambda: collector.named("poll list") and collector.named("POST /v1/sources/{name}/scan"), "the spans of the last one")
        (call,), (poll,) = collector.named("POST /v1/sources/{name}/scan"), collector.named("poll list")
        assert (call["traceId"], call["parentSpanId"]) == (poll["traceId"], PARENT) == (TRACE, PARENT)
        assert poll["parentSpanId"] == call["spanId"] and asked()[3] == f"00-{TRACE}-{poll['spanId']}-01"
        assert poll["kind"] == 3 and attributes(poll)["sitemapd.source"] == "shop" and poll["status"] == {}
        collector.answers["/index.xml"] = answer(500)
        assert scan(HEADER).status != 200
        eventually(lambda: [len(collector.named(name)) for name in ("poll list", "POST /v1/sources/{name}/scan")] == [2, 2], "the spans of a poll that failed")
        failed = collector.named("poll list")[1]
        assert failed["status"] == {"code": 2} and attributes(failed)["http.response.status_code"] == "500"
        server.reload(f"[trace]\nendpoint = {collector.url}\nsample = 0\n" + sections)
        count = len(collector.spans)
        assert scan(HEADER).status != 200 and asked()[-1] == HEADER
        server.reload(f"[trace]\nendpoint = {collector.url}\n" + sections)
        scan(HEADER)
        eventually(lambda: len(collector.spans) >= count + 2, "recorded again")
        assert len(collector.spans) == count + 2
    finally:
        server.stop()


def test_handed_on_to_indexnow(collector, tmp_path):
    collector.answers["/indexnow"] = answer(200)
    more = f"indexnow_key = {KEY}\nindexnow_endpoint = {collector.url}/indexnow\n"
    server = Server(tmp_path, config="[fetch]\nallow_address = 127.0.0.2\n" + site(tmp_path, more), sites=(), env=faster(10))
    server.start()
    sent = lambda: [headers_of(head).get("traceparent") for head in collector.asked if "POST /indexnow " in head]

    def put_page(name, headers=()):
        row = json.dumps({"loc": f"{ORIGIN}/{name}"}).encode()
        assert server.api("POST", "/v1/urls?urlset=/urls.xml", body=row, content_type="application/x-ndjson", headers=headers).status == 200

    try:
        assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/urls.xml"}).status == 201
        numbers = itertools.count()
        eventually(lambda: put_page(next(numbers)) or sent(), "IndexNow gets page URLs", longest_pause=1)
        put_page("traced", {"traceparent": HEADER})
        eventually(lambda: HEADER in sent(), "IndexNow gets the page URL of the traced write")
        count = len(sent())
        put_page("another")
        eventually(lambda: len(sent()) > count, "IndexNow gets the page URL of a write without a trace")
        assert sent()[0] is None and sent()[count:] == [None] * (len(sent()) - count)
    finally:
        server.stop()


@pytest.mark.parametrize("status", [0, 500, 503, None])
def test_a_collector_that_fails(collector, tmp_path, status):
    """It is slow, rejects, or is away: writes go on, memory is bounded, what is dropped is counted, and it is not asked in a storm."""
    url = collector.url if status is not None else "http://127.0.0.2:9"
    collector.status = status
    other = "https://other.example.org"
    server = Server(tmp_path, config=f"[trace]\nendpoint = {url}\n" + site(tmp_path) + f'[site "other"]\norigin = {other}\n', sites=())
    server.start()
    spans = lambda result: server.metrics()[f'sitemapd_trace_spans_total{{result="{result}"}}']
    try:
        for number in range(600):  # of one site, which has room for 256 beside the batch under way
            put(server, number)
        eventually(lambda: spans("dropped") >= 600 - 256 - 128, "what has no room is dropped")
        assert server.register(other + "/a.xml").status == 201  # has room all the same
        if status != 0:
            eventually(lambda: server.wait_for_log("trace-failed"), "the failure is logged")
            assert server.metrics()["sitemapd_trace_failing"] == 1
            assert len(server.wait_for_log("trace-failed")) == 1 and collector.posts <= 8
        if status is None:
            return
        collector.status = 200
        collector.hold.set()
        eventually(lambda: spans("sent") > 0 and spans("sent") + spans("dropped") == 601, "the rest is sent")
        assert status == 500 or [span for span in collector.spans if attributes(span).get("sitemapd.site") == other]
        eventually(lambda: server.metrics()["sitemapd_trace_failing"] == 0, "it is well again")
    finally:
        server.stop()
