# SPDX-License-Identifier: LicenseRef-Undeclared
# Sourced: a Docker engine of our own that leaves the machine's network as it is: no bridge, no
# packet rules; builds and containers use the host's network. Needs root.

# docker_start FOLDER: starts it with its images kept in FOLDER and exports DOCKER_HOST. The caller
# ends it: docker_stop.
docker_start() {
    docker_data=$1
    mkdir -p "$docker_data"
    docker_run=$(mktemp -d /tmp/sitemapd-docker.XXXXXX) # short: a socket's path has a limit
    PATH=/usr/bin:$PATH # Debian's client, which fits Debian's engine
    export PATH DOCKER_HOST="unix://$docker_run/socket"
    /usr/sbin/dockerd --data-root "$docker_data" --exec-root "$docker_run/exec" -H "$DOCKER_HOST" \
        -p "$docker_run/pid" --iptables=false --ip6tables=false --ip-forward=false --bridge=none \
        >"$docker_data/../engine.log" 2>&1 &
    docker_pid=$!
    for _ in $(seq 300); do
        docker info >/dev/null 2>&1 && return 0
        kill -0 "$docker_pid" 2>/dev/null || break
        sleep 0.2
    done
    tail -20 "$docker_data/../engine.log" >&2
    echo "$0: no Docker engine" >&2
    docker_stop
    return 1
}

# Ends the engine and the containers that still run.
docker_stop() {
    [ -n "${docker_run-}" ] || return 0
    left=$(docker ps -aq 2>/dev/null) || left=
    # shellcheck disable=SC2086 # a list of words
    [ -z "$left" ] || docker rm -f $left >/dev/null 2>&1 || :
    kill -TERM "$(cat "$docker_run/pid" 2>/dev/null || echo "$docker_pid")" 2>/dev/null || :
    wait "$docker_pid" 2>/dev/null || :
    umount "$docker_run"/exec/netns/* 2>/dev/null || :
    rm -rf "$docker_run"
    docker_run=
}

# docker_base SUITE: the image debian:SUITE-slim, made here where it is not yet: no registry is asked.
docker_base() {
    docker image inspect "debian:$1-slim" >/dev/null 2>&1 && return 0
    debian_root "$1" "$docker_data/../$1.tar"
    docker import -c 'CMD ["bash"]' "$docker_data/../$1.tar" "debian:$1-slim" >/dev/null
}
