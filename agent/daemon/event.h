// Event: one line of the log as a value: a name from the closed list and its keys.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfio_agent {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Event {
  Level level = Level::kInfo;
  std::string name;  // "bind_failed"
  std::vector<std::pair<std::string, std::string>> fields;

  // Appends `key` unless `value` is empty.
  Event& With(std::string key, std::string value);
  bool operator==(const Event&) const = default;
};

// `event=bind_failed group=17 err="no driver took it"`: values with spaces, quotes or control
// characters are quoted and escaped, so that one event is one line whatever a device is called.
std::string ToText(const Event& event);
// The same fields as the inside of a JSON object: `"event":"bind_failed","group":"17"`.
std::string ToJsonFields(const Event& event);

}  // namespace vfio_agent
