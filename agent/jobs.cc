#include "agent/jobs.h"

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
#include "iommu/apply.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/writer.h"

namespace vfio_agent {
namespace {

// What a child tells through its pipe; smaller than PIPE_BUF, so that each arrives whole.
struct Report {
  uint32_t step = 0;
  int32_t code = 0;   // absl::StatusCode; 0 while all goes well
  int32_t error = 0;  // errno
  uint32_t finished = 0;
  std::array<char, 384> text = {};
};
static_assert(sizeof(Report) <= 512);

void Send(int fd, const Report& report) {
  // The parent may be gone; then nobody is left to be told, and the group is finished anyway.
  [[maybe_unused]] const ssize_t n = ::write(fd, &report, sizeof report);
}

Report FinalReport(const Outcome& outcome) {
  Report report{.step = static_cast<uint32_t>(outcome.done),
                .code = static_cast<int32_t>(outcome.status.code()),
                .error = ErrnoOf(outcome.status),
                .finished = 1};
  const std::string text = Message(outcome.status);
  text.copy(report.text.data(), report.text.size() - 1);
  return report;
}

// In the child: everything that came from the parent goes away, but the pipe (as descriptor 3)
// and the standard streams. Signals that the parent blocks for its signalfd are let through.
void LeaveParent(int pipe) {
  ::setpgid(0, 0);  // a ^C at the terminal must not cut a group's plan in two
  ::dup2(pipe, 3);
  ::close_range(4, ~0u, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

[[noreturn]] void RunChild(int pipe, const std::string& root, const Job& job,
                           absl::Duration node_timeout) {
  LeaveParent(pipe);
  absl::StatusOr<Tree> tree = Tree::Open(root);
  Outcome outcome{.status = tree.status()};
  if (tree.ok()) {
    TreeWriter writer(*tree);
    outcome = Apply(job.actions, *tree, writer, node_timeout,
                    [](size_t step) { Send(3, Report{.step = static_cast<uint32_t>(step)}); });
  }
  Send(3, FinalReport(outcome));
  ::_exit(0);
}

std::string ReadWchan(pid_t pid) {
  const Fd fd(::open(absl::StrFormat("/proc/%d/wchan", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text = {};
  const ssize_t n = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  const std::string_view name(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
  return name == "0" ? std::string() : std::string(name);
}

}  // namespace

struct Jobs::Running {
  Job job;
  pid_t pid = 0;
  Fd reports;
  absl::Time started;
  absl::Time step_started;
  Report last;
  bool stuck = false;
  bool gone = false;
};

Jobs::Jobs(std::string root, Limits limits)
    : root_(std::move(root)), limits_(limits), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Jobs::~Jobs() = default;

absl::Status Jobs::Start(Job job, absl::Time now) {
  if (Has(job.group)) {
    return absl::FailedPreconditionError(absl::StrFormat("group %d is at work", job.group));
  }
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) RunChild(write_end.get(), root_, job, limits_.node);
  auto running = std::make_unique<Running>(Running{.job = std::move(job),
                                                   .pid = pid,
                                                   .reports = std::move(read_end),
                                                   .started = now,
                                                   .step_started = now});
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
  return static_cast<size_t>(
      std::ranges::count_if(running_, [](const auto& entry) { return !entry.second->stuck; }));
}

absl::Time Jobs::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& entry : running_) {
    if (!entry.second->stuck) next = std::min(next, entry.second->step_started + limits_.step);
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
                 .was_stuck = running.stuck,
                 .took = now - running.started};
  if (running.last.finished == 0) {
    event.status = absl::AbortedError("the child process ended before its plan did");
  } else if (running.last.code != 0) {
    event.status =
        absl::Status(static_cast<absl::StatusCode>(running.last.code), running.last.text.data());
    event.status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(running.last.error)));
  }
  if (!event.status.ok() && event.done < event.job.actions.size()) {
    event.code = CodeOfFailure(event.job.actions[event.done], event.status);
  }
  return event;
}

JobEvent Jobs::GiveUp(Running& running, absl::Time now) {
  running.stuck = true;
  JobEvent event{.kind = JobEvent::Kind::kStuck,
                 .job = running.job,
                 .done = running.last.step,
                 .code = Code::kUnbindTimeout,
                 .was_stuck = true,
                 .where = ReadWchan(running.pid),
                 .took = now - running.started};
  event.status = absl::DeadlineExceededError(
      absl::StrFormat("the kernel did not answer within %s", absl::FormatDuration(limits_.step)));
  // Ends it where the kernel lets it; inside an unbind it does nothing.
  ::kill(running.pid, SIGKILL);
  return event;
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
    if (!running.stuck && now >= running.step_started + limits_.step) {
      events.push_back(GiveUp(running, now));
    }
    ++it;
  }
  return events;
}

}  // namespace vfio_agent
