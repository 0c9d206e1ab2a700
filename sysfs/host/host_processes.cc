#include "sysfs/host/host_processes.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/use/cgroup_owner.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {
namespace {

constexpr size_t kSmall = size_t{64} * 1024;
constexpr size_t kMostArguments = size_t{256} * 1024;

std::string ProcFile(int pid, const char* name) { return absl::StrFormat("proc/%d/%s", pid, name); }

HostProcess ReadProcess(const Tree& tree, int pid, const std::string& command) {
  const auto cgroup = ReadProcText(tree, ProcFile(pid, "cgroup"), kSmall);
  const auto limits = ReadProcText(tree, ProcFile(pid, "limits"), kSmall);
  return {.pid = pid,
          .command = Printable(command),
          .owner = cgroup.ok() ? CgroupOwner(*cgroup) : "",
          .locked_memory_bytes = limits.ok() ? ParseLockedMemory(*limits)
                                             : Fact<uint64_t>::Unknown(ErrnoOf(limits.status()))};
}

}  // namespace

// "Max locked memory         8388608              8388608              bytes     "
Fact<uint64_t> ParseLockedMemory(std::string_view limits) {
  constexpr std::string_view kKey = "Max locked memory";
  for (const std::string_view line : Lines(limits)) {
    if (!line.starts_with(kKey)) continue;
    const std::vector<std::string_view> words = Fields(line.substr(kKey.size()));
    if (words.empty()) break;
    if (words[0] == "unlimited") return Fact<uint64_t>(kUnlimited);
    if (const auto bytes = ParseNumber(words[0], 10)) return Fact<uint64_t>(*bytes);
  }
  return Fact<uint64_t>::Unknown(EINVAL);
}

HostProcesses ReadHostProcesses(const Tree& tree, std::span<const std::string_view> commands) {
  HostProcesses processes;
  const absl::StatusOr<std::vector<std::string>> names = tree.List("proc");
  if (!names.ok()) return processes;
  bool any = false;
  for (const std::string& name : *names) {
    int pid = 0;
    if (!absl::SimpleAtoi(name, &pid)) continue;
    const absl::StatusOr<std::string> command = tree.ReadText(ProcFile(pid, "comm"));
    if (!command.ok()) continue;  // it has ended meanwhile
    any = true;
    const bool wanted = std::ranges::any_of(
        commands, [&](std::string_view start) { return command->starts_with(start); });
    if (wanted) processes.list.push_back(ReadProcess(tree, pid, *command));
  }
  std::ranges::sort(processes.list, {}, &HostProcess::pid);
  processes.complete = any && SeesAllProcesses(tree);
  return processes;
}

std::vector<std::string> ReadArguments(const Tree& tree, int pid) {
  const auto text = ReadProcText(tree, ProcFile(pid, "cmdline"), kMostArguments);
  std::vector<std::string> words;
  if (!text.ok()) return words;  // it has ended, or may not be looked at
  for (const std::string_view word : Split(*text, '\0')) words.emplace_back(word);
  return words;
}

}  // namespace vfio_agent
