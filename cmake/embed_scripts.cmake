# SPDX-License-Identifier: MIT
# Writes OUTPUT, a C++ header with one constant for each Lua file in SCRIPTS, named like the file,
# and a list of all. Run by the build:
# cmake -DSCRIPTS=a.lua,b.lua -DOUTPUT=scripts.hpp -P embed_scripts.cmake
set(header "// Written by cmake/embed_scripts.cmake from the .lua files.\n#pragma once\n\n")
string(APPEND header "#include \"wire/script_text.hpp\"\n\nnamespace redlock::wire::scripts {\n")
string(REPLACE "," ";" scripts "${SCRIPTS}")
foreach(script IN LISTS scripts)
  get_filename_component(name ${script} NAME_WE)
  file(READ ${script} text)
  string(FIND "${text}" ")lua\"" closing)
  if(NOT closing EQUAL -1)
    message(FATAL_ERROR "${script} contains )lua\", which would end the C++ string early")
  endif()
  string(APPEND header "\ninline constexpr ScriptText ${name}{\"${name}\", "
         "R\"lua(${text})lua\"};\n")
  string(APPEND all "    ${name},\n")
endforeach()
string(APPEND header "\ninline constexpr ScriptText all[] = {\n"
       "${all}};\n\n}  // namespace redlock::wire::scripts\n")
file(WRITE ${OUTPUT} "${header}")
