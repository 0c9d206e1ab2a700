# The files of each folder, and what the folder links.
vfio_agent_library(sysfs
  SOURCES capabilities.cc cgroup_owner.cc config_space.cc device_walk.cc display_use.cc driver_files.cc
          egm.cc group_nodes.cc holders.cc host_firmware.cc host_memory.cc host_modules.cc
          host_processes.cc host_view.cc iommu_facts.cc mdev.cc module_facts.cc module_loader.cc
          network_use.cc node_facts.cc node_watch.cc numa.cc pci_address.cc pci_device.cc
          proc_text.cc process_use.cc storage_use.cc tree.cc uevents.cc use.cc vgpu.cc watch.cc
          writer.cc
  PUBLIC vfio_agent_absl
  PRIVATE PkgConfig::libpci PkgConfig::libudev ${CMAKE_DL_LIBS})
vfio_agent_library(iommu
  SOURCES acs_quirks.cc action.cc apply.cc bundle.cc bundle_units.cc claims.cc code.cc
          condition.cc custody.cc distance.cc egm.cc guards.cc isolation.cc job_key.cc mdev.cc
          mdev_condition.cc mdev_names.cc mdev_release.cc mdev_slots.cc members.cc naming.cc
          nvlink.cc partitions.cc plan.cc preset.cc record.cc release.cc relocation.cc remedies.cc
          resources.cc rival.cc rules.cc selector.cc silence.cc sriov.cc steps.cc tenancy.cc
          vgpu.cc vgpu_facts.cc vgpu_slots.cc
          condition.cc custody.cc distance.cc egm.cc guards.cc isolation.cc mdev.cc
          mdev_condition.cc mdev_names.cc mdev_release.cc members.cc naming.cc nvlink.cc
          partitions.cc plan.cc preset.cc record.cc release.cc relocation.cc remedies.cc
          resources.cc rival.cc rules.cc selector.cc sriov.cc steps.cc tenancy.cc vgpu.cc
          vgpu_facts.cc vgpu_groups.cc vgpu_slots.cc vgpu_surplus.cc vgpu_words.cc
          condition.cc custody.cc distance.cc egm.cc guards.cc isolation.cc map_fails.cc mdev.cc
          mdev_condition.cc mdev_names.cc mdev_release.cc members.cc naming.cc nvlink.cc
          partitions.cc plan.cc preset.cc record.cc release.cc relocation.cc remedies.cc
          resources.cc rival.cc rules.cc selector.cc sriov.cc steps.cc tenancy.cc unsafe.cc vgpu.cc
          vgpu_facts.cc vgpu_slots.cc
  PUBLIC vfio_agent::sysfs)
vfio_agent_proto_library(proto FILES deviceplugin_v1beta1.proto dra_health_v1.proto
  dra_health_v1alpha1.proto dra_v1.proto dra_v1beta1.proto health.proto outline.proto
  pluginregistration.proto podresources_v1.proto reflection.proto status.proto)
vfio_agent_library(deviceplugin
  SOURCES allocate.cc channel.cc descriptors.cc device_list.cc dra_health.cc dra_server.cc
          dra_service.cc egm_nodes.cc health_watch.cc indexed_offer.cc kubelet_watch.cc ledger.cc
          listener.cc offer.cc partition.cc plugin.cc plugins.cc pod_resources.cc preferred.cc
          published.cc quiet_grpc.cc reflection_stream.cc register_call.cc registration.cc
          registry_service.cc server.cc service.cc socket_probe.cc stale_sockets.cc
          cluster_message.cc status_client.cc status_message.cc status_server.cc timer_engine.cc unix_server.cc
          verify.cc versions.cc watch_stream.cc
  PUBLIC vfio_agent::iommu vfio_agent::proto)
vfio_agent_descriptors(vfio_agent_deviceplugin FILES health.proto reflection.proto status.proto)
vfio_agent_library(agent
  SOURCES command_line.cc command_table.cc common_options.cc files.cc json.cc live.cc log.cc pci_class.cc
          session.cc session_reload.cc table.cc terminal.cc yaml_dump.cc
          cluster/api_answer.cc cluster/api_client.cc cluster/api_json.cc
          cluster/checkpoint_pods.cc cluster/cluster.cc cluster/cluster_worker.cc
          cluster/credentials.cc cluster/curl_library.cc cluster/event_document.cc
          cluster/event_queue.cc cluster/event_series.cc cluster/node_document.cc
          cluster/node_events.cc cluster/node_labels.cc cluster/node_writer.cc cluster/notes.cc
          cluster/object_watch.cc cluster/ready_condition.cc cluster/retry.cc cluster/transport.cc
          cluster/waiting_pods.cc
          commands/bind.cc commands/common.cc commands/config.cc commands/doctor.cc
          commands/explain.cc commands/health.cc commands/kubevirt.cc commands/list.cc
          commands/plan.cc commands/release.cc commands/run.cc commands/snapshot.cc
          commands/status.cc commands/topology.cc commands/usage.cc commands/version.cc
          config/config.cc config/config_bundle.cc config/config_mdev.cc config/config_mode.cc
          config/config_preset.cc config/config_resources.cc config/config_watch.cc
          config/listen_address.cc config/settings.cc config/yaml.cc
          daemon/agent.cc daemon/agent_cluster.cc daemon/agent_jobs.cc daemon/agent_mode.cc
          daemon/agent_publish.cc daemon/agent_reload.cc daemon/answers.cc daemon/claim_report.cc
          daemon/cluster_teller.cc daemon/config_report.cc daemon/counts.cc daemon/daemon_lock.cc
          daemon/dra_room.cc daemon/event.cc daemon/job_report.cc daemon/log_limit.cc
          daemon/loop.cc daemon/mode_report.cc daemon/outlets.cc daemon/plan_change.cc
          daemon/plugin_report.cc daemon/privileges_report.cc daemon/report.cc daemon/retries.cc
          daemon/signals.cc daemon/tenant_watch.cc daemon/throttle.cc daemon/transitions.cc
          doctor/checks_agent.cc doctor/checks_devices.cc doctor/checks_host.cc
          doctor/checks_kubelet.cc doctor/checks_machine.cc doctor/checks_mode.cc doctor/checks_modules.cc
          doctor/diagnosis.cc doctor/facts.cc doctor/kubelet_config.cc doctor/kubelet_facts.cc
          doctor/kubelet_saved.cc doctor/looked_for.cc doctor/report.cc
          dra/claim.cc dra/claim_desk.cc dra/claim_files.cc dra/claim_store.cc dra/device.cc
          dra/dra_api.cc dra/dra_api_worker.cc dra/dra_driver.cc dra/foretell.cc
          dra/real_devices.cc dra/slice_plan.cc dra/slice_writer.cc dra/slices.cc
          explain/document.cc explain/explanation.cc explain/text.cc explain/words.cc
          kubevirt/diff.cc kubevirt/file.cc kubevirt/kubevirt.cc kubevirt/machine.cc
          kubevirt/sizes.cc kubevirt/text.cc
          listing/changes.cc listing/held.cc listing/screen.cc listing/tables.cc listing/watch.cc
          listing/changes.cc listing/screen.cc listing/tables.cc listing/told_mode.cc listing/watch.cc
          mode/mode.cc mode/mode_file.cc mode/mode_keeper.cc mode/mode_return.cc
          mode/mode_switch.cc mode/mode_view.cc mode/mode_wish.cc mode/mode_words.cc
          outlets/cdi.cc outlets/cdi_files.cc outlets/metrics.cc outlets/metrics_http.cc
          outlets/metrics_text.cc outlets/nfd.cc outlets/nfd_file.cc outlets/status.cc
          outlets/status_book.cc outlets/status_text.cc outlets/unsafe_label.cc
          privileges/privileges.cc privileges/rights.cc
          snapshot/additions.cc snapshot/facts_to_take.cc snapshot/frames.cc
          snapshot/mask_cgroup.cc snapshot/mask_command_line.cc snapshot/mask_config_space.cc
          snapshot/mask_kubelet.cc snapshot/mask_path.cc snapshot/mask_place.cc
          snapshot/mask_program.cc snapshot/mask_text.cc snapshot/masker.cc snapshot/masks.cc
          snapshot/own_files.cc snapshot/pack.cc snapshot/recording.cc snapshot/replay_root.cc
          snapshot/snapshot.cc snapshot/take.cc snapshot/unpack.cc snapshot/write_file.cc
          topology/document.cc topology/dot.cc topology/drawing.cc topology/guest.cc
          topology/kubevirt.cc topology/libvirt.cc topology/markup.cc topology/svg.cc
          topology/text.cc topology/topology.cc
          usage/commit.cc usage/complete.cc usage/help_text.cc usage/manual.cc usage/node_words.cc
          usage/shell_scripts.cc usage/suggest.cc
          work/child.cc work/driver_reader.cc work/executor.cc work/group_lock.cc work/holders_now.cc work/inquiry.cc
          work/job.cc work/jobs.cc work/journal.cc work/one_shot.cc work/override_reader.cc
          work/record_text.cc work/taken.cc work/use_reader.cc work/work.cc
  PUBLIC vfio_agent::deviceplugin nlohmann_json::nlohmann_json ${vfio_agent_yaml_archive}
         ${vfio_agent_archive_archive}
         ZLIB::ZLIB spdlog::spdlog_header_only fmt::fmt-header-only CLI11::CLI11)
# Of libarchive only tar and gzip are called; what its other formats need is thrown away with them.
target_link_options(vfio_agent_agent INTERFACE -Wl,--gc-sections)

# The version: looked up with each build, see Version.cmake.
set(VFIO_AGENT_VERSION "" CACHE STRING "What `version` says; empty: from git, else ${PROJECT_VERSION}")
set(version_source "${PROJECT_BINARY_DIR}/generated/agent/version.cc")
add_custom_target(vfio_agent_version BYPRODUCTS "${version_source}"
  COMMAND ${CMAKE_COMMAND} "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DFALLBACK=${PROJECT_VERSION}"
    "-DGIVEN=${VFIO_AGENT_VERSION}" "-DTEMPLATE=${CMAKE_CURRENT_LIST_DIR}/version.cc.in"
    "-DOUTPUT=${version_source}" -P "${CMAKE_CURRENT_LIST_DIR}/Version.cmake"
  VERBATIM)
target_sources(vfio_agent_agent PRIVATE "${version_source}")
add_dependencies(vfio_agent_agent vfio_agent_version)
