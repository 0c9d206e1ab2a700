// Checks of memory and disk: huge pages, NUMA balancing, locked memory, swap, room for the journal.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"
#include "agent/work/job.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// "8 GiB", "1.5 GiB", "512 MiB", "4 KiB". What lacks a page or so to the next unit, as swap does
// whose first page is its header, is spelt as that.
std::string SpellSize(uint64_t kib) {
  constexpr std::array kUnits = {std::pair(uint64_t{1} << 20, "GiB"),
                                 std::pair(uint64_t{1} << 10, "MiB")};
  for (const auto& [unit, name] : kUnits) {
    if (kib + (unit >> 10) < unit) continue;
    const std::string number =
        absl::StrFormat("%.1f", static_cast<double>(kib) / static_cast<double>(unit));
    return absl::StrFormat(
        "%s %s", number.ends_with(".0") ? number.substr(0, number.size() - 2) : number, name);
  }
  return absl::StrFormat("%d KiB", kib);
}

// What the command line asks for: "hugepages=64", "hugepages=0:16,1:16".
uint64_t AskedPages(std::string_view command_line) {
  constexpr std::string_view kKey = "hugepages=";
  uint64_t asked = 0;
  for (const std::string_view word : Fields(command_line)) {
    if (!word.starts_with(kKey)) continue;
    for (const std::string_view part : Split(word.substr(kKey.size()), ',')) {
      const size_t colon = part.rfind(':');
      const auto count = colon == part.npos ? part : part.substr(colon + 1);
      asked += ParseNumber(count, 10).value_or(0);
    }
  }
  return asked;
}

// The NUMA nodes of selected devices.
std::set<int> DeviceNodes(const DoctorFacts& facts) {
  std::set<int> nodes;
  if (!facts.picture) return nodes;
  for (const Resource& resource : facts.picture->plan.resources) {
    for (const Unit& unit : resource.units) {
      if (unit.numa_node) nodes.insert(*unit.numa_node);
    }
  }
  return nodes;
}

Findings HugePagesOf(const DoctorFacts& facts) {
  std::vector<std::string> parts;
  std::set<int> with;
  uint64_t reserved = 0;
  for (const HugePages& pages : facts.memory.huge_pages) {
    if (pages.reserved == 0) continue;
    reserved += pages.reserved;
    if (pages.node) with.insert(*pages.node);
    parts.push_back(absl::StrFormat("%s%d of %s (%d free)",
                                    pages.node ? absl::StrFormat("node %d: ", *pages.node) : "",
                                    pages.reserved, SpellSize(pages.size_kb), pages.free));
  }
  const uint64_t asked = AskedPages(facts.command_line);
  if (!facts.memory.huge_pages.empty() && asked > reserved) {
    return {
        Warn(absl::StrFormat("the kernel command line asks for %d, there are %d", asked, reserved),
             "memory was too short or in pieces when they were reserved: ask for them by "
             "hugepages= at the boot, and for fewer")};
  }
  if (parts.empty()) return {Ok("none reserved: a machine that asks for them does not start")};
  const std::string read = absl::StrJoin(parts, ", ");
  for (const int node : DeviceNodes(facts)) {
    if (with.empty() || with.contains(node)) continue;
    return {Warn(absl::StrFormat("%s; NUMA node %d has selected devices and none", read, node),
                 absl::StrFormat("echo COUNT > /sys/devices/system/node/node%d/hugepages/"
                                 "hugepages-1048576kB/nr_hugepages, or hugepages=%d:COUNT at the "
                                 "boot",
                                 node, node))};
  }
  return {Ok(read)};
}

Findings NumaBalancing(const DoctorFacts& facts) {
  const Fact<bool>& balancing = facts.memory.numa_balancing;
  if (!balancing.known()) return {Ok("this kernel has none, or it cannot be seen")};
  if (facts.memory.numa_nodes < 2 || !balancing.value()) {
    return {Ok(absl::StrFormat("%s, NUMA nodes: %d", balancing.value() ? "on" : "off",
                               facts.memory.numa_nodes))};
  }
  return {Warn(absl::StrFormat("on, %d NUMA nodes: the kernel looks for pages to move in guests "
                               "whose memory is pinned",
                               facts.memory.numa_nodes),
               "sysctl -w kernel.numa_balancing=0, and keep it in /etc/sysctl.d")};
}

// A guest with a device has all of its memory locked. KubeVirt raises the limit for each machine;
// what else starts machines has the runtime's own.
Findings LockedMemory(const DoctorFacts& facts) {
  constexpr std::array<std::string_view, 1> kHandler = {"virt-handler"};
  const bool kubevirt =
      !SpellProcesses(facts, kHandler).empty() || !facts.kubelet.kubevirt_sockets.empty();
  std::vector<std::string> read;
  bool low = false;
  for (const HostProcess& process : facts.processes.list) {
    const bool runtime = process.command == "containerd" || process.command == "crio";
    if (!runtime || !process.locked_memory_bytes.known()) continue;
    const uint64_t bytes = process.locked_memory_bytes.value();
    read.push_back(absl::StrFormat("%s (pid %d): %s", process.command, process.pid,
                                   bytes == kUnlimited ? "unlimited" : SpellSize(bytes >> 10)));
    low = low || bytes != kUnlimited;
  }
  if (read.empty()) return {Ok("no container runtime was seen whose limit would count")};
  const std::string text = absl::StrJoin(read, ", ");
  if (!low) return {Ok(text)};
  if (kubevirt) return {Ok(text + "; KubeVirt raises it for each machine")};
  return {Warn(text + ": a guest with a device has to lock all of its memory",
               "LimitMEMLOCK=infinity in a drop-in of the runtime's unit (KubeVirt needs none)")};
}

std::string SpellSwaps(const std::vector<SwapArea>& areas) {
  std::vector<std::string> parts;
  for (const SwapArea& area : areas) {
    parts.push_back(absl::StrFormat("%s (%s, %s)", area.name, area.type, SpellSize(area.size_kb)));
  }
  return absl::StrJoin(parts, ", ");
}

// swapoff alone lasts until the next boot; what switches it on again differs by what it is.
std::string SwapRemedy(const KubeletFacts& kubelet, const std::vector<SwapArea>& areas) {
  const auto is_zram = [](const SwapArea& area) { return area.name.starts_with("/dev/zram"); };
  std::string off = "swapoff -a; so that it stays off, ";
  if (!std::ranges::all_of(areas, is_zram)) {
    off +=
        "comment its line in /etc/fstab, and `systemctl mask NAME.swap` for a unit that `systemctl "
        "list-units --type swap` shows; ";
  }
  if (std::ranges::any_of(areas, is_zram)) {
    off += "of zram, make /etc/systemd/zram-generator.conf an empty file; ";
  }
  if (kubelet.allows_swap) {
    return off + "then restart k3s or RKE2; or take fail-swap-on out of its kubelet-arg";
  }
  return absl::StrFormat(
      "%sthen systemctl restart kubelet; or failSwapOn: false in %s", off,
      kubelet.config_file.empty() ? "the kubelet's configuration" : kubelet.config_file);
}

// Why nobody can tell whether the kubelet refuses swap; empty where that is known.
std::string SwapDoubt(const KubeletFacts& kubelet) {
  if (kubelet.config.swap_told) return "";
  if (!kubelet.files_seen) return "its configuration cannot be seen from here";
  if (!kubelet.config_error.empty()) {
    return "its configuration cannot be read or understood";
  }
  return kubelet.config_file.empty() ? "no configuration of it was seen" : "";
}

// The kubelet looks once, when it starts: swap that comes later stops it at its next start.
Findings Swap(const DoctorFacts& facts) {
  if (facts.memory.swaps.absent() && facts.view != View::kCopy) {
    return {Ok("this kernel has none")};
  }
  if (!facts.memory.swaps.known()) return {Unknown("/proc/swaps cannot be read")};
  const std::vector<SwapArea>& areas = facts.memory.swaps.value();
  if (areas.empty()) return {Ok("off")};
  const std::string on = "on: " + SpellSwaps(areas);
  const KubeletFacts& kubelet = facts.kubelet;
  if (!KubeletExpected(facts)) {
    if (facts.view != View::kHost) return {Unknown(on + "; nothing here tells of a kubelet")};
    return {Ok(on + "; there is no kubelet that would mind")};
  }
  if (!kubelet.config.fail_swap_on) {
    return {Ok(absl::StrFormat(
        "%s; the kubelet allows it (%s)", on,
        kubelet.config.swap_behavior.empty() ? "NoSwap" : kubelet.config.swap_behavior))};
  }
  if (kubelet.allows_swap && !kubelet.config.swap_told) {
    return {Ok(on + "; k3s and RKE2 have their kubelet allow it")};
  }
  const std::string remedy = SwapRemedy(kubelet, areas);
  if (const std::string doubt = SwapDoubt(kubelet); !doubt.empty()) {
    return {Warn(
        absl::StrFormat("%s; a kubelet refuses it unless it has failSwapOn: false; %s", on, doubt),
        remedy)};
  }
  const std::string why = "the kubelet's configuration refuses it (failSwapOn)";
  if (KubeletAlive(facts) == Alive::kYes) {
    return {
        Warn(absl::StrFormat("%s; %s: it runs still, and does not start again", on, why), remedy)};
  }
  return {Fail(absl::StrFormat("%s; %s: it does not start", on, why), remedy)};
}

Findings StateDirectory(const DoctorFacts& facts) {
  constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
  constexpr uint64_t kLeastFiles = 64;
  constexpr uint64_t kLittleBytes = uint64_t{64} << 20;
  if (!facts.state_dir) return {Unknown("cannot be seen in a copy")};
  const StateDirFacts& dir = *facts.state_dir;
  const std::string remedy = std::string(kStateRemedy) + ": without a journal nothing is bound";
  if (!dir.status.ok()) return {Fail(Message(dir.status), remedy)};
  if (dir.read_only) {
    return {
        Fail(dir.path + " is on a file system that is read-only", remedy, Code::kPermissionDenied)};
  }
  const std::string room =
      absl::StrFormat("%s has %s free", dir.path, SpellSize(dir.free_bytes >> 10));
  if (dir.free_bytes < kLeastBytes || dir.free_files < kLeastFiles) {
    return {Fail(dir.free_files < kLeastFiles
                     ? absl::StrFormat("%s has room for %d more files", dir.path, dir.free_files)
                     : room,
                 remedy)};
  }
  if (dir.free_bytes < kLittleBytes) return {Warn(room, remedy)};
  return {Ok(room)};
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kHost, "huge pages", HugePagesOf},
    {Layer::kHost, "NUMA balancing", NumaBalancing},
    {Layer::kHost, "locked memory", LockedMemory},
    {Layer::kHost, "swap", Swap},
    {Layer::kHost, "state directory", StateDirectory},
});

}  // namespace

std::span<const Check> HostChecks() { return kChecks; }

}  // namespace vfio_agent
