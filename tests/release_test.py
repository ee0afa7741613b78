"""What a release needs to be the same in several files."""

import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


VERSION = re.search(r"^project\(sitemapd VERSION ([0-9.]+)", read("CMakeLists.txt"), re.M)[1]


@pytest.mark.parametrize(
    "name, where, count", [
        ("Dockerfile", r"^ARG VERSION=(.*)$", 1),
        ("deploy/helm/sitemapd/Chart.yaml", r"^(?:version|appVersion): (.*)$", 2),
        ("deploy/kubernetes/kustomization.yaml", r"newTag: (.*)$", 1),
        ("deploy/kubernetes/shared/kustomization.yaml", r"newTag: (.*)$", 1),
        ("deploy/kubernetes/sitemapd.yaml", r"image: sitemapd:(.*)$", 1),
        ("deploy/kubernetes/shared/sitemapd.yaml", r"image: sitemapd:(.*)$", 2),
    ],
)
def test_the_version_is_that_of_the_program(name, where, count):
    assert re.findall(where, read(name), re.M) == [VERSION] * count
