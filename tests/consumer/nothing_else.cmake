# SPDX-License-Identifier: MIT
# A toolchain file, so that it reaches builds whose command line is the README's: a machine that has
# the library's own dependencies alone, and wants the shared library.
set(BUILD_SHARED_LIBS ON)
foreach(package CLI11 fmt nlohmann_json doctest benchmark)
  set(CMAKE_DISABLE_FIND_PACKAGE_${package} ON)
endforeach()
