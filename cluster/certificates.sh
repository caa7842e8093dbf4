#!/bin/sh
# SPDX-License-Identifier: MIT
# Certificates for trying TLS out on one machine, as the compose file's profile tls wants them: of
# an authority of their own, for a month. Needs openssl.
#
#   certificates.sh DIRECTORY [NAME...]     names or addresses of the nodes: localhost, 127.0.0.1
#
# Makes authority.crt, node.crt, node.key, client.crt and client.key there. node.key is readable by
# everybody who can enter the directory: a server in a container has another user. The key of the
# authority is deleted, so that nothing more can be signed with it.
set -eu

if [ $# = 0 ]; then
  echo "certificates.sh: in which directory? certificates.sh DIRECTORY [NAME...]" >&2
  exit 64
fi
directory=$1
shift
[ $# -gt 0 ] || set -- localhost 127.0.0.1
names=
for name; do
  case $name in
    *:*) kind=IP ;;
    *[!0-9.]*) kind=DNS ;;
    *) kind=IP ;;
  esac
  names=$names${names:+,}$kind:$name
done

mkdir -p "$directory"
cd "$directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
# sign NAME EXTENSIONS
sign() {
  new_key "$1.key"
  printf '%s\n' "$2" >"$work/extensions"
  openssl req -new -key "$1.key" -subj "/CN=redlock $1" -out "$work/request"
  openssl x509 -req -in "$work/request" -CA authority.crt -CAkey "$work/authority.key" \
    -CAcreateserial -CAserial "$work/serial" -days 30 -extfile "$work/extensions" -out "$1.crt" \
    2>"$work/said" || { cat "$work/said" >&2 && exit 1; }
}

new_key "$work/authority.key"
openssl req -x509 -new -key "$work/authority.key" -subj "/CN=redlock test authority" -days 30 \
  -out authority.crt
sign node "subjectAltName=$names"
sign client "basicConstraints=CA:FALSE"
chmod 644 node.key
chmod 600 client.key
