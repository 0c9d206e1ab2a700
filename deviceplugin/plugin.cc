#include "deviceplugin/plugin.h"

#include <sys/stat.h>

#include <utility>

#include "absl/time/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Event = Registration::Event;

// What answers that are under way are given when a server makes room for the next one.
constexpr absl::Duration kGrace = absl::Milliseconds(200);

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
  PluginEvent told{.kind = ToPluginKind(event.kind),
                   .resource = resource_,
                   .ids = event.ids,
                   .text = event.text,
                   .took = event.took};
  if (closed && registration_.contended()) {
    told.text = "lost several times within a minute: does another plugin serve this resource?";
  }
  events.push_back(std::move(told));
}

void Plugin::HandleRegister(const absl::Status& status, absl::Time now, double jitter,
                            std::vector<PluginEvent>& events) {
  call_.reset();  // and its connection, which nobody would read any more
  if (registration_.phase() != Registration::Phase::kRegistering) return;
  registration_.On(Meaning(status), now, jitter);
  if (!status.ok()) {
    events.push_back(Failure(status));
    return;
  }
  last_error_.clear();
  events.push_back({.kind = PluginEvent::Kind::kRegistered, .resource = resource_});
}

absl::Time Plugin::Advance(absl::Time now, double jitter, std::vector<PluginEvent>& events) {
  for (;;) {
    const bool awaited = registration_.phase() == Registration::Phase::kAwaitList;
    const Registration::Step step = registration_.Next(now);
    if (step.kind == Registration::Step::Kind::kWait) return step.until;
    if (step.kind == Registration::Step::Kind::kRegister) {
      Register();
      registration_.On(Event::kRegisterSent, now, jitter);
      continue;
    }
    if (awaited) {
      events.push_back(Failure(absl::DeadlineExceededError(
          "the kubelet accepted the registration but does not watch the list")));
    }
    const absl::Status served = Serve();
    registration_.On(served.ok() ? Event::kServed : Event::kServeFailed, now, jitter);
    if (!served.ok()) events.push_back(Failure(served));
  }
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

absl::Status Plugin::Serve() {
  Shutdown(absl::Now() + kGrace);
  incarnation_ = ++context_.incarnations;
  ASSIGN_OR_RETURN(const std::string path,
                   SocketPath(context_.dir, SocketName(resource_, context_.tag, incarnation_)));
  auto observer = [inbox = context_.inbox, resource = resource_,
                   incarnation = incarnation_](ServiceEvent event) {
    inbox->Put({.resource = resource, .incarnation = incarnation, .what = std::move(event)});
  };
  ASSIGN_OR_RETURN(server_,
                   PluginServer::Start(path, std::make_unique<DevicePluginService>(
                                                 published_, *context_.tree, std::move(observer))));
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
