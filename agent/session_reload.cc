// The part of Session that puts another configuration into force.
#include "agent/session.h"
#include "sysfs/status.h"

namespace vfio_agent {

absl::StatusOr<Session::Candidate> Session::ReadAnew() const {
  Candidate next;
  ASSIGN_OR_RETURN(next.config, ReadConfig(invocation_.config_file));
  const SettingSources sources = {
      .flags = invocation_.flags, .file = next.config.settings, .file_name = next.config.file_name};
  ASSIGN_OR_RETURN(next.settings, MakeSettings(sources));
  next.kept = KeepAtStart(started_, ResolveSettings(sources), next.settings);
  next.config.whole.iommufd = next.settings.iommufd;
  // What a label says does not change with the file.
  next.config.UseMode(next.config.mode.label.empty() ? next.config.mode.mode : config_.in_force);
  return next;
}

// Both plans are of the same facts, so that they differ by the configuration alone.
absl::StatusOr<Session::Prospect> Session::Foresee(const Candidate& next, Wish wish) {
  std::vector<std::string> notes;  // the next picture has them too
  ASSIGN_OR_RETURN(Picture picture, TakeFacts(notes, wish));
  Prospect prospect;
  PlanBy(config_.policy, wish, picture);
  prospect.before = std::move(picture.plan);
  PlanBy(next.config.policy, wish, picture);
  prospect.after = std::move(picture.plan);
  return prospect;
}

void Session::Adopt(Candidate next) {
  const Mode in_force = config_.in_force;  // another one is to be switched to
  config_ = std::move(next.config);
  UseMode(in_force);
  settings_ = std::move(next.settings);
  modules_ = ReadModuleFacts(tree_);
  looked_up_.clear();  // names found once stay: a resource must not change its name under a pod
}

}  // namespace vfio_agent
