// KubeletConfig: what of the kubelet's configuration matters to passthrough. Pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace vfio_agent {

// With the kubelet's own defaults.
struct KubeletConfig {
  bool fail_swap_on = true;
  bool swap_told = false;        // a file or a flag says so; else it is the default
  std::string swap_behavior;     // memorySwap.swapBehavior; empty: NoSwap
  std::string runtime_endpoint;  // "unix:///run/containerd/containerd.sock"; empty: not said
  std::string cpu_policy = "none";
  std::string memory_policy = "None";
  std::string topology_policy = "none";
  bool many_numa_nodes = false;  // topologyManagerPolicyOptions raises the limit of eight
  bool operator==(const KubeletConfig&) const = default;
};

// Flags of the kubelet by name, without the dashes: {"config", "/var/lib/kubelet/config.yaml"}. The
// last one of a name counts; one without a value is "true".
using KubeletFlags = std::map<std::string, std::string>;
KubeletFlags ParseKubeletFlags(std::span<const std::string> words);

// The kubelet's flags among those of k3s and RKE2: "--kubelet-arg=NAME=VALUE".
KubeletFlags ParseKubeletArgs(std::span<const std::string> words);
// Those in their configuration file, under "kubelet-arg". None where it cannot be understood.
KubeletFlags ReadKubeletArgs(const std::string& text, const std::string& name);

// Puts what a KubeletConfiguration says over `config`. InvalidArgument where it cannot be
// understood, with the place in `name`; `config` is then as it was.
absl::Status ReadKubeletConfig(const std::string& text, const std::string& name,
                               KubeletConfig& config);

// Flags win over files.
void ApplyKubeletFlags(const KubeletFlags& flags, KubeletConfig& config);

}  // namespace vfio_agent
