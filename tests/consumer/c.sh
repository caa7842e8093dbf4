#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# c.sh SOURCE WORK LIBDIR COMMAND KIND: builds the example in C11 with a C compiler and what
# pkg-config says about the redlock in LIBDIR (KIND: static or shared), and runs it on nodes that
# the command starts; with a shared library the example in Python, too.
set -euo pipefail
source=$1 work=$2 libdir=$3 command=$4 kind=$5
if ! command -v cc >/dev/null; then
  echo "SKIPPED: there is no C compiler"
  exit
fi
rm -rf "$work"
mkdir -p "$work"
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir XDG_STATE_HOME=$work
cflags=()
libs=()
eval "cflags=($(pkg-config --cflags redlock)) libs=($(pkg-config --libs redlock))"
cc -std=c11 -pedantic -Wall -Wextra -Wconversion -Werror -c "$source/examples/c_job/job.c" \
  -o "$work/job.o" "${cflags[@]}"
# The static library needs what every C++ program needs; a C++ compiler links it.
linker=cc
if [ "$kind" = static ]; then linker=${CXX:-c++}; fi
"$linker" "$work/job.o" -o "$work/job" "${libs[@]}"

trap '"$command" fleet down --name consumer >/dev/null 2>&1 || true' EXIT
eval "$("$command" fleet up --name consumer -n 3)"

# said EXPECTED COMMAND...: that the command prints this line and ends with success. The examples
# wait a second, and for each node a quarter of one: a machine that stood still has another try.
said() {
  local output=''
  for _ in 1 2 3 4 5; do
    if output=$("${@:2}") && grep -qxE "$1" <<<"$output"; then return; fi
  done
  printf '%s did not print "%s" but\n%s\n' "${*:2}" "$1" "$output"
  exit 1
}
# refused STATUS COMMAND...: that it ends with this status.
refused() {
  local status=0
  "${@:2}" || status=$?
  if [ "$status" != "$1" ]; then
    echo "${*:2} ended with $status, not $1"
    exit 1
  fi
}
programs=("$work/job")
if [ "$kind" = shared ] && command -v python3 >/dev/null && python3 -c 'import ctypes'; then
  export PYTHONDONTWRITEBYTECODE=yes REDLOCK_LIBRARY=$libdir/libredlock.so
  programs+=("python3 $source/examples/python/job.py")
fi
for program in "${programs[@]}"; do
  read -ra words <<<"$program"
  said released "${words[@]}" report 3
  said 'working under token [1-9][0-9]*' "${words[@]}" report 1
  said 'done' "$command" exec report -- bash -c '"$@" >&2; test $? = 75 && echo done' _ \
    "${words[@]}" report 1
done
refused 64 "$work/job" report none
REDLOCK_NODES=127.0.0.1:1 refused 1 "$work/job" report 1
if [ ${#programs[@]} = 2 ]; then
  PYTHONPATH=$source/examples/python said 'done' python3 "$source/tests/consumer/python_waits.py" \
    "$command"
fi
if [ "$kind" = shared ] && [ ${#programs[@]} = 1 ]; then
  echo "SKIPPED: the example in Python, as there is no Python with ctypes"
fi
