// Settings: what can be set by flag, environment, file or default, in that order.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vfio_agent {

inline constexpr char kDefaultStateDir[] = "/var/lib/vfio-agent";
inline constexpr char kDefaultTokenFile[] = "/var/run/secrets/kubernetes.io/serviceaccount/token";
inline constexpr char kDefaultCaFile[] = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
inline constexpr char kNoServer[] = "none";
inline constexpr char kDefaultPciIds[] = "/usr/share/misc/pci.ids";
inline constexpr char kDefaultKubeletRootDir[] = "/var/lib/kubelet";
inline constexpr char kDefaultDevicePluginDir[] = "/var/lib/kubelet/device-plugins";

enum class OnExit { kKeep, kRelease };
// How a plugin makes itself known: by Register on kubelet.sock, or by a socket in the directory
// that the kubelet's plugin watcher looks at.
enum class Registering { kSocket, kRegistry };

struct Settings {
  std::string device_plugin_dir;  // the kubelet's; hard-coded there, whatever its --root-dir
  std::string kubelet_root_dir;
  std::string state_dir;  // the journal and the locks
  std::string pci_ids;
  absl::Duration resync;          // the fallback where the kernel sends no event
  absl::Duration unbind_timeout;  // for each write
  absl::Duration node_timeout;    // for /dev/vfio/<group> to appear
  int parallel = 0;               // groups that are bound at the same time
  OnExit on_exit = OnExit::kKeep;
  std::string log_level;
  std::string log_format;
  std::string metrics_listen;  // as CheckListen() wants it; empty: no HTTP
  Registering registering = Registering::kSocket;
  bool iommufd = false;    // hand out /dev/iommu with devices that have a cdev
  std::string cdi_dir;     // where CDI specs are written; empty: nowhere
  bool cdi_names = false;  // name CDI devices in the answers to the kubelet
  std::string nfd_dir;     // where NFD looks for features; empty: it is told nothing
  std::string api_server;  // "https://HOST:PORT"; empty: as a pod's environment says; "none"
  std::string api_token_file;
  std::string api_ca_file;
  std::string api_node_name;  // empty: NODE_NAME of the environment, else the host's name
  bool api_events = true;     // post Kubernetes Events
  bool api_condition = true;  // keep the Node's condition PassthroughReady
  bool api_labels = true;     // keep the Node's labels vfio-agent/…, unless NFD does by nfd_dir
  std::string dra_driver;     // the DRA driver's name: a DNS subdomain
};

// A DNS subdomain, as the names of Nodes are.
bool IsNodeName(std::string_view name);

// One row for each setting.
struct SettingRow {
  const char* flag;  // "unbind-timeout"; the variable is VFIO_AGENT_UNBIND_TIMEOUT
  const char* key;   // path in the file: "bind.unbindTimeout"
  const char* fallback;
  const char* help;
  absl::Status (*set)(Settings& settings, const std::string& value);
  const char* value = "VALUE";  // "a|b" for one of these words, else what it is: "DIR", "DURATION"
  bool at_start = false;        // what hangs on it is opened at the start, and stays as it is
};
std::span<const SettingRow> SettingRows();

// The environment variable of a flag, and of the row's.
std::string VariableOfFlag(std::string_view flag);
std::string VariableOf(const SettingRow& row);

// A sentence for each variable of the environment that begins as ours do and is near to one of
// them: "VFIO_AGENT_RESYCN of the environment means nothing; did you mean …?". Others are somebody
// else's, such as those that Kubernetes sets for a Service named vfio-agent.
std::vector<std::string> TellMisspeltVariables();

struct SettingSources {
  std::map<std::string, std::string> flags;  // by flag
  std::map<std::string, std::string> file;   // by key
  std::string file_name;
};

struct EffectiveSetting {
  std::string value;
  std::string source;  // "flag", "environment", the file's name or "default"
};
// Which value won, by key.
std::map<std::string, EffectiveSetting> ResolveSettings(const SettingSources& sources);

// InvalidArgument names the value, where it came from and what was expected.
absl::StatusOr<Settings> MakeSettings(const SettingSources& sources);

// Gives `next` the values that `running` began with where only those count, and names the keys
// whose values differ. Both as ResolveSettings() has them.
std::vector<std::string> KeepAtStart(const std::map<std::string, EffectiveSetting>& running,
                                     const std::map<std::string, EffectiveSetting>& wanted,
                                     Settings& next);

}  // namespace vfio_agent
