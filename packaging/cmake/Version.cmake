# cmake -DSOURCE_DIR= -DFALLBACK= -DGIVEN= -DTEMPLATE= -DOUTPUT= -P Version.cmake: writes what `version`
# says. It runs with each build and not when CMake configures, so a commit is never told by the name
# of the one before; a text that stays the same compiles nothing.
#   the tag v1.2.3: 1.2.3 · five commits later: 1.2.3+5.g<commit> · no tag: FALLBACK+g<commit>
#   changes that are no commit: .dirty behind it · no git, no repository: FALLBACK alone
# GIVEN wins: for a source tree that travels without its repository, an image's for instance. It is a
# version, or what `git describe` says, which means the same as here: hexadecimal digits alone, seven
# or more, are a commit.

# read_version(TOLD): sets version.
macro(read_version told)
  string(REGEX MATCH "\\.dirty$" dirty "${told}")
  string(REGEX REPLACE "\\.dirty$" "" tag "${told}")
  string(LENGTH "${tag}" length)
  if(tag MATCHES "^[0-9a-f]+$" AND length GREATER_EQUAL 7)
    set(version "${FALLBACK}+g${tag}${dirty}")
  elseif(tag MATCHES "^v?(.*)-([0-9]+)-(g[0-9a-f]+)$")
    set(version "${CMAKE_MATCH_1}+${CMAKE_MATCH_2}.${CMAKE_MATCH_3}${dirty}")
  else()
    if(NOT tag MATCHES "[+]")
      string(REPLACE "." "+" dirty "${dirty}")
    endif()
    string(REGEX REPLACE "^v" "" version "${tag}${dirty}")
  endif()
endmacro()

set(version "${FALLBACK}")
if(NOT "${GIVEN}" STREQUAL "")
  read_version("${GIVEN}")
else()
  execute_process(
    COMMAND git -C "${SOURCE_DIR}" describe --tags --match "v[0-9]*" --always --abbrev=12 --dirty=.dirty
    OUTPUT_VARIABLE told OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
  # A repository around an unpacked archive is somebody else's.
  execute_process(COMMAND git -C "${SOURCE_DIR}" rev-parse --show-prefix
    OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(code EQUAL 0 AND prefix STREQUAL "")
    read_version("${told}")
  endif()
endif()
if(NOT version MATCHES "^[0-9][0-9A-Za-z.+~-]*$")
  message(FATAL_ERROR "'${version}' is no version")
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
