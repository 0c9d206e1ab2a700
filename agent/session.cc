#include "agent/session.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/daemon/answers.h"
#include "agent/mode/mode_file.h"
#include "agent/work/group_lock.h"
#include "iommu/policy/naming.h"
#include "sysfs/clock.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

void AddClaims(const PodClaims& more, PodClaims& claims) {
  std::vector<PodClaim> all;
  std::ranges::set_union(claims.list, more.list, std::back_inserter(all));
  claims.list = std::move(all);
}

}  // namespace

Session::Session(Invocation invocation, Config config, Settings settings, Tree tree)
    : invocation_(std::move(invocation)),
      config_(std::move(config)),
      settings_(std::move(settings)),
      started_(ResolveSettings(Sources())),
      tree_(std::move(tree)),
      reader_(tree_),
      modules_(ReadModuleFacts(tree_)) {
  config_.whole.iommufd = settings_.iommufd;
  UseMode(config_.mode.mode);
  if (!config_.mode.label.empty()) UseLastMode();
}

void Session::UseLastMode() {
  const absl::StatusOr<std::optional<ModeMemory>> last = ModeFile(settings_.state_dir).Read();
  const bool known = last.ok() && *last;
  if (known) UseMode((*last)->mode);
  mode_note_ = absl::StrFormat(
      "mode: the node's label %s decides, which only the daemon reads: by %s now, %s",
      config_.mode.label, Name(config_.in_force), known ? "the last in force" : "the default");
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const Invocation& invocation) {
  absl::StatusOr<Config> config = ReadConfig(invocation.config_file);
  // Whatever is wrong with a file that was named, the command line is what to mend.
  if (!config.ok()) return absl::InvalidArgumentError(config.status().message());
  ASSIGN_OR_RETURN(Settings settings, MakeSettings({.flags = invocation.flags,
                                                    .file = config->settings,
                                                    .file_name = config->file_name}));
  ASSIGN_OR_RETURN(Tree tree, Tree::Open(invocation.root));
  return std::unique_ptr<Session>(
      new Session(invocation, *std::move(config), std::move(settings), std::move(tree)));
}

SettingSources Session::Sources() const {
  return {.flags = invocation_.flags, .file = config_.settings, .file_name = config_.file_name};
}

void Session::LookUpNames(const NodeFacts& facts, std::vector<std::string>& notes) {
  std::set<DeviceId> fresh;
  for (const PciDevice& device : facts.devices) {
    const DeviceId id{device.vendor, device.device};
    if (device.IsBridge() || !looked_up_.insert(id).second) continue;
    fresh.insert(id);
  }
  if (fresh.empty()) return;
  absl::Status error;
  names_.merge(FindModelNames(settings_.pci_ids, fresh, error));
  if (!error.ok()) notes.push_back(Message(error) + ": devices are named by their ids");
}

Journal Session::OpenJournal() const {
  const auto boot_id = tree_.ReadText(kBootId);
  return Journal(settings_.state_dir, boot_id.ok() ? *boot_id : "");
}

// Of a process that has outlived its agent, or is somebody's `bind`: each step is in the journal
// before it begins. nullopt while it may still be in time.
std::optional<StuckWrite> Session::StuckElsewhere(int group, const Records& records) const {
  const Journal journal = OpenJournal();
  const Record* last = nullptr;
  absl::Time begun = absl::InfinitePast();
  for (const auto& [address, record] : records) {
    if (record.group != group || !record.IsUnfinished()) continue;
    if (const absl::Time written = journal.Written(address); written > begun) {
      begun = written;
      last = &record;
    }
  }
  begun = std::max(begun, GroupLocked(settings_.state_dir, group));
  const absl::Duration limit = settings_.unbind_timeout + settings_.node_timeout;
  if (last == nullptr || absl::Now() - begun < limit) return std::nullopt;
  return StuckWrite{.device = last->address,
                    .command = absl::StrFormat("%s of %s, by a vfio-agent process before this one",
                                               last->step, last->address.ToString())};
}

void Session::AddOthersAtWork(Picture& picture) const {
  Question& question = picture.plan.question;
  Underway& underway = picture.custody.underway;
  std::set<int> others;
  for (const int group : question.groups) {
    if (!picture.locked.contains(group) && !IsGroupLocked(settings_.state_dir, group)) continue;
    others.insert(group);
    if (auto stuck = StuckElsewhere(group, picture.custody.records)) {
      underway.stuck[group] = *std::move(stuck);
    } else {
      underway.elsewhere.insert(group);
    }
  }
  const auto busy = [&](const PciAddress& address) {
    return others.contains(*FindDevice(picture.facts, address)->group);
  };
  std::erase_if(question.groups, [&](int group) { return others.contains(group); });
  std::erase_if(question.unbound, busy);
  std::erase_if(question.overridden, busy);
}

// Where the kubelet has never listed its pods, what was given before may be a pod's still, as what
// it was given.
void Session::AddPerhaps(PodClaims& claims) const {
  if (claims.known) return;
  const absl::StatusOr<Answers> answers = AnswersFile(settings_.state_dir).Look();
  for (const auto& [unit, answer] : answers.ok() ? *answers : Answers()) {
    if (std::ranges::count(claims.list, unit, &PodClaim::unit) > 0) continue;
    claims.list.push_back({.container = kPerhaps, .resource = answer.resource, .unit = unit});
  }
  std::ranges::sort(claims.list);
}

void Session::LookAtTenants(const Wish& wish, std::vector<std::string>& notes, Picture& picture) {
  const absl::Time looked = MonotonicNow();
  const bool look = wish.tenants != Wish::Tenants::kLast || !tenancy_;
  if (look) {
    tenancy_ = inquirer_.LookAtTenants(
        tree_, picture.facts,
        {.processes = wish.tenants == Wish::Tenants::kAll, .kubelet_young = IsKubeletYoung(wish)},
        tenancy_, settings_);
    AddPerhaps(tenancy_->claims);
  }
  Given given = WhatWasGiven(wish, notes);
  tenancy_->grants = look ? OpenGrants(given.grants, *tenancy_, looked) : given.grants;
  std::ranges::copy_if(
      given.grants, std::back_inserter(picture.settled),
      [this](const Grant& grant) { return std::ranges::count(tenancy_->grants, grant) == 0; });
  picture.turn = given.turn;
  picture.custody.tenancy = tenancy_;
  picture.custody.given = std::move(given.parts);
  AddParts(tenancy_->claims.parts, picture.custody.given);
}

Given Session::WhatWasGiven(const Wish& wish, std::vector<std::string>& notes) const {
  if (wish.given) return wish.given();
  if (last_given_) return *last_given_;
  const absl::StatusOr<Answers> answers = AnswersFile(settings_.state_dir).Look();
  if (answers.ok()) return {.parts = PartsOf(*answers)};
  notes.push_back("what pods were given cannot be read: " + Message(answers.status()));
  return {};
}

absl::StatusOr<NodeFacts> Session::ReadNode() {
  bool asked = false;
  const auto ask = [&](const std::vector<DriverFile>& files) {
    asked = true;
    return drivers_.Read(tree_.root(), files);
  };
  ASSIGN_OR_RETURN(NodeFacts facts, TakeNodeFacts(tree_, reader_, modules_, ask));
  if (!asked) drivers_.Read(tree_.root(), {});  // nothing is missing, whatever it was before
  KeepMdevs(told_mdevs_, facts.mdev);
  KeepVgpus(told_vgpus_, facts.vgpu);
  told_mdevs_.parents = facts.mdev.parents;
  told_vgpus_.functions = facts.vgpu.functions;
  return facts;
}

absl::StatusOr<Picture> Session::TakeFacts(std::vector<std::string>& notes, Wish& wish) {
  Picture picture;
  picture.custody.underway = std::move(wish.underway);
  // Before the facts: of a group whose job ends while they are taken they may be half old.
  picture.locked = LockedGroups(settings_.state_dir);
  // Before the facts: a record that says "done" is then never older than what it speaks of.
  absl::StatusOr<Records> records = OpenJournal().Read(picture.unreadable);
  if (records.ok()) picture.custody.records = *std::move(records);
  if (!records.ok()) notes.push_back("the journal cannot be read: " + Message(records.status()));
  ASSIGN_OR_RETURN(picture.facts, ReadNode());
  LookUpNames(picture.facts, notes);
  picture.names = names_;
  DisownReplaced(picture.facts, picture.custody.records);
  NoteBound(picture.facts, seen_bound_);
  NoteFatal(picture.facts, fatal_before_);
  picture.custody.fatal_before = fatal_before_;
  LookAtTenants(wish, notes, picture);
  // What a claim was given can be held, wherever it is by now.
  const PodClaims& claims = tenancy_->claims;
  seen_bound_.insert(claims.given.begin(), claims.given.end());
  picture.custody.seen_bound = seen_bound_;
  return picture;
}

// What a young kubelet does not list yet is held as well.
Inquiry Session::InquireAbout(const Question& question, const Wish& wish, const Picture& picture) {
  Inquiry inquiry = inquirer_.Ask(tree_, picture.facts, question, picture.custody, settings_);
  if (IsKubeletYoung(wish)) AddClaims(tenancy_->claims, inquiry.claims);
  return inquiry;
}

void Session::PlanBy(const Policy& policy, const Wish& wish, Picture& picture) {
  const auto plan = [&] { return MakePlan(picture.facts, policy, names_, picture.custody); };
  picture.custody.inquiry.reset();
  picture.plan = plan();
  AddOthersAtWork(picture);
  const Question& question = picture.plan.question;
  const Underway& underway = picture.custody.underway;
  if (question.empty() && underway.elsewhere.empty() && underway.stuck.empty()) return;
  if (!question.empty()) {
    picture.custody.inquiry = InquireAbout(question, wish, picture);
    picture.answered = picture.answered && inquirer_.answered();
  }
  picture.plan = plan();
}

absl::StatusOr<Picture> Session::Take(std::vector<std::string>& notes, Wish wish) {
  ASSIGN_OR_RETURN(Picture picture, TakeFacts(notes, wish));
  picture.answered = drivers_.answered();
  PlanBy(config_.policy, wish, picture);
  return picture;
}

absl::StatusOr<Picture> Session::Look() {
  Picture picture;
  std::vector<std::string> notes;  // a name more or less makes no difference here
  ASSIGN_OR_RETURN(picture.facts, ReadNode());
  LookUpNames(picture.facts, notes);
  picture.names = names_;
  picture.plan = MakePlan(picture.facts, config_.policy, names_);
  return picture;
}

void Session::InquireFor(const std::vector<PciAddress>& wanted, Picture& picture) {
  Question question;
  for (const PciAddress& address : wanted) {
    const PciDevice* const device = FindDevice(picture.facts, address);
    if (device == nullptr || !device->group) continue;
    if (std::ranges::count(question.groups, *device->group) == 0) {
      question.groups.push_back(*device->group);
    }
  }
  for (const MdevInstance& mdev : picture.facts.mdev.instances) {
    if (mdev.group && mdev.parent && std::ranges::count(wanted, *mdev.parent) > 0) {
      question.groups.push_back(*mdev.group);
    }
  }
  picture.custody.inquiry = InquireAbout(question, {}, picture);
}

Plan Session::PlanWith(const Policy& policy, const Picture& picture) {
  Custody custody = picture.custody;
  custody.inquiry.reset();
  const Plan draft = MakePlan(picture.facts, policy, picture.names, custody);
  if (draft.question.empty()) return draft;
  custody.inquiry = inquirer_.Ask(tree_, picture.facts, draft.question, custody, settings_);
  return MakePlan(picture.facts, policy, picture.names, custody);
}

UseFacts Session::UsesOf(const std::vector<PciAddress>& devices, const Picture& picture) {
  const Question question{.unbound = devices};
  return inquirer_.Ask(tree_, picture.facts, question, picture.custody, settings_).use;
}

}  // namespace vfio_agent
