#include "agent/doctor/facts.h"
#include "agent/doctor/looked_for.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_format.h"
#include "agent/doctor/kubelet_facts.h"
#include "agent/live.h"
#include "agent/outlets/status.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "sysfs/host/host_view.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);

View ViewOf(const Tree& tree) {
  if (!tree.is_host()) return View::kCopy;
  return SeesHostFiles(tree) ? View::kHost : View::kPod;
}

// The root directory that the running kubelet has: the host's, seen from a pod, where it may be
// looked at (CAP_SYS_PTRACE).
std::optional<Tree> KubeletRoot(View view, const HostProcess* kubelet) {
  if (view == View::kCopy || kubelet == nullptr) return std::nullopt;
  absl::StatusOr<Tree> root = Tree::Open(absl::StrFormat("/proc/%d/root", kubelet->pid));
  if (!root.ok()) return std::nullopt;
  return *std::move(root);
}

StateDirFacts LookAtStateDir(const std::string& dir) {
  StateDirFacts facts{.path = dir};
  struct statvfs room = {};
  // Where it is not there yet, what it would be made in.
  std::string at = dir;
  while (::statvfs(at.c_str(), &room) != 0) {
    const size_t slash = at.rfind('/');
    if (errno != ENOENT || slash == std::string::npos || at == "/") {
      facts.status = ErrnoStatus(absl::StrFormat("look at %s", dir));
      return facts;
    }
    at = slash == 0 ? "/" : at.substr(0, slash);
  }
  facts.read_only = (room.f_flag & ST_RDONLY) != 0;
  facts.free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  // Some file systems have no fixed number of files and say 0 of 0.
  facts.free_files = room.f_files == 0 ? kUnlimited : uint64_t{room.f_favail};
  return facts;
}

absl::StatusOr<AgentStatus> AskAgent(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::string socket, SocketPath(settings.state_dir, kStatusSocket));
  return FetchStatus(socket, kPatience);
}

void TakePicture(Session& session, DoctorFacts& facts) {
  absl::StatusOr<Picture> picture = session.Take(facts.notes);
  if (!picture.ok()) {
    facts.picture_error = Printable(Message(picture.status()), 256);
    return;
  }
  for (const Journal::Unreadable& file : picture->unreadable) {
    facts.notes.push_back(file.path + ": " + file.why);
  }
  for (const std::string& skipped : picture->facts.skipped) facts.notes.push_back(skipped);
  for (const PciDevice& device : picture->facts.devices) {
    for (const std::string& error : device.errors) {
      facts.notes.push_back(device.address.ToString() + ": " + error);
    }
  }
  for (std::string& note : facts.notes) note = Printable(note, 256);
  facts.picture = *std::move(picture);
}

void ReadKubelet(const Session& session, const Tree* files, DoctorFacts& facts) {
  const Tree& tree = session.tree();
  const bool live = IsLive(session, "kubelet.devicePluginDir");
  const absl::StatusOr<Tree> here = Tree::Open("/");
  facts.kubelet = ReadKubeletFacts({.proc = &tree,
                                    .files = files,
                                    .plugins = live && here.ok() ? &*here : &tree,
                                    .files_live = facts.view != View::kCopy,
                                    .plugins_live = live},
                                   facts.processes, facts.settings);
}

}  // namespace

DoctorFacts TakeDoctorFacts(Session& session) {
  const Tree& tree = session.tree();
  DoctorFacts facts{
      .view = ViewOf(tree),
      .settings = session.settings(),
      .vgpu = session.config().in_force == Mode::kVgpu,
      .passthrough = session.config().in_force != Mode::kContainer,
      .vgpus = !session.config().policy.mdev.empty() || !session.config().policy.vgpu.empty()};
  TakePicture(session, facts);
  facts.firmware = ReadFirmwareFacts(tree);
  facts.memory = ReadMemoryFacts(tree);
  facts.processes = ReadHostProcesses(tree, DoctorCommands());
  const absl::StatusOr<std::string> line = tree.ReadText(kCommandLine, size_t{64} * 1024);
  if (line.ok()) facts.command_line = Printable(*line, size_t{64} * 1024);
  const std::optional<Tree> root = KubeletRoot(facts.view, FindKubelet(facts.processes));
  const Tree* const own = facts.view == View::kPod ? nullptr : &tree;
  facts.modules = ReadHostModules(tree, own == nullptr && root ? &*root : own, facts.command_line,
                                  DoctorModules());
  // The kubelet's own files are for root; a copy's are as they are.
  const bool may_look = facts.view == View::kCopy || ::geteuid() == 0;
  ReadKubelet(session, root ? &*root : may_look ? own : nullptr, facts);
  if (IsStateDirLive(session)) {
    facts.state_dir = LookAtStateDir(facts.settings.state_dir);
    facts.agent = AskAgent(facts.settings);
  }
  return facts;
}

}  // namespace vfio_agent
