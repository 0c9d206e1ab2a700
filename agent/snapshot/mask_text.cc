#include "agent/snapshot/mask_text.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/looked_for.h"
#include "agent/work/journal.h"
#include "sysfs/host/host_modules.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

// Keeps the lines for which `wanted` holds.
template <typename Wanted>
std::string KeepLines(std::string_view text, const Wanted& wanted) {
  std::string kept;
  for (const std::string_view line : Lines(text)) {
    if (wanted(line)) kept += std::string(line) + "\n";
  }
  return kept;
}

bool IsHexOnly(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// Of each line the fields in `columns`, where they are addresses.
std::string MaskColumns(std::string_view text, std::initializer_list<size_t> columns, size_t digits,
                        Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(text)) {
    std::vector<std::string> fields;
    for (const std::string_view field : Fields(line)) {
      const bool address = std::ranges::count(columns, fields.size()) != 0 &&
                           field.size() == digits && IsHexOnly(field);
      fields.push_back(address ? masker.Hex(field) : MaskParts(field, masker));
    }
    masked += absl::StrJoin(fields, "\t") + "\n";
  }
  return masked;
}

}  // namespace

std::string MaskHex(std::string_view text, Masker& masker) { return masker.Hex(text); }
std::string MaskIds(std::string_view text, Masker& masker) { return masker.Ids(text); }
std::string DropAll(std::string_view /*text*/, Masker& /*masker*/) { return ""; }

std::string MaskWords(std::string_view text, Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(text)) {
    std::vector<std::string> words;
    for (const std::string_view word : Fields(line)) words.push_back(masker.Word(word));
    masked += absl::StrJoin(words, " ") + "\n";
  }
  return masked;
}

// Id, parent, number, root, point, options, any number of tags, "-", type, source, options.
std::string MaskMounts(std::string_view mountinfo, Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(mountinfo)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 9) continue;
    const auto dash = std::find(field.begin() + 6, field.end(), std::string_view("-"));
    if (field.end() - dash < 3) continue;
    // One after the other: numbers are given in the order in which things stand there.
    const std::string root = MaskPath(field[3], masker);
    const std::string point = MaskPath(field[4], masker);
    const std::string source = MaskPath(dash[2], masker);
    masked +=
        absl::StrFormat("0 0 %s %s %s rw - %s %s rw\n", field[2], root, point, dash[1], source);
  }
  return masked;
}

std::string MaskSwaps(std::string_view swaps, Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(swaps)) {
    std::vector<std::string> fields;
    for (const std::string_view field : Fields(line)) {
      const bool name = fields.empty() && field.starts_with('/');
      fields.push_back(name ? MaskPath(field, masker) : std::string(field));
    }
    masked += absl::StrJoin(fields, "\t") + "\n";
  }
  return masked;
}

// Interface, destination, gateway; the masks say nothing of the place.
std::string MaskRoutes(std::string_view route, Masker& masker) {
  return MaskColumns(route, {1, 2}, 8, masker);
}

std::string MaskRoutes6(std::string_view ipv6_route, Masker& masker) {
  return MaskColumns(ipv6_route, {0, 2, 4}, 32, masker);
}

std::string MaskAddresses6(std::string_view if_inet6, Masker& masker) {
  return MaskColumns(if_inet6, {0}, 32, masker);
}

std::string MaskRecord(std::string_view text, Masker& masker) {
  absl::StatusOr<Record> record = ParseRecord(text);
  if (!record.ok()) return "";  // whatever it is, it is none of ours
  record->boot_id = masker.Ids(record->boot_id);
  return RecordToText(*record);
}

std::string KeepNode(std::string_view uevent, Masker& /*masker*/) {
  return KeepLines(uevent, [](std::string_view line) {
    return line.starts_with("MAJOR=") || line.starts_with("MINOR=") || line.starts_with("DEVNAME=");
  });
}

std::string KeepCard(std::string_view information, Masker& /*masker*/) {
  return KeepLines(information, [](std::string_view line) {
    return line.starts_with("Model:") || line.starts_with("Bus ") || line.starts_with("Device ");
  });
}

std::string KeepVfioAliases(std::string_view modules_alias, Masker& /*masker*/) {
  return KeepLines(modules_alias,
                   [](std::string_view line) { return line.starts_with("alias vfio_pci:"); });
}

// Whatever else stands in such a line is a command of the node's owner.
std::string KeepModuleRules(std::string_view modprobe_d, Masker& /*masker*/) {
  std::string kept;
  for (const std::string_view line : Lines(modprobe_d)) {
    const std::optional<ModuleRule> rule = ParseModuleRule(line);
    if (!rule || std::ranges::count(DoctorModules(), rule->module) == 0) continue;
    kept += rule->blocks ? absl::StrFormat("install %s /bin/false\n", rule->module)
                         : absl::StrFormat("blacklist %s\n", rule->module);
  }
  return kept;
}

// The kernel's own place is what an attacker would have to guess.
std::string DropKernelPlace(std::string_view iomem, Masker& /*masker*/) {
  return KeepLines(iomem, [](std::string_view line) {
    return line.find(" : Kernel ") == std::string_view::npos;
  });
}

}  // namespace vfio_agent
