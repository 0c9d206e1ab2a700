// The parsers of /proc: whatever a process, a mount or an interface is called, what is said of it
// is one line, and nothing is claimed that is not in the text.
#include <algorithm>

#include "sysfs/use/cgroup_owner.h"
#include "sysfs/use/display_use.h"
#include "sysfs/use/holders.h"
#include "sysfs/use/network_use.h"
#include "sysfs/use/process_use.h"
#include "sysfs/use/storage_use.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != 0x7f; });
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void CheckCgroup(std::string_view text) {
  const std::string owner = CgroupOwner(text);
  Require(IsPlain(owner), "an owner is one plain line", owner);
  Require(owner.size() <= 512, "an owner is no novel", owner);
  Require(!owner.starts_with("pod ") || Contains(text, "pod"), "a pod is named in the groups",
          owner);
}

void CheckMounts(std::string_view text) {
  for (const Mount& mount : ParseMounts(text)) {
    Require(!mount.number.empty() && Contains(text, mount.number), "a number is in the text",
            mount.number);
    Require(ParseDeviceNumber(mount.number).has_value(), "a number is one", mount.number);
    Require(!mount.point.empty(), "a mount has a place");
  }
  for (const std::string& swap : ParseSwaps(text)) Require(!swap.empty(), "a swap has a name");
}

void CheckMemory(std::string_view text) {
  for (const MemoryClaim& claim : ParseIomem(text)) {
    Require(claim.first <= claim.last, "a claim is a range", claim.owner);
    Require(claim.last != 0, "hidden addresses are no claim", claim.owner);
    Require(Contains(text, claim.owner), "an owner is in the text", claim.owner);
  }
}

void CheckNetwork(std::string_view text) {
  HostNetwork network;
  AddRoutes(text, network);
  AddRoutes6(text, network);
  AddAddresses6(text, network);
  for (const std::string& name : network.defaults) {
    Require(!name.empty() && Contains(text, name), "an interface is in the text", name);
  }
  for (const std::string& name : network.addressed) {
    Require(!name.empty() && Contains(text, name), "an interface is in the text", name);
  }
}

void CheckNumbers(std::string_view text) {
  const std::optional<int> minor = ParseNvidiaMinor(text);
  Require(!minor || *minor >= 0, "a minor number is not negative");
  if (const std::optional<dev_t> number = ParseDeviceNumber(text)) {
    Require(text.size() >= 3 && Contains(text, ":"), "a device number has two halves", text);
  }
}

}  // namespace
}  // namespace vfio_agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = vfio_agent::Text(data, size);
  vfio_agent::CheckCgroup(text);
  vfio_agent::CheckMounts(text);
  vfio_agent::CheckMemory(text);
  vfio_agent::CheckNetwork(text);
  vfio_agent::CheckNumbers(text);
  return 0;
}
