# SPDX-License-Identifier: LicenseRef-Undeclared
# Sourced after deploy/lib/packages.sh: the program that a command tries.

# find_program COMMAND: exports SITEMAPD_BIN, a whole path. Where it is not set already, it is the release
# build's, which is brought up to date: a program left from before an edit would answer for the edit.
find_program() {
    if [ -n "${SITEMAPD_BIN-}" ]; then
        if [ ! -f "$SITEMAPD_BIN" ] || [ ! -x "$SITEMAPD_BIN" ]; then
            echo "$1: no such program: $SITEMAPD_BIN" >&2
            exit 2
        fi
        SITEMAPD_BIN=$(realpath "$SITEMAPD_BIN")
        export SITEMAPD_BIN
        return 0
    fi
    # shellcheck disable=SC2086,SC2154 # a list of words, of deploy/lib/packages.sh
    install_packages $build_packages
    echo "building: release"
    mkdir -p build
    drop_moved_build build/release
    if ! { cmake --preset release && cmake --build --preset release -j "${JOBS:-2}" --target sitemapd; } >build/release.log 2>&1; then
        tail -40 build/release.log >&2
        echo "$1: does not build, see build/release.log" >&2
        exit 1
    fi
    export SITEMAPD_BIN="$PWD/build/release/sitemapd"
}
