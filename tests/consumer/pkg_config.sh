#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# pkg_config.sh SOURCE PROGRAM LIBDIR [--static]: builds and runs a program with nothing but a
# compiler and what pkg-config says about the redlock in LIBDIR.
set -euo pipefail
export PKG_CONFIG_PATH=$3/pkgconfig LD_LIBRARY_PATH=$3
# It writes what a shell reads: a space in a path is escaped.
flags=()
eval "flags=($(pkg-config --cflags --libs "${@:4}" redlock))"
echo "${flags[@]}"
"${CXX:-c++}" -std=c++20 "$1" -o "$2" "${flags[@]}"
"$2"
