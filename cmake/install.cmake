# SPDX-License-Identifier: MIT
# What `cmake --install` puts on a machine: the library and its headers, a CMake package
# (find_package(redlock)), redlock.pc for pkg-config, and the commands. Each rule is of a component,
# of which packages.cmake makes a package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redlock)
get_target_property(kind redlock TYPE)
if(kind STREQUAL SHARED_LIBRARY)
  set(REDLOCK_IS_SHARED ON)
else()
  set(REDLOCK_IS_SHARED OFF)
  # A static library needs these at every link, not only at those that pass --static.
  set(pc_requires "${REDLOCK_UV_MODULE_NAME} >= 1.44, hiredis >= 0.14")
  if(REDLOCK_TLS)
    string(APPEND pc_requires ", openssl >= 3.0")
  endif()
  set(pc_cflags " -DREDLOCK_STATIC_DEFINE")
endif()

configure_package_config_file(cmake/redlock-config.cmake.in redlock-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(redlock-config-version.cmake COMPATIBILITY SameMinorVersion)
# redlock.pc finds its prefix from where it lies, so that the installed tree can be moved. Some
# distributions give the directories with the prefix in them.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
file(RELATIVE_PATH pc_libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/redlock.pc.in redlock.pc @ONLY)

install(
  TARGETS redlock
  EXPORT redlock-targets
  LIBRARY COMPONENT redlock_runtime NAMELINK_COMPONENT redlock_development
  ARCHIVE COMPONENT redlock_development
  FILE_SET HEADERS COMPONENT redlock_development
  FILE_SET asio COMPONENT redlock_development)
install(EXPORT redlock-targets NAMESPACE redlock:: DESTINATION ${package_dir}
        COMPONENT redlock_development)
install(FILES ${PROJECT_BINARY_DIR}/redlock-config.cmake
              ${PROJECT_BINARY_DIR}/redlock-config-version.cmake
              cmake/redlock-dependencies.cmake DESTINATION ${package_dir}
        COMPONENT redlock_development)
install(FILES ${PROJECT_BINARY_DIR}/redlock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT redlock_development)
if(TARGET redlock_cli)
  install(TARGETS redlock_cli COMPONENT redlock_command)
  install(TARGETS redlock_cli_bench redlock_cli_fleet COMPONENT redlock_tools)
endif()
