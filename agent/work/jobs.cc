#include "agent/work/jobs.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/work/child.h"
#include "agent/work/executor.h"
#include "agent/work/group_lock.h"
#include "iommu/plan/job_key.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr int32_t kFromStep = -1;
// How long a killed child has to be gone before it counts as stuck.
constexpr absl::Duration kKillTime = absl::Seconds(1);
constexpr char kModuleRemedy[] =
    "load the driver on the host, `modprobe vfio-pci`, or give the agent CAP_SYS_MODULE";

// What a child tells through its pipe; smaller than PIPE_BUF, so that each arrives whole.
struct Report {
  uint32_t step = 0;
  int32_t code = 0;   // absl::StatusCode; 0 while all goes well
  int32_t error = 0;  // errno
  uint32_t finished = 0;
  uint32_t undone = 0;
  int32_t reason = kFromStep;  // a Code, where the failure is not the kernel's answer to a step
  std::array<char, 380> text = {};
};
static_assert(sizeof(Report) <= 512);

void Send(int fd, const Report& report) {
  // The parent may be gone; then nobody is left to be told, and the group is finished anyway.
  [[maybe_unused]] const ssize_t n = ::write(fd, &report, sizeof report);
}

Report FinalReport(const Execution& execution) {
  const Outcome& outcome = execution.outcome;
  Report report{.step = static_cast<uint32_t>(outcome.done),
                .code = static_cast<int32_t>(outcome.status.code()),
                .error = ErrnoOf(outcome.status),
                .finished = 1,
                .undone = execution.undone ? 1U : 0U};
  if (execution.code) report.reason = static_cast<int32_t>(*execution.code);
  const std::string text = Message(outcome.status);
  text.copy(report.text.data(), report.text.size() - 1);
  return report;
}

[[noreturn]] void RunChild(int pipe, int lock, const std::string& root, const Job& job,
                           const Journal& journal, absl::Duration node_timeout) {
  LeaveParent({pipe, lock}, RightsFrom(job.actions, 0));
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  Execution execution{.outcome = {.status = tree.status()}};
  if (tree.ok()) {
    execution = Execute(job, *tree, journal, node_timeout, [pipe, &job](size_t step) {
      // The kernel shows our stack, should it not return, only to who can do all that we can; the
      // loop cannot load modules.
      UseOnly(RightsFrom(job.actions, step));
      Send(pipe, Report{.step = static_cast<uint32_t>(step)});
    });
  }
  Send(pipe, FinalReport(execution));
  ::_exit(0);
}

std::string ReadProcFile(pid_t pid, const char* name) {
  const Fd fd(::open(absl::StrFormat("/proc/%d/%s", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2048> text = {};
  const ssize_t n = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  return {text.data(), n > 0 ? static_cast<size_t>(n) : 0};
}

// "[<0>] nv_pci_remove+0x1c/0x40 [nvidia]" in each line of the kernel's stack; where that cannot be
// read (CAP_SYS_ADMIN), the one function of wchan.
std::vector<std::string> ReadKernelStack(pid_t pid) {
  constexpr size_t kMost = 6;
  std::vector<std::string> functions;
  for (const auto& line : absl::StrSplit(ReadProcFile(pid, "stack"), '\n')) {
    std::string text(line);
    if (const size_t end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    text = text.substr(0, text.find('+'));
    if (!text.empty() && functions.size() < kMost) functions.push_back(std::move(text));
  }
  if (!functions.empty()) return functions;
  const std::string wchan = ReadProcFile(pid, "wchan");
  if (!wchan.empty() && wchan != "0") functions.push_back(wchan);
  return functions;
}

}  // namespace

struct Jobs::Running {
  Job job;
  pid_t pid = 0;
  Fd reports;
  absl::Time started;
  absl::Time step_started;
  absl::Duration limit;  // of that step
  Report last;
  enum class Phase { kAtWork, kTimedOut, kStuck } phase = Phase::kAtWork;
  absl::Time phase_ends;  // kTimedOut: when it counts as stuck
  std::vector<std::string> stack;
  bool gone = false;

  // The step that does not return, as a shell command.
  std::string Command() const {
    return last.step < job.actions.size() ? ToShell(job.actions[last.step]) : "";
  }
};

Jobs::Limits LimitsOf(const Settings& settings) {
  return {.step = settings.unbind_timeout, .node = settings.node_timeout};
}

Jobs::Jobs(std::string root, std::string state_dir, Journal journal, Limits limits)
    : root_(std::move(root)),
      state_dir_(std::move(state_dir)),
      journal_(std::move(journal)),
      limits_(limits),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Jobs::~Jobs() = default;

absl::Status Jobs::Start(Job job, absl::Time now) {
  if (Has(job.group)) {
    return absl::FailedPreconditionError(SpellJobKey(job.group) + " is at work");
  }
  // Taken here, kept by the child until its end.
  ASSIGN_OR_RETURN(const Fd lock, LockGroup(state_dir_, job.group));
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) RunChild(write_end.get(), lock.get(), root_, job, journal_, limits_.node);
  auto running = std::make_unique<Running>(Running{.job = std::move(job),
                                                   .pid = pid,
                                                   .reports = std::move(read_end),
                                                   .started = now,
                                                   .step_started = now,
                                                   .limit = limits_.step});
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = 0}};
  // The pipe's end of file comes with the child's end, so the pipe alone tells both.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, running->reports.get(), &event) != 0) {
    return ErrnoStatus("watch child");
  }
  const int group = running->job.group;
  running_[group] = std::move(running);
  return absl::OkStatus();
}

size_t Jobs::active() const {
  return static_cast<size_t>(std::ranges::count_if(
      running_, [](const auto& entry) { return entry.second->phase == Running::Phase::kAtWork; }));
}

std::vector<const Job*> Jobs::AtWork() const {
  std::vector<const Job*> jobs;
  for (const auto& entry : running_) {
    if (entry.second->phase == Running::Phase::kAtWork) jobs.push_back(&entry.second->job);
  }
  return jobs;
}

Underway Jobs::Underway() const {
  vfio_agent::Underway underway;
  for (const auto& [group, running] : running_) {
    if (running->phase == Running::Phase::kAtWork) {
      underway.at_work.insert(group);
      continue;
    }
    StuckWrite& write = underway.stuck[group];
    write.command = running->Command();
    if (!running->stack.empty()) write.where = running->stack.front();
    if (running->last.step >= running->job.actions.size()) continue;
    const PciAddress* const device = DeviceOf(running->job.actions[running->last.step]);
    if (device != nullptr) write.device = *device;
  }
  return underway;
}

absl::Time Jobs::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& entry : running_) {
    const Running& running = *entry.second;
    if (running.phase == Running::Phase::kAtWork) {
      next = std::min(next, running.step_started + running.limit);
    } else if (running.phase == Running::Phase::kTimedOut) {
      next = std::min(next, running.phase_ends);
    }
  }
  return next;
}

void Jobs::ReadReports(Running& running, absl::Time now) {
  for (;;) {
    Report report;
    const ssize_t n = ::read(running.reports.get(), &report, sizeof report);
    if (n == static_cast<ssize_t>(sizeof report)) {
      running.last = report;
      running.step_started = now;
      running.limit = limits_.step;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    running.gone = n == 0;
    return;
  }
}

JobEvent Jobs::Finish(Running& running, absl::Time now) {
  ::waitpid(running.pid, nullptr, 0);  // its pipe is closed: it has ended
  JobEvent event{.job = running.job,
                 .done = running.last.step,
                 .cut_off = running.last.finished == 0 && running.phase != Running::Phase::kAtWork,
                 .undone = running.last.undone != 0,
                 .took = now - running.started};
  if (running.last.finished == 0) {
    event.status = absl::InternalError("the child process was ended before its plan was");
  } else if (running.last.code != 0) {
    event.status =
        absl::Status(static_cast<absl::StatusCode>(running.last.code), running.last.text.data());
    event.status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(running.last.error)));
  }
  if (running.last.reason != kFromStep) {
    event.code = static_cast<Code>(running.last.reason);
    if (event.code == Code::kPermissionDenied) event.remedy = kStateRemedy;
  } else if (!event.status.ok() && event.done < event.job.actions.size()) {
    const Action& failed = event.job.actions[event.done];
    event.code = CodeOfFailure(failed, event.status);
    const bool load = std::holds_alternative<LoadModule>(failed);
    if (load && event.code == Code::kPermissionDenied) event.remedy = kModuleRemedy;
  }
  return event;
}

// First a SIGKILL, which ends it where the kernel lets it; inside an unbind it does nothing.
void Jobs::CheckDeadline(Running& running, absl::Time now, std::vector<JobEvent>& events) {
  using Phase = Running::Phase;
  if (running.phase == Phase::kAtWork && now >= running.step_started + running.limit) {
    running.phase = Phase::kTimedOut;
    running.phase_ends = now + kKillTime;
  } else if (running.phase == Phase::kTimedOut && now >= running.phase_ends) {
    running.phase = Phase::kStuck;
  } else {
    return;
  }
  const bool stuck = running.phase == Phase::kStuck;
  running.stack = ReadKernelStack(running.pid);
  ::kill(running.pid, SIGKILL);
  JobEvent event{.kind = stuck ? JobEvent::Kind::kStuck : JobEvent::Kind::kTimedOut,
                 .job = running.job,
                 .done = running.last.step,
                 .code = stuck ? Code::kUnbindStuck : Code::kUnbindTimeout,
                 .stack = running.stack,
                 .took = now - running.started};
  const bool unbinding = event.done < event.job.actions.size() &&
                         std::holds_alternative<Unbind>(event.job.actions[event.done]);
  if (!unbinding) {
    event.remedy = "the kernel does not return from this write: see stack, `dmesg | tail`";
  }
  event.status = absl::DeadlineExceededError(
      absl::StrFormat("the kernel did not answer within %s%s", absl::FormatDuration(running.limit),
                      stuck ? ", and SIGKILL does not end the child" : ""));
  events.push_back(std::move(event));
}

std::vector<JobEvent> Jobs::Poll(absl::Time now) {
  std::vector<JobEvent> events;
  for (auto it = running_.begin(); it != running_.end();) {
    Running& running = *it->second;
    ReadReports(running, now);
    if (running.gone) {
      events.push_back(Finish(running, now));
      it = running_.erase(it);
      continue;
    }
    CheckDeadline(running, now, events);
    ++it;
  }
  return events;
}

}  // namespace vfio_agent
