#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the peers' programs below build/peers, each from its published package at the version that
# its manifest names, with the package registries that this machine is set up for. Writes
# build/peers/programs: for each peer a line with its name, what it locks on (quorum, one-node,
# etcd) and its command, with tabs between; and for each that is left out "skipped", its name, why.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
here=bench/peers
there=$PWD/build/peers
mkdir -p "$there"
list=$there/programs
: >"$list.part"

peer() { (IFS=$'\t' && printf '%s\n' "$*") >>"$list.part"; }
# skip PEERS WHY [MORE]: MORE is for the terminal alone, as it may name places of this machine.
skip() {
  printf '== skipped: %s: %s%s\n' "$1" "$2" "${3:+ ($3)}" >&2
  printf 'skipped\t%s\t%s\n' "$1" "$2" >>"$list.part"
}

# made DIRECTORY PEERS TOOL COMMAND...: whether the command built what is in this directory.
made() {
  local directory=$1 peers=$2 tool=$3 log=$there/$1.log
  if ! command -v "$tool" >/dev/null; then
    skip "$peers" "there is no $tool"
    return 1
  fi
  mkdir -p "$there/$directory"
  cp -r "$here/$directory/." "$there/$directory/"
  printf '== building %s (log: build/peers/%s.log)\n' "$peers" "$directory" >&2
  if ! (cd "$there/$directory" && "${@:4}") >"$log" 2>&1 </dev/null; then
    skip "$peers" 'it cannot be built' "$(grep -v '^ *$' "$log" | tail -n 1 | cut -c 1-80)"
    return 1
  fi
}

build_python() {
  [ -x venv/bin/pip ] || python3 -m venv venv
  venv/bin/pip install --disable-pip-version-check -q -r requirements.txt
}

if made rust rslock cargo cargo build --release; then
  peer rslock quorum "$there/rust/target/release/peer" rslock
fi
if made go 'redsync and etcd' go go build -o peer .; then
  peer 'redsync, fail fast' quorum "$there/go/peer" redsync-fail-fast
  peer redsync quorum "$there/go/peer" redsync
  if command -v etcd >/dev/null; then
    peer etcd etcd "$there/go/peer" etcd
  else
    skip etcd 'there is no etcd (Debian: etcd-server)'
  fi
fi
if made node node-redlock npm npm ci --no-audit --no-fund; then
  peer node-redlock quorum node "$there/node/peer.mjs" node-redlock
fi
if [ -x build/release/bin/peer_redis_plus_plus ]; then
  peer redis-plus-plus quorum "$PWD/build/release/bin/peer_redis_plus_plus" redis-plus-plus
else
  skip redis-plus-plus 'pkg-config finds no redis++ (Debian 12 has no package of it)'
fi
if made python 'pottery and redis-py' python3 build_python; then
  peer pottery quorum "$there/python/venv/bin/python" "$there/python/peer.py" pottery
  peer 'redis-py Lock' one-node "$there/python/venv/bin/python" "$there/python/peer.py" redis-py
fi
if made java Redisson mvn mvn -q package; then
  classes="$there/java/target/peer.jar:$there/java/target/dependency/*"
  peer 'Redisson RedLock' quorum java -cp "$classes" Peer redlock
  peer 'Redisson RLock' one-node java -cp "$classes" Peer rlock
fi
mv "$list.part" "$list"
