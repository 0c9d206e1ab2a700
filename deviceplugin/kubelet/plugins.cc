#include "deviceplugin/kubelet/plugins.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "deviceplugin/kubelet/plugin.h"
#include "deviceplugin/kubelet/stale_sockets.h"

namespace vfio_agent {
namespace {

// How often the directory is looked at while inotify cannot tell.
constexpr absl::Duration kPoll = absl::Seconds(5);
// And the socket of a kubelet that does not answer: nothing tells of its first listen().
constexpr absl::Duration kAskAgain = absl::Seconds(5);

using Event = Registration::Event;

}  // namespace

std::vector<Offer> LosersFirst(const std::vector<Offer>& now, std::vector<Offer> next) {
  std::unordered_map<std::string, std::string> lists;  // by id, which resource's list has it now
  for (const Offer& offer : now) {
    for (const OfferedUnit& unit : offer.units) lists[unit.id] = offer.resource;
    const bool told = std::ranges::find(next, offer.resource, &Offer::resource) != next.end();
    if (!told) next.push_back({.resource = offer.resource});
  }
  std::vector<Offer> order;
  std::vector<Offer> again;
  for (Offer& offer : next) {
    const auto elsewhere = [&](const OfferedUnit& unit) {
      const auto list = lists.find(unit.id);
      return list != lists.end() && list->second != offer.resource;
    };
    if (std::ranges::any_of(offer.units, elsewhere)) {
      again.push_back(offer);
      std::erase_if(offer.units, elsewhere);
    }
    order.push_back(std::move(offer));
  }
  std::ranges::move(again, std::back_inserter(order));
  return order;
}

Plugins::Plugins(Options options, std::function<void()> wake)
    : context_(std::make_unique<PluginContext>()),
      watch_(options.registry_dir.empty() ? options.dir : options.registry_dir) {
  SilenceGrpc();
  context_->dir = watch_.dir();
  context_->kubelet_dir = options.dir;
  if (!options.registry_dir.empty()) {
    context_->way = Registration::Way::kDirectory;
    kubelet_.emplace(options.dir);
  }
  context_->tree = options.tree;
  context_->ledger = options.ledger;
  context_->ask = std::move(options.ask);
  context_->inbox = std::make_shared<Inbox>(std::move(wake));
  context_->tag = std::random_device()();
  random_.seed(context_->tag);
  // Both: the agent that was killed may have registered the other way.
  RemoveStale({options.dir, options.registry_dir});
}

Plugins::~Plugins() { Shutdown(absl::ZeroDuration()); }

void Plugins::Set(std::vector<Offer> offers) {
  std::vector<Offer> now;
  for (const auto& entry : plugins_) now.push_back(entry.second->Offered()->offer());
  for (Offer& offer : LosersFirst(now, std::move(offers))) {
    const std::string resource = offer.resource;
    if (offer.units.empty() && !plugins_.contains(resource)) continue;
    std::unique_ptr<Plugin>& plugin = plugins_[resource];
    if (plugin == nullptr) plugin = std::make_unique<Plugin>(resource, *context_);
    plugin->Set(std::move(offer));
  }
}

std::vector<PluginEvent> Plugins::Step(absl::Time now) {
  std::vector<PluginEvent> events = std::exchange(unsaid_, {});
  for (const Signal& signal : context_->inbox->TakeAll()) {
    const auto plugin = plugins_.find(signal.resource);
    if (plugin != plugins_.end()) plugin->second->Handle(signal, now, Jitter(), events);
  }
  LookAround(now, events);
  for (const auto& entry : plugins_) {
    next_deadline_ = std::min(next_deadline_, entry.second->Advance(now, Jitter(), events));
  }
  quiet_.StopTimers();  // no sooner, since the first registration need not wait for that
  return events;
}

void Plugins::LookAround(absl::Time now, std::vector<PluginEvent>& events) {
  const KubeletWatch::Look look = LookAtKubelet(watch_.LookAgain());
  kubelet_up_ = look.kubelet_present && KubeletAnswers();
  const bool told = watch_.armed() && (kubelet_.has_value() || look.kubelet_present);
  next_deadline_ = told ? absl::InfiniteFuture() : now + kPoll;
  if (look.kubelet_present && !kubelet_up_) {
    next_deadline_ = std::min(next_deadline_, now + kAskAgain);
  }
  if (look.directory_replaced) events.push_back({.kind = PluginEvent::Kind::kDirectoryReplaced});
  if (look.kubelet_restarted) events.push_back({.kind = PluginEvent::Kind::kKubeletRestarted});
  for (const auto& entry : plugins_) {
    Plugin& plugin = *entry.second;
    if (plugin.SocketIsGone()) plugin.On(Event::kSocketGone, now, Jitter());
    if (look.kubelet_new) {
      plugin.On(Event::kKubeletRestarted, now, Jitter());
    } else {
      plugin.On(look.kubelet_present ? Event::kKubeletSeen : Event::kKubeletMissing, now, Jitter());
    }
  }
}

// `look`: at the directory with our sockets.
KubeletWatch::Look Plugins::LookAtKubelet(const KubeletWatch::Look& look) {
  if (!kubelet_) return look;
  kubelet_->Drain();  // which nobody polls: a kubelet that has restarted is heard of by its calls
  KubeletWatch::Look kubelet = kubelet_->LookAgain();
  kubelet.directory_replaced = look.directory_replaced;
  return kubelet;
}

// One that was killed leaves its socket behind. An open stream is word enough, so that a node where
// all is well costs the kubelet no connections.
bool Plugins::KubeletAnswers() const {
  const bool watches = std::ranges::any_of(
      plugins_, [](const auto& entry) { return entry.second->Status().streams > 0; });
  return watches || SomebodyListens(context_->kubelet_dir + "/kubelet.sock");
}

void Plugins::RemoveStale(const std::vector<std::string>& dirs) {
  for (const std::string& dir : dirs) {
    if (dir.empty()) continue;
    const StaleSockets stale = RemoveStaleSockets(dir);
    std::vector<std::string> done;
    if (!stale.removed.empty()) done.push_back("removed " + absl::StrJoin(stale.removed, ", "));
    if (!stale.kept.empty()) done.push_back("cannot remove " + absl::StrJoin(stale.kept, ", "));
    if (done.empty()) continue;
    unsaid_.push_back(
        {.kind = PluginEvent::Kind::kStaleSockets, .text = absl::StrJoin(done, "; ")});
  }
}

bool Plugins::Compare(const std::map<std::string, std::set<std::string>>& allocatable,
                      absl::Time now) {
  bool well = true;
  for (const auto& [resource, plugin] : plugins_) {
    const auto counted = allocatable.find(resource);
    const std::set<std::string> none;
    const std::set<std::string>& ids = counted == allocatable.end() ? none : counted->second;
    if (!plugin->Compare(ids, now, Jitter(), unsaid_)) well = false;
  }
  return well;
}

bool Plugins::AllRegistered() const {
  return std::ranges::all_of(plugins_, [](const auto& entry) {
    const PluginStatus status = entry.second->Status();
    return status.registered || status.units == 0;
  });
}

std::vector<PluginStatus> Plugins::Status() const {
  std::vector<PluginStatus> all;
  for (const auto& entry : plugins_) all.push_back(entry.second->Status());
  return all;
}

void Plugins::Shutdown(absl::Duration limit) {
  context_->inbox->Close();
  const absl::Time deadline = absl::Now() + limit;
  for (const auto& entry : plugins_) entry.second->EndStreams();
  for (const auto& entry : plugins_) entry.second->Shutdown(deadline);
  plugins_.clear();
}

double Plugins::Jitter() { return std::uniform_real_distribution<double>(0, 1)(random_); }

}  // namespace vfio_agent
