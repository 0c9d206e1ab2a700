// Registrations and streams that go wrong.
#include <algorithm>
#include <set>

#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"

namespace vfio_agent::conformance {
namespace {

// More calls within a second are a hammer.
constexpr size_t kMostPerSecond = 5;

absl::Status NotTooFast(const std::vector<FakeRegisterCall>& calls) {
  for (size_t i = kMostPerSecond; i < calls.size(); ++i) {
    const absl::Duration span = calls[i].at - calls[i - kMostPerSecond].at;
    RETURN_IF_ERROR(Require(span > absl::Seconds(1), "%d Register calls within %s",
                            kMostPerSecond + 1, absl::FormatDuration(span)));
  }
  return absl::OkStatus();
}

bool HasCalls(Stand& stand, size_t count, absl::Duration limit) {
  return stand.kubelet().WaitFor(
      [&](const FakeResources& all) {
        size_t calls = 0;
        for (const auto& entry : all) calls += static_cast<size_t>(entry.second.registrations);
        return calls >= count;
      },
      limit);
}

absl::Status WaitForCalls(Stand& stand, size_t count, const char* what) {
  const absl::Duration limit = stand.options().timeout;
  return Require(HasCalls(stand, count, limit), "%s: fewer than %d Register calls within %s", what,
                 count, absl::FormatDuration(limit));
}

// Refused `count` times and then no more.
absl::Status RefusedFor(Stand& stand, const std::string& text, size_t count) {
  RETURN_IF_ERROR(stand.kubelet().Start());
  stand.kubelet().RefuseRegister(text);
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(WaitForCalls(stand, count, "Register is refused"));
  HasCalls(stand, kMostPerSecond + 2, absl::Seconds(3));  // only a hammer gets there
  RETURN_IF_ERROR(NotTooFast(stand.kubelet().RegisterCalls()));
  stand.kubelet().RefuseRegister("");
  return stand.WaitServed();
}

absl::Status Refused(Stand& stand) {
  return RefusedFor(stand, "the registry is out of order", kMostPerSecond - 2);
}

absl::Status OptionsFailed(Stand& stand) {
  return RefusedFor(stand, "failed to get device plugin options: context deadline exceeded", 2);
}

absl::Status DialIsSlow(Stand& stand) {
  RETURN_IF_ERROR(stand.kubelet().Start());
  stand.kubelet().DelayDial(absl::Seconds(3));
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(stand.WaitServed());
  return Require(stand.Calls().size() == 1, "%d Register calls while the kubelet took its time",
                 stand.Calls().size());
}

absl::Status ListNeverOpened(Stand& stand) {
  RETURN_IF_ERROR(stand.kubelet().Start());
  stand.kubelet().IgnoreLists(true);
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(WaitForCalls(stand, 2, "ListAndWatch is never opened"));
  stand.kubelet().IgnoreLists(false);
  RETURN_IF_ERROR(stand.WaitServed());
  std::set<std::string> endpoints;
  for (const FakeRegisterCall& call : stand.Calls()) {
    RETURN_IF_ERROR(Require(endpoints.insert(call.request.endpoint()).second,
                            "it registered %s once more", call.request.endpoint()));
  }
  return absl::OkStatus();
}

absl::Status StreamCancelled(Stand& stand) {
  const std::string endpoint = stand.Now().endpoint;
  const Ids ids = stand.Ids();
  stand.kubelet().CancelList(stand.resource());
  RETURN_IF_ERROR(stand.WaitServedAnew(endpoint));
  return Require(stand.Ids() == ids, "other ids after a stream was lost");
}

// The kubelet notices the end of a stream when the next one is open already. Up to 1.36 that
// takes the new one down.
absl::Status LateDisconnect(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());  // a plugin may slow down that has lost streams before
  const std::string endpoint = stand.Now().endpoint;
  stand.kubelet().HoldDisconnects(true);
  stand.kubelet().CancelList(stand.resource());
  const absl::Status anew = stand.WaitServedAnew(endpoint);
  stand.kubelet().HoldDisconnects(false);
  RETURN_IF_ERROR(anew);
  const absl::Status taken_down = stand.WaitFor(
      "", [](const FakeResource& it) { return it.stopped; }, absl::Seconds(1));
  return Annotate(stand.WaitServed(), taken_down.ok() ? "the new stream was taken down" : "");
}

constexpr auto kPlugin = Check::Needs::kPlugin;
constexpr auto kOwn = Check::Needs::kOwn;

constexpr Check kChecks[] = {
    {"stream-cancelled", "R12", "its stream is lost: it registers anew", kPlugin, StreamCancelled},
    {"late-disconnect", "R12", "the old stream's end comes late, and it is served all the same",
     kOwn, LateDisconnect},
    {"register-refused", "R9", "Register is refused: it goes on, but not in a hurry", kOwn,
     Refused},
    {"options-failed", "R9", "the kubelet had no answer about options: it goes on", kOwn,
     OptionsFailed},
    {"dial-slow", "R2", "the kubelet takes three seconds to dial: one Register is enough", kOwn,
     DialIsSlow},
    {"list-never-opened", "R11", "Register is OK, but no stream comes: it registers anew", kOwn,
     ListNeverOpened},
};

}  // namespace

std::span<const Check> FaultChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
