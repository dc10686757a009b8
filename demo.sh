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

# step COMMAND [STATUS] shows a command, runs exactly that, and requires its exit status.
step() {
  printf '\n$ %s\n' "$1"
  eval "$1" && status=0 || status=$?
  [ "$status" -eq 0 ] || echo "(exit status $status)"
  [ "$status" -eq "${2:-0}" ]
}

step "heirlock run --label nightly job.lock -c 'echo \$\$ >command; exec sleep 60' & owner=\$!"
until [ -s command ]; do sleep 0.05; done

step 'touch -t 197001020000 job.lock; kill -STOP $owner    # neither age nor silence proves anything'
step "heirlock run -n job.lock -- echo 'the second job'" 75

step 'kill -KILL $owner $(cat command)'
wait "$owner" 2>/dev/null || true
while heirlock inspect job.lock >/dev/null; [ $? -eq 75 ]; do sleep 0.05; done # until the kernel has ended the command too
step 'heirlock inspect job.lock' 3

step "heirlock run -v job.lock -- echo 'the second job'"
[ ! -e job.lock ]
