// Session: what every subcommand starts from: configuration, settings and the root.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/config/config.h"
#include "agent/config/settings.h"
#include "agent/work/driver_reader.h"
#include "agent/work/inquiry.h"
#include "agent/work/journal.h"
#include "iommu/plan/plan.h"
#include "sysfs/device/config_space.h"
#include "sysfs/tree.h"

namespace vfio_agent {

enum class Output { kTable, kWide, kJson, kYaml, kSvg, kDot };  // the last two: topology
enum class Colour { kAuto, kAlways, kNever };

struct Invocation {
  std::string root = "/";
  std::string config_file = kDefaultConfigFile;
  Output output = Output::kTable;
  Colour colour = Colour::kAuto;
  std::map<std::string, std::string> flags;  // settings given on the command line
  std::vector<std::string> arguments;        // SELECTOR…, ADDRESS, what to list
  bool all = false;                          // plan, list: unselected groups too
  bool exit_code = false;                    // plan, explain: tell by the exit code
  bool force = false;                        // snapshot: replace the file
  std::optional<std::string> diff;           // kubevirt: the file to compare with; "-": stdin
  bool watch = false;                        // list, status: again and again
  bool man = false;                          // help: as a man page
  bool help = false;                         // --help: of the command
  bool version = false;                      // --version
  std::optional<std::string> guest;          // topology: "libvirt" or "kubevirt"
};

// What Allocate has given.
struct Given {
  uint64_t turn = 0;          // as of which grant
  std::vector<Grant> grants;  // that no picture has settled yet
  Parts parts;                // what the units stood for
};

// What a picture needs from whoever takes it.
struct Wish {
  // Who has what: as it was seen last, only what pods have (quick), or a walk over all processes
  // too. A first picture always asks for the pods.
  enum class Tenants { kLast, kPods, kAll };

  Underway underway;  // what this process is doing; what others are is added
  // Called once, after the look at who has what: a pod that has its group open by then was given it
  // before. None: what the session remembers, or the answers on disk say.
  std::function<Given()> given;
  Tenants tenants = Tenants::kAll;
  bool kubelet_young = false;  // it may not list all of its pods yet
};

// Everything of the node at one moment, and what follows from it.
struct Picture {
  NodeFacts facts;
  ModelNames names;
  Custody custody;
  std::vector<Journal::Unreadable> unreadable;  // files of the journal
  std::set<int> locked;  // groups that some process was at work on before the facts were taken
  std::vector<Grant> settled;  // those of the wish that are not open any more
  uint64_t turn = 0;           // as Given's
  bool answered = true;        // false where part of the inquiry was not: ask again soon
  Plan plan;
};

class Session {
 public:
  // InvalidArgument: configuration or settings (exit code 2); others: the root cannot be read.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Invocation& invocation);

  // The kubelet waits for the pictures from now on.
  void BeBrief() { inquirer_.set_patience(kBriefPatience); }

  const Invocation& invocation() const { return invocation_; }
  const Config& config() const { return config_; }
  const Settings& settings() const { return settings_; }
  const Tree& tree() const { return tree_; }
  SettingSources Sources() const;

  // Plans by `mode` from now on, whatever the configuration says. At first it is the configured
  // one; where a label decides, which only the daemon reads, the one that was in force last.
  void UseMode(Mode mode) { config_.UseMode(mode); }
  // Why another mode than the configuration's is planned by; empty: it is that one.
  const std::string& mode_note() const { return mode_note_; }

  // A configuration that could take the place of the one in force.
  struct Candidate {
    Config config;
    Settings settings;
    std::vector<std::string> kept;  // keys whose new values count only after a restart
  };
  // The file as it is now, with flags and environment; nothing changes.
  absl::StatusOr<Candidate> ReadAnew() const;
  // What is planned for the node as it is now: by the configuration in force, and by `next`.
  struct Prospect {
    Plan before;
    Plan after;
  };
  absl::StatusOr<Prospect> Foresee(const Candidate& next, Wish wish);
  void Adopt(Candidate next);
  // An operator has seen the fatal errors that were counted so far, and taken care of them.
  void ForgiveErrors() { fatal_before_.clear(); }

  // Reads the whole node and plans for it; where the plan would write something, also who uses
  // what, and plans again. `notes` collects what deserves a line of log, such as an unreadable
  // pci.ids. The picture's custody.tenancy has the grants that are open still.
  absl::StatusOr<Picture> Take(std::vector<std::string>& notes, Wish wish = {});

  // A picture without any question of who has or uses what, quick and for looking at only: its plan
  // is a draft. The same errors.
  absl::StatusOr<Picture> Look();

  // What the daemon knows of pods at its end, for the pictures of whoever comes after it: grants
  // that no picture has settled, what they stood for, and whether the kubelet is young.
  void Remember(const Wish& last) {
    last_given_ = last.given();
    kubelet_young_ = last.kubelet_young;
  }

  // For the release of `wanted`: who uses their groups.
  void InquireFor(const std::vector<PciAddress>& wanted, Picture& picture);

  // What the plan for the node of `picture` would be with another policy; asks who uses what for
  // it.
  Plan PlanWith(const Policy& policy, const Picture& picture);

  // What the host does with `devices` now.
  UseFacts UsesOf(const std::vector<PciAddress>& devices, const Picture& picture);

  Journal OpenJournal() const;

 private:
  Session(Invocation invocation, Config config, Settings settings, Tree tree);

  Invocation invocation_;
  Config config_;
  Settings settings_;
  std::string mode_note_;
  const std::map<std::string, EffectiveSetting> started_;  // the settings of the start
  Tree tree_;
  ConfigReader reader_;
  ModuleFacts modules_;
  ModelNames names_;  // grows as devices appear
  std::set<std::pair<uint16_t, uint16_t>> looked_up_;
  std::set<PciAddress> seen_bound_;
  std::map<PciAddress, uint64_t> fatal_before_;
  std::optional<Tenancy> tenancy_;
  std::optional<Given> last_given_;
  bool kubelet_young_ = false;  // at the daemon's end
  Inquirer inquirer_;
  DriverReader drivers_;
  // As drivers told last.
  MdevFacts told_mdevs_;
  VgpuFacts told_vgpus_;

  void UseLastMode();
  absl::StatusOr<NodeFacts> ReadNode();
  absl::StatusOr<Picture> TakeFacts(std::vector<std::string>& notes, Wish& wish);
  void PlanBy(const Policy& policy, const Wish& wish, Picture& picture);
  void AddOthersAtWork(Picture& picture) const;
  std::optional<StuckWrite> StuckElsewhere(int group, const Records& records) const;
  Given WhatWasGiven(const Wish& wish, std::vector<std::string>& notes) const;
  void LookAtTenants(const Wish& wish, std::vector<std::string>& notes, Picture& picture);
  void AddPerhaps(PodClaims& claims) const;
  bool IsKubeletYoung(const Wish& wish) const { return wish.kubelet_young || kubelet_young_; }
  Inquiry InquireAbout(const Question& question, const Wish& wish, const Picture& picture);
  void LookUpNames(const NodeFacts& facts, std::vector<std::string>& notes);
};

}  // namespace vfio_agent
