# How this project builds a folder, a .proto and a test. Options live on one INTERFACE target,
# never in CMAKE_CXX_FLAGS.
add_library(vfio_agent_options INTERFACE)
target_compile_features(vfio_agent_options INTERFACE cxx_std_20)
target_include_directories(vfio_agent_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(vfio_agent_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -Wno-missing-field-initializers
  # g++ 12 takes every moved std::variant with a string for uninitialised when it optimises.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)

# For generated code too: the same sources give the same bytes, in whatever folder they lie (the
# later map is tried first), and what is shipped stops where memory is misused. A build without
# optimisation has no use for _FORTIFY_SOURCE, and the sanitizers see more than that does.
add_library(vfio_agent_codegen INTERFACE)
target_compile_options(vfio_agent_codegen INTERFACE
  "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_BINARY_DIR}=./build"
  -Werror=date-time
  $<$<CONFIG:RelWithDebInfo,Release,MinSizeRel>:-fstack-protector-strong;-fstack-clash-protection>
  $<$<CONFIG:RelWithDebInfo,Release,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-D_GLIBCXX_ASSERTIONS>)
target_link_libraries(vfio_agent_options INTERFACE vfio_agent_codegen)

# vfio_agent_archives(<out> <name>...): full paths of static libraries, an error where one is absent.
function(vfio_agent_archives out)
  set(found "")
  foreach(name ${ARGN})
    find_library(VFIO_AGENT_ARCHIVE_${name} NAMES "lib${name}.a" REQUIRED)
    list(APPEND found "${VFIO_AGENT_ARCHIVE_${name}}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# gRPC, Protobuf and Abseil as archives. Debian's CMake packages name the shared objects, which
# cost twice the resident memory; unix sockets need no TLS, so the "_unsecure" libraries do.
# Abseil is one set of archives for everybody: a second, shared copy would break it.
find_library(VFIO_AGENT_ABSL_STATUS NAMES libabsl_status.a REQUIRED)
get_filename_component(vfio_agent_libdir "${VFIO_AGENT_ABSL_STATUS}" DIRECTORY)
file(GLOB vfio_agent_absl_archives "${vfio_agent_libdir}/libabsl_*.a")
list(FILTER vfio_agent_absl_archives EXCLUDE REGEX "libabsl_flags")
add_library(vfio_agent_absl INTERFACE)
target_link_libraries(vfio_agent_absl INTERFACE
  -Wl,--start-group ${vfio_agent_absl_archives} -Wl,--end-group Threads::Threads)

vfio_agent_archives(vfio_agent_grpc_archives
  grpc++_unsecure grpc_unsecure gpr upb address_sorting cares re2 z protobuf-lite)
add_library(vfio_agent_grpc INTERFACE)
target_link_libraries(vfio_agent_grpc INTERFACE
  -Wl,--start-group ${vfio_agent_grpc_archives} ${vfio_agent_absl_archives} -Wl,--end-group
  Threads::Threads ${CMAKE_DL_LIBS})

# Half the code, so two megabytes less in memory; the time is the kernel's either way
# (test/bench/README.md).
add_library(vfio_agent_small INTERFACE)
target_compile_options(vfio_agent_small INTERFACE $<$<CONFIG:RelWithDebInfo>:-Os>)

# vfio_agent_check_listed(<folder> <file>...): each file of the folder is there, and once.
function(vfio_agent_check_listed folder)
  file(GLOB_RECURSE found "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  list(REMOVE_ITEM found "${PROJECT_SOURCE_DIR}/agent/main.cc")
  set(listed ${ARGN})
  list(SORT listed)
  list(SORT found)
  if(NOT listed STREQUAL found)
    message(FATAL_ERROR "the list of ${folder}/ has not each of its files once")
  endif()
endfunction()

# vfio_agent_library(<folder> SOURCES ... [PUBLIC <targets>] [PRIVATE <targets>])
function(vfio_agent_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  list(TRANSFORM arg_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/${name}/")
  vfio_agent_check_listed(${name} ${arg_SOURCES})
  add_library(vfio_agent_${name} STATIC ${arg_SOURCES})
  add_library(vfio_agent::${name} ALIAS vfio_agent_${name})
  target_link_libraries(vfio_agent_${name}
    PUBLIC ${arg_PUBLIC} PRIVATE vfio_agent_options vfio_agent_small ${arg_PRIVATE})
  target_compile_features(vfio_agent_${name} PUBLIC cxx_std_20)
endfunction()

# Generated code keeps its own warnings to itself: its headers come in as SYSTEM.
function(vfio_agent_proto_library name)
  cmake_parse_arguments(arg "" "" "FILES" ${ARGN})
  list(TRANSFORM arg_FILES PREPEND "${PROJECT_SOURCE_DIR}/proto/")
  add_library(vfio_agent_${name} STATIC ${arg_FILES})
  add_library(vfio_agent::${name} ALIAS vfio_agent_${name})
  target_link_libraries(vfio_agent_${name} PUBLIC vfio_agent_grpc PRIVATE vfio_agent_codegen vfio_agent_small)
  target_compile_features(vfio_agent_${name} PUBLIC cxx_std_20)
  target_include_directories(vfio_agent_${name} SYSTEM PUBLIC "${PROJECT_BINARY_DIR}/generated")
  set(dirs IMPORT_DIRS "${PROJECT_SOURCE_DIR}" PROTOC_OUT_DIR "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
  protobuf_generate(TARGET vfio_agent_${name} LANGUAGE cpp ${dirs})
  protobuf_generate(TARGET vfio_agent_${name} LANGUAGE grpc ${dirs}
    GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc
    PLUGIN "protoc-gen-grpc=${VFIO_AGENT_GRPC_PLUGIN}")
endfunction()

# vfio_agent_descriptors(<library> FILES <file.proto>...): ServedFiles() of deviceplugin/grpc/descriptors.h,
# with these files compiled. protoc writes them, so that no part of Protobuf has to at run time.
function(vfio_agent_descriptors library)
  cmake_parse_arguments(arg "" "" "FILES" ${ARGN})
  find_program(VFIO_AGENT_PROTOC protoc REQUIRED)
  list(TRANSFORM arg_FILES PREPEND "proto/")
  list(TRANSFORM arg_FILES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE paths)
  set(set "${PROJECT_BINARY_DIR}/generated/served_files")
  set(script "${PROJECT_SOURCE_DIR}/packaging/cmake/WriteServedFiles.cmake")
  add_custom_command(OUTPUT "${set}.cc"
    COMMAND "${VFIO_AGENT_PROTOC}" "--proto_path=${PROJECT_SOURCE_DIR}" "--descriptor_set_out=${set}"
            ${arg_FILES}
    COMMAND ${CMAKE_COMMAND} "-DBYTES=${set}" "-DSOURCE=${set}.cc" -P "${script}"
    DEPENDS ${paths} "${script}" VERBATIM)
  target_sources(${library} PRIVATE "${set}.cc")
endfunction()

# vfio_agent_tool(<name> SOURCES ... LIBS ...): a helper program of the tests.
function(vfio_agent_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE vfio_agent_options ${arg_LIBS})
endfunction()
