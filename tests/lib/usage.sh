# SPDX-License-Identifier: LicenseRef-Undeclared
# Sourced by the commands under tests/, at the tree's top, before they install or build anything: what
# a command says of itself, and what it says to wrong usage.

# tell_usage COMMAND [ARGUMENT]...: where the first argument asks for help, prints the comment at the head
# of COMMAND and ends.
tell_usage() {
    case ${2-} in
    --help | -h)
        sed -n '2,/^[^#]/{/SPDX/d;/^[^#]/d;s/^# \{0,1\}//;p}' "$1"
        exit 0
        ;;
    esac
}

# wrong_usage COMMAND WHAT
wrong_usage() {
    echo "$1: $2 (see --help)" >&2
    exit 2
}

# takes_nothing COMMAND [ARGUMENT]...
takes_nothing() {
    tell_usage "$@"
    [ $# -eq 1 ] || wrong_usage "$1" "takes no argument: $2"
}

# is_whole TEXT: a whole number.
is_whole() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# is_number TEXT: a decimal number above 0.
is_number() {
    case $1 in '' | *[!0-9.]* | *.*.* | .*) return 1 ;; *[1-9]*) return 0 ;; *) return 1 ;; esac
}
