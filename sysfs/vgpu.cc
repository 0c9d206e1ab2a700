#include "sysfs/vgpu.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr uint16_t kNvidia = 0x10de;
// More than any driver has; what a hostile tree has beyond them is told and left out.
constexpr size_t kMostTypes = 256;
constexpr size_t kLongestName = 128;
constexpr size_t kMostNotes = 16;

// Names are shown on terminals, stand in JSON and become part of resource names.
std::string Tidy(std::string text) {
  absl::StripAsciiWhitespace(&text);
  return Printable(text, kLongestName);
}

void Note(std::vector<std::string>& skipped, std::string what) {
  if (skipped.size() < kMostNotes) skipped.push_back(std::move(what));
}

Fact<int> ReadCurrent(const Tree& tree, const PciAddress& address, VgpuFacts& facts) {
  const std::string path = CurrentVgpuPath(address);
  const absl::StatusOr<std::string> text = tree.ReadText(path);
  int id = 0;
  if (text.ok() && absl::SimpleAtoi(*text, &id) && id >= 0) return Fact<int>(id);
  if (absl::IsNotFound(text.status())) return Fact<int>::Absent();
  Note(facts.skipped, text.ok() ? absl::StrFormat("%s: no number: '%s'", path, Tidy(*text))
                                : Message(text.status()));
  return Fact<int>::Unknown(text.ok() ? EINVAL : ErrnoOf(text.status()));
}

void ReadFunction(const Tree& tree, const PciDevice& device, VgpuFacts& facts) {
  VgpuFunction function{.address = device.address, .physical = *device.physfn};
  function.current = ReadCurrent(tree, device.address, facts);
  if (function.current.absent()) return;
  const std::string path = CreatableVgpusPath(device.address);
  const absl::StatusOr<std::string> text = tree.ReadText(path);
  if (text.ok()) {
    function.creatable = ParseVgpuTypes(*text, path, facts.skipped);
  } else {
    Note(facts.skipped, Message(text.status()));
  }
  facts.functions.push_back(std::move(function));
}

}  // namespace

std::vector<VgpuType> ParseVgpuTypes(std::string_view text, std::string_view path,
                                     std::vector<std::string>& skipped) {
  std::vector<VgpuType> types;
  const std::vector<std::string> lines =
      absl::StrSplit(std::string(text), '\n', absl::SkipWhitespace());
  for (const std::string& line : lines) {
    const size_t colon = line.find(':');
    VgpuType type;
    if (colon != std::string::npos && absl::SimpleAtoi(line.substr(0, colon), &type.id)) {
      type.name = Tidy(line.substr(colon + 1));
    }
    if (type.id > 0 && !type.name.empty() && types.size() < kMostTypes) {
      types.push_back(std::move(type));
    } else if (!line.starts_with("ID")) {
      Note(skipped, absl::StrFormat("%s: '%s'", path, Tidy(line)));
    }
  }
  std::ranges::sort(types, {}, &VgpuType::id);
  return types;
}

VgpuFacts ReadVgpuFacts(const Tree& tree, const std::vector<PciDevice>& devices) {
  VgpuFacts facts;
  for (const PciDevice& device : devices) {
    if (device.vendor != kNvidia || !device.physfn || !device.driver) continue;
    ReadFunction(tree, device, facts);
  }
  std::ranges::sort(facts.functions, {}, &VgpuFunction::address);
  return facts;
}

const VgpuFunction* FindVgpu(const VgpuFacts& facts, const PciAddress& address) {
  const auto found = std::ranges::lower_bound(facts.functions, address, {}, &VgpuFunction::address);
  return found != facts.functions.end() && found->address == address ? &*found : nullptr;
}

}  // namespace vfio_agent
