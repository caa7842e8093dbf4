#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An operator's day on one local set: the runbook's own lines, section after section in one shell,
# while programs visit a room in turn and one holds a lock all the time. Nobody may be in the room
# beside another, no token may fall, and no lease may be lost. Certificates, at last, are replaced
# on a set of their own.
#
#   operators_day.sh SOURCE_DIR BIN_DIR
set -euo pipefail
source_dir=$1
export PATH="$2:$PATH"
unset REDLOCK_NODES REDLOCK_NODES_FILE REDLOCK_PASSWORD_FILE REDLOCK_QUARANTINE

work=$(mktemp -d)
export XDG_STATE_HOME="$work"
cd "$work"
at_end() {
  local status=$?
  touch evening relief
  for fleet in "$work"/redlock/fleet/*; do
    redlock fleet down --name "${fleet##*/}" >/dev/null 2>&1 || true
  done
  wait
  cd / && rm -rf "$work"
  [ "$status" = 0 ] || echo "the day ended with status $status"
}
trap at_end EXIT

# Beside other tests a node may be slow to answer; that is no fault of the day.
redlock() {
  case $1 in
    doctor | adopt | status | list | release) command redlock "$1" --node-timeout 10s "${@:2}" ;;
    set) command redlock set "$2" --node-timeout 10s "${@:3}" ;;
    *) command redlock "$@" ;;
  esac
}

# section PAGE HEADING N: the commands of the Nth block (none: all) below a heading ("": the page's
# beginning), in this shell; `edit` is what sed makes of the page's places.
section() {
  echo "== $1: $2${3:+ ($3)}"
  awk -v heading="## $2" -v wanted="${3:-0}" '
    BEGIN { inside = heading == "## " }
    /^## / { inside = $0 == heading; next }
    inside && /^```(sh|console)$/ { block++; kind = substr($0, 4); next }
    /^```/ { kind = ""; next }
    inside && kind != "" && (wanted == 0 || wanted == block) {
      if (kind == "sh") print
      else if (sub(/^\$ /, "")) print
    }' "$source_dir/docs/$1" | sed "${edit:-}" >section.sh
  [ -s section.sh ] || { echo "docs/$1 has no commands below '$2'"; exit 1; }
  # shellcheck source=/dev/null
  . ./section.sh
}

cat >visit.sh <<'VISIT'
mkdir room 2>/dev/null || echo "two in the room, token $REDLOCK_TOKEN" >>broken
read -r last <token
[ "$REDLOCK_TOKEN" -gt "$last" ] || echo "token $REDLOCK_TOKEN after $last" >>broken
echo "$REDLOCK_TOKEN" >token
echo visit >>visits
rmdir room
VISIT
echo 0 >token
: >visits

# Each visit is a program that starts anew, with the settings that its place was given last.
programs() {
  while [ ! -e evening ]; do
    (
      # shellcheck source=/dev/null
      . "./settings.$1"
      command redlock exec room --node-timeout 2s --wait 1m -- sh visit.sh 2>"said.$1"
    ) || { echo "program $1: status $?: $(tail -n 1 "said.$1")" && sleep 1; } >>broken
  done
}
keeper() {
  command redlock exec kept --node-timeout 2s -- sh -c 'until [ -e relief ]; do sleep 0.1; done' ||
    echo "the keeper: status $?" >>broken
}
keeper_pid=
places=()
relieve_keeper() {
  touch relief
  wait "$keeper_pid"
  rm relief
}
start_keeper() {
  keeper &
  keeper_pid=$!
}
give_settings() {
  for i in "$@"; do
    export -p | grep ' REDLOCK_' >settings
    mv settings "settings.$i"
  done
}
start_load() {
  rm -f evening
  for i in 1 2 3 4; do
    give_settings "$i"
    programs "$i" &
    places+=($!)
  done
  start_keeper
}
stop_load() {
  touch evening
  relieve_keeper
  wait "${places[@]}"
  places=()
}
# So many more visits: the programs are at work with what they were given.
await_visits() {
  local wanted=$(($(wc -l <visits) + $1))
  until [ "$(wc -l <visits)" -ge "$wanted" ]; do
    [ ! -e broken ] || { head broken; exit 1; }
    sleep 0.1
  done
}
section operations.md ""
start_load

section operations.md "A node restarts"
await_visits 20

section operations.md "A machine is replaced"
await_visits 20
give_settings 1 2  # both lists side by side
await_visits 20
give_settings 3 4
await_visits 20
relieve_keeper
start_keeper

section operations.md "A node lost its data"
await_visits 20

section operations.md "More nodes, or fewer"
await_visits 20

section operations.md "The longest lease"
await_visits 20

section ../SECURITY.md "To change a password" 1
give_settings 1 2 3 4
relieve_keeper
start_keeper
section ../SECURITY.md "To change a password" 2
every_node CLIENT KILL USER redlock SKIPME yes  # all log in again, with the new one
await_visits 20

all_was_well() {
  stop_load
  redlock doctor >doctor.txt || { cat doctor.txt; exit 1; }
  head -n 1 doctor.txt
  if [ -e broken ]; then
    head broken
    exit 1
  fi
  echo "$(wc -l <visits) visits: no two in the room, no token fell, no lease was lost"
}
all_was_well

# The loop of a restart ends where the set is unsafe, and says so.
for i in 1 2 4; do redlock fleet kill "$i"; done
if await_healthy >said.txt 2>&1; then
  echo "the restart loop went on over a set without a quorum"
  exit 1
fi
grep '^unsafe' said.txt

# Certificates: the set is another one, whose nodes are given TLS before anybody uses it.
if [[ $(command redlock doctor --nodes rediss://127.0.0.1:1 2>&1) == *'built without TLS'* ||
  $(redis-cli --tls 2>&1 </dev/null) == *'Unrecognized option'* ]]; then
  echo "no certificates: redlock or Redis was built without TLS"
  exit 0
fi
unset REDLOCK_PASSWORD_FILE
export REDLOCK_MAX_LEASE=10s
eval "$(command redlock fleet up --name certified -n 3)"
for authority in old new; do
  "$source_dir/cluster/certificates.sh" "$authority" 127.0.0.1
  mv "$authority/authority.crt" "$authority-ca.pem"
done
# place FILE FROM...: a new file beside the old one, moved to its place.
place() {
  (umask 077 && cat "${@:2}" >"$1.new") && mv "$1.new" "$1"
}
# In one file, as programs start all the time.
client_shows() {
  place client.pem "$1/client.crt" "$1/client.key"
}
ln -s client.pem client.key
place ca.pem old-ca.pem
client_shows old
export REDLOCK_TLS_CA=$work/ca.pem REDLOCK_TLS_{CERT,KEY}="$work/client.pem"
ports=$(grep -o '[0-9]*$' <<<"${REDLOCK_NODES//,/$'\n'}")
for port in $ports; do
  mkdir "$port"
  cp old/node.crt old/node.key ca.pem "$port"
  redis-cli -p "$port" >/dev/null <<TLS
CONFIG SET port 0
CONFIG SET tls-ca-cert-file $work/$port/ca.pem tls-cert-file $work/$port/node.crt \
tls-key-file $work/$port/node.key tls-port $port
TLS
done
export REDLOCK_NODES=${REDLOCK_NODES//redis:/rediss:}
redlock adopt

# told PORT COMMAND...: what the page says between its lines, to this node.
told() {
  tr -s '\n ' ' ' <"$source_dir/docs/tls.md" | grep -F "\`${*:2}\`" >/dev/null ||
    { echo "docs/tls.md does not say '${*:2}'"; exit 1; }
  local words=("${@:2}")
  redis-cli -p "$1" --tls --cacert ca.pem --cert client.pem --key client.key \
    "${words[@]/#\/etc\/redis/$work/$1}" | tee told.txt
  ! grep -q ERR told.txt
}
nodes_trust() {
  for port in $ports; do
    place "$port/ca.pem" "$@"
    told "$port" CONFIG SET tls-ca-cert-file /etc/redis/ca.pem
  done
}
end_connections() {
  for port in $ports; do
    redlock doctor >doctor.txt || { cat doctor.txt; exit 1; }
    told "$port" CLIENT KILL TYPE normal
    told "$port" CLIENT KILL TYPE pubsub
  done
  await_visits 20
}
echo 0 >token
start_load
await_visits 20

place ca.pem old-ca.pem new-ca.pem
nodes_trust old-ca.pem new-ca.pem
client_shows new
end_connections
for port in $ports; do
  cp new/node.crt "$port/node.crt.new"
  cp new/node.key "$port/node.key.new"
  edit="s|/etc/redis|$work/$port|g; s|-h 10.0.0.1|-p $port|; s|node\.[a-z]*\.new|$port/&|g" \
    section tls.md "To replace certificates" 1
done
end_connections
place ca.pem new-ca.pem
nodes_trust new-ca.pem
end_connections
sleep 11  # more than a lease: what is held now was renewed by the new authority alone
all_was_well

# refused SAYING OPTIONS...: who has the old authority still.
refused() {
  if redlock doctor "${@:2}" >doctor.txt 2>&1 ||
    ! tr -s '\n ' ' ' <doctor.txt | grep -F "$1" >/dev/null; then
    cat doctor.txt
    echo "not refused, or not so: $1"
    exit 1
  fi
}
refused "from an authority that is not trusted here" --tls-ca old-ca.pem
refused "it refuses the certificate of this client" \
  --tls-cert old/client.crt --tls-key old/client.key
echo "certificates: the old authority is refused, by nodes and by clients"
