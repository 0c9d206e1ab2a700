#include "iommu/bundle/bundle.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_format.h"
#include "iommu/distance/distance.h"
#include "iommu/distance/nvlink.h"

namespace vfio_agent {
namespace {

using Devices = std::vector<const PciDevice*>;
using Kinds = std::vector<Devices>;  // by member of the configuration

// The primaries of one group.
struct Atom {
  size_t draft = 0;
  PciAddress first;
  Kinds kinds;
  bool used = false;
};

struct Build {
  Kinds kinds;
  std::vector<size_t> drafts;
  std::vector<std::pair<PciAddress, PciAddress>> pairs;
  std::string fault;
};

size_t KindOf(const ResourceRule& rule, const PciDevice& device) {
  for (size_t kind = 0; kind < rule.bundle.size(); ++kind) {
    if (MatchesAny(rule.bundle[kind].select, device)) return kind;
  }
  return 0;
}

const char* Word(const PciDevice& device) {
  if (IsNvswitch(device)) return "NVSwitches";
  const uint32_t base_class = device.class_code >> 16;
  if (base_class == 0x01) return "drives";
  if (base_class == 0x02) return "NICs";
  if (base_class == 0x03) return "GPUs";
  return base_class == 0x12 ? "accelerators" : "devices";
}

class Composer {
 public:
  Composer(const std::vector<Draft>& drafts, const ResourceRule& rule, const NodeFacts& facts)
      : rule_(rule), facts_(facts), words_(rule.bundle.size(), "devices") {
    for (size_t i = 0; i < drafts.size(); ++i) AddAtom(drafts[i], i);
    std::ranges::sort(atoms_, {}, &Atom::first);
  }

  std::vector<Bundle> Compose() {
    FormLeads();
    for (size_t kind = 1; kind < rule_.bundle.size(); ++kind) {
      if (rule_.bundle[kind].count == 0) {
        DivideAll(kind);
      } else {
        AddNearest(kind);
      }
      for (Build& build : builds_) Count(build, kind);
    }
    std::vector<Bundle> bundles;
    for (Build& build : builds_) bundles.push_back(Finish(build));
    for (Atom& atom : atoms_) {
      if (atom.used) continue;
      Build left{.kinds = Kinds(rule_.bundle.size())};
      Add(left, atom);
      left.fault = WhyLeftOver(atom);
      bundles.push_back(Finish(left));
      bundles.back().left_over = true;
    }
    return bundles;
  }

 private:
  void AddAtom(const Draft& draft, size_t number) {
    if (draft.rule != &rule_) return;
    Atom atom{.draft = number, .kinds = Kinds(rule_.bundle.size())};
    bool selected = false;
    for (size_t i = 0; i < draft.devices.size(); ++i) {
      if (draft.plan.members[i].role != Role::kPrimary) continue;
      const PciDevice& device = *draft.devices[i];
      const size_t kind = KindOf(rule_, device);
      if (!selected || device.address < atom.first) atom.first = device.address;
      selected = true;
      atom.kinds[kind].push_back(&device);
      words_[kind] = Word(device);
    }
    if (selected) atoms_.push_back(std::move(atom));
  }

  void Add(Build& build, Atom& atom) {
    atom.used = true;
    build.drafts.push_back(atom.draft);
    for (size_t kind = 0; kind < atom.kinds.size(); ++kind) {
      Devices& into = build.kinds[kind];
      into.insert(into.end(), atom.kinds[kind].begin(), atom.kinds[kind].end());
    }
  }

  bool HasRoom(const Build& build, const Atom& atom) const {
    for (size_t kind = 0; kind < atom.kinds.size(); ++kind) {
      const size_t most = rule_.bundle[kind].count;
      if (most != 0 && build.kinds[kind].size() + atom.kinds[kind].size() > most) return false;
    }
    return true;
  }

  Distance Between(const PciDevice& a, const PciDevice& b) const {
    return DistanceBetween(facts_, {}, a, b);
  }

  // How far the first kind's devices of an atom are from those that a unit has already.
  size_t SumTo(const Build& build, const Atom& atom) const {
    size_t sum = 0;
    for (const PciDevice* have : build.kinds[0]) {
      for (const PciDevice* device : atom.kinds[0]) {
        sum += static_cast<size_t>(Between(*have, *device));
      }
    }
    return sum;
  }

  Atom* NextLead(const Build& build) {
    Atom* best = nullptr;
    size_t least = 0;
    for (Atom& atom : atoms_) {
      if (atom.used || atom.kinds[0].empty() || !HasRoom(build, atom)) continue;
      const size_t sum = SumTo(build, atom);
      if (best != nullptr && sum >= least) continue;
      best = &atom;
      least = sum;
    }
    return best;
  }

  void FormLeads() {
    const size_t want = rule_.bundle[0].count;
    for (Atom& seed : atoms_) {
      if (seed.used || seed.kinds[0].empty()) continue;
      Build& build = builds_.emplace_back(Build{.kinds = Kinds(rule_.bundle.size())});
      if (!HasRoom(build, seed)) build.fault = "more share its IOMMU group than a unit takes";
      Add(build, seed);
      while (build.fault.empty() && (want == 0 || build.kinds[0].size() < want)) {
        Atom* const next = NextLead(build);
        if (next == nullptr) break;
        Add(build, *next);
      }
      Count(build, 0);
    }
  }

  void Count(Build& build, size_t kind) const {
    const size_t want = rule_.bundle[kind].count;
    const size_t have = build.kinds[kind].size();
    if (!build.fault.empty() || (want == 0 ? have > 0 : have == want)) return;
    build.fault = absl::StrFormat(
        "%s %s%s", want == 0 ? "none of the" : absl::StrFormat("%d of %d", have, want),
        words_[kind], rule_.bundle[kind].same_switch ? " under its PCIe switch" : "");
  }

  std::string WhyLeftOver(const Atom& atom) const {
    size_t kind = 0;
    while (atom.kinds[kind].empty()) ++kind;
    const BundleMember& member = rule_.bundle[kind];
    if (member.count == 0) return "it is no nearer to one unit than to another (count: all)";
    return absl::StrFormat("no unit%s lacks one of the %s",
                           member.same_switch ? " under its PCIe switch" : "", words_[kind]);
  }

  struct Candidate {
    Distance distance;
    const PciDevice* lead;
    const PciDevice* device;
    Build* build;
    Atom* atom;
  };

  // Of what is free, nearest first.
  std::vector<Candidate> CandidatesFor(size_t kind) {
    std::vector<Candidate> list;
    for (Build& build : builds_) {
      if (!build.fault.empty()) continue;
      for (const PciDevice* lead : build.kinds[0]) {
        for (Atom& atom : atoms_) {
          if (atom.used || atom.kinds[kind].empty()) continue;
          const PciDevice* const device = atom.kinds[kind].front();
          const Distance distance = Between(*lead, *device);
          if (rule_.bundle[kind].same_switch && distance > Distance::kPxb) continue;
          list.push_back({distance, lead, device, &build, &atom});
        }
      }
    }
    std::ranges::sort(list, {}, [](const Candidate& c) {
      return std::tuple(c.distance, c.lead->address, c.device->address);
    });
    return list;
  }

  // With `near: switch` the devices are dealt evenly over those of the first kind.
  void AddNearest(size_t kind) {
    std::map<const PciDevice*, size_t> has;
    const BundleMember& member = rule_.bundle[kind];
    for (const Candidate& next : CandidatesFor(kind)) {
      if (next.atom->used || !HasRoom(*next.build, *next.atom)) continue;
      const size_t leads = next.build->kinds[0].size();
      if (member.same_switch && has[next.lead] >= (member.count + leads - 1) / leads) continue;
      Add(*next.build, *next.atom);
      has[next.lead] += next.atom->kinds[kind].size();
      if (!member.same_switch) continue;
      for (const PciDevice* device : next.atom->kinds[kind]) {
        next.build->pairs.emplace_back(next.lead->address, device->address);
      }
    }
  }

  std::vector<Build*> OwnersOf(const PciDevice& device) {
    std::vector<Build*> owners;
    for (Build& build : builds_) {
      const bool shares = std::ranges::any_of(build.kinds[0], [&](const PciDevice* lead) {
        return Between(*lead, device) <= Distance::kPxb;
      });
      if (shares || builds_.size() == 1) owners.push_back(&build);
    }
    return owners;
  }

  void DivideAll(size_t kind) {
    for (Atom& atom : atoms_) {
      if (atom.used || atom.kinds[kind].empty()) continue;
      const PciDevice& device = *atom.kinds[kind].front();
      const std::vector<Build*> owners = OwnersOf(device);
      if (owners.size() == 1) {
        Add(*owners.front(), atom);
        continue;
      }
      for (Build& build : builds_) {
        const bool claims = owners.empty() || std::ranges::count(owners, &build) > 0;
        if (!claims || !build.fault.empty()) continue;
        const size_t others = (owners.empty() ? builds_.size() : owners.size()) - 1;
        build.fault = absl::StrFormat(
            "a part of a board: %s of the %s (count: all) is no nearer to it than to %d other "
            "unit%s",
            device.address.ToString(), words_[kind], others, others == 1 ? "" : "s");
      }
    }
    RefuseUneven(kind);
  }

  // Where one has none, another one has its share, too; where one has fewer, some are missing.
  void RefuseUneven(size_t kind) {
    size_t most = 0, least = SIZE_MAX;
    for (const Build& build : builds_) {
      most = std::max(most, build.kinds[kind].size());
      least = std::min(least, build.kinds[kind].size());
    }
    for (Build& build : builds_) {
      const size_t have = build.kinds[kind].size();
      if (!build.fault.empty() || most == 0 || (have == most && least > 0)) continue;
      build.fault = absl::StrFormat("%d of %d %s", have, most, words_[kind]);
      if (have == most) {
        build.fault =
            absl::StrFormat("a part of a board: all %s, and another unit has none", build.fault);
      }
    }
  }

  static Bundle Finish(Build& build) {
    Bundle bundle{.pairs = std::move(build.pairs), .fault = std::move(build.fault)};
    for (Devices& devices : build.kinds) {
      std::ranges::sort(devices, {}, [](const PciDevice* device) { return device->address; });
      bundle.devices.insert(bundle.devices.end(), devices.begin(), devices.end());
    }
    bundle.drafts = std::move(build.drafts);
    std::ranges::sort(bundle.drafts);
    std::ranges::sort(bundle.pairs);
    return bundle;
  }

  const ResourceRule& rule_;
  const NodeFacts& facts_;
  std::vector<const char*> words_;  // for each kind
  std::vector<Atom> atoms_;
  std::vector<Build> builds_;
};

}  // namespace

std::vector<Bundle> ComposeBundles(const std::vector<Draft>& drafts, const ResourceRule& rule,
                                   const NodeFacts& facts) {
  if (rule.bundle.empty()) return {};
  return Composer(drafts, rule, facts).Compose();
}

}  // namespace vfio_agent
