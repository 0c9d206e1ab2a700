#include "test/sim/fault.h"

#include <cstring>
#include <exception>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "test/sim/yaml.h"

namespace vfio_agent::sim {
namespace {

constexpr int kLastErrno = 133;

// "forever", "5s" or "200ms".
std::chrono::milliseconds Duration(const YAML::Node& node) {
  const std::string text = node.as<std::string>();
  if (text == "forever") return std::chrono::milliseconds::max();
  size_t used = 0;
  const long number = std::stol(text, &used);
  const std::string unit = text.substr(used);
  if (unit == "ms") return std::chrono::milliseconds(number);
  if (unit == "s") return std::chrono::seconds(number);
  throw YamlError(node, "want a duration such as 200ms, 5s or forever: " + text);
}

int Errno(const YAML::Node& node) {
  const int error = ErrnoFromName(node.as<std::string>());
  if (error == 0) throw YamlError(node, "no errno is called " + node.as<std::string>());
  return error;
}

void CheckOp(const YAML::Node& node) {
  static const std::set<std::string> kOperations = {"unbind", "bind",          "probe",  "override",
                                                    "vfs",    "drivers_probe", "remove", "d3cold",
                                                    "node",   "create",        "vgpu"};
  const std::string op = node.as<std::string>();
  if (!kOperations.contains(op) && !op.starts_with("read:"))
    throw YamlError(node, "no operation " + op);
}

}  // namespace

Fault ReadFault(const YAML::Node& node) {
  OnlyKeys(node, "device op errno block delay vanish taken_by once count unkillable");
  Fault fault;
  fault.device = node["device"].as<std::string>();
  CheckOp(node["op"]);
  fault.op = node["op"].as<std::string>();
  if (node["errno"]) fault.error = Errno(node["errno"]);
  if (node["block"]) fault.block = Duration(node["block"]);
  if (node["delay"]) fault.delay = Duration(node["delay"]);
  fault.vanish = node["vanish"].as<bool>(false);
  fault.unkillable = node["unkillable"].as<bool>(false);
  fault.taken_by = Text(node["taken_by"]);
  fault.count = node["once"].as<bool>(false) ? 1 : node["count"].as<int>(-1);
  return fault;
}

int ErrnoFromName(const std::string& name) {
  for (int error = 1; error <= kLastErrno; ++error) {
    const char* const known = ::strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  return 0;
}

std::string ErrnoName(int error) {
  if (error == 0) return "ok";
  const char* const name = ::strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

absl::StatusOr<Fault> ParseFault(const std::string& yaml) {
  try {
    return ReadFault(YAML::Load(yaml));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrFormat("fault: %s", error.what()));
  }
}

std::optional<Fault> FaultTable::Take(const std::string& device, const std::string& op) {
  for (Fault& fault : faults_) {
    if (fault.op != op || (fault.device != "*" && fault.device != device)) continue;
    if (fault.count == 0) continue;
    if (fault.count > 0) --fault.count;
    return fault;
  }
  return std::nullopt;
}

}  // namespace vfio_agent::sim
