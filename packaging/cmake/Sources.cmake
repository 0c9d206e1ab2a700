# The files of each folder, and what the folder links.
vfio_agent_library(sysfs
  SOURCES pci_address.cc tree.cc writer.cc capabilities.cc config_space.cc holders.cc pci_device.cc
          iommu_facts.cc module_facts.cc module_loader.cc node_facts.cc uevents.cc
  PUBLIC vfio_agent_absl
  PRIVATE PkgConfig::libpci PkgConfig::libudev ${CMAKE_DL_LIBS})
vfio_agent_library(iommu
  SOURCES acs_quirks.cc action.cc apply.cc code.cc isolation.cc members.cc naming.cc plan.cc
          release.cc resources.cc rules.cc selector.cc steps.cc
  PUBLIC vfio_agent::sysfs)
vfio_agent_proto_library(proto FILES deviceplugin_v1beta1.proto)
vfio_agent_library(deviceplugin
  SOURCES offer.cc indexed_offer.cc device_list.cc allocate.cc verify.cc preferred.cc published.cc
          watch_stream.cc service.cc server.cc register_call.cc registration.cc kubelet_watch.cc
          timer_engine.cc quiet_grpc.cc plugin.cc plugins.cc
  PUBLIC vfio_agent::iommu vfio_agent::proto)
vfio_agent_library(agent
  SOURCES agent.cc command_line.cc config.cc config_resources.cc event.cc explanation.cc files.cc jobs.cc
          json.cc log.cc loop.cc one_shot.cc origins.cc pci_class.cc report.cc session.cc
          settings.cc signals.cc table.cc transitions.cc yaml.cc yaml_dump.cc
          commands/bind.cc commands/common.cc commands/config.cc commands/explain.cc
          commands/list.cc commands/plan.cc commands/release.cc commands/run.cc
  PUBLIC vfio_agent::deviceplugin nlohmann_json::nlohmann_json ${vfio_agent_yaml_archive}
         spdlog::spdlog_header_only fmt::fmt-header-only CLI11::CLI11)
target_compile_definitions(vfio_agent_agent PRIVATE VFIO_AGENT_VERSION="${PROJECT_VERSION}")
