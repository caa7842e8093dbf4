#!/bin/sh
# SPDX-License-Identifier: MIT
# Adopts a new set of nodes where there is redis-cli but no redlock command, as in the compose file:
# gives each node its marker with the very script that `redlock adopt` runs.
#
#   adopt.sh ADOPT.LUA MAX_LEASE_MS HOST:PORT...      all nodes of the set, every one of them
#
# Logs in as $REDISCLI_USER with the password $REDISCLI_AUTH, if these are set.
#
# A node that has this marker already is left as it is; one with another marker is an error, and so
# is one without a marker beside nodes that have one. As with `redlock adopt`, all markers name the
# same set: the one that a quorum of the nodes name already, or a new one if a quorum can be given
# it.
set -eu

script=$1
max_lease_ms=$2
shift 2
nodes=$#
status=0

at() { redis-cli ${REDISCLI_USER:+--user "$REDISCLI_USER"} -h "${node%:*}" -p "${node##*:}" "$@"; }
random_id() { od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n'; }
# What the marker of each node names, one a line; "-" if it names nothing.
names=$(for node; do
  name=$(at HGET redlock:node set 2>/dev/null) || continue
  echo "${name:--}"
done)
set=$(echo "$names" | sort | uniq -c |
  awk -v nodes="$nodes" '2 * $1 > nodes { print ($2 == "-") ? "new" : $2 }')
if [ "$set" = new ]; then set=$(random_id); fi

blank=$(for node; do
  if [ "$(at EXISTS redlock:node 2>/dev/null)" = 0 ]; then echo "$node"; fi
done)
mixed=$([ "$(echo "$blank" | wc -l)" = "$nodes" ] || echo yes)

for node; do
  if echo "$blank" | grep -qxF "$node" && [ -n "$mixed" ]; then
    echo "$node: not adopted: it has no marker, and others have one or are silent; if it" \
      "takes the place of a member that is stopped for good, run redlock adopt --replaced $node" >&2
    status=1
    continue
  fi
  if [ -z "$set" ]; then
    echo "$node: not adopted: no quorum of the nodes can be asked, or is of one set" >&2
    status=1
    continue
  fi
  id=$(random_id)
  if ! reply=$(at --no-raw --eval "$script" redlock:node redlock:node:notes , \
    "$id" redlock-2 "$nodes" "$max_lease_ms" "$set" 2>&1); then
    echo "$node: not adopted: $reply" >&2
    status=1
    continue
  fi
  # A marker that is there comes back as numbered lines, field and value in turn: 1) "id" 2) "...".
  field() { echo "$reply" | sed -n "/\"$1\"\$/{n;s/^[^\"]*\"\(.*\)\"\$/\1/p;}"; }
  if [ "$reply" = '"written"' ]; then
    echo "$node: adopted, one of $nodes, leases of up to $max_lease_ms ms"
  elif [ "$(field layout) $(field nodes) $(field max_lease_ms) $(field set)" = \
    "redlock-2 $nodes $max_lease_ms $set" ]; then
    echo "$node: adopted already"
  else
    echo "$node: not adopted: it has answered $(echo "$reply" | tr '\n' ' ')" >&2
    status=1
  fi
done
exit $status
