// Plugin: one resource's server and its registration, driven from the loop's thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/kubelet/inbox.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "deviceplugin/kubelet/register_call.h"
#include "deviceplugin/kubelet/registration.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/offer/ledger.h"
#include "deviceplugin/offer/published.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

// What all plugins of a node share; outlives them.
struct PluginContext {
  std::string dir;  // where our sockets are
  Registration::Way way = Registration::Way::kCall;
  std::string kubelet_dir;  // the kubelet's device-plugin directory
  const Tree* tree = nullptr;
  Ledger* ledger = nullptr;
  AskDrivers ask;
  std::shared_ptr<Inbox> inbox;  // shared with calls that may end later than we do
  uint32_t tag = 0;              // of this process, for socket names
  int incarnations = 0;          // servers started so far, of all resources
};

class Plugin {
 public:
  Plugin(std::string resource, PluginContext& context)
      : resource_(std::move(resource)), context_(context), registration_(context.way) {}

  void Set(Offer offer) { published_.Set(std::move(offer)); }
  // The newest offer.
  std::shared_ptr<const IndexedOffer> Offered() const { return published_.Get(); }

  // `jitter` as for Registration::On(). Each appends what the loop ought to know to `events`.
  void Handle(const Signal& signal, absl::Time now, double jitter,
              std::vector<PluginEvent>& events);
  void On(Registration::Event event, absl::Time now, double jitter) {
    registration_.On(event, now, jitter);
  }
  // Serves and registers as the state asks for. Returns when to come back.
  absl::Time Advance(absl::Time now, double jitter, std::vector<PluginEvent>& events);

  // What the kubelet counts as healthy of the resource: where that is none of our healthy units
  // twice in a row, it has dropped us without a word, or another plugin has our place. False where
  // it is so now: ask soon again.
  bool Compare(const std::set<std::string>& allocatable, absl::Time now, double jitter,
               std::vector<PluginEvent>& events);

  bool SocketIsGone() const;
  PluginStatus Status() const;

  void EndStreams();
  void Shutdown(absl::Time deadline);

 private:
  void HandleService(const Signal& signal, const ServiceEvent& event, absl::Time now, double jitter,
                     std::vector<PluginEvent>& events);
  void HandleRegister(const absl::Status& status, absl::Time now, double jitter,
                      std::vector<PluginEvent>& events);
  absl::Time AdvanceRegistration(absl::Time now, double jitter, std::vector<PluginEvent>& events);
  bool SeeContention(absl::Time now, double jitter, std::vector<PluginEvent>& events);
  std::string DescribeContention(bool kubevirt) const;
  PluginServer::Extras ServerExtras(const std::string& path) const;
  absl::Status Serve();
  void Register();
  PluginEvent Failure(const absl::Status& status);

  const std::string resource_;
  PluginContext& context_;
  Published published_;
  Registration registration_;
  int incarnation_ = 0;
  std::string last_error_;
  // Of another plugin for our resource, when it was last looked at.
  bool kubevirt_seen_ = false;
  bool contended_ = false;
  absl::Time look_again_ = absl::InfiniteFuture();  // whether KubeVirt's socket is a dead one
  int uncounted_ = 0;  // comparisons in a row in which none of the server's units counted
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<RegisterCall> call_;
};

}  // namespace vfio_agent
