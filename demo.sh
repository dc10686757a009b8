#!/bin/sh
# The main job on real processes: a job runs under a lock, is killed with SIGKILL, its lock says why it is stale, and the
# next job inherits it; a job that is only slow keeps its lock whatever its age. Needs Go and a POSIX shell.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -o "$dir/heirlock" ./cmd/heirlock
PATH="$dir:$PATH"
cd "$dir"
show() { printf '\n$ %s\n' "$*"; }

show "heirlock run -n job.lock -- sleep 60     # in the background, then a second job"
heirlock run --label nightly job.lock -c 'echo $$ >command; exec sleep 60' &
owner=$!
until [ -s command ]; do sleep 0.05; done
touch -t 197001020000 job.lock # its age proves nothing
kill -STOP "$owner"            # nor does its silence
heirlock run -n job.lock -- echo 'must not run' && exit 1
echo "(exit status $?: the owner is alive, however old its lock file looks, and although it is stopped)"

show "kill -KILL <the job and its command>; heirlock inspect job.lock"
kill -KILL "$owner"
kill -KILL "$(cat command)"
wait "$owner" 2>/dev/null || true
heirlock inspect job.lock && exit 1

show "heirlock run -v job.lock -- echo 'the next job runs'"
heirlock run -v job.lock -- echo 'the next job runs'
[ ! -e job.lock ]
