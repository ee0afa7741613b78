# SPDX-License-Identifier: LicenseRef-Undeclared
# Sourced by deploy/quickstart and the commands below tests/: installs missing Debian packages and shows progress.

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
# is, from any package.
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
    if with_progress installing "$log" apt_install || with_progress "installing, with new package lists" "$log" apt_update_and_install; then
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

apt_update_and_install() {
    $as_root apt-get update -q && apt_install
}

# with_progress WHAT LOG COMMAND...: runs the command with its output in LOG, and shows the last line of LOG: on
# a terminal each second in one line, else every 20 seconds in a line of its own. The command runs in the
# foreground, so that Ctrl-C ends it.
with_progress() {
    what=$1 log=$2
    shift 2
    : >"$log"
    show_progress $$ &
    shower=$!
    code=0
    "$@" >"$log" 2>&1 || code=$?
    kill -KILL "$shower" 2>/dev/null || : # a trap of the caller would swallow another signal while it starts
    wait "$shower" 2>/dev/null || :
    [ ! -t 1 ] || printf '\r\033[K'
    return "$code"
}

# Ends with the shell of this pid, too.
show_progress() {
    seconds=0
    while sleep 1 >/dev/null 2>&1 && kill -0 "$1" 2>/dev/null; do
        seconds=$((seconds + 1))
        last=$(tail -n 1 "$log" | cut -c 1-200)
        if [ -t 1 ]; then
            columns=$(stty size 2>/dev/null </dev/tty | cut -d ' ' -f 2)
            printf '\r%s\033[K' "$(printf '%s, %s s: %s' "$what" "$seconds" "$last" | cut -c "1-$((${columns:-80} - 1))")"
        elif [ $((seconds % 20)) -eq 0 ]; then
            echo "$what, $seconds s: $last"
        fi
    done
}

# drop_moved_build FOLDER: makes CMake start again where the tree was moved or copied since the build in FOLDER was
# made. CMake refuses to go on with such a build.
drop_moved_build() {
    built_for=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null) || return 0
    [ -z "$built_for" ] || [ "$built_for" -ef . ] ||
        rm -rf "$1/CMakeCache.txt" "$1/CMakeFiles" "$1/.ninja_log" "$1/.ninja_deps"
}
