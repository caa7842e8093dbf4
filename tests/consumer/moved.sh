#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# moved.sh PREFIX LIBDIR WORK: an installed redlock is moved to another place, with a space in its
# name, and is found and linked there by both ways. LIBDIR is relative to PREFIX.
set -euo pipefail
here=$(dirname "$0")
rm -rf "$3"
mkdir -p "$3"
cp -a "$1" "$3/moved here"
"$here/pkg_config.sh" "$here/consumer.cpp" "$3/program" "$3/moved here/$2"
"$here/find_package.sh" "$here/find_package" "$3/build" "$3/moved here"
if grep -rF "$1" "$3/moved here" --include='*.cmake' --include='*.pc'; then
  echo "these name the place where it was before"
  exit 1
fi
