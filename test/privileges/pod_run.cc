// pod-run: runs a program as a container runtime would run it for a DaemonSet's manifest.
//
//   pod-run --manifest FILE [--node DIR] [--at HOSTPATH=DIR]... [--without WHAT]... [--with
//   WHAT]...
//           PROGRAM ARGUMENT...
//
// WHAT: a capability ("SYS_PTRACE"), hostPID, seccomp, or a mount's path in the manifest; with
// --read-only PATH that mount loses its right to be written. Of a runtime's doings it leaves out
// the device cgroup, which is the starter's, and AppArmor, which the manifest switches off.
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>

#include "test/privileges/pod_mounts.h"
#include "test/privileges/pod_seccomp.h"
#include "test/privileges/pod_spec.h"

namespace vfio_agent {
namespace {

constexpr std::array<std::string_view, CAP_LAST_CAP + 1> kNames = {"CHOWN",
                                                                   "DAC_OVERRIDE",
                                                                   "DAC_READ_SEARCH",
                                                                   "FOWNER",
                                                                   "FSETID",
                                                                   "KILL",
                                                                   "SETGID",
                                                                   "SETUID",
                                                                   "SETPCAP",
                                                                   "LINUX_IMMUTABLE",
                                                                   "NET_BIND_SERVICE",
                                                                   "NET_BROADCAST",
                                                                   "NET_ADMIN",
                                                                   "NET_RAW",
                                                                   "IPC_LOCK",
                                                                   "IPC_OWNER",
                                                                   "SYS_MODULE",
                                                                   "SYS_RAWIO",
                                                                   "SYS_CHROOT",
                                                                   "SYS_PTRACE",
                                                                   "SYS_PACCT",
                                                                   "SYS_ADMIN",
                                                                   "SYS_BOOT",
                                                                   "SYS_NICE",
                                                                   "SYS_RESOURCE",
                                                                   "SYS_TIME",
                                                                   "SYS_TTY_CONFIG",
                                                                   "MKNOD",
                                                                   "LEASE",
                                                                   "AUDIT_WRITE",
                                                                   "AUDIT_CONTROL",
                                                                   "SETFCAP",
                                                                   "MAC_OVERRIDE",
                                                                   "MAC_ADMIN",
                                                                   "SYSLOG",
                                                                   "WAKE_ALARM",
                                                                   "BLOCK_SUSPEND",
                                                                   "AUDIT_READ",
                                                                   "PERFMON",
                                                                   "BPF",
                                                                   "CHECKPOINT_RESTORE"};

bool IsCapability(const std::string& name) {
  for (const std::string_view known : kNames) {
    if (known == name) return true;
  }
  return false;
}

[[noreturn]] void Usage(const std::string& why) {
  errno = EINVAL;
  Die(why);
}

// A program that root starts has what the bounding set leaves.
void BoundCapabilities(const PodSpec& spec) {
  for (const std::string& name : spec.capabilities) {
    if (!IsCapability(name)) Usage("no capability: " + name);
  }
  for (unsigned number = 0; number < kNames.size(); ++number) {
    if (spec.capabilities.contains(std::string(kNames[number]))) continue;
    if (::prctl(PR_CAPBSET_READ, number, 0, 0, 0) <= 0) continue;
    if (::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) Die("drop a capability");
  }
}

PodMount* FindMount(PodSpec& spec, const std::string& path) {
  for (PodMount& mount : spec.mounts) {
    if (mount.path == path) return &mount;
  }
  return nullptr;
}

void Without(PodSpec& spec, const std::string& what) {
  if (what == "hostPID") {
    spec.host_pid = false;
  } else if (what == "seccomp") {
    spec.runtime_seccomp = false;
  } else if (spec.capabilities.erase(what) == 0) {
    PodMount* const mount = FindMount(spec, what);
    if (mount == nullptr) Usage("the manifest has no " + what);
    mount->host.clear();
  }
}

struct Command {
  PodSpec spec;
  PodPlace place;
  char** program = nullptr;
};

void Apply(Command& command, const std::string& option, const std::string& value) {
  if (option == "--manifest") {
    command.spec = ReadPodSpec(value);
  } else if (option == "--node") {
    command.place.node = value;
  } else if (option == "--at") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos) Usage("--at " + value);
    command.place.at[value.substr(0, equals)] = value.substr(equals + 1);
  } else if (option == "--with") {
    command.spec.capabilities.insert(value);
  } else if (option == "--without") {
    Without(command.spec, value);
  } else if (option == "--read-only" && FindMount(command.spec, value) != nullptr) {
    FindMount(command.spec, value)->read_only = true;
  } else {
    Usage(option + " " + value);
  }
}

Command Parse(int argc, char** argv) {
  Command command;
  int i = 1;
  for (; i + 1 < argc && std::string_view(argv[i]).starts_with("--"); i += 2) {
    Apply(command, argv[i], argv[i + 1]);
  }
  if (i >= argc) Usage("no program");
  command.program = argv + i;
  return command;
}

pid_t child = 0;
void PassOn(int signal) { ::kill(child, signal); }

// The first process of a namespace of its own ends with this one, and the other way round.
void ForkIntoNamespace() {
  child = ::fork();
  if (child < 0) Die("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return;
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, PassOn);
  int status = 0;
  while (::waitpid(child, &status, 0) != child) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int Main(int argc, char** argv) {
  const Command command = Parse(argc, argv);
  const PodSpec& spec = command.spec;
  int namespaces = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (!spec.host_network) namespaces |= CLONE_NEWNET;
  if (!spec.host_pid) namespaces |= CLONE_NEWPID;
  if (::unshare(namespaces) != 0) Die("namespaces");
  if (!spec.host_pid) ForkIntoNamespace();
  MakePodMounts(spec, command.place);
  BoundCapabilities(spec);
  if (spec.no_new_privileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) Die("no_new_privs");
  if (spec.runtime_seccomp) InstallPodSeccomp(spec);
  ::execvp(command.program[0], command.program);
  Die(command.program[0]);
}

}  // namespace
}  // namespace vfio_agent

int main(int argc, char** argv) { return vfio_agent::Main(argc, argv); }
