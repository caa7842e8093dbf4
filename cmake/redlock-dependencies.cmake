# SPDX-License-Identifier: MIT
# Finds what the library links to. The build and the installed package share this file, so both
# look in the same way: pkg-config for libuv and hiredis (Debian's CMake package of hiredis is
# broken and libuv has none), the header alone for tl::expected where its package is missing.
find_package(Threads QUIET REQUIRED)

if(NOT TARGET tl::expected)
  find_package(tl-expected CONFIG QUIET)
endif()
if(NOT TARGET tl::expected)
  find_path(REDLOCK_EXPECTED_INCLUDE_DIR tl/expected.hpp)
  mark_as_advanced(REDLOCK_EXPECTED_INCLUDE_DIR)
  if(NOT REDLOCK_EXPECTED_INCLUDE_DIR)
    message(FATAL_ERROR "redlock needs the header tl/expected.hpp (Debian: libexpected-dev)")
  endif()
  add_library(tl::expected INTERFACE IMPORTED)
  target_include_directories(tl::expected INTERFACE ${REDLOCK_EXPECTED_INCLUDE_DIR})
endif()

# A shared library carries its own dependencies; its users need none of these.
if(NOT REDLOCK_IS_SHARED)
  find_package(PkgConfig QUIET REQUIRED)
  # Where libuv is built as a static library alone, as by vcpkg, its file has another name.
  pkg_search_module(REDLOCK_UV QUIET REQUIRED IMPORTED_TARGET libuv>=1.44 libuv-static>=1.44)
  # It may be given as -l:libuv.a, which CMake passes on without the directory.
  target_link_directories(PkgConfig::REDLOCK_UV INTERFACE ${REDLOCK_UV_LIBRARY_DIRS})
  pkg_check_modules(REDLOCK_HIREDIS QUIET REQUIRED IMPORTED_TARGET hiredis>=0.14)
  if(REDLOCK_TLS)
    pkg_check_modules(REDLOCK_OPENSSL QUIET IMPORTED_TARGET openssl>=3.0)
    if(NOT REDLOCK_OPENSSL_FOUND)
      message(FATAL_ERROR "redlock needs OpenSSL 3.0 or newer for TLS (Debian: libssl-dev); "
                          "-DREDLOCK_TLS=OFF leaves TLS out")
    endif()
  endif()
endif()
