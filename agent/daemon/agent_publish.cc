// The part of Agent that makes known what a picture shows: to the log, the kubelet, and all others.
#include <malloc.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"
#include "agent/log.h"
#include "agent/outlets/unsafe_label.h"
#include "sysfs/clock.h"

namespace vfio_agent {

void Agent::Say(Event event) {
  cluster_.Saw(event);
  if (const std::optional<Event> line = lines_.Admit(std::move(event), MonotonicNow())) Log(*line);
}

void Agent::Tell() {
  SayNotes();
  ApiStatus api = cluster_.Status();
  for (const auto& [what, count] : dra_.Requests()) api.requests[what] += count;
  book_.ApiStands(std::move(api));
  for (const Event& event : lines_.Due(MonotonicNow())) Log(event);
  Underway underway = jobs_.Underway();
  underway.stuck.insert(stuck_before_.begin(), stuck_before_.end());
  std::vector<PluginStatus> plugins = plugins_->Status();
  const std::vector<PluginStatus> dra = dra_.Status();
  plugins.insert(plugins.end(), dra.begin(), dra.end());
  book_.Turned({.kubelet = plugins_->kubelet_up(),
                .all_registered = plugins_->AllRegistered() &&
                                  std::ranges::count(dra, false, &PluginStatus::registered) == 0,
                .plugins = std::move(plugins),
                .underway = std::move(underway),
                .limit = LoopLimit(session_.settings().resync)},
               MonotonicNow());
  TellCluster();
}

// What agents before this one offered and pods have. What a claim was given was on no list, and of
// an old answer alone that cannot be told.
std::vector<Offer> Agent::OffersBefore(const Picture& picture) const {
  const PodClaims& claims = picture.custody.tenancy->claims;
  std::vector<Offer> offers = OffersOfPods(claims, ledger_->answers());
  if (claims.known) return offers;
  for (const Resource& resource : picture.plan.resources) {
    if (resource.serve != Serve::kDra) continue;
    std::erase_if(offers, [&](const Offer& offer) { return offer.resource == resource.name; });
  }
  return offers;
}

void Agent::Publish(const Picture& picture, const std::vector<std::string>& notes) {
  SetAside(picture);
  for (const Event& event : transitions_.Compare(picture, notes)) Say(event);
  const Settings& settings = session_.settings();
  const Tenancy& tenancy = *picture.custody.tenancy;
  std::vector<Offer> offers = MakeOffers(
      picture.plan, picture.facts, looked_ ? offers_ : OffersBefore(picture),
      {.iommufd = settings.iommufd, .cdi_names = settings.cdi_names}, &tenancy, MonotonicNow());
  dra_.HoldBack(offers);
  for (const Event& event : Transitions::CompareOffers(offers_, offers)) Say(event);
  offers_ = std::move(offers);
  if (!learnt_ && tenancy.claims.known && tenancy.silent.empty()) {
    ledger_->Learn(tenancy.claims, offers_);
    learnt_ = true;
  }
  WriteCdi(offers_);
  plugins_->Set(offers_);
  for (const Event& event : dra_.Publish(session_, picture, offers_, MonotonicNow())) Say(event);
  std::vector<Offer> all = offers_;
  std::ranges::copy(dra_.offers(), std::back_inserter(all));
  const NfdLabels labels = MakeNfdLabels(picture.plan.iommu, all,
                                         ModeLabels(mode_.Status()) + UnsafeLabel(picture.plan));
  labels_ = labels.text;
  TellNfd(settings.nfd_dir, labels);
  retries_.See(picture.plan, work_, picture.custody.underway.at_work);
  stuck_before_ = picture.custody.underway.stuck;
  std::erase_if(stuck_before_, [this](const auto& entry) { return jobs_.Has(entry.first); });
  book_.Pictured(picture, all);
  LookAgain(picture);
  // A picture is made of many small pieces: give them back.
  ::malloc_trim(0);
}

// Before the kubelet is told: a runtime may look for a unit as soon as it can be given.
void Agent::WriteCdi(const std::vector<Offer>& offers) {
  for (const std::string& problem : cdi_.Update(session_.settings().cdi_dir, offers)) {
    Say(CdiFailed(problem));
  }
}

void Agent::TellNfd(const std::string& dir, const NfdLabels& labels) {
  const absl::Duration validity = NfdValidity(session_.settings().resync);
  for (const std::string& problem :
       nfd_.Update(dir, labels, validity, {.steady = MonotonicNow(), .wall = absl::Now()})) {
    Say(NfdFailed(problem));
  }
}

void Agent::StepDra(absl::Time now) {
  DraRoom::News news = dra_.Step(now);
  for (Event& event : news.events) Say(std::move(event));
  for (const ClaimEvent& claim : news.claims) book_.ClaimSaw(claim);
  if (!news.claims_changed) return;
  tenants_.Ask(now);
  Ask("claim");
}

// Where another process is at work, or something did not say who uses what, no event will tell
// that it has come to an end.
void Agent::LookAgain(const Picture& picture) {
  if (picture.answered && picture.custody.underway.elsewhere.empty() && stuck_before_.empty()) {
    look_again_ = absl::InfiniteFuture();
    look_wait_ = kFirstLook;
    return;
  }
  look_again_ = MonotonicNow() + look_wait_;
  look_wait_ = std::min(look_wait_ * 2, session_.settings().resync);
}

void Agent::SetAside(const Picture& picture) {
  const Journal journal = session_.OpenJournal();
  for (const Journal::Unreadable& file : picture.unreadable) {
    if (file.broken) Say(JournalSetAside(file, journal.SetAside(file)));
  }
}

}  // namespace vfio_agent
