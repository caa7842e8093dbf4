# SPDX-License-Identifier: MIT
# Precompiled headers: a file of this library spends two thirds of its compile time in the
# standard's headers. They are left out of `./dev lint`, which so finds a missing #include.
option(REDLOCK_PRECOMPILE "Precompile headers of the standard library" ${PROJECT_IS_TOP_LEVEL})
if(REDLOCK_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess)  # for ccache
endif()

# redlock_precompile(TARGET [HEADER...]): the standard's headers, and these.
function(redlock_precompile target)
  if(NOT REDLOCK_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(
    ${target} PRIVATE <algorithm> <array> <atomic> <chrono> <coroutine> <cstdint> <deque>
    <functional> <future> <map> <memory> <mutex> <optional> <semaphore> <set> <stop_token> <string>
    <string_view> <system_error> <thread> <unordered_map> <utility> <variant> <vector> ${ARGN})
endfunction()
