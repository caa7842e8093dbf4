# SPDX-License-Identifier: MIT
# Debian packages, by cpack (./dev package does all): libredlock0.1 with the shared library, named
# after its soname as Debian has it, so that two of them can be installed side by side;
# libredlock-dev; redlock with the command; redlock-tools with redlock-bench and redlock-fleet. A
# static library goes to libredlock-dev, and the first is left out. What only a package has is left
# out of `cmake --install` (EXCLUDE_FROM_ALL).
include(GNUInstallDirs)

get_target_property(abi redlock SOVERSION)
set(names_runtime libredlock${abi})
set(names_development libredlock-dev)
set(names_command redlock)
set(names_tools redlock-tools)
set(CPACK_COMPONENTS_ALL redlock_development)
if(REDLOCK_IS_SHARED)
  list(APPEND CPACK_COMPONENTS_ALL redlock_runtime)
  set(CPACK_COMPONENT_REDLOCK_DEVELOPMENT_DEPENDS redlock_runtime)
  set(CPACK_COMPONENT_REDLOCK_COMMAND_DEPENDS redlock_runtime)
else()
  # Those of redlock.pc: Debian's names of what every link with the static library needs.
  set(static_needs ", libhiredis-dev, libuv1-dev, pkg-config")
  if(REDLOCK_TLS)
    string(APPEND static_needs ", libssl-dev")
  endif()
endif()
if(TARGET redlock_cli)
  list(APPEND CPACK_COMPONENTS_ALL redlock_command redlock_tools)
  set(CPACK_COMPONENT_REDLOCK_TOOLS_DEPENDS redlock_command)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME redlock)
set(CPACK_PACKAGE_CONTACT "The redlock authors <redlock@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each has its own first line
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE redlock)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# What is only searched for in the build tree is in the first package, on which the others depend.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/stage_for_debian.cmake)

set(purpose
    "redlock is one lock for programs on many machines, granted by a majority of
independent Redis nodes. It renews leases, gives fencing tokens, and tells a
holder before its lock can be lost.")

set(CPACK_DEBIAN_REDLOCK_RUNTIME_PACKAGE_NAME ${names_runtime})
set(CPACK_DEBIAN_REDLOCK_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_REDLOCK_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REDLOCK_RUNTIME_DESCRIPTION
    "mutex over independent Redis nodes (shared library)\n${purpose}

This package has the library that programs are linked with.")
# A patch version keeps the ABI (docs/packaging.md), so that a program needs the one it was built
# with, or a newer one.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_REDLOCK_RUNTIME_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)

set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_PACKAGE_NAME libredlock-dev)
set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_PACKAGE_DEPENDS "libexpected-dev${static_needs}")
set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_PACKAGE_SUGGESTS
    "libasio-dev | libboost-dev, libuv1-dev, pkg-config")
set(CPACK_DEBIAN_REDLOCK_DEVELOPMENT_DESCRIPTION
    "mutex over independent Redis nodes (development files)\n${purpose}

This package has the headers for C++20 and C, and what CMake and pkg-config
need to find them.")

set(CPACK_DEBIAN_REDLOCK_COMMAND_PACKAGE_NAME redlock)
set(CPACK_DEBIAN_REDLOCK_COMMAND_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_REDLOCK_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REDLOCK_COMMAND_PACKAGE_RECOMMENDS redlock-tools)
set(CPACK_DEBIAN_REDLOCK_COMMAND_DESCRIPTION
    "mutex over independent Redis nodes (command)\n${purpose}

This package has the command, which runs another one under a lock, shows who
holds and who waits, and examines the nodes; with manual pages, completions
for shells, and a configuration for the nodes.")

set(CPACK_DEBIAN_REDLOCK_TOOLS_PACKAGE_NAME redlock-tools)
set(CPACK_DEBIAN_REDLOCK_TOOLS_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_REDLOCK_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REDLOCK_TOOLS_PACKAGE_SUGGESTS redis-server)
set(CPACK_DEBIAN_REDLOCK_TOOLS_DESCRIPTION
    "mutex over independent Redis nodes (tools for trials)\n${purpose}

This package has two more subcommands of redlock: bench, which measures locks
on the nodes in use, and fleet, which runs nodes on this machine for trying
things out.")

foreach(component IN ITEMS runtime development command tools)
  if(NOT redlock_${component} IN_LIST CPACK_COMPONENTS_ALL)
    continue()
  endif()
  set(directory ${CMAKE_INSTALL_DATADIR}/doc/${names_${component}})
  install(FILES packaging/debian/copyright DESTINATION ${directory}
          COMPONENT redlock_${component} EXCLUDE_FROM_ALL)
  install(FILES CHANGELOG.md DESTINATION ${directory} RENAME changelog
          COMPONENT redlock_${component} EXCLUDE_FROM_ALL)
endforeach()
if(TARGET redlock_cli)
  install(FILES cluster/redis.conf cluster/users.acl
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${names_command}/examples
          COMPONENT redlock_command EXCLUDE_FROM_ALL)
endif()
include(CPack)
