// The part of Agent that takes on another configuration.
#include "absl/strings/str_format.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"
#include "agent/log.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {

void Agent::CheckConfig(absl::Time now) {
  switch (config_watch_.Check(now)) {
    case ConfigWatch::Found::kNothing:
      return;
    case ConfigWatch::Found::kNew:
      return Reload(false);
    case ConfigWatch::Found::kEmpty:
      return ConfigLost("the file is empty");
    case ConfigWatch::Found::kGone:
      return ConfigLost("the file has gone");
    case ConfigWatch::Found::kUnreadable:
      return ConfigLost("the file cannot be read");
  }
}

// Nobody asks for the built-in defaults by losing a file or its text; SIGHUP does.
void Agent::ConfigLost(const std::string& why) {
  const std::string& file = session_.invocation().config_file;
  absl::Status status = ReadConfigText(file).status();
  if (status.ok()) {
    status = absl::InvalidArgumentError(
        absl::StrFormat("%s: nothing is in it, which would mean the built-in configuration", file));
  }
  config_watch_.Tried();
  book_.ConfigRead(Message(status));
  Say(ConfigRejected(status, why));
}

// Validated, then told, then done. `asked`: by SIGHUP.
void Agent::Reload(bool asked) {
  const std::string why = asked ? "SIGHUP" : "the file has changed";
  config_watch_.Tried();
  absl::StatusOr<Session::Candidate> next = session_.ReadAnew();
  if (!next.ok()) {
    book_.ConfigRead(Message(next.status()));
    return Say(ConfigRejected(next.status(), why));
  }
  const std::optional<size_t> changes = Foretell(*next);
  if (!next->kept.empty()) Say(ConfigKept(next->kept));
  session_.Adopt(*std::move(next));
  mode_.SetRule(session_.config().mode, MonotonicNow());
  if (node_labels_) mode_.SetLabels(*node_labels_, MonotonicNow());
  const Settings& settings = session_.settings();
  SetUpLog(settings.log_level, settings.log_format);
  book_.ConfigRead("");
  Say(ConfigReloaded(session_.config().file_name, why, changes));
  NoteNoLabel();
  jobs_.SetLimits(LimitsOf(settings));
  SetGrace();
  if (asked) session_.ForgiveErrors();
  retries_.Reset();
  Ask("reload");
}

// Says what `next` changes; how many groups that are, nullopt where it could not be told.
std::optional<size_t> Agent::Foretell(const Session::Candidate& next) {
  if (!looked_) return std::nullopt;  // nothing was told yet that could change
  Wish wish = MakeWish(MonotonicNow());
  wish.tenants = Wish::Tenants::kLast;
  const absl::StatusOr<Session::Prospect> prospect = session_.Foresee(next, std::move(wish));
  if (!prospect.ok()) {
    Say(ReadFailed(Message(prospect.status())));
    return std::nullopt;
  }
  const std::vector<PlanChange> changes = ComparePlans(prospect->before, prospect->after);
  for (const PlanChange& change : changes) Say(Foreseen(change));
  return changes.size();
}

}  // namespace vfio_agent
