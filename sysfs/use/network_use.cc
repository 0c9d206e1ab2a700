#include "sysfs/use/network_use.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {
namespace {

constexpr uint8_t kNetworkClass = 0x02;
constexpr uint64_t kFlagUp = 0x1;              // IFF_UP
constexpr uint64_t kRouteUp = 0x1;             // RTF_UP
constexpr uint64_t kRouteReject = 0x200;       // RTF_REJECT
constexpr std::string_view kLinkLocal = "20";  // IPV6_ADDR_LINKLOCAL
constexpr std::string_view kUpper = "upper_";
// Drivers that have no interface by design: they hand the function to user space.
constexpr std::array<std::string_view, 5> kWithoutInterface = {"pci-stub", "uio_pci_generic",
                                                               "igb_uio", "pciback", "xen-pciback"};

bool AllZero(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

bool IsAddress6(std::string_view digits) {
  return digits.size() == 32 && digits.find_first_not_of("0123456789abcdef") == digits.npos;
}

bool IsRoute(std::string_view flags) {
  const uint64_t bits = ParseNumber(flags, 16).value_or(0);
  return (bits & kRouteUp) != 0 && (bits & kRouteReject) == 0;
}

// Adds what one file says; false where it is there and cannot be read.
bool Add(const Tree& tree, const char* path, void (*add)(std::string_view, HostNetwork&),
         HostNetwork& network) {
  const absl::StatusOr<std::string> text = ReadProcText(tree, path);
  if (text.ok()) add(*text, network);
  return text.ok() || absl::IsNotFound(text.status());
}

// nullopt where it cannot be told.
std::optional<bool> IsUp(const Tree& tree, const std::string& dir) {
  const absl::StatusOr<std::string> text = tree.ReadText(dir + "/flags");
  if (!text.ok() || !text->starts_with("0x")) return std::nullopt;
  const std::optional<uint64_t> flags = ParseNumber(std::string_view(*text).substr(2), 16);
  return flags ? std::optional((*flags & kFlagUp) != 0) : std::nullopt;
}

// What makes an interface one that the host needs; empty where nothing does.
std::vector<std::string> Reasons(const Tree& tree, const std::string& dir,
                                 const HostNetwork& network) {
  std::vector<std::string> reasons;
  const std::string name(NameOf(dir));
  const std::optional<bool> up = IsUp(tree, dir);
  // What is not known to be down, with or without an address, the host may need.
  if (!up) reasons.emplace_back("may be up: its state is unknown, its flags cannot be read");
  if (up == true) {
    if (!network.known)
      reasons.emplace_back("is up (its addresses cannot be seen without hostPID)");
    if (network.defaults.contains(name)) {
      reasons.emplace_back("is up with the default route");
    } else if (network.addressed.contains(name)) {
      reasons.emplace_back("is up with an address");
    }
  }
  // A port keeps its place in a bond while it is down.
  const absl::StatusOr<std::string> master = tree.ReadLinkName(dir + "/master");
  if (master.ok()) reasons.push_back(absl::StrFormat("is a port of %s", *master));
  const absl::StatusOr<std::vector<std::string>> entries = tree.List(dir);
  for (const std::string& entry : entries.ok() ? *entries : std::vector<std::string>()) {
    if (!entry.starts_with(kUpper)) continue;
    const std::string upper = entry.substr(kUpper.size());
    if (!master.ok() || upper != *master) reasons.push_back(absl::StrFormat("is below %s", upper));
  }
  return reasons;
}

std::string RemedyFor(const Tree& tree, const std::string& dir) {
  if (!tree.ReadLinkName(dir + "/master").ok()) return "";
  return absl::StrFormat("take it out first: ip link set %s nomaster", NameOf(dir));
}

void AddRdma(const Tree& tree, const std::string& dir, std::vector<Use>& uses) {
  const absl::StatusOr<std::vector<std::string>> ports = tree.List(dir + "/ports");
  for (const std::string& port : ports.ok() ? *ports : std::vector<std::string>()) {
    const absl::StatusOr<std::string> state =
        tree.ReadText(absl::StrFormat("%s/ports/%s/state", dir, port));
    if (state.ok() && !state->starts_with("4:")) continue;
    uses.push_back(
        {.kind = UseKind::kNetwork,
         .text = absl::StrFormat("carries the RDMA device %s, whose port %s %s", NameOf(dir), port,
                                 state.ok() ? "is active" : "cannot be read")});
  }
}

bool HasInterfaceByDesign(const PciDevice& device) {
  const std::string& driver = *device.driver;
  return (device.class_code >> 16) == kNetworkClass && driver.find("vfio") == std::string::npos &&
         std::ranges::count(kWithoutInterface, std::string_view(driver)) == 0;
}

}  // namespace

// "eth0 00000000 0102A8C0 0003 0 0 100 00000000 …": interface, destination, gateway, flags, three
// counters, mask.
void AddRoutes(std::string_view route, HostNetwork& network) {
  for (const std::string_view line : Lines(route)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 8 || !ParseNumber(field[1], 16) || !IsRoute(field[3])) continue;
    network.addressed.emplace(field[0]);
    if (AllZero(field[1]) && AllZero(field[7])) network.defaults.emplace(field[0]);
  }
}

// Destination, its prefix, source, its prefix, next hop, three counters, flags, interface. Only the
// default counts: every interface has link-local and multicast routes.
void AddRoutes6(std::string_view ipv6_route, HostNetwork& network) {
  for (const std::string_view line : Lines(ipv6_route)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 10 || !IsAddress6(field[0]) || !IsRoute(field[8])) continue;
    if (AllZero(field[0]) && field[1] == "00") network.defaults.emplace(field[9]);
  }
}

// Address, index, prefix, scope, flags, interface.
void AddAddresses6(std::string_view if_inet6, HostNetwork& network) {
  for (const std::string_view line : Lines(if_inet6)) {
    const std::vector<std::string_view> field = Fields(line);
    if (field.size() < 6 || !IsAddress6(field[0]) || field[3] == kLinkLocal) continue;
    network.addressed.emplace(field[5]);
  }
}

HostNetwork ReadHostNetwork(const Tree& tree) {
  HostNetwork network;
  if (!SeesAllProcesses(tree) || !tree.Exists(kHostRoutes)) return network;
  const bool routes = Add(tree, kHostRoutes, AddRoutes, network);
  const bool routes6 = Add(tree, kHostRoutes6, AddRoutes6, network);
  const bool addresses6 = Add(tree, kHostAddresses6, AddAddresses6, network);
  network.known = routes && routes6 && addresses6;
  return network;
}

std::vector<Use> NetworkUses(const Tree& tree, const PciDevice& device, const Below& below,
                             const HostNetwork& network) {
  std::vector<Use> uses;
  for (const std::string& dir : below.interfaces) {
    const std::vector<std::string> reasons = Reasons(tree, dir, network);
    if (reasons.empty()) continue;
    uses.push_back({.kind = UseKind::kNetwork,
                    .text = absl::StrFormat("carries %s, which %s", NameOf(dir),
                                            absl::StrJoin(reasons, " and ")),
                    .remedy = RemedyFor(tree, dir)});
  }
  for (const std::string& dir : below.rdma) AddRdma(tree, dir, uses);
  if (below.interfaces.empty() && below.rdma.empty() && HasInterfaceByDesign(device)) {
    uses.push_back({.kind = UseKind::kNetwork,
                    .text = absl::StrFormat("is bound to %s and shows no network interface: it may "
                                            "be in another network namespace, a pod's",
                                            *device.driver),
                    .remedy = "give the interface back to the host's namespace, or unbind the "
                              "driver by hand where it has none"});
  }
  return uses;
}

}  // namespace vfio_agent
