#!/bin/sh
# Starts and stops a CrateDB of one node in Docker, to try the loader with.
#
#   packaging/cratedb-docker.sh start|stop|status
#
# CRATEDB_VERSION (6.4.3), CRATEDB_HEAP (2g), CRATEDB_HTTP_PORT (4200) and CRATEDB_PG_PORT (5432) may be set.
set -eu

name=sawmill-cratedb
version=${CRATEDB_VERSION:-6.4.3}
http_port=${CRATEDB_HTTP_PORT:-4200}
pg_port=${CRATEDB_PG_PORT:-5432}

case "${1:-}" in
start)
    docker run --detach --rm --name "$name" \
        --publish "127.0.0.1:$http_port:4200" --publish "127.0.0.1:$pg_port:5432" \
        --env "CRATE_HEAP_SIZE=${CRATEDB_HEAP:-2g}" \
        "crate:$version" -Cdiscovery.type=single-node -Cnode.name=sawmill > /dev/null
    tries=0
    until curl --silent --fail --output /dev/null "http://127.0.0.1:$http_port/"; do
        tries=$((tries + 1))
        if [ "$tries" -ge 60 ]; then
            echo "CrateDB did not answer within a minute; see docker logs $name" >&2
            exit 1
        fi
        sleep 1
    done
    echo "sawmill load FILE --to 'crate://127.0.0.1:$http_port/doc?pg_port=$pg_port' --table NAME --row-key"
    ;;
stop)
    docker stop "$name" > /dev/null
    ;;
status)
    docker ps --filter "name=$name"
    ;;
*)
    echo "usage: $0 start|stop|status" >&2
    exit 2
    ;;
esac
