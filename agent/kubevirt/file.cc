#include "agent/kubevirt/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "agent/config/yaml.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kLargest = 4u << 20;
// Objects as the API server gives them nest deeper than a configuration: managedFields repeats
// every path.
constexpr YamlLimits kLimits{.deepest = 40, .most_values = 200'000};

// The value of `key`, or null where it is absent or null.
absl::StatusOr<const YamlValue*> Find(const YamlValue& map, std::string_view key) {
  if (map.kind == YamlValue::Kind::kNull) return nullptr;
  if (map.kind != YamlValue::Kind::kMap) return YamlError(map, "want keys and values");
  const auto found = std::ranges::find(map.map, key, &YamlEntry::key);
  if (found == map.map.end() || found->value.kind == YamlValue::Kind::kNull) return nullptr;
  return &found->value;
}

// The value at the end of `keys`, or null where one of them is absent.
absl::StatusOr<const YamlValue*> FindPath(const YamlValue& map,
                                          std::initializer_list<std::string_view> keys) {
  const YamlValue* value = &map;
  for (const std::string_view key : keys) {
    ASSIGN_OR_RETURN(value, Find(*value, key));
    if (value == nullptr) return nullptr;
  }
  return value;
}

// "" where it is absent.
absl::StatusOr<std::string> FindText(const YamlValue& map, std::string_view key) {
  ASSIGN_OR_RETURN(const YamlValue* const value, Find(map, key));
  if (value == nullptr) return "";
  ASSIGN_OR_RETURN(const std::string text, ReadScalar(*value));
  return Printable(text);
}

absl::StatusOr<bool> FindBool(const YamlValue& map, std::string_view key) {
  ASSIGN_OR_RETURN(const std::string text, FindText(map, key));
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text.empty() || text == "false" || text == "False" || text == "FALSE") return false;
  return YamlError(map, absl::StrFormat("%s: '%s': want true or false", key, text));
}

absl::Status ReadPermitted(const YamlValue& devices, std::string_view list, bool pci,
                           KubevirtConfiguration& configuration) {
  ASSIGN_OR_RETURN(const YamlValue* const entries, Find(devices, list));
  if (entries == nullptr) return absl::OkStatus();
  return ReadList(*entries, [&](const YamlValue& item) -> absl::Status {
    PermittedDevice device{.pci = pci, .where = item.where};
    if (pci) {
      ASSIGN_OR_RETURN(device.selector, FindText(item, "pciVendorSelector"));
    } else {
      ASSIGN_OR_RETURN(device.selector, FindText(item, "mdevNameSelector"));
    }
    ASSIGN_OR_RETURN(device.resource, FindText(item, "resourceName"));
    ASSIGN_OR_RETURN(device.external, FindBool(item, "externalResourceProvider"));
    if (device.resource.empty()) return YamlError(item, "has no resourceName");
    configuration.permitted.push_back(std::move(device));
    return absl::OkStatus();
  });
}

absl::Status ReadGates(const YamlValue& value, KubevirtConfiguration& configuration) {
  ASSIGN_OR_RETURN(const YamlValue* const gates,
                   FindPath(value, {"developerConfiguration", "featureGates"}));
  if (gates == nullptr) return absl::OkStatus();
  return ReadList(*gates, [&](const YamlValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string gate, ReadScalar(item));
    configuration.feature_gates.insert(gate);
    return absl::OkStatus();
  });
}

absl::Status ReadConfiguration(const YamlValue& value, KubevirtFile& file) {
  KubevirtConfiguration configuration{.where = value.where};
  RETURN_IF_ERROR(ReadGates(value, configuration));
  ASSIGN_OR_RETURN(const YamlValue* const devices, Find(value, "permittedHostDevices"));
  if (devices != nullptr) {
    configuration.restricts = true;
    RETURN_IF_ERROR(ReadPermitted(*devices, "pciHostDevices", true, configuration));
    RETURN_IF_ERROR(ReadPermitted(*devices, "mediatedDevices", false, configuration));
    RETURN_IF_ERROR(ReadPermitted(*devices, "usb", false, configuration));
  }
  file.configurations.push_back(std::move(configuration));
  return absl::OkStatus();
}

absl::Status ReadWanted(const YamlValue& devices, MachineList list, KubevirtMachine& machine) {
  ASSIGN_OR_RETURN(const YamlValue* const items, Find(devices, Name(list)));
  if (items == nullptr) return absl::OkStatus();
  return ReadList(*items, [&](const YamlValue& item) -> absl::Status {
    WantedDevice device{.list = list, .where = item.where};
    ASSIGN_OR_RETURN(device.resource, FindText(item, "deviceName"));
    ASSIGN_OR_RETURN(const YamlValue* const claim, Find(item, "claimName"));
    device.claimed = claim != nullptr;
    machine.devices.push_back(std::move(device));
    return absl::OkStatus();
  });
}

absl::Status ReadMachine(const YamlValue& object, const std::string& kind, KubevirtFile& file) {
  KubevirtMachine machine;
  ASSIGN_OR_RETURN(const YamlValue* const metadata, Find(object, "metadata"));
  std::string space, name;
  if (metadata != nullptr) {
    ASSIGN_OR_RETURN(space, FindText(*metadata, "namespace"));
    ASSIGN_OR_RETURN(name, FindText(*metadata, "name"));
  }
  machine.title = absl::StrFormat("%s %s%s%s", kind, space, space.empty() ? "" : "/",
                                  name.empty() ? "(no name)" : name);
  const YamlValue* devices = nullptr;
  if (kind == "VirtualMachine") {
    ASSIGN_OR_RETURN(devices, FindPath(object, {"spec", "template", "spec", "domain", "devices"}));
  } else {
    ASSIGN_OR_RETURN(devices, FindPath(object, {"spec", "domain", "devices"}));
  }
  if (devices != nullptr) {
    RETURN_IF_ERROR(ReadWanted(*devices, MachineList::kGpus, machine));
    RETURN_IF_ERROR(ReadWanted(*devices, MachineList::kHostDevices, machine));
  }
  file.machines.push_back(std::move(machine));
  return absl::OkStatus();
}

absl::Status ReadKubevirt(const YamlValue& object, KubevirtFile& file) {
  ASSIGN_OR_RETURN(const YamlValue* const configuration,
                   FindPath(object, {"spec", "configuration"}));
  if (configuration != nullptr) return ReadConfiguration(*configuration, file);
  file.configurations.push_back({.where = object.where});
  return absl::OkStatus();
}

// An object without a kind: KubeVirt's spec.configuration, with or without what is around it.
absl::Status ReadNameless(const YamlValue& object, KubevirtFile& file) {
  ASSIGN_OR_RETURN(const YamlValue* inner, FindPath(object, {"spec", "configuration"}));
  if (inner == nullptr) {
    ASSIGN_OR_RETURN(inner, Find(object, "configuration"));
  }
  if (inner != nullptr) return ReadConfiguration(*inner, file);
  ASSIGN_OR_RETURN(const YamlValue* const devices, Find(object, "permittedHostDevices"));
  ASSIGN_OR_RETURN(const YamlValue* const developer, Find(object, "developerConfiguration"));
  if (devices == nullptr && developer == nullptr) return absl::OkStatus();
  return ReadConfiguration(object, file);
}

// Recursion ends with the depth that the parser allows.
absl::Status ReadObject(const YamlValue& object, KubevirtFile& file) {  // NOLINT(misc-no-recursion)
  if (object.kind == YamlValue::Kind::kNull) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string kind, FindText(object, "kind"));
  if (kind == "KubeVirt") return ReadKubevirt(object, file);
  if (kind == "VirtualMachine" || kind == "VirtualMachineInstance") {
    return ReadMachine(object, kind, file);
  }
  if (kind.empty()) return ReadNameless(object, file);
  if (!kind.ends_with("List")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const YamlValue* const items, Find(object, "items"));
  if (items == nullptr) return absl::OkStatus();
  return ReadList(*items, [&file](const YamlValue& item) { return ReadObject(item, file); });
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& name) {
  std::string text;
  while (text.size() <= kLargest) {
    char part[1 << 16];
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", name));
    if (n == 0) return text;
    text.append(part, static_cast<size_t>(n));
  }
  return absl::InvalidArgumentError(absl::StrFormat("%s: longer than 4 MiB", name));
}

}  // namespace

absl::StatusOr<KubevirtFile> ParseKubevirtFile(const std::string& text, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<YamlValue> documents, ParseYamlDocuments(text, name, kLimits));
  KubevirtFile file;
  for (const YamlValue& document : documents) RETURN_IF_ERROR(ReadObject(document, file));
  if (!file.configurations.empty() || !file.machines.empty()) return file;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: want a KubeVirt, a VirtualMachine, a VirtualMachineInstance, a List of "
                      "them, or the spec.configuration of a KubeVirt",
                      name));
}

absl::StatusOr<KubevirtFile> ReadKubevirtFile(const std::string& path) {
  if (path == "-") {
    ASSIGN_OR_RETURN(const std::string text, ReadAll(STDIN_FILENO, "standard input"));
    return ParseKubevirtFile(text, "standard input");
  }
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  ASSIGN_OR_RETURN(const std::string text, ReadAll(fd.get(), path));
  return ParseKubevirtFile(text, path);
}

}  // namespace vfio_agent
