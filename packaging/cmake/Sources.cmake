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
          timer_engine.cc quiet_grpc.cc status_client.cc status_message.cc status_server.cc plugin.cc plugins.cc unix_server.cc versions.cc
  PUBLIC vfio_agent::iommu vfio_agent::proto)
vfio_agent_library(agent
  SOURCES command_line.cc command_table.cc common_options.cc explanation.cc files.cc json.cc log.cc pci_class.cc session.cc
          table.cc terminal.cc yaml_dump.cc
          commands/bind.cc commands/common.cc commands/config.cc commands/explain.cc
          commands/kubevirt.cc commands/list.cc commands/plan.cc commands/release.cc
          commands/run.cc commands/status.cc commands/usage.cc commands/version.cc
          config/config.cc config/config_resources.cc config/listen_address.cc
          config/settings.cc config/yaml.cc
          daemon/agent.cc daemon/agent_jobs.cc daemon/agent_publish.cc daemon/answers.cc
          daemon/counts.cc daemon/daemon_lock.cc daemon/event.cc daemon/loop.cc
          daemon/outlets.cc daemon/plugin_report.cc daemon/privileges_report.cc daemon/report.cc daemon/retries.cc
          daemon/signals.cc daemon/tenant_watch.cc daemon/throttle.cc daemon/transitions.cc
          kubevirt/diff.cc kubevirt/file.cc kubevirt/kubevirt.cc kubevirt/machine.cc
          kubevirt/text.cc
          listing/changes.cc listing/tables.cc listing/watch.cc
          outlets/cdi.cc outlets/cdi_files.cc outlets/metrics.cc outlets/metrics_http.cc
          outlets/nfd.cc outlets/nfd_file.cc outlets/status.cc outlets/status_book.cc
          outlets/status_text.cc
          privileges/privileges.cc privileges/rights.cc
          usage/commit.cc usage/complete.cc usage/help_text.cc usage/manual.cc usage/node_words.cc
          usage/shell_scripts.cc usage/suggest.cc
          work/child.cc work/executor.cc work/group_lock.cc work/inquiry.cc work/job.cc
          work/jobs.cc work/journal.cc work/one_shot.cc work/override_reader.cc
          work/record_text.cc work/use_reader.cc work/work.cc
  PUBLIC vfio_agent::deviceplugin nlohmann_json::nlohmann_json ${vfio_agent_yaml_archive}
         ZLIB::ZLIB spdlog::spdlog_header_only fmt::fmt-header-only CLI11::CLI11)
target_compile_definitions(vfio_agent_agent PRIVATE VFIO_AGENT_VERSION="${PROJECT_VERSION}")
