#include "sysfs/use/cgroup_owner.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kContainerDigits = 64;
constexpr size_t kShownDigits = 12;  // as the tools of containers show them
// A UUID; a static pod has the 32 digits of a hash instead.
constexpr size_t kUuid = 36;
constexpr size_t kHash = 32;

struct Owner {
  std::string pod;
  std::string container;
  std::string unit;
};

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

std::string_view WithoutEnd(std::string_view text, std::string_view end) {
  if (text.ends_with(end)) text.remove_suffix(end.size());
  return text;
}

// "kubepods-burstable-pod1b2c_….slice" (systemd spells '-' as '_' there) or "pod1b2c-…".
std::string PodOf(std::string_view part) {
  part = WithoutEnd(part, ".slice");
  const size_t mark = part.rfind("-pod");
  if (mark != std::string_view::npos) part.remove_prefix(mark + 1);
  if (!part.starts_with("pod")) return "";
  std::string uid(part.substr(3));
  std::ranges::replace(uid, '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  const bool shaped = uid.size() == kUuid || uid.size() == kHash;
  return shaped && digits.size() == kHash && IsHex(digits) ? uid : "";
}

// "cri-containerd-<64 digits>.scope", "crio-….scope", "docker-….scope", or the digits alone.
std::string ContainerOf(std::string_view part) {
  part = WithoutEnd(part, ".scope");
  part.remove_prefix(part.rfind('-') + 1);
  const bool shaped = part.size() == kContainerDigits && IsHex(part);
  return shaped ? std::string(part.substr(0, kShownDigits)) : "";
}

void LookAt(std::string_view part, Owner& owner) {
  if (const std::string pod = PodOf(part); !pod.empty()) {
    owner.pod = pod;
  } else if (const std::string container = ContainerOf(part); !container.empty()) {
    owner.container = container;
  } else if (part.ends_with(".service") || part.ends_with(".scope")) {
    owner.unit = Printable(part);
  }
}

// The path stands behind the second colon; containerd's older paths have colons of their own.
Owner OwnerOf(std::string_view line) {
  Owner owner;
  const size_t first = line.find(':');
  const size_t second =
      first == std::string_view::npos ? std::string_view::npos : line.find(':', first + 1);
  if (second == std::string_view::npos) return owner;
  for (const std::string_view part : Split(line.substr(second + 1), '/')) {
    for (const std::string_view piece : Split(part, ':')) LookAt(piece, owner);
  }
  return owner;
}

// Version 1 has a line for each hierarchy, and not all know the same.
int Worth(const Owner& owner) {
  return (owner.pod.empty() ? 0 : 4) + (owner.container.empty() ? 0 : 2) +
         (owner.unit.empty() ? 0 : 1);
}

}  // namespace

std::string CgroupOwner(std::string_view text) {
  Owner best;
  for (const std::string_view line : Lines(text)) {
    const Owner owner = OwnerOf(line);
    if (Worth(owner) > Worth(best)) best = owner;
  }
  if (best.pod.empty() && best.container.empty()) return best.unit;
  if (best.pod.empty()) return absl::StrFormat("container %s", best.container);
  if (best.container.empty()) return absl::StrFormat("pod %s", best.pod);
  return absl::StrFormat("pod %s, container %s", best.pod, best.container);
}

}  // namespace vfio_agent
