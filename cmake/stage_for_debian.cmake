# SPDX-License-Identifier: MIT
# Run by cpack between the installation into its own directory and the packing: what Debian wants
# otherwise than `cmake --install` leaves it. Texts are compressed without a time in them, so that
# the same files make the same package (SOURCE_DATE_EPOCH is the time of the entry).
set(version ${CPACK_DEBIAN_PACKAGE_VERSION})
if(NOT version)
  set(version ${CPACK_PACKAGE_VERSION})
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(GLOB changelogs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/doc/*/changelog)
foreach(changelog IN LISTS changelogs)
  file(WRITE ${changelog}.Debian
       "redlock (${version}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * What changed is in changelog.gz.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  list(APPEND texts ${changelog}.Debian)
endforeach()
file(GLOB pages ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/man/man1/*.1)
foreach(text IN LISTS changelogs texts pages)
  execute_process(COMMAND gzip -9nf ${text} COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# Debian's zsh does not look into site-functions.
file(GLOB completions ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/share/zsh/site-functions)
foreach(directory IN LISTS completions)
  get_filename_component(zsh ${directory} DIRECTORY)
  file(RENAME ${directory} ${zsh}/vendor-completions)
endforeach()

# Whatever the umask is.
execute_process(COMMAND chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_INSTALL_DIRECTORY}
                COMMAND_ERROR_IS_FATAL ANY)
