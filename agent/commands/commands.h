// The subcommands: each prints its answer on standard output and returns an exit code.
#pragma once

#include <string>

#include "agent/session.h"
#include "agent/text/json.h"
#include "iommu/policy/selector.h"

namespace vfio_agent {

absl::Status DropPrivileges();     // the daemon, before all else
int RunCommand(Session& session);  // the daemon
int PlanCommand(Session& session);
int BindCommand(Session& session);
int ReleaseCommand(Session& session);
int ReleaseTaken(Session& session);  // the daemon's own, at its end, when it serves no more
int ListCommand(Session& session);
int ExplainCommand(Session& session);
int KubevirtCommand(Session& session);
int TopologyCommand(Session& session);
int DoctorCommand(Session& session);
int SnapshotCommand(Session& session);
int ConfigCheckCommand(Session& session);
int ConfigShowCommand(Session& session);
// These need no configuration and no root.
int HelpCommand(const Invocation& invocation);
int VersionCommand(const Invocation& invocation);
int StatusCommand(const Invocation& invocation);
int CompletionCommand(const Invocation& invocation);
int CompleteCommand(const Invocation& invocation);

// Helpers that the subcommands share.

// For what is asked of a running daemon: that keeps the configuration that it has while the file is
// broken, and so the file's settings are left out then, and `fault` says what is wrong with it. The
// manifests name stateDir in the environment, where the file's does not count anyway.
absl::StatusOr<Settings> SettingsOfDaemon(const Invocation& invocation, std::string& fault);

// One line on standard error: "vfio-agent: <text>". Of neither does a terminal obey anything.
void PrintError(const std::string& text);
// A text without colours, for people, on standard output.
void PrintText(const std::string& text);
// True for json and yaml, and then how such a document is written, and printed.
bool IsDocument(Output output);
std::string DocumentText(const Json& document, Output output);
void PrintDocument(const Json& document, Output output);
// Takes the picture; prints what is wrong and returns null where it cannot.
std::unique_ptr<Picture> TakeOrPrint(Session& session);
// Before a command that changes the node: sets journal files that cannot be read aside, and tells.
void SetAsideOrPrint(const Session& session, const Picture& picture);
// "code 0000:02:00.0: text\n  remedy: …" with `indent` in front of each line.
std::string RefusalText(const Refusal& refusal, const std::string& indent);
// What SELECTOR means to planning: of a mediated device, by uuid or group, its parent.
absl::StatusOr<Target> ReadTarget(const Picture& picture, const std::string& selector);
// The groups that the SELECTORs mean; all selected groups where there are none. InvalidArgument
// for one that cannot be read, NotFound for one that fits nothing.
absl::StatusOr<std::vector<const GroupPlan*>> FindTargets(
    const Picture& picture, const std::vector<std::string>& selectors);
// Of a unit: the pods that have it, else `reason`. "team/vm", and `wide` "pod team/vm (container
// compute)".
std::string WhoOrWhy(const std::vector<PodClaim>& pods, const std::string& reason, bool wide);
// What decides of the configuration, in the file's own form.
Json PolicyToJson(const Config& config);
// Model name or "".
std::string ModelOf(const Picture& picture, const PciDevice& device);

}  // namespace vfio_agent
