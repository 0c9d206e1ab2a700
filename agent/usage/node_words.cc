#include "agent/usage/node_words.h"

#include "absl/strings/str_format.h"
#include "agent/session.h"
#include "agent/text/pci_class.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string HelpOf(const NodeFacts& facts, const ModelNames& names, const Member& member) {
  const auto model = names.find({member.vendor, member.device});
  if (model != names.end()) return model->second;
  const PciDevice* const device = FindDevice(facts, member.address);
  return device == nullptr ? "" : std::string(ClassWords(device->class_code));
}

class Words {
 public:
  explicit Words(std::string_view start) : start_(start) {}

  // True where it fits. A word that a shell could take for something else is left out.
  bool Add(const std::string& word, const std::string& help) {
    constexpr std::string_view kPlain =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._:/-";
    if (!word.starts_with(start_)) return false;
    if (word.find_first_not_of(kPlain) == std::string::npos) list_.push_back({word, help});
    return true;
  }
  void AddAddress(const std::string& address, const std::string& help) {
    constexpr std::string_view kDomain = "0000:";
    if (Add(address, help) || start_.empty() || !address.starts_with(kDomain)) return;
    Add(address.substr(kDomain.size()), help);
  }
  std::vector<Candidate> Take() { return std::move(list_); }

 private:
  std::string_view start_;
  std::vector<Candidate> list_;
};

}  // namespace

std::vector<Candidate> SelectorWords(const NodeFacts& facts, const Plan& plan,
                                     const ModelNames& names, std::string_view start) {
  Words words(start);
  for (const GroupPlan& group : plan.groups) {
    const bool selected = group.verdict != Verdict::kUnselected;
    if (!selected && start.empty()) continue;
    for (const Member& member : group.members) {
      if (member.role == Role::kBridge || (start.empty() && member.role != Role::kPrimary))
        continue;
      words.AddAddress(member.address.ToString(), HelpOf(facts, names, member));
    }
    if (!group.group) continue;
    const std::string help = absl::StrFormat("%s%s%s", Name(group.verdict),
                                             group.resource.empty() ? "" : ": ", group.resource);
    words.Add(absl::StrFormat("group:%d", *group.group), help);
  }
  for (const Resource& resource : plan.resources) {
    words.Add(resource.name, absl::StrFormat("resource, %d unit%s", resource.units.size(),
                                             resource.units.size() == 1 ? "" : "s"));
  }
  return words.Take();
}

absl::StatusOr<std::vector<Candidate>> ReadSelectorWords(const Invocation& invocation,
                                                         std::string_view start) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation));
  ASSIGN_OR_RETURN(const Picture picture, session->Look());
  return SelectorWords(picture.facts, picture.plan, picture.names, start);
}

}  // namespace vfio_agent
