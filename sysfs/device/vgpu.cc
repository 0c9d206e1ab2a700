#include "sysfs/device/vgpu.h"

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

Fact<int> CurrentOf(const absl::StatusOr<std::string>& text, const std::string& path,
                    VgpuFacts& facts) {
  int id = 0;
  if (text.ok() && absl::SimpleAtoi(*text, &id) && id >= 0) return Fact<int>(id);
  if (absl::IsNotFound(text.status())) return Fact<int>::Absent();
  if (absl::IsDeadlineExceeded(text.status())) return Fact<int>::Unknown(ETIMEDOUT);
  Note(facts.skipped, text.ok() ? absl::StrFormat("%s: no number: '%s'", path, Tidy(*text))
                                : Message(text.status()));
  return Fact<int>::Unknown(text.ok() ? EINVAL : ErrnoOf(text.status()));
}

void Fill(const DriverTexts& texts, VgpuFunction& function, VgpuFacts& facts) {
  const std::string current_path = CurrentVgpuPath(function.address);
  const absl::StatusOr<std::string> current = TextOf(texts, current_path);
  function.current = CurrentOf(current, current_path, facts);
  if (function.current.absent()) return;
  function.silent = SilentFile(current_path, current.status());
  const std::string path = CreatableVgpusPath(function.address);
  const absl::StatusOr<std::string> text = TextOf(texts, path);
  if (function.silent.empty()) function.silent = SilentFile(path, text.status());
  if (text.ok()) {
    function.creatable = ParseVgpuTypes(*text, path, facts.skipped);
  } else if (!absl::IsDeadlineExceeded(text.status())) {
    Note(facts.skipped, Message(text.status()));
  }
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

VgpuFacts ListVgpus(const Tree& tree, const std::vector<PciDevice>& devices) {
  VgpuFacts facts;
  for (const PciDevice& device : devices) {
    if (device.vendor != kNvidia || !device.physfn || !device.driver) continue;
    if (!tree.Exists(CurrentVgpuPath(device.address))) continue;
    facts.functions.push_back({.address = device.address, .physical = *device.physfn});
  }
  std::ranges::sort(facts.functions, {}, &VgpuFunction::address);
  return facts;
}

void AddVgpuFiles(const VgpuFacts& facts, std::vector<DriverFile>& files) {
  for (const VgpuFunction& function : facts.functions) {
    for (std::string path :
         {CurrentVgpuPath(function.address), CreatableVgpusPath(function.address)}) {
      files.push_back({function.address, function.physical, std::move(path)});
    }
  }
}

void FillVgpus(const DriverTexts& texts, VgpuFacts& facts) {
  for (VgpuFunction& function : facts.functions) Fill(texts, function, facts);
  std::erase_if(facts.functions,
                [](const VgpuFunction& function) { return function.current.absent(); });
}

void KeepVgpus(const VgpuFacts& before, VgpuFacts& now) {
  for (VgpuFunction& function : now.functions) {
    const VgpuFunction* const old = FindVgpu(before, function.address);
    if (function.silent.empty() || old == nullptr) continue;
    function.creatable = old->creatable;
    function.last = old->current.known() ? old->current.value() : old->last;
  }
}

const VgpuFunction* FindVgpu(const VgpuFacts& facts, const PciAddress& address) {
  const auto found = std::ranges::lower_bound(facts.functions, address, {}, &VgpuFunction::address);
  return found != facts.functions.end() && found->address == address ? &*found : nullptr;
}

}  // namespace vfio_agent
