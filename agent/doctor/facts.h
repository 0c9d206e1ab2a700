// DoctorFacts: what the checks judge, read once. Values only: no check reads anything itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/config/settings.h"
#include "agent/doctor/kubelet_config.h"
#include "agent/session.h"
#include "deviceplugin/kubelet/socket_probe.h"
#include "deviceplugin/status/agent_status.h"
#include "sysfs/host/host_firmware.h"
#include "sysfs/host/host_memory.h"
#include "sysfs/host/host_modules.h"
#include "sysfs/host/host_processes.h"

namespace vfio_agent {

// From where the node is seen.
enum class View {
  kHost,
  kPod,   // /sys, /proc and what is mounted; other files of the host as the kubelet sees them
  kCopy,  // --root: files only; nothing answers there
};

// A file in which the kubelet keeps a decision over restarts.
struct KeptFile {
  std::string path;
  bool there = false;
  std::string error;   // it cannot be read or understood
  std::string policy;  // of a resource manager; empty for the checkpoint
  bool operator==(const KeptFile&) const = default;
};

struct KubeletFacts {
  std::optional<HostProcess> process;
  bool files_seen = true;  // false: neither its configuration nor its unit can be seen from here
  bool unit_installed = false;  // kubelet.service, below the usual directories
  bool unit_masked = false;
  bool unit_enabled = false;
  std::string config_file;      // the one that was found; empty for none
  std::string config_error;     // why it, or a file on top of it, was not understood
  bool config_missing = false;  // it is named by --config, and not there
  bool allows_swap = false;  // k3s or RKE2, which hand it fail-swap-on=false unless told otherwise
  KubeletConfig config;      // flags and files together

  bool asked = true;        // false: a copy, where what follows is looked at and not asked
  absl::Status plugin_dir;  // OK where plugins can put sockets there
  SocketProbe socket;       // kubelet.sock
  SocketProbe pods_socket;
  std::optional<PodClaims> pods;  // nullopt: not asked
  std::vector<SocketProbe> runtimes;
  KeptFile checkpoint;
  KeptFile cpu_state;
  KeptFile memory_state;
  std::vector<std::string> other_plugins;     // sockets of others on which somebody listens
  std::vector<SocketProbe> kubevirt_sockets;  // of KubeVirt's own plugins
};

struct StateDirFacts {
  std::string path;
  absl::Status status;  // of looking at it
  bool read_only = false;
  uint64_t free_bytes = 0;
  uint64_t free_files = 0;
};

struct DoctorFacts {
  View view = View::kHost;
  Settings settings;
  bool vgpu = false;  // mode: vm-vgpu
  bool passthrough = true;
  bool vgpus = false;  // the configuration makes vGPUs: `mdev` or `vgpu`
  FirmwareFacts firmware;
  HostModules modules;
  MemoryFacts memory;
  HostProcesses processes;
  std::string command_line;
  std::optional<Picture> picture;
  std::string picture_error;       // why there is none
  std::vector<std::string> notes;  // what was odd while it was taken
  KubeletFacts kubelet;
  std::optional<StateDirFacts> state_dir;            // nullopt: not looked at
  std::optional<absl::StatusOr<AgentStatus>> agent;  // nullopt: not asked
};

// Reads everything; takes a few seconds at most where the kubelet or the daemon does not answer.
DoctorFacts TakeDoctorFacts(Session& session);

}  // namespace vfio_agent
