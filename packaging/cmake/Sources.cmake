# The files of each folder, and what the folder links.
vfio_agent_library(sysfs
  SOURCES pci_address.cc tree.cc writer.cc capabilities.cc cgroup_owner.cc config_space.cc
          device_walk.cc display_use.cc holders.cc iommu_facts.cc module_facts.cc module_loader.cc
          network_use.cc node_facts.cc node_watch.cc pci_device.cc proc_text.cc process_use.cc storage_use.cc
          uevents.cc use.cc
  PUBLIC vfio_agent_absl
  PRIVATE PkgConfig::libpci PkgConfig::libudev ${CMAKE_DL_LIBS})
vfio_agent_library(iommu
  SOURCES acs_quirks.cc action.cc apply.cc code.cc condition.cc custody.cc guards.cc isolation.cc members.cc
          naming.cc plan.cc record.cc release.cc resources.cc rules.cc selector.cc steps.cc tenancy.cc
  PUBLIC vfio_agent::sysfs)
vfio_agent_proto_library(proto FILES deviceplugin_v1beta1.proto health.proto pluginregistration.proto podresources_v1.proto
  status.proto)
vfio_agent_library(deviceplugin
  SOURCES offer.cc indexed_offer.cc device_list.cc allocate.cc ledger.cc verify.cc preferred.cc published.cc
          watch_stream.cc service.cc server.cc channel.cc register_call.cc registration.cc
          kubelet_watch.cc listener.cc pod_resources.cc registry_service.cc stale_sockets.cc
          timer_engine.cc quiet_grpc.cc status_client.cc status_message.cc status_server.cc plugin.cc plugins.cc unix_server.cc
  PUBLIC vfio_agent::iommu vfio_agent::proto)
vfio_agent_library(agent
  SOURCES agent.cc agent_jobs.cc agent_publish.cc answers.cc cdi.cc cdi_files.cc child.cc command_line.cc config.cc config_resources.cc counts.cc daemon_lock.cc event.cc
          executor.cc explanation.cc files.cc group_lock.cc inquiry.cc job.cc jobs.cc journal.cc json.cc listen_address.cc log.cc loop.cc nfd.cc nfd_file.cc
          one_shot.cc override_reader.cc record_text.cc pci_class.cc plugin_report.cc report.cc retries.cc session.cc
          settings.cc signals.cc table.cc tenant_watch.cc throttle.cc transitions.cc use_reader.cc work.cc yaml.cc
          yaml_dump.cc
          kubevirt.cc kubevirt_diff.cc kubevirt_file.cc kubevirt_machine.cc kubevirt_text.cc
          metrics.cc metrics_http.cc outlets.cc status.cc status_book.cc status_text.cc
          commands/bind.cc commands/common.cc commands/config.cc commands/explain.cc
          commands/kubevirt.cc
          commands/list.cc commands/plan.cc commands/release.cc commands/run.cc commands/status.cc
  PUBLIC vfio_agent::deviceplugin nlohmann_json::nlohmann_json ${vfio_agent_yaml_archive}
         ZLIB::ZLIB spdlog::spdlog_header_only fmt::fmt-header-only CLI11::CLI11)
target_compile_definitions(vfio_agent_agent PRIVATE VFIO_AGENT_VERSION="${PROJECT_VERSION}")
