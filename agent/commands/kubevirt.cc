#include <algorithm>

#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/kubevirt/diff.h"
#include "agent/kubevirt/file.h"
#include "agent/kubevirt/kubevirt.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::StatusOr<Served> ServedOf(const Picture& picture, const std::vector<std::string>& selectors) {
  ASSIGN_OR_RETURN(const std::vector<const GroupPlan*> groups, FindTargets(picture, selectors));
  return FindServed(picture.plan, picture.facts, groups);
}

int PrintServed(const Served& served, Output output) {
  if (IsDocument(output)) {
    PrintDocument(KubevirtToJson(served), output);
  } else {
    PrintText(KubevirtText(served));
  }
  return kExitDone;
}

int PrintCompared(const Served& served, const std::vector<Compared>& compared, Output output) {
  if (IsDocument(output)) {
    Json document = KubevirtToJson(served);
    document["compared"] = ComparedToJson(compared);
    PrintDocument(document, output);
  } else {
    PrintText(ComparedText(compared));
  }
  return AllStart(compared) ? kExitDone : kExitRefused;
}

}  // namespace

int KubevirtCommand(Session& session) {
  const Invocation& invocation = session.invocation();
  // Before the picture: a bad file is told without a look at the node.
  KubevirtFile file;
  if (invocation.diff) {
    absl::StatusOr<KubevirtFile> read = ReadKubevirtFile(*invocation.diff);
    if (!read.ok()) {
      PrintError(Printable(Message(read.status())));
      return kExitUsage;
    }
    file = *std::move(read);
  }
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  const absl::StatusOr<Served> asked = ServedOf(*picture, invocation.arguments);
  const absl::StatusOr<Served> node = ServedOf(*picture, {});
  if (!asked.ok() || !node.ok()) {
    PrintError(Message(asked.ok() ? node.status() : asked.status()));
    return kExitUsage;
  }
  if (!invocation.diff) return PrintServed(*asked, invocation.output);
  return PrintCompared(*asked, CompareWithFile(*asked, *node, file), invocation.output);
}

}  // namespace vfio_agent
