#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/text/terminal.h"
#include "agent/usage/suggest.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/condition.h"
#include "iommu/policy/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// A parent of mediated devices can have several types, each a resource.
bool MakesMdevs(const std::string& name, const Picture& picture, const GroupPlan& group) {
  for (const Resource& resource : picture.plan.resources) {
    if (resource.name != name) continue;
    return std::ranges::any_of(resource.units, [&group](const Unit& unit) {
      return !unit.mdev_type.empty() &&
             std::ranges::count(group.members, unit.primary, &Member::address) > 0;
    });
  }
  return false;
}

bool Fits(const Target& target, const Picture& picture, const GroupPlan& group) {
  if (!target.resource.empty()) {
    return group.resource == target.resource || MakesMdevs(target.resource, picture, group);
  }
  return std::ranges::any_of(group.members, [&](const Member& member) {
    const PciDevice* const device = FindDevice(picture.facts, member.address);
    return device != nullptr && Matches(target.selector, *device);
  });
}

bool IsSelected(const GroupPlan& group) { return group.verdict != Verdict::kUnselected; }

// By `exclude`: nobody expects anything of it.
bool IsLeftOut(const GroupPlan& group) {
  return !group.refusals.empty() && std::ranges::all_of(group.refusals, [](const Refusal& refusal) {
    return refusal.code == Code::kExcluded;
  });
}

}  // namespace

void PrintError(const std::string& text) {
  std::cerr << "vfio-agent: " << ForTerminal(text) << "\n";
}

void PrintText(const std::string& text) { std::cout << ForTerminal(text); }

void SetAsideOrPrint(const Session& session, const Picture& picture) {
  const Journal journal = session.OpenJournal();
  for (const Journal::Unreadable& file : picture.unreadable) {
    if (!file.broken) {
      PrintError(absl::StrFormat("%s cannot be read: %s", file.path, file.why));
      continue;
    }
    const absl::Status status = journal.SetAside(file);
    PrintError(status.ok() ? absl::StrFormat("%s was set aside: what it spoke of counts as adopted",
                                             file.path)
                           : Message(status));
  }
}

bool IsDocument(Output output) { return output == Output::kJson || output == Output::kYaml; }

std::string DocumentText(const Json& document, Output output) {
  return output == Output::kYaml ? DumpYaml(document) : DumpJson(document);
}

void PrintDocument(const Json& document, Output output) {
  std::cout << DocumentText(document, output);
}

std::unique_ptr<Picture> TakeOrPrint(Session& session) {
  std::vector<std::string> notes;
  absl::StatusOr<Picture> picture = session.Take(notes);
  if (!session.mode_note().empty()) PrintError(session.mode_note());
  for (const std::string& note : notes) PrintError(note);
  if (!picture.ok()) {
    PrintError(Message(picture.status()));
    return nullptr;
  }
  for (const Journal::Unreadable& file : picture->unreadable) {
    PrintError(file.path + ": " + file.why);
  }
  for (const std::string& skipped : picture->facts.skipped) PrintError("skipped " + skipped);
  for (const PciDevice& device : picture->facts.devices) {
    for (const std::string& error : device.errors) {
      PrintError(device.address.ToString() + ": " + error);
    }
  }
  return std::make_unique<Picture>(*std::move(picture));
}

std::string RefusalText(const Refusal& refusal, const std::string& indent) {
  return ForTerminal(absl::StrFormat(
      "%s%s%s%s: %s\n%s  remedy: %s\n", indent, CodeName(refusal.code), refusal.address ? " " : "",
      refusal.address ? refusal.address->ToString() : "", refusal.text, indent, refusal.remedy));
}

absl::StatusOr<Target> ReadTarget(const Picture& picture, const std::string& selector) {
  const MdevInstance* const mdev = MdevMeant(picture.facts, selector);
  return ParseTarget(mdev == nullptr ? selector : mdev->parent->ToString(), picture.facts.devices);
}

absl::StatusOr<std::vector<const GroupPlan*>> FindTargets(
    const Picture& picture, const std::vector<std::string>& selectors) {
  std::vector<const GroupPlan*> found;
  const auto add = [&found](const GroupPlan& group) {
    if (!std::ranges::count(found, &group)) found.push_back(&group);
  };
  std::vector<std::string> names;
  for (const Resource& resource : picture.plan.resources) names.push_back(resource.name);
  if (selectors.empty()) {
    for (const GroupPlan& group : picture.plan.groups) {
      // Also parents of what is made, virtual functions or mediated devices, which are no resource.
      if (!group.resource.empty() || (IsSelected(group) && !IsLeftOut(group))) add(group);
    }
  }
  for (const std::string& text : selectors) {
    ASSIGN_OR_RETURN(const Target target, ReadTarget(picture, text));
    const size_t before = found.size();
    bool any = false;
    for (const GroupPlan& group : picture.plan.groups) {
      if (!Fits(target, picture, group)) continue;
      any = true;
      add(group);
    }
    if (!any && before == found.size()) {
      return absl::NotFoundError(
          absl::StrFormat("'%s' fits no group of this node%s", text, DidYouMean(text, names)));
    }
  }
  return found;
}

std::string WhoOrWhy(const std::vector<PodClaim>& pods, const std::string& reason, bool wide) {
  std::vector<std::string> who;
  for (const PodClaim& pod : pods) {
    who.push_back(wide ? Spell(pod) : NameOf(pod));
  }
  if (who.empty()) return reason;
  // Who has it is no reason to keep silent about what it is.
  const size_t unsafe = reason.find(kUnsafe);
  return absl::StrJoin(who, ", ") + (unsafe == reason.npos ? "" : "; " + reason.substr(unsafe));
}

std::string ModelOf(const Picture& picture, const PciDevice& device) {
  const auto found = picture.names.find({device.vendor, device.device});
  return found == picture.names.end() ? "" : found->second;
}

}  // namespace vfio_agent
