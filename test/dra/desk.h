// Desk: a ClaimDesk on a node with two units, and the API server that it asks.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "agent/dra/claim_desk.h"
#include "test/deviceplugin/support.h"
#include "test/dra/claim_json.h"
#include "test/dra/scratch.h"

namespace vfio_agent {

inline constexpr char kFirst[] = "0000:3b:00.0";
inline constexpr char kSecond[] = "0000:af:00.0";
using ClaimDevices = absl::StatusOr<std::vector<ClaimDevice>>;

// An API server that answers at once, or keeps the question.
class FakeSource final : public ClaimSource {
 public:
  void FetchClaim(const ClaimRef& claim, Done done) override {
    ++asked;
    if (away) return done(absl::UnavailableError("connection refused"));
    if (keep) {
      kept.push_back(std::move(done));
      return;
    }
    const auto found = claims.find(claim.name);
    if (found == claims.end()) return done(absl::NotFoundError("there is none"));
    done(found->second.dump());
  }
  std::map<std::string, nlohmann::json> claims;
  bool keep = false;
  bool away = false;
  int asked = 0;
  std::vector<Done> kept;
};

// A node with two units, and the desk of an agent; another agent on the same disk by Restart().
class Desk {
 public:
  Desk() {
    offer.serve = Serve::kDra;
    tree.AddAll(offer);
    Restart();
  }
  void Restart() {
    ledger = std::make_unique<Ledger>();
    desk = std::make_unique<ClaimDesk>(
        ClaimDesk::Options{.places = {.driver = driver,
                                      .cdi_dir = scratch.At(cdi),
                                      .metadata_dir = scratch.At("metadata")},
                           .pool = "node-1",
                           .state_dir = scratch.path(),
                           .boot_id = boot,
                           .tree = &tree.tree(),
                           .ledger = ledger.get(),
                           .source = &source,
                           .observer = [this](const ClaimEvent& event) { events.push_back(event); },
                           .recorded =
                               [this] {
                                 if (recorded) recorded();
                               }});
    problems = desk->Open();
    Publish();
  }
  void Publish() {
    auto offers = std::make_shared<DraOffers>();
    offers->offers = {offer};
    offers->waiting = waiting;
    for (const OfferedUnit& unit : offer.units) {
      offers->devices.push_back({.name = DraDeviceName(unit.id),
                                 .resource = offer.resource,
                                 .unit = unit.id,
                                 .attributes = {{"resource.kubernetes.io/pciBusID", unit.id}}});
    }
    for (const std::string& problem : desk->Set(std::move(offers))) problems.push_back(problem);
  }
  void Allocate(const ClaimRef& claim,
                const std::vector<std::pair<std::string, std::string>>& devices) {
    source.claims[claim.name] = ClaimJson(claim, devices);
  }
  ClaimDevices Prepare(const ClaimRef& claim) {
    ClaimDevices answer = absl::UnknownError("no answer");
    desk->Prepare(claim, [&answer](const ClaimDevices& devices) { answer = devices; });
    return answer;
  }
  std::string WhyNot(const ClaimRef& claim) {
    return std::string(Prepare(claim).status().message());
  }
  absl::Status Allocate(const std::string& unit) {
    const auto found = std::ranges::find(offer.units, unit, &OfferedUnit::id);
    return ledger->Take("nvidia.com/X", {{&*found}});
  }
  // The spec of a claim; null where there is none.
  nlohmann::json Spec(const std::string& uid) const {
    const std::string name = "cdi/dra-claim_vfio-agent_" + uid + ".json";
    return scratch.Has(name) ? nlohmann::json::parse(scratch.Read(name)) : nlohmann::json();
  }

  FakeSource source;
  std::string driver = "vfio-agent";
  std::string cdi = "cdi";
  std::string boot = "boot-1";
  std::map<std::string, std::string> waiting;
  std::function<void()> recorded;
  std::vector<ClaimEvent> events;
  std::vector<std::string> problems;
  Scratch scratch;
  UnitTree tree;
  vfio_agent::Offer offer = TestOffer("nvidia.com/X", {TestUnit(kFirst), TestUnit(kSecond)});
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<ClaimDesk> desk;
};

}  // namespace vfio_agent
