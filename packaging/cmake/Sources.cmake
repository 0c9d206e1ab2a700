# The files of each folder, and what the folder links.
vfio_agent_library(sysfs
  SOURCES node_facts.cc node_watch.cc proc_text.cc tree.cc uevents.cc watch.cc writer.cc
          device/capabilities.cc device/config_space.cc device/device_walk.cc device/driver_files.cc
          device/egm.cc device/group_nodes.cc device/mdev.cc device/numa.cc device/pci_address.cc
          device/pci_device.cc device/vgpu.cc host/host_firmware.cc host/host_memory.cc
          host/host_modules.cc host/host_processes.cc host/host_view.cc host/iommu_facts.cc
          host/module_facts.cc host/module_loader.cc use/cgroup_owner.cc use/display_use.cc
          use/holders.cc use/network_use.cc use/process_use.cc use/storage_use.cc use/use.cc
  PUBLIC vfio_agent_absl
  PRIVATE PkgConfig::libpci PkgConfig::libudev ${CMAKE_DL_LIBS})
vfio_agent_library(iommu
  SOURCES apply.cc code.cc remedies.cc bundle/bundle.cc bundle/bundle_units.cc bundle/egm.cc
          bundle/partitions.cc distance/distance.cc distance/nvlink.cc isolation/acs_quirks.cc
          isolation/isolation.cc isolation/relocation.cc mdev/mdev.cc mdev/mdev_condition.cc
          mdev/mdev_names.cc mdev/mdev_release.cc mdev/mdev_slots.cc plan/action.cc
          plan/condition.cc plan/guards.cc plan/job_key.cc plan/map_fails.cc plan/members.cc
          plan/plan.cc plan/release.cc plan/resources.cc plan/rules.cc plan/silence.cc plan/sriov.cc
          plan/steps.cc plan/unsafe.cc policy/naming.cc policy/preset.cc policy/selector.cc
          tenancy/claims.cc tenancy/custody.cc tenancy/record.cc tenancy/rival.cc tenancy/tenancy.cc
          vgpu/vgpu.cc vgpu/vgpu_facts.cc vgpu/vgpu_groups.cc vgpu/vgpu_slots.cc
          vgpu/vgpu_surplus.cc vgpu/vgpu_words.cc
  PUBLIC vfio_agent::sysfs)
vfio_agent_proto_library(proto FILES deviceplugin_v1beta1.proto dra_health_v1.proto
  dra_health_v1alpha1.proto dra_v1.proto dra_v1beta1.proto health.proto outline.proto
  pluginregistration.proto podresources_v1.proto reflection.proto status.proto)
vfio_agent_library(deviceplugin
  SOURCES dra/dra_health.cc dra/dra_server.cc dra/dra_service.cc grpc/channel.cc grpc/descriptors.cc
          grpc/health_watch.cc grpc/listener.cc grpc/quiet_grpc.cc grpc/reflection_stream.cc
          grpc/timer_engine.cc grpc/unix_server.cc grpc/versions.cc kubelet/kubelet_watch.cc
          kubelet/plugin.cc kubelet/plugins.cc kubelet/pod_resources.cc kubelet/register_call.cc
          kubelet/registration.cc kubelet/registry_service.cc kubelet/server.cc kubelet/service.cc
          kubelet/socket_probe.cc kubelet/stale_sockets.cc kubelet/watch_stream.cc offer/allocate.cc
          offer/answer.cc offer/device_list.cc offer/egm_nodes.cc offer/indexed_offer.cc offer/ledger.cc
          offer/offer.cc offer/partition.cc offer/preferred.cc offer/published.cc offer/verify.cc
          status/cluster_message.cc status/status_client.cc status/status_message.cc
          status/status_server.cc
  PUBLIC vfio_agent::iommu vfio_agent::proto)
vfio_agent_descriptors(vfio_agent_deviceplugin FILES health.proto reflection.proto status.proto)
vfio_agent_library(agent
  SOURCES files.cc live.cc log.cc session.cc session_reload.cc cluster/api_answer.cc
          cluster/api_client.cc cluster/api_json.cc cluster/checkpoint_pods.cc cluster/cluster.cc
          cluster/cluster_worker.cc cluster/credentials.cc cluster/curl_library.cc
          cluster/event_document.cc cluster/event_queue.cc cluster/event_series.cc
          cluster/node_document.cc cluster/node_events.cc cluster/node_labels.cc
          cluster/node_writer.cc cluster/notes.cc cluster/object_watch.cc cluster/ready_condition.cc
          cluster/retry.cc cluster/transport.cc cluster/waiting_pods.cc commands/beside_daemon.cc
          commands/bind.cc commands/command_line.cc commands/command_table.cc commands/common.cc
          commands/common_options.cc commands/config.cc commands/doctor.cc commands/explain.cc
          commands/health.cc commands/kubevirt.cc commands/list.cc commands/plan.cc
          commands/release.cc commands/run.cc commands/snapshot.cc commands/status.cc
          commands/topology.cc commands/usage.cc commands/version.cc config/config.cc
          config/config_bundle.cc config/config_mdev.cc config/config_mode.cc
          config/config_preset.cc config/config_resources.cc config/config_watch.cc
          config/listen_address.cc config/settings.cc config/yaml.cc daemon/agent.cc
          daemon/agent_cluster.cc daemon/agent_jobs.cc daemon/agent_mode.cc daemon/agent_publish.cc
          daemon/agent_reload.cc daemon/agent_tenants.cc daemon/answers.cc daemon/claim_report.cc daemon/cluster_teller.cc
          daemon/config_report.cc daemon/counts.cc daemon/daemon_lock.cc daemon/dra_room.cc
          daemon/event.cc daemon/job_report.cc daemon/log_limit.cc daemon/loop.cc
          daemon/mode_report.cc daemon/outlets.cc daemon/plan_change.cc daemon/plugin_report.cc
          daemon/privileges_report.cc daemon/report.cc daemon/retries.cc daemon/signals.cc
          daemon/tenant_watch.cc daemon/throttle.cc daemon/transitions.cc doctor/checks_agent.cc
          doctor/checks_devices.cc doctor/checks_host.cc doctor/checks_kubelet.cc
          doctor/checks_machine.cc doctor/checks_mode.cc doctor/checks_modules.cc
          doctor/diagnosis.cc doctor/facts.cc doctor/kubelet_config.cc doctor/kubelet_facts.cc
          doctor/kubelet_saved.cc doctor/looked_for.cc doctor/report.cc dra/claim.cc
          dra/claim_desk.cc dra/claim_files.cc dra/claim_store.cc dra/device.cc dra/dra_api.cc
          dra/dra_api_worker.cc dra/dra_driver.cc dra/foretell.cc dra/real_devices.cc
          dra/slice_plan.cc dra/slice_writer.cc dra/slices.cc explain/document.cc
          explain/explanation.cc explain/text.cc explain/words.cc kubevirt/diff.cc kubevirt/file.cc
          kubevirt/kubevirt.cc kubevirt/machine.cc kubevirt/sizes.cc kubevirt/text.cc
          listing/changes.cc listing/held.cc listing/screen.cc listing/tables.cc
          listing/told_mode.cc listing/watch.cc mode/mode.cc mode/mode_file.cc mode/mode_keeper.cc
          mode/mode_return.cc mode/mode_switch.cc mode/mode_view.cc mode/mode_wish.cc
          mode/mode_words.cc outlets/cdi.cc outlets/cdi_files.cc outlets/metrics.cc
          outlets/metrics_http.cc outlets/metrics_text.cc outlets/nfd.cc outlets/nfd_file.cc
          outlets/status.cc outlets/status_book.cc outlets/status_text.cc outlets/unsafe_label.cc
          privileges/privileges.cc privileges/rights.cc snapshot/additions.cc
          snapshot/facts_to_take.cc snapshot/frames.cc snapshot/mask_cgroup.cc
          snapshot/mask_command_line.cc snapshot/mask_config_space.cc snapshot/mask_kubelet.cc
          snapshot/mask_path.cc snapshot/mask_place.cc snapshot/mask_program.cc
          snapshot/mask_text.cc snapshot/masker.cc snapshot/masks.cc snapshot/own_files.cc
          snapshot/pack.cc snapshot/recording.cc snapshot/replay_root.cc snapshot/snapshot.cc
          snapshot/take.cc snapshot/unpack.cc snapshot/write_file.cc text/json.cc text/pci_class.cc
          text/table.cc text/terminal.cc text/yaml_dump.cc topology/document.cc topology/dot.cc
          topology/drawing.cc topology/guest.cc topology/kubevirt.cc topology/libvirt.cc
          topology/markup.cc topology/svg.cc topology/text.cc topology/topology.cc usage/commit.cc
          usage/complete.cc usage/help_text.cc usage/manual.cc usage/node_words.cc
          usage/shell_scripts.cc usage/suggest.cc usage/words.cc work/child.cc work/driver_reader.cc
          work/executor.cc work/group_lock.cc work/holders_now.cc work/inquiry.cc work/job.cc
          work/jobs.cc work/journal.cc work/one_shot.cc work/override_reader.cc work/record_text.cc
          work/taken.cc work/use_reader.cc work/vgpu_card.cc work/work.cc work/young_kubelet.cc
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
