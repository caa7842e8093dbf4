#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# static_libuv.sh PREFIX WORK: the static library in PREFIX is linked where libuv is there as an
# archive alone, in a directory where no linker looks, and pkg-config names the file (-l:libuv.a),
# as it does from libuv 1.45 on. A linker script that leads to this machine's libuv stands for it.
set -euo pipefail
prefix=$1 work=$2
here=$(dirname "$0")
rm -rf "$work"
mkdir -p "$work/lib"
directory=$(pkg-config --variable=libdir libuv)
library=$directory/libuv.so
if [ ! -e "$library" ]; then library=$directory/libuv.a; fi
echo "INPUT($library)" >"$work/lib/libuv.a"
flags=$(pkg-config --cflags libuv)
version=$(pkg-config --modversion libuv)
# package NAME VERSION LIBS: this one comes before what the machine has.
package() {
  printf '%s\n' "Name: $1" "Description: libuv" "Version: $2" "Libs: $3" "Cflags: $flags" \
    >"$work/lib/$1.pc"
}
package libuv-static "$version" "-L$work/lib -l:libuv.a"
package libuv 1.0 "-lthis_is_too_old"
PKG_CONFIG_PATH=$work/lib "$here/find_package.sh" "$here/find_package" "$work/build" "$prefix"
