#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# symbols.sh LIBRARY: a shared redlock shows its public classes and functions, those for C, and
# nothing of the inner layers or the C libraries. Weak instances of the templates of the standard
# and of tl::expected are in every C++ library and are let through.
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
