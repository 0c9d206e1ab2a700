// Allocate and PreStartContainer: what is given and what is refused.
#include <algorithm>

#include "absl/time/clock.h"
#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"
#include "test/kubelet/fake_admission.h"

namespace vfio_agent::conformance {
namespace {

// The kubelet admits one pod at a time: every other one of the node waits for an Allocate.
constexpr absl::Duration kLongest = absl::Seconds(1);
constexpr char kUnknownId[] = "no-such-device-0";

absl::Status OneDevice(Stand& stand) {
  for (const std::string& id : stand.Ids()) {
    const auto answer = AllocateOne(stand, {id});
    RETURN_IF_ERROR(Require(answer.ok(), "Allocate of \"%s\": %s", id, Message(answer.status())));
  }
  return absl::OkStatus();
}

absl::Status ManyContainers(Stand& stand) {
  const Ids ids = stand.Ids();
  if (ids.size() < 2) return NotTried("it has one device only");
  ASSIGN_OR_RETURN(const auto both, Allocate(stand, {{ids[1]}, {ids[0]}}));
  RETURN_IF_ERROR(Require(both.container_responses_size() == 2, "%d responses for two containers",
                          both.container_responses_size()));
  for (const int i : {0, 1}) {
    const std::string& id = ids[static_cast<size_t>(1 - i)];
    ASSIGN_OR_RETURN(const auto alone, AllocateOne(stand, {id}));
    RETURN_IF_ERROR(Require(Text(both.container_responses(i)) == Text(alone),
                            "the response for container %d is not that for \"%s\"", i, id));
  }
  return absl::OkStatus();
}

absl::Status Refused(Stand& stand, const Ids& ids, const char* what) {
  const auto answer = Allocate(stand, {ids});
  return Require(!answer.ok(), "Allocate with %s succeeds", what);
}

absl::Status UnknownId(Stand& stand) {
  RETURN_IF_ERROR(Refused(stand, {kUnknownId}, "an unknown id"));
  return Refused(stand, {stand.Ids().front(), kUnknownId}, "a known and an unknown id");
}

absl::Status DuplicateId(Stand& stand) {
  const std::string id = stand.Ids().front();
  return Refused(stand, {id, id}, "one id twice");
}

absl::Status EmptyId(Stand& stand) {
  RETURN_IF_ERROR(Refused(stand, {""}, "an empty id"));
  return Refused(stand, {stand.Ids().front(), ""}, "a known and an empty id");
}

absl::Status AnyOrder(Stand& stand) {
  Ids ids = stand.Ids();
  if (ids.size() < 2) return NotTried("it has one device only");
  ASSIGN_OR_RETURN(const auto forward, AllocateOne(stand, ids));
  std::ranges::reverse(ids);
  ASSIGN_OR_RETURN(const auto backward, AllocateOne(stand, ids));
  return Require(Text(forward) == Text(backward),
                 "the order of ids changes the answer:\n%s\nand\n%s", Text(forward),
                 Text(backward));
}

absl::Status Quick(Stand& stand) {
  const absl::Time begun = absl::Now();
  ASSIGN_OR_RETURN(const auto answer, AllocateOne(stand, stand.Ids()));
  const absl::Duration took = absl::Now() - begun;
  return Require(took < kLongest, "Allocate took %s", absl::FormatDuration(took));
}

absl::Status PreStartKnown(Stand& stand) {
  ASSIGN_OR_RETURN(const auto options, OptionsOf(stand));
  if (!options.pre_start_required()) return NotTried("it does not ask for PreStartContainer");
  const Ids ids = stand.Ids();
  RETURN_IF_ERROR(AllocateOne(stand, ids).status());
  for (int start = 0; start < 2; ++start) {  // a container may start again
    const absl::Status status = PreStart(stand, ids);
    RETURN_IF_ERROR(Require(status.ok(), "start %d of a container: %s", start, Message(status)));
  }
  return absl::OkStatus();
}

absl::Status PreStartUnknown(Stand& stand) {
  ASSIGN_OR_RETURN(const auto options, OptionsOf(stand));
  if (!options.pre_start_required()) return NotTried("it does not ask for PreStartContainer");
  return Require(!PreStart(stand, {kUnknownId}).ok(),
                 "PreStartContainer of an unknown id succeeds");
}

// Pod after pod with one device each until none is free, and one more when a pod has gone.
absl::Status EveryDevice(Stand& stand) {
  FakeAdmission admission(stand.kubelet());
  const size_t count = stand.Ids().size();
  for (size_t pod = 0; pod < count; ++pod) {
    const auto got = admission.Admit(absl::StrFormat("pod-%d/c", pod), stand.resource(), 1);
    RETURN_IF_ERROR(Require(got.ok(), "pod %d of %d: %s", pod, count, Message(got.status())));
  }
  RETURN_IF_ERROR(Require(!admission.Admit("late/c", stand.resource(), 1).ok(),
                          "one device more than there are"));
  admission.Remove("pod-0/c");
  return admission.Admit("late/c", stand.resource(), 1).status();
}

constexpr auto kPlugin = Check::Needs::kPlugin;

constexpr Check kChecks[] = {
    {"allocate-one", "R36", "one container's request has one container's response", kPlugin,
     OneDevice},
    {"allocate-several", "R36", "several containers have their responses in order", kPlugin,
     ManyContainers},
    {"allocate-unknown", "R37", "an unknown id is an error, and not skipped", kPlugin, UnknownId},
    {"allocate-duplicate", "R37", "an id twice is an error", kPlugin, DuplicateId},
    {"allocate-empty", "R37", "an empty id is an error", kPlugin, EmptyId},
    {"allocate-order", "R40", "the order of ids does not change the answer", kPlugin, AnyOrder},
    {"allocate-quick", "R39", "Allocate takes less than a second", kPlugin, Quick},
    {"allocate-all", "R36", "each device can be given to a pod, and again after it", kPlugin,
     EveryDevice},
    {"prestart", "R50", "PreStartContainer succeeds, also for a second start", kPlugin,
     PreStartKnown},
    {"prestart-unknown", "R50", "PreStartContainer of an unknown id is an error", kPlugin,
     PreStartUnknown},
};

}  // namespace

std::span<const Check> AllocateChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
