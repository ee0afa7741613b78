# SPDX-License-Identifier: LicenseRef-Undeclared
# Sourced by the commands that need another Debian than the machine's: makes its root from the
# machine's own package sources. Needs root and mmdebstrap.

# debian_sources SUITE: the machine's sources, with that suite for its own.
debian_sources() {
    . /etc/os-release
    if [ -f /etc/apt/sources.list.d/debian.sources ]; then
        sed "s/\b$VERSION_CODENAME\b/$1/g" /etc/apt/sources.list.d/debian.sources
    else
        sed "s/\b$VERSION_CODENAME\b/$1/g" /etc/apt/sources.list
    fi
}

# debian_root SUITE TARGET [PACKAGE...]: a minimal Debian with these packages. TARGET is a folder, or
# a file that ends in .tar. What is there already is kept, where it was made of the same packages; it is
# whole, or not there. Packages may be of another architecture: NAME:ARCHITECTURE.
debian_root() {
    suite=$1 target=$2
    shift 2
    if [ -e "$target" ]; then
        [ "$(cat "$target.packages" 2>/dev/null)" = "$*" ] && return 0
        rm -rf --one-file-system "$target"
    fi
    case $target in *.tar) half=${target%.tar}.half.tar ;; *) half=$target.half ;; esac
    rm -rf --one-file-system "$half" # never into what an interrupted one may have left mounted
    mkdir -p "$(dirname "$target")"
    debian_sources "$suite" >"$target.sources"
    # Mirrors that are kept as they were on one day have lists that are past their date.
    printf 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n' >"$target.apt"
    include=$(echo "$*" | tr ' ' ',')
    foreign=$(echo "$*" | grep -o ':[a-z0-9]*' | sort -u | tr ':' ',' | tr -d '\n')
    echo "making a root of Debian $suite"
    if ! mmdebstrap --variant=minbase --architectures="$(dpkg --print-architecture)$foreign" --aptopt="$(realpath "$target.apt")" ${include:+--include="$include"} \
        "$suite" "$half" "$target.sources" >"$target.log" 2>&1; then
        tail -20 "$target.log" >&2
        echo "$0: cannot make a root of Debian $suite, see $target.log" >&2
        return 1
    fi
    echo "$*" >"$target.packages"
    mv "$half" "$target"
}

# in_debian_root ROOT FOLDER COMMAND: runs the command by sh in the root that debian_root has made in a folder, with FOLDER as its /mnt
# and a /tmp of its own, so that nothing of it is left in the root.
in_debian_root() {
    # shellcheck disable=SC2016 # $1 is of the inner shell
    unshare --mount --pid --fork --kill-child sh -eu -c '
mount --bind "$2" "$1/mnt"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
mount --rbind /dev "$1/dev"
exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/tmp sh -euc "$3"
' sh "$@"
}
