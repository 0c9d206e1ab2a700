// DraRoom: what the daemon does for resources that are served by DRA. Nothing, and at no cost,
// where there is none, in this mode or another, and no claim was prepared.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/daemon/event.h"
#include "agent/dra/dra_api.h"
#include "agent/dra/dra_driver.h"
#include "agent/dra/slices.h"
#include "agent/session.h"
#include "deviceplugin/kubelet/plugin_event.h"

namespace vfio_agent {

// For the loop's thread.
class DraRoom {
 public:
  DraRoom() = default;
  ~DraRoom() { Shutdown(absl::ZeroDuration()); }
  DraRoom(const DraRoom&) = delete;
  DraRoom& operator=(const DraRoom&) = delete;

  // `wake` as DraDriver has it. `ledger` outlives the object.
  void Open(Ledger* ledger, std::function<void()> wake);

  // With each picture, first of all.
  void Begin(const Session& session, const Picture& picture);

  // What goes is to leave the slices before it is given back.
  SlicedUnits sliced() const { return {.known = api_ == nullptr || settled_, .units = given_}; }

  // Before the device plugin is told its offers: what slices still have of them is unhealthy.
  void HoldBack(std::vector<Offer>& plugin_offers) const;

  // After the device plugin was told its offers, whose units are not given away in two ways. What
  // deserves a line of log.
  std::vector<Event> Publish(const Session& session, const Picture& picture,
                             const std::vector<Offer>& plugin_offers, absl::Time now);

  struct News {
    std::vector<Event> events;
    std::vector<ClaimEvent> claims;  // which `events` tell, too
    bool claims_changed = false;     // who has what is to be looked at, or what slices have
  };
  News Step(absl::Time now);
  absl::Time due() const;

  // As the plugins tell it of theirs: one for each resource that has units. Registered: the kubelet
  // has the driver, and the API server slices; the last error is also of slices that do not follow.
  std::vector<PluginStatus> Status() const;

  // Requests to the API server that have ended, by verb and result.
  ApiClient::Counts Requests() const {
    return api_ == nullptr ? ApiClient::Counts() : api_->Requests();
  }

  // What claims can have now.
  const std::vector<Offer>& offers() const { return offers_; }

  void Shutdown(absl::Duration limit);

 private:
  void Start(const Session& session);
  ClaimSource* OpenApi(const Session& session);

  Ledger* ledger_ = nullptr;
  std::function<void()> wake_;
  std::vector<std::string> notes_;
  std::unique_ptr<ClaimSource> no_claims_;
  std::unique_ptr<DraApi> api_;        // null without an API server
  std::unique_ptr<DraDriver> driver_;  // null where there is nothing to do
  std::vector<Offer> offers_;
  std::set<std::string> wanted_;     // units that slices are to have
  std::set<std::string> published_;  // those that slices may have
  std::set<std::string> untainted_;  // those that slices are to have for new claims
  std::set<std::string> given_;      // those that slices may have so
  bool settled_ = false;             // once all was written: what was there before is known
};

// claim_prepared, claim_refused, claim_unprepared, unprepare_failed
Event ClaimSeen(const ClaimEvent& seen);

}  // namespace vfio_agent
