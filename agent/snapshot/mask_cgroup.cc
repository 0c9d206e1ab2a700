#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/ascii.h"
#include "agent/snapshot/mask_text.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

// Groups that tell nothing of who they are for; patterns of fnmatch(3).
constexpr std::array kKnown = std::to_array<const char*>({
    "",
    "init.scope",
    "system.slice",
    "user.slice",
    "machine.slice",
    "kubelet.slice",
    "runtime.slice",
    "session-*.scope",
    "user-[0-9]*.slice",
    "user@[0-9]*.service",
    "app.slice",
    "session.slice",
    "background.slice",
    "kubepods",
    "kubepods.slice",
    "besteffort",
    "burstable",
    "kubepods-besteffort.slice",
    "kubepods-burstable.slice",
    "cri-containerd",
    "containerd",
    "crio",
    "docker",
    "libpod_parent",
    "container",
    "emulator",
    "vcpu[0-9]*",
});
// What stands around an id.
constexpr std::array kAround = std::to_array<const char*>({
    "kubepods-besteffort-pod*.slice",
    "kubepods-burstable-pod*.slice",
    "kubepods-pod*.slice",
    "pod*",
    "cri-containerd-*.scope",
    "crio-*.scope",
    "crio-conmon-*.scope",
    "docker-*.scope",
    "libpod-*.scope",
});

bool Fits(const std::string& part, std::span<const char* const> patterns) {
  return std::ranges::any_of(
      patterns, [&part](const char* pattern) { return ::fnmatch(pattern, part.c_str(), 0) == 0; });
}

bool IsId(std::string_view text) {
  return (text.size() == 32 || text.size() == 36 || text.size() == 64) &&
         std::ranges::all_of(text, [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

// Services are told by name, as processes are: the remedy is to stop them. An instance's name
// ("backup@customer.service") and a scope's (a libvirt domain's) is not.
std::string MaskGroup(const std::string& part, Masker& masker) {
  const size_t dot = part.rfind('.');
  const std::string end = dot == std::string::npos ? "" : part.substr(dot);
  const bool unit = end == ".service" || end == ".scope" || end == ".slice";
  const std::string stem = unit ? part.substr(0, dot) : part;
  if (Fits(part, kKnown) || (end == ".service" && stem.find('@') == std::string::npos)) return part;
  if (IsId(part)) return masker.Hex(part);
  for (const std::string_view around : kAround) {
    const size_t star = around.find('*');
    if (::fnmatch(around.data(), part.c_str(), 0) != 0) continue;
    const std::string id = stem.substr(star);
    return stem.substr(0, star) + (IsId(id) ? masker.Hex(id) : masker.Word(id)) + (unit ? end : "");
  }
  return masker.Word(stem) + (unit ? end : "");
}

}  // namespace

// "0::/kubepods.slice/…": a number, controllers, the path; containerd's older paths have colons.
std::string MaskCgroup(std::string_view cgroup, Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(cgroup)) {
    const size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    masked += line.substr(0, slash);
    std::string part;
    for (const char c : std::string(line.substr(slash)) + "\n") {
      if (c != '/' && c != ':' && c != '\n') {
        part.push_back(c);
        continue;
      }
      masked += MaskGroup(part, masker) + c;
      part.clear();
    }
  }
  return masked;
}

}  // namespace vfio_agent
