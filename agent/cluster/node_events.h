// Which lines of the log the cluster is told as Events, and in which words. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cluster/cluster.h"
#include "agent/daemon/event.h"

namespace vfio_agent {

// The API server takes no longer note.
inline constexpr size_t kLongestNote = 1024;

struct NodeEvent {
  std::string reason;   // "ForeignMember", "BindFailed"
  std::string type;     // "Normal", "Warning"
  std::string action;   // "Plan", "Bind", "Release", "Serve", "Allocate", "Start", "Configure"
  std::string subject;  // tells series apart: "group 17"; empty: the node as a whole
  std::string note;     // one line, with the remedy, whatever has to be left out for it
  // Of a container whose start was refused: what its pod has by the kubelet's word. Not of a
  // refused Allocate: that pod never gets the units, and whoever has them is another.
  std::string resource;
  std::vector<std::string> units;
  std::optional<PodRef> pod;  // who waits for a claim that was not prepared
  bool operator==(const NodeEvent&) const = default;
};

// nullopt: it is for the log alone. The reason is the refusal or health code in UpperCamelCase
// where the line has one, else the table's word for what happened.
std::optional<NodeEvent> ToNodeEvent(const Event& event);

// "foreign-member" as "ForeignMember".
std::string ReasonOf(std::string_view code);

}  // namespace vfio_agent
