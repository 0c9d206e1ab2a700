#include "agent/work/inquiry.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/time/clock.h"
#include "agent/dra/claim_store.h"
#include "agent/work/young_kubelet.h"
#include "deviceplugin/kubelet/pod_resources.h"
#include "iommu/plan/planning.h"
#include "iommu/vgpu/vgpu.h"
#include "sysfs/clock.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// More for each device: a machine that is slow for being busy does not hang.
constexpr absl::Duration kUsePatienceEach = absl::Milliseconds(20);
constexpr absl::Duration kKubeletPatience = absl::Seconds(1);
// A kubelet that does not answer would otherwise hold up every picture.
constexpr absl::Duration kKubeletPause = absl::Seconds(5);
constexpr char kUnseen[] = "a process that cannot be seen from here";
constexpr char kUntold[] =
    "a process perhaps: not all can be seen, and the group's node may not be opened";

// The kernel lets a group be opened once, which tells of processes that cannot be seen. Where it
// does not even let us try, nobody can tell, and the group counts as held.
void AddUnseenHolders(const Tree& tree, const std::vector<int>& groups, UseFacts& use) {
  for (const int group : groups) {
    if (use.groups.contains(group)) continue;
    const std::optional<bool> open = IsGroupOpen(tree, group);
    if (open == false) continue;
    use.groups[group] = {{.pid = 0, .command = open ? kUnseen : kUntold}};
  }
}

// What `before` has and `now` has not. Both are sorted.
std::vector<PodClaim> Without(const std::vector<PodClaim>& before,
                              const std::vector<PodClaim>& now) {
  std::vector<PodClaim> gone;
  std::ranges::set_difference(before, now, std::back_inserter(gone));
  return gone;
}

// Pods whose processes may live on, since looking for those does not end.
void CountAsOpen(const NodeFacts& facts, const std::vector<PodClaim>& ended, Tenancy& tenancy) {
  const auto count = [&](const std::string& unit, const std::optional<int>& group) {
    if (!group || std::ranges::count(ended, unit, &PodClaim::unit) == 0) return;
    tenancy.open[*group] = {{.command = kEndlessLook}};
  };
  for (const PciDevice& device : facts.devices) count(device.address.ToString(), device.group);
  for (const MdevInstance& mdev : facts.mdev.instances) count(mdev.uuid, mdev.group);
}

std::vector<int> GivenGroups(const NodeFacts& facts) {
  std::set<int> groups;
  for (const PciDevice& device : facts.devices) {
    const bool given = IsOnVfio(device) || MayBeVgpu(facts, device.address);
    if (device.group && given) groups.insert(*device.group);
  }
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (mdev.group) groups.insert(*mdev.group);
  }
  return {groups.begin(), groups.end()};
}

}  // namespace

PodClaims Inquirer::AskKubelet(const Settings& settings) {
  if (MonotonicNow() < ask_again_) return last_unknown_;
  PodClaims claims = ReadPodClaims(
      {.device_plugin_dir = settings.device_plugin_dir, .root_dir = settings.kubelet_root_dir},
      kKubeletPatience);
  if (!claims.known) {
    last_unknown_ = claims;
    ask_again_ = MonotonicNow() + kKubeletPause;
  }
  AddUnlisted(settings, absl::Now(), claims);
  return claims;
}

// A tree that is not this machine's has nothing to do with this machine's kubelet, unless one was
// named.
PodClaims Inquirer::ReadClaims(const Tree& tree, const Settings& settings) {
  PodClaims claims;
  if (tree.is_host() || settings.device_plugin_dir != kDefaultDevicePluginDir) {
    claims = AskKubelet(settings);
  }
  const auto boot_id = tree.ReadText(kBootId);
  AddResourceClaims(settings.state_dir, boot_id.ok() ? *boot_id : "", claims);
  return claims;
}

bool Inquirer::ReadOpen(const Tree& tree, const NodeFacts& facts, Tenancy& tenancy) {
  const absl::Time looked = MonotonicNow();
  const std::vector<int> groups = GivenGroups(facts);
  UseFacts use;
  if (!groups.empty()) {
    use = uses_.Read(tree, facts, {}, groups, patience_.uses);
    if (!uses_.answered()) return false;
  }
  tenancy.open = std::move(use.groups);
  tenancy.opened = looked;
  return true;
}

// Pods before processes: one that ends in between is there for one look more. Of one that begins in
// between whoever gave it its units knows.
Tenancy Inquirer::LookAtTenants(const Tree& tree, const NodeFacts& facts, const TenantLook& look,
                                const std::optional<Tenancy>& before, const Settings& settings) {
  Tenancy now = before.value_or(Tenancy{});
  PodClaims claims = ReadClaims(tree, settings);
  now.silent = claims.why_unknown;
  const bool told_before = now.claims.known && before;
  std::vector<PodClaim> ended;
  if (told_before && claims.known) ended = Without(before->claims.list, claims.list);
  const bool walk = look.processes || !ended.empty();
  const bool seen = !walk || ReadOpen(tree, facts, now);
  if (told_before && !claims.known) return now;
  if (!seen) CountAsOpen(facts, ended, now);
  if (look.kubelet_young) {
    claims.list.insert(claims.list.end(), ended.begin(), ended.end());
    std::ranges::sort(claims.list);
  }
  now.claims = std::move(claims);
  return now;
}

Inquiry Inquirer::Ask(const Tree& tree, const NodeFacts& facts, const Question& question,
                      const Custody& custody, const Settings& settings) {
  const auto devices = static_cast<int64_t>(question.unbound.size());
  Inquiry inquiry{.use = uses_.Read(tree, facts, question.unbound, question.groups,
                                    patience_.uses + devices * kUsePatienceEach)};
  inquiry.overrides = overrides_.Read(tree.root(), question.overridden, patience_.each_override);
  std::vector<int> given;
  std::ranges::copy_if(question.groups, std::back_inserter(given),
                       [&](int group) { return CanBeHeld(custody, facts, group); });
  if (!given.empty()) inquiry.claims = ReadClaims(tree, settings);
  // Opening a group, if only for a moment, could keep a guest from it: only where it must be.
  if (!inquiry.use.processes_known) AddUnseenHolders(tree, given, inquiry.use);
  answered_ = uses_.answered() && inquiry.claims.known &&
              std::ranges::none_of(inquiry.overrides,
                                   [](const auto& entry) { return entry.second.unknown(); });
  return inquiry;
}

}  // namespace vfio_agent
