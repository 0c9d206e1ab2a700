// What stands in an Allocate answer.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>

#include "absl/strings/str_split.h"
#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"

namespace vfio_agent::conformance {
namespace {

using Answer = v1beta1::ContainerAllocateResponse;

constexpr char kVfio[] = "/dev/vfio/";

absl::Status Nodes(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, stand.Ids()));
  if (answer.devices().empty()) return NotTried("it gives no device nodes");
  static const std::regex kPermissions("(?=.)(?!.*(.).*\\1)[rwm]+");
  for (const auto& node : answer.devices()) {
    RETURN_IF_ERROR(
        Require(node.host_path().starts_with("/") && node.container_path().starts_with("/"),
                "\"%s\" at \"%s\" is no absolute path", node.host_path(), node.container_path()));
    RETURN_IF_ERROR(Require(std::regex_match(node.permissions(), kPermissions),
                            "the permissions of %s are \"%s\"", node.host_path(),
                            node.permissions()));
  }
  return absl::OkStatus();
}

absl::Status NodesExist(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, stand.Ids()));
  if (answer.devices().empty()) return NotTried("it gives no device nodes");
  for (const auto& node : answer.devices()) {
    std::error_code error;
    const auto kind =
        std::filesystem::symlink_status(stand.options().device_root + node.host_path(), error);
    RETURN_IF_ERROR(Require(std::filesystem::exists(kind), "%s does not exist", node.host_path()));
  }
  return absl::OkStatus();
}

// The kubelet takes the first of several at one place in the container.
absl::Status NodesOnce(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, stand.Ids()));
  if (answer.devices().empty()) return NotTried("it gives no device nodes");
  std::set<std::string> places;
  for (const auto& node : answer.devices()) {
    RETURN_IF_ERROR(Require(places.insert(node.container_path()).second,
                            "two nodes at %s in the container", node.container_path()));
  }
  return absl::OkStatus();
}

absl::Status VfioNodes(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, {stand.Ids().front()}));
  bool any = false, container = false;
  for (const auto& node : answer.devices()) {
    if (!node.host_path().starts_with(kVfio)) continue;
    any = true;
    container = container || node.host_path() == "/dev/vfio/vfio";
    RETURN_IF_ERROR(Require(node.host_path() == node.container_path(), "%s is at %s",
                            node.host_path(), node.container_path()));
    RETURN_IF_ERROR(Require(node.permissions().size() == 3, "%s may only be used with \"%s\"",
                            node.host_path(), node.permissions()));
  }
  if (!any) return NotTried("it gives no VFIO nodes");
  return Require(container, "no /dev/vfio/vfio: KubeVirt hands no node over without it");
}

// KubeVirt's spelling: only '/' and '.' become '_'.
std::string Variable(std::string resource) {
  for (char& c : resource) {
    c = c == '/' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return resource;
}

absl::Status Environment(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, stand.Ids()));
  if (answer.envs().empty()) return NotTried("it sets no variable");
  for (const auto& [name, value] : answer.envs()) {
    RETURN_IF_ERROR(Require(!name.empty() && name.find('=') == std::string::npos &&
                                (name + value).find('\0') == std::string::npos,
                            "a variable named \"%s\"", name));
  }
  return absl::OkStatus();
}

absl::Status KubeVirtVariable(Stand& stand) {
  const Ids ids = stand.Ids();
  ASSIGN_OR_RETURN(const Answer answer, AllocateOne(stand, ids));
  const bool any = std::ranges::any_of(
      answer.envs(), [](const auto& entry) { return entry.first.starts_with("PCI_RESOURCE_"); });
  if (!any) return NotTried("it gives KubeVirt no PCI devices");
  const std::string name = Variable(stand.resource());
  RETURN_IF_ERROR(Require(answer.envs().contains("PCI_RESOURCE_" + name),
                          "no PCI_RESOURCE_%s, which KubeVirt reads", name));
  RETURN_IF_ERROR(Require(!answer.envs().contains("MDEV_PCI_RESOURCE_" + name),
                          "a PCI and a mediated device for one entry of the VM"));
  static const std::regex kAddress("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");
  const std::string value = answer.envs().at("PCI_RESOURCE_" + name);
  const std::vector<std::string> addresses = absl::StrSplit(value, ',');
  for (const std::string& address : addresses) {
    RETURN_IF_ERROR(Require(std::regex_match(address, kAddress),
                            "\"%s\" in %s is no address that KubeVirt takes", address, value));
  }
  const std::set<std::string> distinct(addresses.begin(), addresses.end());
  return Require(addresses.size() == ids.size() && distinct.size() == ids.size(),
                 "%s for %d devices: not one address for each", value, ids.size());
}

absl::Status SameAgain(Stand& stand) {
  ASSIGN_OR_RETURN(const Answer once, AllocateOne(stand, stand.Ids()));
  ASSIGN_OR_RETURN(const Answer again, AllocateOne(stand, stand.Ids()));
  return Require(Text(once) == Text(again), "first\n%s\nand then\n%s", Text(once), Text(again));
}

constexpr auto kPlugin = Check::Needs::kPlugin;

constexpr Check kChecks[] = {
    {"node-fields", "R46", "nodes have absolute paths and permissions of r, w and m", kPlugin,
     Nodes},
    {"nodes-exist", "R46", "nodes exist on the host", kPlugin, NodesExist},
    {"nodes-once", "R46", "no two nodes at one place in the container", kPlugin, NodesOnce},
    {"vfio-nodes", "R46", "VFIO nodes: /dev/vfio/vfio, the same paths, all of mrw", kPlugin,
     VfioNodes},
    {"environment", "R41", "variables have names", kPlugin, Environment},
    {"kubevirt-variable", "R41", "PCI_RESOURCE_… has one address for each device", kPlugin,
     KubeVirtVariable},
    {"same-again", "R26", "the same devices have the same answer again", kPlugin, SameAgain},
};

}  // namespace

std::span<const Check> AnswerChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
