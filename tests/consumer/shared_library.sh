#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# shared_library.sh LIBRARY VERSION: a shared redlock shows its public classes and functions, those
# for C, and nothing of the inner layers or the C libraries. Weak instances of the templates of the
# standard and of tl::expected are in every C++ library and are let through. And a program asks for
# the library by a name that changes with its ABI: by major version, and by minor version until 1.0.
# That name and the one with the whole version lie beside it.
set -euo pipefail
symbols=$(nm -DC --defined-only "$1" | cut -d ' ' -f 2-)
ours='^[A-Z] (((vtable|typeinfo|typeinfo name) for )?redlock::|redlock_[a-z_]+$)'
templates='^[VWu] .*(std|tl|redlock)::'
strange=$(grep -vE "$ours|$templates" <<<"$symbols" || true)
layers='redlock::(engine|wire|net|client|admin|metrics|c)::|::(Impl|State)::'
inner=$(grep -vE "$templates" <<<"$symbols" | grep -E "$layers" || true)
if [ -n "$strange$inner" ]; then
  printf 'these should not be visible:\n%s\n%s\n' "$strange" "$inner"
  exit 1
fi
grep 'redlock::Client::create' <<<"$symbols"
grep 'T redlock_client_create' <<<"$symbols"
echo "$(wc -l <<<"$symbols") symbols"

IFS=. read -r major minor _ <<<"$2"
abi=$major
if [ "$major" = 0 ]; then abi+=.$minor; fi
soname=$(readelf -d "$1" | sed -nE 's/.*\(SONAME\).*\[(.*)\]/\1/p')
echo "$soname"
if [ "$soname" != "libredlock.so.$abi" ]; then
  echo "this should be libredlock.so.$abi"
  exit 1
fi
cd "$(dirname "$1")"
for link in libredlock.so "$soname"; do
  if [ "$(realpath "$link")" != "$(realpath "libredlock.so.$2")" ]; then
    echo "$link does not lead to libredlock.so.$2"
    exit 1
  fi
done
