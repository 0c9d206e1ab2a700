#include "agent/work/holders_now.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sysfs/device/config_space.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr size_t kMostTold = 8;

// A holder keeps a driver from letting go of a device, and vfio from giving a group back.
bool HolderCanBeTheCause(Code code) {
  switch (code) {
    case Code::kHeld:
    case Code::kUnbindTimeout:
    case Code::kUnbindStuck:
    case Code::kProbeRefused:
    case Code::kDriverChanged:
    case Code::kNodeMissing:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string HoldersNow(const Tree& tree, const JobEvent& failed, UseReader& reader) {
  if (failed.status.ok() || failed.cut_off || !HolderCanBeTheCause(failed.code)) return "";
  ConfigReader config(tree);
  const absl::StatusOr<NodeFacts> facts = TakeNodeFacts(tree, config, {}, AskNobody);
  if (!facts.ok()) return "";
  const UseFacts use =
      reader.Read(tree, *facts, DevicesOf(failed.job.actions), {failed.job.group}, kPatience);
  if (!reader.answered()) return "not known: the look at all processes did not return";
  std::vector<std::string> texts;
  for (const auto& [device, uses] : use.devices) {
    for (const Use& one : uses) {
      if (one.kind != UseKind::kProcess) continue;
      texts.push_back(absl::StrFormat("%s %s", device.ToString(), one.text));
    }
  }
  for (const auto& [group, holders] : use.groups) {
    for (const Holder& holder : holders) {
      texts.push_back(absl::StrFormat("/dev/vfio/%d is open in %s", group, Spell(holder)));
    }
  }
  if (texts.size() > kMostTold) texts.resize(kMostTold);
  return absl::StrJoin(texts, "; ");
}

}  // namespace vfio_agent
