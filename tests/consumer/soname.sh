#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# soname.sh LIBRARY VERSION: a program asks for the library by a name that changes with its ABI: by
# major version, and by minor version until 1.0. That name and the one with the whole version lie
# beside it.
set -euo pipefail
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
