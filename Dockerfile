# The program, its libraries and nothing else: no shell, no package manager, nobody to log in as.
# Built with any Debian from 12 on:  docker build --build-arg BASE=debian:bookworm-slim .
# docs/install.md, "Container", says how to run it; tests/container/run does.
ARG BASE=debian:trixie-slim

FROM ${BASE} AS build
COPY deploy/lib/packages.sh /packages.sh
RUN set -eu; . /packages.sh; apt-get update -q; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ca-certificates $build_packages; \
    rm -rf /var/lib/apt/lists/*
COPY . /src
RUN cd /src && cmake --preset release -B /build && cmake --build /build --target sitemapd && strip /build/sitemapd
RUN /src/deploy/container/collect /build/sitemapd /image

FROM scratch
COPY --from=build /image/ /

# The admin listener is on all addresses of the container: publish it only to networks that may use it.
ENV SITEMAPD_LISTEN=0.0.0.0:8080 \
    SITEMAPD_ADMIN_LISTEN=0.0.0.0:8081 \
    SITEMAPD_DATABASE=/var/lib/sitemapd/catalogue.db
USER 65532:65532
WORKDIR /var/lib/sitemapd
VOLUME /var/lib/sitemapd
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=60s --retries=3 CMD ["/usr/bin/sitemapd", "healthcheck"]
ENTRYPOINT ["/usr/bin/sitemapd"]
CMD ["serve"]

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sitemapd" \
    org.opencontainers.image.description="Serves crawlers a sitemap index that is always valid and always fresh" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.licenses="LicenseRef-Undeclared"
