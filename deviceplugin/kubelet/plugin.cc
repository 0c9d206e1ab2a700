#include "deviceplugin/kubelet/plugin.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "deviceplugin/kubelet/stale_sockets.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Event = Registration::Event;

// The first comparison may come between our message and the kubelet's taking it in.
constexpr int kDoubts = 2;

// What answers that are under way are given when a server makes room for the next one.
constexpr absl::Duration kGrace = absl::Milliseconds(200);

// A socket's file is there a moment before anybody listens on it, and only the file is told of.
constexpr absl::Duration kUntilItListens = absl::Seconds(1);

constexpr char kContentionRemedy[] =
    "set externalResourceProvider: true for this resource in permittedHostDevices of the KubeVirt "
    "CR, or switch the other plugin off";

bool Exists(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0;
}

Event Meaning(const absl::Status& status) {
  if (status.ok()) return Event::kRegisterOk;
  if (IsPermanent(status)) return Event::kRegisterRejected;
  if (absl::IsUnavailable(status)) return Event::kKubeletUnreachable;
  return Event::kRegisterRefused;
}

PluginEvent::Kind ToPluginKind(ServiceEvent::Kind kind) {
  switch (kind) {
    case ServiceEvent::Kind::kListOpened:
      return PluginEvent::Kind::kListOpened;
    case ServiceEvent::Kind::kListClosed:
      return PluginEvent::Kind::kListClosed;
    case ServiceEvent::Kind::kAllocated:
      return PluginEvent::Kind::kAllocated;
    case ServiceEvent::Kind::kAllocateRefused:
      return PluginEvent::Kind::kAllocateRefused;
    case ServiceEvent::Kind::kPreStartRefused:
      break;
  }
  return PluginEvent::Kind::kPreStartRefused;
}

}  // namespace

void Plugin::Handle(const Signal& signal, absl::Time now, double jitter,
                    std::vector<PluginEvent>& events) {
  if (const auto* event = std::get_if<ServiceEvent>(&signal.what)) {
    HandleService(signal, *event, now, jitter, events);
  } else if (const auto* peer = std::get_if<RefusedPeer>(&signal.what)) {
    events.push_back(
        {.kind = PluginEvent::Kind::kPeerRefused, .resource = resource_, .text = Describe(*peer)});
  } else if (signal.incarnation == incarnation_) {
    HandleRegister(std::get<absl::Status>(signal.what), now, jitter, events);
  }
}

void Plugin::HandleService(const Signal& signal, const ServiceEvent& event, absl::Time now,
                           double jitter, std::vector<PluginEvent>& events) {
  const bool opened = event.kind == ServiceEvent::Kind::kListOpened;
  const bool closed = event.kind == ServiceEvent::Kind::kListClosed;
  // The streams of an older server end because we ended it.
  if ((opened || closed) && signal.incarnation != incarnation_) return;
  if (opened) registration_.On(Event::kListOpened, now, jitter);
  if (closed) registration_.On(Event::kListClosed, now, jitter);
  events.push_back({.kind = ToPluginKind(event.kind),
                    .resource = resource_,
                    .ids = event.ids,
                    .text = event.text,
                    .took = event.took});
}

void Plugin::HandleRegister(const absl::Status& status, absl::Time now, double jitter,
                            std::vector<PluginEvent>& events) {
  call_.reset();  // and its connection, which nobody would read any more
  // Where the kubelet comes to us, it comes when it likes.
  const bool awaited = registration_.phase() == Registration::Phase::kRegistering ||
                       context_.way == Registration::Way::kDirectory;
  if (!awaited) return;
  registration_.On(Meaning(status), now, jitter);
  if (!status.ok()) {
    events.push_back(Failure(status));
    return;
  }
  last_error_.clear();
  events.push_back({.kind = PluginEvent::Kind::kRegistered, .resource = resource_});
}

// True where it changed. Said only then: looking at every socket of the directory is not for every
// step.
bool Plugin::SeeContention(absl::Time now, double jitter, std::vector<PluginEvent>& events) {
  const std::string path =
      absl::StrFormat("%s/%s", context_.kubelet_dir, KubeVirtSocketName(resource_));
  const bool kubevirt = SomebodyListens(path);
  // Once after each look that something else called for.
  const bool unsure = !kubevirt && Exists(path) && look_again_ > now;
  look_again_ = unsure ? std::min(look_again_, now + kUntilItListens) : absl::InfiniteFuture();
  const bool contended = registration_.contended();
  if (kubevirt == kubevirt_seen_ && contended == contended_) return false;
  if (kubevirt_seen_ && !kubevirt) registration_.On(Event::kRivalGone, now, jitter);
  kubevirt_seen_ = kubevirt;
  contended_ = contended;
  if (kubevirt || contended) {
    events.push_back({.kind = PluginEvent::Kind::kContended,
                      .resource = resource_,
                      .text = DescribeContention(kubevirt),
                      .remedy = kContentionRemedy});
  } else {
    events.push_back({.kind = PluginEvent::Kind::kContentionOver, .resource = resource_});
  }
  return true;
}

std::string Plugin::DescribeContention(bool kubevirt) const {
  std::vector<std::string> signs;
  if (registration_.contended()) {
    signs.push_back("the kubelet dropped the resource several times, each within a minute");
  }
  if (kubevirt) {
    signs.push_back(absl::StrFormat("KubeVirt's own plugin serves it (%s in %s)",
                                    KubeVirtSocketName(resource_), context_.kubelet_dir));
  }
  const std::vector<std::string> others = OtherPlugins(context_.kubelet_dir);
  return absl::StrFormat("another plugin registers this resource: %s; plugins beside this one: %s",
                         absl::StrJoin(signs, "; "),
                         others.empty() ? "none is seen" : absl::StrJoin(others, ", "));
}

absl::Time Plugin::Advance(absl::Time now, double jitter, std::vector<PluginEvent>& events) {
  const absl::Time next = AdvanceRegistration(now, jitter, events);
  const bool changed = SeeContention(now, jitter, events);
  return std::min(changed ? AdvanceRegistration(now, jitter, events) : next, look_again_);
}

absl::Time Plugin::AdvanceRegistration(absl::Time now, double jitter,
                                       std::vector<PluginEvent>& events) {
  for (;;) {
    const bool awaited = registration_.phase() == Registration::Phase::kAwaitList;
    const Registration::Step step = registration_.Next(now);
    if (step.kind == Registration::Step::Kind::kWait) return step.until;
    if (awaited) {
      events.push_back(Failure(absl::DeadlineExceededError(
          "the kubelet accepted the registration but does not watch the list")));
    }
    if (step.kind == Registration::Step::Kind::kWithdraw) {
      Shutdown(absl::Now() + kGrace);
      registration_.On(Event::kWithdrawn, now, jitter);
      continue;
    }
    if (step.kind == Registration::Step::Kind::kRegister) {
      Register();
      registration_.On(Event::kRegisterSent, now, jitter);
      continue;
    }
    const absl::Status served = Serve();
    registration_.On(served.ok() ? Event::kServed : Event::kServeFailed, now, jitter);
    if (!served.ok()) events.push_back(Failure(served));
  }
}

bool Plugin::Compare(const std::set<std::string>& allocatable, absl::Time now, double jitter,
                     std::vector<PluginEvent>& events) {
  const auto offer = published_.Get();
  size_t healthy = 0, counted = 0;
  for (const OfferedUnit& unit : offer->offer().units) {
    healthy += unit.healthy ? 1 : 0;
    counted += unit.healthy && allocatable.contains(unit.id) ? 1 : 0;
  }
  const bool well = !registration_.registered() || healthy == 0 || counted > 0;
  uncounted_ = well ? 0 : uncounted_ + 1;
  if (uncounted_ < kDoubts) return well;
  uncounted_ = 0;
  registration_.On(Event::kForgotten, now, jitter);
  events.push_back(Failure(absl::UnavailableError(absl::StrFormat(
      "the kubelet watches the list, but counts none of its %d healthy units: it has dropped the "
      "registration, or another plugin had taken the resource",
      healthy))));
  return true;
}

bool Plugin::SocketIsGone() const {
  struct stat info = {};
  return server_ != nullptr && ::stat(server_->path().c_str(), &info) != 0;
}

PluginStatus Plugin::Status() const {
  return {.resource = resource_,
          .registered = registration_.registered(),
          .units = static_cast<int>(published_.Get()->offer().units.size()),
          .streams = registration_.streams(),
          .socket = server_ != nullptr ? server_->path() : "",
          .last_error = last_error_};
}

void Plugin::EndStreams() {
  if (server_ != nullptr) server_->EndStreams();
}

void Plugin::Shutdown(absl::Time deadline) {
  call_.reset();
  if (server_ != nullptr) server_->Shutdown(deadline);
  server_.reset();
}

PluginServer::Extras Plugin::ServerExtras(const std::string& path) const {
  const auto put = [inbox = context_.inbox, resource = resource_,
                    incarnation = incarnation_](auto what) {
    inbox->Put({.resource = resource, .incarnation = incarnation, .what = std::move(what)});
  };
  PluginServer::Extras extras{.turned_away = put};
  if (context_.way == Registration::Way::kDirectory) {
    extras.registry = std::make_unique<RegistryService>(resource_, path, put);
  }
  return extras;
}

absl::Status Plugin::Serve() {
  Shutdown(absl::Now() + kGrace);
  incarnation_ = ++context_.incarnations;
  uncounted_ = 0;
  ASSIGN_OR_RETURN(const std::string path,
                   SocketPath(context_.dir, SocketName(resource_, context_.tag, incarnation_)));
  auto observer = [inbox = context_.inbox, resource = resource_,
                   incarnation = incarnation_](ServiceEvent event) {
    inbox->Put({.resource = resource, .incarnation = incarnation, .what = std::move(event)});
  };
  ASSIGN_OR_RETURN(server_, PluginServer::Start(path,
                                                std::make_unique<DevicePluginService>(
                                                    published_, *context_.tree, context_.ask,
                                                    *context_.ledger, std::move(observer)),
                                                ServerExtras(path)));
  return absl::OkStatus();
}

void Plugin::Register() {
  auto done = [inbox = context_.inbox, resource = resource_,
               incarnation = incarnation_](absl::Status status) {
    inbox->Put({.resource = resource, .incarnation = incarnation, .what = std::move(status)});
  };
  const std::string& path = server_->path();
  call_ = RegisterCall::Start(context_.dir + "/kubelet.sock", resource_,
                              path.substr(path.rfind('/') + 1), std::move(done));
}

PluginEvent Plugin::Failure(const absl::Status& status) {
  last_error_ = Message(status);
  return {.kind = PluginEvent::Kind::kRegisterFailed, .resource = resource_, .text = last_error_};
}

}  // namespace vfio_agent
