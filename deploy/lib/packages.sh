# Sourced by deploy/quickstart and tests/run: installs Debian packages, only those that are missing.

build_packages="gcc libc6-dev cmake ninja-build pkg-config libmicrohttpd-dev libsqlite3-dev zlib1g-dev
    libexpat1-dev libjansson-dev libxxhash-dev libgnutls28-dev libidn2-dev
    libcurl4-openssl-dev libpq-dev"

# package_present NAME: true where the package is installed, for this machine's own architecture. dpkg also
# knows packages that it does not have (not-installed, config-files, half-installed): others recommend
# them, they were removed, or an installation broke off.
package_present() {
    dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null |
        grep -Eqx "(installed|triggers-awaited|triggers-pending) (all|$(dpkg --print-architecture))"
}

# install_packages NAME...: a name may be "package/command": it counts as present where the command
# is, whoever brought it.
install_packages() {
    missing=
    for wanted in "$@"; do
        case $wanted in
        */*) command -v "${wanted#*/}" >/dev/null 2>&1 || missing="$missing ${wanted%/*}" ;;
        *) package_present "$wanted" || missing="$missing $wanted" ;;
        esac
    done
    [ -n "$missing" ] || return 0

    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif command -v sudo >/dev/null 2>&1; then
        as_root=sudo
    else
        echo "$0: missing packages:$missing" >&2
        echo "$0: run as root, or install sudo, or: apt-get install$missing" >&2
        return 1
    fi
    echo "installing:$missing"
    log=$(mktemp)
    # The package lists may be absent or old: they are fetched only where the first try fails.
    # shellcheck disable=SC2086 # lists of words
    if apt_install >"$log" 2>&1 || { apt_update && apt_install; } >"$log" 2>&1; then
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        echo "$0: could not install:$missing" >&2
        return 1
    fi
}

apt_install() {
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}

apt_update() {
    $as_root apt-get update -q
}
