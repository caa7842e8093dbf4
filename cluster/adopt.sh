#!/bin/sh
# SPDX-License-Identifier: MIT
# Adopts a new set of nodes where there is redis-cli but no redlock command, as in the compose file:
# gives each node its marker with the very script that `redlock adopt` runs.
#
#   adopt.sh ADOPT.LUA MAX_LEASE_MS HOST:PORT...      all nodes of the set, every one of them
#
# Logs in as $REDISCLI_USER with the password $REDISCLI_AUTH, if these are set.
#
# As with `redlock adopt`, all nodes of a new set are first marked as forming it, and are its
# members when all are marked; run again, this goes on with what it began. A node that has the
# marker of the set already is left as it is; one with another marker is an error, and so is one
# without a marker beside members of a set.
set -eu

script=$1
max_lease_ms=$2
shift 2
nodes=$#
status=0
epoch=1

at() { redis-cli ${REDISCLI_USER:+--user "$REDISCLI_USER"} -h "${node%:*}" -p "${node##*:}" "$@"; }
random_id() { od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n'; }
get() { at HGET redlock:node "$1"; }
refuse() {
  echo "$node: not adopted: $*" >&2
  status=1
}
# "blank", "member", "forming SET", or an error.
state() {
  there=$(at EXISTS redlock:node 2>&1) || true
  case $there in
  0) echo blank ;;
  1) if [ -n "$(get set)" ]; then echo member; else echo "forming $(get forming)"; fi ;;
  *) echo "error: $(echo "$there" | head -n 1)" ;;
  esac
}
# Writes the marker with this field, set or forming, in place of what the node was seen to form.
write() {
  for member in $members; do
    if [ "${member#*=}" = "redis://$node" ]; then id=${member%%=*}; fi
  done
  at --eval "$script" redlock:node redlock:node:notes , "$2" "$1" "$id" redlock-3 "$nodes" \
    "$max_lease_ms" "$set" "$epoch" "$members" 2>&1
}
# The set, and its members, as this node's marker has them.
take() {
  set=$(get "$1")
  epoch=$(get epoch)
  members=$(get members)
}
addresses_of() { for member; do echo "${member#*=}"; done | sort; }

# One look, by which all is decided: a line for each node.
# shellcheck disable=SC2030,SC2031 # each function has its own node
states=$(for node; do echo "$node $(state)"; done)
# shellcheck disable=SC2031
state_of() { echo "$states" | sed -n "s|^$node ||p"; }
listed=$(for node; do echo "redis://$node"; done | sort)
set=
case $states in
*" member"*)
  for node; do
    if [ -z "$set" ] && [ "$(state_of)" = member ]; then take set; fi
  done
  for node; do
    if [ "$(state_of)" = member ]; then max_lease_ms=$(get max_lease_ms); fi
  done
  for node; do
    said="$(get set) $(get epoch) $(get layout) $(get nodes)"
    if [ "$said" = "$set $epoch redlock-3 $nodes" ]; then
      echo "$node: adopted already"
    elif [ "$(state_of)" = blank ]; then
      refuse "it has no marker, and others have one; if it is a member that lost its data, run" \
        "redlock adopt --replaced $node"
    elif [ "$(state_of)" = "forming $set" ] && [ "$(write set "$set")" = written ]; then
      echo "$node: adopted, one of $nodes, leases of up to $max_lease_ms ms"
    else
      refuse "it has answered $(at HGETALL redlock:node 2>&1 | tr '\n' ' ')"
    fi
  done
  exit $status
  ;;
esac

# A set that was being formed goes on; of two, both go on with the same.
last=$(echo "$states" | sed -n 's/^\([^ ]*\) forming \(.*\)$/\2 \1/p' | sort | tail -n 1)
if [ -n "$last" ]; then
  node=${last#* }
  take forming
else
  set=$(random_id)
  members=$(for node; do echo "$(random_id)=redis://$node"; done | tr '\n' ' ' | sed 's/ $//')
fi
for node; do
  case $(state_of) in
  blank) ;;
  forming*)
    others=$(get members)
    # shellcheck disable=SC2086 # one word for each member
    if [ "$(addresses_of $others)" != "$listed" ]; then
      refuse "it was being adopted into a set with other members: $others"
    fi
    ;;
  *) refuse "it has answered $(state_of)" ;;
  esac
done
for node; do
  seen=$(state_of | sed 's/^blank$//; s/^forming //')
  if [ "$status" = 0 ] && [ "$seen" != "$set" ]; then
    reply=$(write forming "$seen")
    if [ "$reply" != written ]; then refuse "it has answered $(echo "$reply" | tr '\n' ' ')"; fi
  fi
done
for node; do
  if [ "$status" != 0 ]; then
    refuse "a new set is adopted when all its nodes can be asked"
  elif [ "$(write set "$set")" = written ]; then
    echo "$node: adopted, one of $nodes, leases of up to $max_lease_ms ms"
  else
    refuse "adopt once more"
  fi
done
exit $status
