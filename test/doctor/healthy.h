// A node on which every check of the doctor is content, as facts; tests break one thing at a time.
#pragma once

#include <catch2/catch.hpp>

#include <string>

#include "agent/doctor/checks.h"
#include "test/support/facts.h"

namespace vfio_agent {

inline constexpr char kGroup26[] = "0000:65:00.0";

inline AgentStatus HealthyAgent() {
  AgentStatus status{.version = "0.1.0", .pid = 900, .kubelet = true, .ready = true};
  status.plugins.push_back({.resource = "nvidia.com/GPU", .registered = true, .units = 1});
  status.mode = {.mode = "vm-passthrough", .target = "vm-passthrough", .state = "ready"};
  status.api = {
      .server = "https://10.96.0.1:443", .node = "gpu-7", .connected = true, .written = true};
  return status;
}

inline KubeletFacts HealthyKubelet() {
  KubeletFacts kubelet;
  kubelet.process = HostProcess{.pid = 812, .command = "kubelet", .owner = "kubelet.service"};
  kubelet.unit_installed = true;
  kubelet.unit_enabled = true;
  kubelet.config_file = "/var/lib/kubelet/config.yaml";
  kubelet.socket = {"/var/lib/kubelet/device-plugins/kubelet.sock", SocketState::kAnswers};
  kubelet.pods_socket = {"/var/lib/kubelet/pod-resources/kubelet.sock", SocketState::kAnswers};
  kubelet.pods = PodClaims();
  kubelet.runtimes = {{"/run/containerd/containerd.sock", SocketState::kAnswers}};
  kubelet.checkpoint = {.path = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
                        .there = true};
  kubelet.cpu_state = {
      .path = "/var/lib/kubelet/cpu_manager_state", .there = true, .policy = "none"};
  kubelet.memory_state = {
      .path = "/var/lib/kubelet/memory_manager_state", .there = true, .policy = "None"};
  return kubelet;
}

inline Picture HealthyPicture() {
  Picture picture;
  picture.facts = Node({Gpu(kGroup26, 26, "vfio-pci")});
  picture.plan = DefaultPlan(picture.facts);
  return picture;
}

inline DoctorFacts HealthyFacts() {
  DoctorFacts facts;
  facts.settings.device_plugin_dir = kDefaultDevicePluginDir;
  facts.firmware = {.maker = CpuMaker::kIntel,
                    .flag = "vmx",
                    .virtualization = Fact<bool>(true),
                    .kvm_node = true,
                    .iommu_tables = Fact<std::vector<std::string>>({"DMAR"}),
                    .iommu_units = {"dmar0"}};
  for (const char* name : {"vfio", "vfio_pci", "vfio_iommu_type1", "iommufd"}) {
    facts.modules.states[name] = {.loaded = true, .installed = true};
  }
  facts.modules.lists_known = true;
  facts.modules.rules_known = true;
  facts.memory.swaps = Fact<std::vector<SwapArea>>(std::vector<SwapArea>());
  facts.memory.numa_nodes = 2;
  facts.memory.numa_balancing = Fact<bool>(false);
  facts.processes.list = {
      {.pid = 700, .command = "containerd", .locked_memory_bytes = Fact<uint64_t>(kUnlimited)},
      {.pid = 812, .command = "kubelet"},
      {.pid = 990, .command = "virt-handler"}};
  facts.processes.complete = true;
  facts.command_line = "root=/dev/sda1 intel_iommu=on iommu=pt";
  facts.picture = HealthyPicture();
  facts.kubelet = HealthyKubelet();
  facts.state_dir = StateDirFacts{
      .path = "/var/lib/vfio-agent", .free_bytes = uint64_t{1} << 30, .free_files = 1000};
  facts.agent = HealthyAgent();
  return facts;
}

// The answers of one check.
inline Findings Answers(const DoctorFacts& facts, std::string_view name) {
  for (const Check& check : AllChecks()) {
    if (check.name == name) return check.look(facts);
  }
  FAIL("there is no check " << name);
  return {};
}

}  // namespace vfio_agent
