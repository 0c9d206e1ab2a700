# cmake -P test/layering_test.cmake: each folder includes only what lies to its left in
# sysfs <- iommu <- deviceplugin <- agent, and each library has its one user.
cmake_minimum_required(VERSION 3.25)
set(forbidden_sysfs "iommu/|deviceplugin/|agent/|proto/|grpc|spdlog|nlohmann|yaml-cpp|CLI/")
set(forbidden_iommu
    "deviceplugin/|agent/|proto/|grpc|spdlog|nlohmann|yaml-cpp|CLI/|pci/|libudev|libkmod")
set(forbidden_deviceplugin "agent/|spdlog|nlohmann|yaml-cpp|CLI/|pci/pci|libudev|libkmod")
set(forbidden_agent "grpc|proto/|pci/pci|libudev|libkmod")
set(root "${CMAKE_CURRENT_LIST_DIR}/..")
if(DEFINED VFIO_AGENT_ROOT)
  set(root "${VFIO_AGENT_ROOT}")  # a planted tree, for the test of this test
endif()
set(seen 0)
foreach(folder sysfs iommu deviceplugin agent)
  file(GLOB_RECURSE files "${root}/${folder}/*.h" "${root}/${folder}/*.cc")
  foreach(file ${files})
    math(EXPR seen "${seen} + 1")
    file(STRINGS "${file}" lines REGEX "^#include [<\"](${forbidden_${folder}})")
    foreach(line ${lines})
      message(SEND_ERROR "${file}: ${line}")
    endforeach()
  endforeach()
endforeach()
# libpci, libudev, libkmod, spdlog, yaml-cpp and CLI11: one place each.
foreach(one "pci/pci.h|sysfs/device/config_space.cc" "libudev.h|sysfs/uevents.cc"
            "libkmod.h|sysfs/host/module_loader.cc" "spdlog/|agent/log.cc" "CLI/|agent/commands/command_line.cc"
            "archive.h|agent/snapshot/(un)?pack.cc" "archive_entry.h|agent/snapshot/(un)?pack.cc"
            "curl/|agent/cluster/curl_library.h" "civetweb.h|agent/outlets/metrics_http.cc" "prometheus/|agent/outlets/metrics[_a-z]*.[hc]*")
  string(REPLACE "|" ";" pair "${one}")
  list(GET pair 0 header)
  list(GET pair 1 owner)
  file(GLOB_RECURSE files "${root}/sysfs/*" "${root}/iommu/*" "${root}/deviceplugin/*" "${root}/agent/*")
  foreach(file ${files})
    file(STRINGS "${file}" lines REGEX "^#include <${header}")
    if(lines AND NOT file MATCHES "${owner}$")
      message(SEND_ERROR "${file}: only ${owner} may include <${header}>")
    endif()
  endforeach()
endforeach()
if(seen EQUAL 0)
  message(SEND_ERROR "no source file found below ${root}")
endif()
