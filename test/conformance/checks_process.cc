// The plugin's own end and its next life.
#include <algorithm>
#include <csignal>

#include "absl/strings/str_join.h"
#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"

namespace vfio_agent::conformance {
namespace {

constexpr absl::Duration kLongestEnd = absl::Seconds(10);

absl::Status Terminate(Stand& stand) {
  return Annotate(stand.EndPlugin(SIGTERM, kLongestEnd), "SIGTERM");
}

absl::Status Term(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());
  RETURN_IF_ERROR(Terminate(stand));
  const std::vector<std::string> left = stand.SocketsInDirectory();
  return Require(left.empty(), "it left %s behind", absl::StrJoin(left, ", "));
}

absl::Status TermAlone(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());
  stand.kubelet().Stop();
  return Terminate(stand);
}

// The kubelet keeps the capacity for five minutes, unless an empty list says that it is gone.
absl::Status TermKeepsCapacity(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());
  RETURN_IF_ERROR(Terminate(stand));
  RETURN_IF_ERROR(
      stand.WaitFor("close its stream", [](const FakeResource& it) { return it.stopped; }));
  const FakeCapacity left = stand.kubelet().Capacity()[stand.resource()];
  return Require(left == FakeCapacity{stand.options().devices, 0},
                 "after SIGTERM the node has %d devices, %d to give, instead of %d and 0",
                 left.capacity, left.allocatable, stand.options().devices);
}

// Ends it by `signal` and starts it again: the same ids, and a socket of another name.
absl::Status NextLife(Stand& stand, int signal) {
  RETURN_IF_ERROR(stand.Serve());
  const std::string endpoint = stand.Now().endpoint;
  const Ids ids = stand.Ids();
  RETURN_IF_ERROR(stand.EndPlugin(signal, kLongestEnd));
  RETURN_IF_ERROR(
      stand.WaitFor("close its stream", [](const FakeResource& it) { return it.stopped; }));
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(stand.WaitServed());
  RETURN_IF_ERROR(Require(stand.Ids() == ids, "other ids than in its last life: %s and then %s",
                          absl::StrJoin(ids, " "), absl::StrJoin(stand.Ids(), " ")));
  return Require(stand.Now().endpoint != endpoint, "it registered %s once more", endpoint);
}

absl::Status StartAgain(Stand& stand) { return NextLife(stand, SIGTERM); }

absl::Status StartAfterKill(Stand& stand) { return NextLife(stand, SIGKILL); }

constexpr auto kOwn = Check::Needs::kOwn;

constexpr Check kChecks[] = {
    {"sigterm", "R22", "SIGTERM ends it within ten seconds, its socket goes", kOwn, Term},
    {"sigterm-no-kubelet", "R22", "SIGTERM ends it also where there is no kubelet", kOwn,
     TermAlone},
    {"sigterm-capacity", "R22", "SIGTERM is no farewell: the kubelet keeps the capacity", kOwn,
     TermKeepsCapacity},
    {"next-start", "R26", "the next start has the same ids, on a fresh socket", kOwn, StartAgain},
    {"start-after-kill", "R7", "so has the start after kill -9", kOwn, StartAfterKill},
};

}  // namespace

std::span<const Check> ProcessChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
