// The kubelet comes, goes, and takes things away.
#include <csignal>
#include <filesystem>

#include "sysfs/status.h"
#include "test/conformance/calls.h"
#include "test/conformance/check.h"
#include "test/kubelet/fake_admission.h"

namespace vfio_agent::conformance {
namespace {

constexpr int kRestarts = 20;

// Restarts the kubelet: the same devices, registered on a socket that it has not seen.
absl::Status RestartOnce(Stand& stand, bool killed) {
  const std::string endpoint = stand.Now().endpoint;
  const Ids ids = stand.Ids();
  RETURN_IF_ERROR(stand.RestartKubelet(killed));
  RETURN_IF_ERROR(stand.WaitServed());
  RETURN_IF_ERROR(Require(stand.Ids() == ids, "other ids after the kubelet's restart"));
  return Require(stand.Now().endpoint != endpoint, "it registered %s once more", endpoint);
}

absl::Status Restart(Stand& stand) { return RestartOnce(stand, false); }

absl::Status Killed(Stand& stand) { return RestartOnce(stand, true); }

absl::Status ManyRestarts(Stand& stand) {
  for (int i = 1; i <= kRestarts; ++i) {
    RETURN_IF_ERROR(Annotate(RestartOnce(stand, i % 2 == 0), absl::StrFormat("restart %d", i)));
  }
  return absl::OkStatus();
}

// Kubelets up to 1.32 take every file of the directory away, not only sockets.
absl::Status AllSwept(Stand& stand) {
  stand.ReplaceKubelet(FakeKubelet::Sweep::kAllFiles);
  RETURN_IF_ERROR(stand.Serve());
  return RestartOnce(stand, false);
}

absl::Status NoFiles(Stand& stand) {
  for (const auto& entry : std::filesystem::directory_iterator(stand.PathOf(""))) {
    RETURN_IF_ERROR(Require(entry.is_socket() || entry.is_directory(),
                            "%s is a file that kubelets up to 1.32 take away",
                            entry.path().filename().string()));
  }
  return absl::OkStatus();
}

absl::Status KubeletLate(Stand& stand) {
  RETURN_IF_ERROR(stand.StartPlugin());
  const auto code = stand.plugin().WaitForEnd(absl::Seconds(2));
  RETURN_IF_ERROR(
      Require(!code, "it gave up with exit code %d while there was no kubelet", code.value_or(0)));
  RETURN_IF_ERROR(stand.kubelet().Start());
  return stand.WaitServed();
}

absl::Status OwnSocketDeleted(Stand& stand) {
  const std::string endpoint = stand.Now().endpoint;
  const Ids ids = stand.Ids();
  std::filesystem::remove(stand.PathOf(endpoint));
  RETURN_IF_ERROR(stand.WaitServedAnew(endpoint));
  return Require(stand.Ids() == ids, "other ids on the new socket");
}

absl::Status DirectoryReplaced(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());
  stand.kubelet().Stop(true);
  const absl::Status replaced = stand.ReplaceDirectory();
  if (!replaced.ok()) return NotTried(Message(replaced));
  RETURN_IF_ERROR(stand.kubelet().Start());
  // To end is right, too: a container gets the new directory only with a new mount.
  const bool served_or_gone = stand.kubelet().WaitFor(
      [&](const FakeResources& all) {
        const auto found = all.find(stand.resource());
        return (found != all.end() && found->second.Healthy() >= stand.options().devices) ||
               !stand.plugin().Runs();
      },
      stand.options().timeout);
  if (served_or_gone || !stand.plugin().Runs()) return absl::OkStatus();
  return absl::FailedPreconditionError("it neither ends nor registers in the new directory");
}

// The kubelet gives a container what it had, without a word to the plugin.
absl::Status Replayed(Stand& stand) {
  RETURN_IF_ERROR(stand.Serve());
  FakeAdmission admission(stand.kubelet());
  ASSIGN_OR_RETURN(const FakeAssignment had, admission.Admit("pod/c", stand.resource(), 1));
  RETURN_IF_ERROR(admission.StartContainer("pod/c", stand.resource()).status());
  RETURN_IF_ERROR(RestartOnce(stand, false));
  RETURN_IF_ERROR(Annotate(stand.EndPlugin(SIGTERM, absl::Seconds(10)), "SIGTERM"));
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(stand.WaitServed());
  const auto admitted = admission.Admit("pod/c", stand.resource(), 1);
  RETURN_IF_ERROR(
      Require(admitted.ok(), "admission after both restarts: %s", Message(admitted.status())));
  const auto started = admission.StartContainer("pod/c", stand.resource());
  RETURN_IF_ERROR(
      Require(started.ok(), "container start after both restarts: %s", Message(started.status())));
  ASSIGN_OR_RETURN(const auto now, AllocateOne(stand, had.ids));
  return Require(Text(now) == Text(had.answer), "the kubelet hands out\n%s\nbut now it is\n%s",
                 Text(had.answer), Text(now));
}

constexpr auto kPlugin = Check::Needs::kPlugin;
constexpr auto kOwn = Check::Needs::kOwn;

constexpr Check kChecks[] = {
    {"no-files", "R16", "it keeps no files in the kubelet's directory", kPlugin, NoFiles},
    {"kubelet-restart", "R14", "a new kubelet has the same ids, on a fresh socket", kPlugin,
     Restart},
    {"kubelet-killed", "R14", "likewise, where the old kubelet was killed", kPlugin, Killed},
    {"kubelet-restarts", "R15", "twenty restarts of the kubelet in a row lose nothing", kPlugin,
     ManyRestarts},
    {"socket-deleted", "R14", "its socket's file is deleted: it registers a fresh one", kPlugin,
     OwnSocketDeleted},
    {"all-files-swept", "R16", "a kubelet that sweeps every file", kOwn, AllSwept},
    {"kubelet-late", "R57", "there is no kubelet at first", kOwn, KubeletLate},
    {"directory-replaced", "R17", "another directory in the place of its own: it ends or follows",
     kOwn, DirectoryReplaced},
    {"answer-replayed", "R27", "an answer is still right after restarts of both sides", kOwn,
     Replayed},
};

}  // namespace

std::span<const Check> RestartChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
