// UseTree: a quiet host to which a test adds what a PCI function is used for.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/use/use.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {

inline constexpr char kNic[] = "0000:3b:00.0";
inline constexpr char kDisk[] = "0000:01:00.0";
inline constexpr char kCard[] = "0000:65:00.0";

// Process 1 has a network without addresses and no mounts, and nobody has anything open.
struct UseTree : FakeTree {
  UseTree() {
    Write("proc/1/mountinfo", "").Write("proc/swaps", "Filename Type Size Used Priority\n");
    Write("proc/1/net/route", "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\n");
    Write("proc/1/net/if_inet6", "").Write("proc/1/net/ipv6_route", "");
    Add({.address = kNic, .class_code = "0x020000", .driver = "mlx5_core"});
    Add({.address = kDisk, .class_code = "0x010802", .driver = "nvme"});
    Add({.address = kCard, .class_code = "0x030000", .driver = "nvidia", .group = 26});
  }

  // The directory itself, not the link to it: links that start there lead where they should.
  std::string Real(const std::string& address) const {
    namespace fs = std::filesystem;
    return fs::relative(fs::canonical(root() / Of(address, "")), fs::canonical(root())).string();
  }
  UseTree& Below(const std::string& address, const std::string& path, const std::string& text) {
    Write(Real(address) + "/" + path, text + "\n");
    return *this;
  }
  // Descriptors 3, 4, … of process `pid`, as proc shows them.
  UseTree& Process(int pid, const std::string& command, const std::vector<std::string>& targets) {
    const std::string dir = absl::StrFormat("proc/%d/", pid);
    Write(dir + "comm", command + "\n").Write(dir + "fd/.keep", "");
    for (size_t i = 0; i < targets.size(); ++i) {
      std::filesystem::create_symlink(targets[i], root() / dir / "fd" / std::to_string(3 + i));
    }
    return *this;
  }
  UseTree& Cgroup(int pid, const std::string& text) {
    Write(absl::StrFormat("proc/%d/cgroup", pid), text);
    return *this;
  }

  UseFacts Read(const std::string& address, const std::vector<int>& groups = {}) const {
    return ReadUse(Open(), Facts(), {*PciAddress::Parse(address)}, groups);
  }
  // One line for each use: "network: carries eth0, which …".
  std::string Uses(const std::string& address) const {
    constexpr const char* kKinds[] = {"network", "storage", "display", "process", "manager"};
    std::vector<std::string> lines;
    const UseFacts uses = Read(address);
    for (const Use& use : uses.devices.begin()->second) {
      lines.push_back(absl::StrFormat("%s: %s", kKinds[static_cast<size_t>(use.kind)], use.text));
    }
    return absl::StrJoin(lines, "\n");
  }
  std::string Remedy(const std::string& address) const {
    const UseFacts uses = Read(address);
    const std::vector<Use>& list = uses.devices.begin()->second;
    return list.empty() ? "no use" : list.front().remedy;
  }
};

}  // namespace vfio_agent
