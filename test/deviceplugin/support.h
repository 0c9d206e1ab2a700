// What the tests of deviceplugin/ share: offers, a directory that looks like a node to Verify, and
// a loop that drives Plugins as the agent's does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/kubelet/plugins.h"
#include "deviceplugin/offer/ledger.h"
#include "sysfs/tree.h"

namespace vfio_agent {

// A directory below /tmp that goes away with the object. Short, since sockets live in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A healthy unit with one endpoint: "/dev/vfio/<group>", group 10 + bus of the address.
OfferedUnit TestUnit(const std::string& address, std::optional<int> numa_node = std::nullopt);
Offer TestOffer(const std::string& resource, std::vector<OfferedUnit> units);

// sys/bus/pci/devices and dev/vfio of the units, as the kernel has them while all is well.
class UnitTree {
 public:
  void Add(const OfferedUnit& unit);
  void AddAll(const Offer& offer);
  void SetDriver(const std::string& address, const std::string& driver);  // "": none
  void SetGroup(const std::string& address, std::optional<int> group);
  void RemoveNode(const std::string& node);
  void AddNode(const std::string& node);
  const Tree& tree() const { return tree_; }

 private:
  void Link(const std::string& path, const std::string& target);

  TempDir dir_;
  Tree tree_ = *Tree::Open(dir_.path());
};

// The agent's loop, as far as plugins are concerned: sleeps until something happens.
class PluginLoop {
 public:
  // `registry_dir` as Plugins::Options has it.
  PluginLoop(const std::string& dir, const Tree& tree, const std::string& registry_dir = "");
  ~PluginLoop();
  PluginLoop(const PluginLoop&) = delete;
  PluginLoop& operator=(const PluginLoop&) = delete;

  Plugins& plugins() { return *plugins_; }
  Ledger& ledger() { return ledger_; }
  // Steps until `reached`, at most for `limit`. False where the time ran out.
  bool RunUntil(const std::function<bool()>& reached, absl::Duration limit = absl::Seconds(20));
  // From now on Step() is told a time that is later by so much.
  void Forward(absl::Duration by) { ahead_ += by; }
  // All events so far.
  const std::vector<PluginEvent>& events() const { return events_; }
  int Count(PluginEvent::Kind kind) const;
  // Text of the newest event of the kind; "" where there is none.
  std::string LastText(PluginEvent::Kind kind) const;

 private:
  Fd wake_;
  absl::Duration ahead_;
  std::vector<PluginEvent> events_;
  Ledger ledger_;
  std::unique_ptr<Plugins> plugins_;
};

}  // namespace vfio_agent
