// PluginEvent: what happened between us and the kubelet, for the loop to log and to count.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace vfio_agent {

struct PluginEvent {
  enum class Kind {
    kRegistered,
    kRegisterFailed,    // the server could not be started, or Register failed
    kKubeletRestarted,  // about all resources: `resource` is empty
    kListOpened,
    kListClosed,
    kAllocated,
    kAllocateRefused,
    kPreStartRefused,
    kDirectoryReplaced,  // about all resources
    kPeerRefused,        // somebody else than the kubelet connected
    kContended,          // another plugin serves this resource as well
    kContentionOver,
    kStaleSockets,  // about all resources: what killed agents had left was removed
  };
  Kind kind = Kind::kRegistered;
  std::string resource;
  std::vector<std::string> ids;  // of an allocation or start
  std::string text;              // why, in words
  std::string remedy;            // of a contention
  absl::Duration took;           // of an allocation
};

// How one resource stands with the kubelet.
struct PluginStatus {
  std::string resource;
  bool registered = false;  // the kubelet said yes and watches the list
  int units = 0;
  int streams = 0;
  std::string socket;      // full path; empty while nothing is served
  std::string last_error;  // of serving or registering; of claims, of slices too
  bool operator==(const PluginStatus&) const = default;
};

}  // namespace vfio_agent
