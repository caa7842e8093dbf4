# SPDX-License-Identifier: MIT
# Asio of both kinds, for the tests and the example of <redlock/asio.hpp>. Of those that are
# installed there are the targets redlock_asio_standalone and redlock_asio_boost, and
# redlock_asio_coroutines if the former knows the compiler's coroutines and can cancel.
include(CheckCXXSourceCompiles)

find_path(REDLOCK_ASIO_INCLUDE_DIR asio.hpp)
find_path(REDLOCK_BOOST_ASIO_INCLUDE_DIR boost/asio.hpp)
mark_as_advanced(REDLOCK_ASIO_INCLUDE_DIR REDLOCK_BOOST_ASIO_INCLUDE_DIR)

function(redlock_import_asio name directory)
  if(NOT ${directory} OR TARGET ${name})
    return()
  endif()
  add_library(${name} INTERFACE IMPORTED)
  target_include_directories(${name} INTERFACE ${${directory}})
  target_link_libraries(${name} INTERFACE Threads::Threads)
  # The thread sanitizer knows no fences. Asio has them around handlers beside its mutexes, by which
  # it orders them all the same.
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
    target_compile_definitions(${name} INTERFACE ASIO_DISABLE_FENCED_BLOCK
                                                 BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endfunction()

redlock_import_asio(redlock_asio_standalone REDLOCK_ASIO_INCLUDE_DIR)
redlock_import_asio(redlock_asio_boost REDLOCK_BOOST_ASIO_INCLUDE_DIR)
if(TARGET redlock_asio_standalone)
  set(CMAKE_REQUIRED_INCLUDES ${REDLOCK_ASIO_INCLUDE_DIR})
  check_cxx_source_compiles(
    "#include <asio/detail/config.hpp>
    #if !defined(ASIO_HAS_CO_AWAIT) || !__has_include(<asio/associated_cancellation_slot.hpp>)
    #error too old
    #endif
    int main() {}"
    REDLOCK_ASIO_HAS_COROUTINES)
  unset(CMAKE_REQUIRED_INCLUDES)
  if(REDLOCK_ASIO_HAS_COROUTINES)
    redlock_import_asio(redlock_asio_coroutines REDLOCK_ASIO_INCLUDE_DIR)
    target_compile_definitions(redlock_asio_coroutines INTERFACE REDLOCK_ASIO_STANDALONE)
  endif()
endif()
