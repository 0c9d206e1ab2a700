#include "agent/daemon/dra_room.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/cluster_teller.h"
#include "agent/daemon/report.h"
#include "agent/daemon/transitions.h"
#include "agent/version.h"
#include "iommu/code.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kNoApi[] =
    "`serve: dra` needs the API server, without which no claim is prepared and no device published";

constexpr char kDefaultCdiDir[] = "/var/run/cdi";

// Where there is no API server: what was prepared can still be told again and taken back.
class NoClaims final : public ClaimSource {
 public:
  void FetchClaim(const ClaimRef&, Done done) override {
    done(absl::UnavailableError("this agent has no API server"));
  }
};

bool ServesByClaims(const Policy& policy) {
  return std::ranges::count(policy.resources, Serve::kDra, &ResourceRule::serve) > 0 ||
         std::ranges::count(policy.mdev, Serve::kDra, &MdevRule::serve) > 0 ||
         std::ranges::count(policy.vgpu, Serve::kDra, &MdevRule::serve) > 0;
}

// Also where the mode that is in force gives nothing to claims: slices that an agent has left from
// before are to go.
bool IsWanted(const Config& config, const Picture& picture) {
  const auto& list = picture.custody.tenancy->claims.list;
  return std::ranges::count(picture.plan.resources, Serve::kDra, &Resource::serve) > 0 ||
         std::ranges::any_of(list, IsResourceClaim) ||
         (ServesByClaims(config.whole) && !ServesByClaims(config.policy));
}

// The kubelet may still give what it was told of by the device plugin.
void DropListed(const std::vector<Offer>& plugin_offers, std::vector<Offer>& offers) {
  std::set<std::string_view> listed;
  for (const Offer& offer : plugin_offers) {
    for (const OfferedUnit& unit : offer.units) listed.insert(unit.id);
  }
  for (Offer& offer : offers) {
    std::erase_if(offer.units,
                  [&listed](const OfferedUnit& unit) { return listed.contains(unit.id); });
  }
}

// Devices of resources that are served so, as soon as they are bound.
std::map<std::string, std::string> WaitingIn(const Plan& plan) {
  std::map<std::string, std::string> waiting;
  for (const Resource& resource : plan.resources) {
    if (resource.serve != Serve::kDra) continue;
    for (const Unit& unit : resource.units) {
      if (unit.state == UnitState::kToBind) waiting.emplace(DraDeviceName(unit.id), unit.reason);
    }
  }
  return waiting;
}

}  // namespace

void DraRoom::Open(Ledger* ledger, std::function<void()> wake) {
  ledger_ = ledger;
  wake_ = std::move(wake);
}

ClaimSource* DraRoom::OpenApi(const Session& session) {
  const Settings& settings = session.settings();
  // As for what the cluster is told besides (ClusterTeller::Start).
  const bool meant = settings.api_server != kNoServer &&
                     (!settings.api_server.empty() || session.tree().is_host());
  absl::StatusOr<std::unique_ptr<DraApi>> api = absl::UnavailableError(
      "no API server is configured: set api.server to its https://HOST:PORT");
  if (meant) {
    api = DraApi::Start({.cluster = {.node_name = NodeNameOf(settings).value_or(""),
                                     .server = settings.api_server,
                                     .token_file = settings.api_token_file,
                                     .ca_file = settings.api_ca_file,
                                     .version = std::string(AgentVersion())},
                         .driver = settings.dra_driver},
                        wake_);
  }
  if (api.ok()) {
    api_ = *std::move(api);
    return api_.get();
  }
  notes_.push_back(absl::StrFormat("%s: %s", kNoApi, Message(api.status())));
  no_claims_ = std::make_unique<NoClaims>();
  return no_claims_.get();
}

void DraRoom::Start(const Session& session) {
  const Settings& settings = session.settings();
  driver_ = std::make_unique<DraDriver>(
      DraDriver::Options{
          .places = {.driver = settings.dra_driver,
                     .cdi_dir = settings.cdi_dir.empty() ? kDefaultCdiDir : settings.cdi_dir,
                     .metadata_dir =
                         absl::StrFormat("%s/plugins/%s/dra-device-metadata",
                                         settings.kubelet_root_dir, settings.dra_driver)},
          .pool = NodeNameOf(settings).value_or(""),
          .registry_dir = settings.kubelet_root_dir + "/plugins_registry",
          .state_dir = settings.state_dir,
          .boot_id = session.OpenJournal().boot_id(),
          .tree = &session.tree(),
          .ledger = ledger_,
          .source = OpenApi(session)},
      wake_);
}

void DraRoom::Begin(const Session& session, const Picture& picture) {
  if (driver_ == nullptr && IsWanted(session.config(), picture)) Start(session);
}

void DraRoom::HoldBack(std::vector<Offer>& plugin_offers) const {
  for (Offer& offer : plugin_offers) {
    for (OfferedUnit& unit : offer.units) {
      if (!unit.healthy || !published_.contains(unit.id)) continue;
      unit.healthy = false;
      unit.reason =
          absl::StrFormat("%s: a claim perhaps: the node's ResourceSlices may still have it",
                          CodeName(Code::kHeld));
    }
  }
}

std::vector<Event> DraRoom::Publish(const Session& session, const Picture& picture,
                                    const std::vector<Offer>& plugin_offers, absl::Time now) {
  if (driver_ == nullptr) return {};
  std::vector<Offer> offers =
      MakeOffers(picture.plan, picture.facts, {},
                 {.serve = Serve::kDra, .iommufd = session.settings().iommufd},
                 &*picture.custody.tenancy, now);
  DropListed(plugin_offers, offers);
  std::vector<Event> events = Transitions::CompareOffers(offers_, offers);
  offers_ = std::move(offers);
  std::vector<DraDevice> devices =
      MakeDraDevices(offers_, picture.plan, picture.facts, picture.names);
  if (api_ != nullptr) {
    wanted_.clear();
    untainted_.clear();
    for (const DraDevice& device : devices) {
      wanted_.insert(device.unit);
      if (device.taint.empty()) untainted_.insert(device.unit);
    }
    published_.insert(wanted_.begin(), wanted_.end());
    given_.insert(untainted_.begin(), untainted_.end());
    api_->Want(devices);
  }
  driver_->Set(
      {.offers = offers_, .devices = std::move(devices), .waiting = WaitingIn(picture.plan)});
  return events;
}

DraRoom::News DraRoom::Step(absl::Time now) {
  News news;
  if (driver_ == nullptr) return news;
  for (const std::string& note : std::exchange(notes_, {})) news.events.push_back(Note(note));
  if (api_ != nullptr) {
    for (const std::string& note : api_->TakeNotes()) news.events.push_back(Note(note));
  }
  DraDriver::News told = driver_->Step(now);
  for (const std::string& note : told.notes) news.events.push_back(Note(note));
  for (const ClaimEvent& claim : told.claims) news.events.push_back(ClaimSeen(claim));
  news.claims_changed = !told.claims.empty();
  news.claims = std::move(told.claims);
  const bool settled = settled_ && published_ == wanted_ && given_ == untainted_;
  if (!settled && api_ != nullptr && api_->written()) {
    published_ = wanted_;
    given_ = untainted_;
    settled_ = true;
    news.claims_changed = true;
  }
  return news;
}

// Claims can have nothing of a driver that the kubelet does not know, and nothing that no slice
// has.
std::vector<PluginStatus> DraRoom::Status() const {
  std::vector<PluginStatus> list;
  if (driver_ == nullptr) return list;
  const DraApi::Slices slices =
      api_ == nullptr ? DraApi::Slices{.failure = kNoApi} : api_->slices();
  std::vector<std::string> errors = {driver_->failure(), slices.failure};
  std::erase(errors, "");
  for (const Offer& offer : offers_) {
    if (offer.units.empty()) continue;
    list.push_back({.resource = offer.resource,
                    .registered = driver_->registered() && slices.some,
                    .units = static_cast<int>(offer.units.size()),
                    .socket = driver_->socket(),
                    .last_error = absl::StrJoin(errors, "; ")});
  }
  return list;
}

absl::Time DraRoom::due() const {
  return driver_ == nullptr ? absl::InfiniteFuture() : driver_->NextDeadline();
}

void DraRoom::Shutdown(absl::Duration limit) {
  if (driver_ != nullptr) driver_->Shutdown(limit);
  if (api_ != nullptr) api_->Shutdown(limit);
}

}  // namespace vfio_agent
