// Plugins: all resources' servers and registrations, driven by the agent's single-threaded loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "deviceplugin/kubelet/kubelet_watch.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "deviceplugin/offer/offer.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

class Plugin;
class Ledger;
struct PluginContext;
class Tree;

// From the offers `now` to `next`, the offers to set one after the other so that no id is in two
// resources' lists at any moment (contract rule R25). An offer whose units are still in another
// list comes twice, first without them. A resource that `next` does not name is to have no units.
std::vector<Offer> LosersFirst(const std::vector<Offer>& now, std::vector<Offer> next);

// Nothing here waits for the kubelet: calls are asynchronous, and their results are taken in by
// the next Step(). All methods are for the loop's thread.
class Plugins {
 public:
  struct Options {
    std::string dir;  // the kubelet's device-plugin directory; need not exist yet
    // The directory of the kubelet's plugin watcher, to be found there instead of calling
    // kubelet.sock. Empty: not.
    std::string registry_dir;
    const Tree* tree = nullptr;
    Ledger* ledger = nullptr;
    AskDrivers ask = {};  // as VerifyUnit() has it; called from the servers' threads
  };

  // `wake` is called from any thread, until Shutdown() has returned: the loop is to call Step()
  // soon. It must not call back into this object.
  Plugins(Options options, std::function<void()> wake);
  ~Plugins();

  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;

  // The new offers, one for each resource. A resource is served from its first unit on and then
  // for as long as this object lives, with no units if it comes to that: the kubelet forgets a
  // resource that is not served, and with it what its pods hold. Call Step() next.
  void Set(std::vector<Offer> offers);

  // Moves every registration on and returns what has happened since the last call.
  std::vector<PluginEvent> Step(absl::Time now);

  // Compares with what the kubelet counts as healthy, by resource. False where it misses something
  // that is to be compared again soon; what follows from it comes with the next Step().
  bool Compare(const std::map<std::string, std::set<std::string>>& allocatable, absl::Time now);

  // When Step() must be called at the latest. InfiniteFuture: only when woken.
  absl::Time NextDeadline() const { return next_deadline_; }

  // To be polled for reading, which calls for OnWatch() and then Step(). -1 where there is none.
  int watch_fd() const { return watch_.fd(); }
  void OnWatch() { watch_.Drain(); }

  // True when the kubelet watches every resource that has units.
  bool AllRegistered() const;
  std::vector<PluginStatus> Status() const;
  // At the last Step() it watched a list, or else took a connection.
  bool kubelet_up() const { return kubelet_up_; }

  // Closes all servers and removes their sockets, within `limit` for all of them together. The
  // kubelet keeps the capacity for five minutes, for the agent that comes next.
  void Shutdown(absl::Duration limit);

 private:
  double Jitter();
  void LookAround(absl::Time now, std::vector<PluginEvent>& events);
  KubeletWatch::Look LookAtKubelet(const KubeletWatch::Look& look);
  bool KubeletAnswers() const;
  void RemoveStale(const std::vector<std::string>& dirs);

  QuietGrpc quiet_;  // before and after everything else
  std::unique_ptr<PluginContext> context_;
  KubeletWatch watch_;                   // of the directory with our sockets
  std::optional<KubeletWatch> kubelet_;  // where kubelet.sock is in another one
  bool kubelet_up_ = false;
  std::vector<PluginEvent> unsaid_;  // of the start, and by Compare()
  std::minstd_rand random_;
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;
  absl::Time next_deadline_ = absl::InfinitePast();
};

}  // namespace vfio_agent
