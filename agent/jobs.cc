#include "agent/jobs.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "agent/signals.h"
#include "iommu/apply.h"
#include "sysfs/config_space.h"
#include "sysfs/holders.h"
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
  uint32_t undone = 0;
  std::array<char, 380> text = {};
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

// In the child: what came from the parent goes away, but the pipe, the group's lock and the
// standard streams. A stuck child must not keep the plugin's sockets open.
void LeaveParent(int pipe, int lock) {
  ::setpgid(0, 0);  // a ^C at the terminal must not cut a group's plan in two
  const auto low = static_cast<unsigned>(std::min(pipe, lock));
  const auto high = static_cast<unsigned>(std::max(pipe, lock));
  if (low > 3) ::close_range(3, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0u, 0);
  ResetSignals();
  ::signal(SIGPIPE, SIG_IGN);
}

// Puts back what the first `done` steps have moved, planned from what the kernel shows now. True
// where there was something and all of it went back.
bool Undo(const Tree& tree, const Job& job, size_t done, const OnStep& on_step) {
  const std::vector<PciAddress> moved = DevicesOf(std::span(job.actions).first(done));
  if (job.kind != JobKind::kBind || moved.empty() || IsGroupOpen(tree, job.group)) return false;
  ConfigReader config(tree);
  const absl::StatusOr<NodeFacts> facts = TakeNodeFacts(tree, config, {});
  if (!facts.ok()) return false;
  const std::vector<Action> actions = PlanUndo(*facts, job.origins, moved);
  TreeWriter writer(tree);
  return Apply(actions, tree, writer, absl::ZeroDuration(), on_step).status.ok();
}

[[noreturn]] void RunChild(int pipe, int lock, const std::string& root, const Job& job,
                           absl::Duration node_timeout) {
  LeaveParent(pipe, lock);
  const absl::StatusOr<Tree> tree = Tree::Open(root);
  Outcome outcome{.status = tree.status()};
  if (tree.ok()) {
    TreeWriter writer(*tree);
    outcome = Apply(job.actions, *tree, writer, node_timeout, [pipe](size_t step) {
      Send(pipe, Report{.step = static_cast<uint32_t>(step)});
    });
  }
  Report last = FinalReport(outcome);
  if (tree.ok() && !outcome.status.ok()) {
    const Report at_work{.step = last.step};  // so that each step of the way back has its time
    last.undone = Undo(*tree, job, outcome.done, [&](size_t) { Send(pipe, at_work); }) ? 1 : 0;
  }
  Send(pipe, last);
  ::_exit(0);
}

// Taken by the parent, kept by the child until its end.
absl::StatusOr<Fd> LockGroup(const std::string& state_dir, int group) {
  const std::string dir = state_dir + "/locks";
  RETURN_IF_ERROR(MakeDirectories(dir));
  const std::string path = absl::StrFormat("%s/group-%d", dir, group);
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoStatus(absl::StrFormat("lock %s", path));
  return absl::UnavailableError(
      absl::StrFormat("another vfio-agent process is still at work on group %d", group));
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

Jobs::Jobs(std::string root, std::string state_dir, Limits limits)
    : root_(std::move(root)),
      state_dir_(std::move(state_dir)),
      limits_(limits),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Jobs::~Jobs() = default;

absl::Status Jobs::Start(Job job, absl::Time now) {
  if (Has(job.group)) {
    return absl::FailedPreconditionError(absl::StrFormat("group %d is at work", job.group));
  }
  ASSIGN_OR_RETURN(const Fd lock, LockGroup(state_dir_, job.group));
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) RunChild(write_end.get(), lock.get(), root_, job, limits_.node);
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
                 .undone = running.last.undone != 0,
                 .took = now - running.started};
  if (running.last.finished == 0) {
    event.status = absl::InternalError("the child process was ended before its plan was");
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
  const bool unbinding = event.done < event.job.actions.size() &&
                         std::holds_alternative<Unbind>(event.job.actions[event.done]);
  if (!unbinding) {
    event.remedy = "the kernel does not return from this write: see wchan, `dmesg | tail`";
  }
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
