#include "agent/cluster/node_events.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "agent/mode/mode_words.h"
#include "iommu/code.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kNormal = "Normal";
constexpr std::string_view kWarning = "Warning";

// One line of the log: `reason` where it has no code; `says` follows what it is about.
struct Row {
  std::string_view name;
  std::string_view type;
  std::string_view reason;
  std::string_view action;
  std::string_view says;
  bool of_pod = false;
};

constexpr auto kRows = std::to_array<Row>({
    {"read_failed", kWarning, "ReadFailed", "Read", "cannot be read"},
    {"iommu_off", kWarning, "IommuOff", "Plan", "isolates no devices: the IOMMU is not on"},
    {"group_refused", kWarning, "GroupRefused", "Plan", "is refused"},
    {"group_gone", kWarning, "DeviceGone", "Plan", "is gone"},
    {"warning", kWarning, "Warning", "Plan", "is served, with a warning"},
    {"bind_done", kNormal, "Bound", "Bind", "is bound"},
    {"bind_failed", kWarning, "BindFailed", "Bind", "was not bound"},
    {"bind_stuck", kWarning, "BindStuck", "Bind", "waits for the kernel"},
    {"bind_returned", kNormal, "BindReturned", "Bind", "waits for the kernel no more"},
    {"released", kNormal, "Released", "Release", "is given back"},
    {"release_failed", kWarning, "ReleaseFailed", "Release", "was not given back"},
    {"release_stuck", kWarning, "ReleaseStuck", "Release", "waits for the kernel"},
    {"release_returned", kNormal, "ReleaseReturned", "Release", "waits for the kernel no more"},
    {"unit_unhealthy", kWarning, "UnitUnhealthy", "Serve", "cannot be given now"},
    {"unit_healthy", kNormal, "UnitHealthy", "Serve", "can be given again"},
    {"pods_unknown", kWarning, "PodsUnknown", "Serve", "does not tell who has which device"},
    {"register_failed", kWarning, "RegisterFailed", "Register", "is not registered"},
    {"register_contended", kWarning, "RegisterContended", "Register", "is served by others too"},
    {"contention_over", kNormal, "ContentionOver", "Register", "is served by this agent alone"},
    {"directory_replaced", kWarning, "DirectoryReplaced", "Register",
     "has a new device-plugin directory"},
    {"allocate_refused", kWarning, "AllocateRefused", "Allocate", "was not given"},
    {"claim_refused", kWarning, "ClaimRefused", "Prepare", "was not prepared"},
    {"unprepare_failed", kWarning, "UnprepareFailed", "Unprepare", "was not taken back"},
    {"prestart_refused", kWarning, "StartRefused", "Start", "must not be started with", true},
    {"config_reloaded", kNormal, "ConfigReloaded", "Configure", "has a new configuration"},
    {"config_rejected", kWarning, "ConfigRejected", "Configure", "keeps its configuration"},
    {"privileges_missing", kWarning, "PrivilegesMissing", "Start", "lacks privileges"},
    {"journal_set_aside", kWarning, "JournalSetAside", "Read", "has a journal that is unreadable"},
    {"cdi_failed", kWarning, "CdiFailed", "Serve", "has no CDI spec of something"},
    {"mode_switching", kNormal, "ModeSwitching", "Switch", "changes its mode"},
    {"mode_ready", kNormal, "ModeReady", "Switch", "is in its mode"},
    {"mode_blocked", kWarning, "ModeBlocked", "Switch", "cannot change its mode yet"},
    {"mode_invalid", kWarning, "ModeInvalid", "Switch", "has a label that names no mode"},
    {"nfd_failed", kWarning, "NfdFailed", "Serve", "has not told NFD everything"},
});

// A sibling that a pod has, or that is held, is how shared groups are meant to work.
constexpr std::array<Code, 2> kUsual = {Code::kGroupSplit, Code::kHeld};

std::string Field(const Event& event, std::string_view key) {
  for (const auto& [name, value] : event.fields) {
    if (name == key) return value;
  }
  return "";
}

// The first one: a group that is refused has the codes of all its reasons.
std::string CodeIn(const Event& event) {
  const std::string listed = Field(event, "code");
  if (!listed.empty()) return listed.substr(0, listed.find(','));
  for (const char* key : {"reason", "err"}) {
    if (const auto code = FindCode(Field(event, key))) return std::string(CodeName(*code));
  }
  return "";
}

struct About {
  std::string key;   // tells one series from another, however the words change
  std::string text;  // for the note
};

// A note is posted once and stays: what a mode waits for next is an Event of its own.
std::string KeyOfMode(const Event& event) {
  std::string key = "mode";
  for (const char* part : {"from", "mode", "value", "why"}) key += " " + Field(event, part);
  return key;
}

// One switch withholds every unit of a node: it is told as the switch, not unit by unit.
bool IsOfMode(const Event& event) {
  return event.name == "unit_unhealthy" && Field(event, "reason").starts_with(kWithheldByMode);
}

About AboutOf(const Event& event) {
  if (event.name.starts_with("mode_")) return {KeyOfMode(event), "this node"};
  const std::string unit = Field(event, "unit"), resource = Field(event, "resource");
  const std::string group = Field(event, "group"), members = Field(event, "members");
  if (const std::string claim = Field(event, "claim"); !claim.empty()) {
    // The next claim of that name is another one.
    return {absl::StrFormat("claim %s %s", claim, Field(event, "uid")), "ResourceClaim " + claim};
  }
  if (!unit.empty()) return {"unit " + unit, absl::StrFormat("unit %s of %s", unit, resource)};
  if (const std::string ids = Field(event, "ids"); !ids.empty()) {
    return {resource + " " + ids, absl::StrFormat("%s of %s", ids, resource)};
  }
  const std::string device = Field(event, "device");
  const std::string devices = members.empty() ? device : members;
  if (!group.empty()) {
    // A warning is about one of the group's devices.
    const std::string key = event.name == "warning" ? " " + device : "";
    return {absl::StrFormat("group %s%s", group, key),
            absl::StrFormat("group %s%s", group, devices.empty() ? "" : " (" + devices + ")")};
  }
  if (!devices.empty()) return {"device " + devices, devices};
  if (!resource.empty()) return {resource, resource};
  if (event.name == "pods_unknown") return {"", "the kubelet"};
  if (const std::string what = Field(event, "what"); !what.empty()) return {what, what};
  return {"", "this node"};
}

std::optional<PodRef> PodIn(const Event& event) {
  const std::string pod = Field(event, "pod"), uid = Field(event, "pod_uid");
  const size_t slash = pod.find('/');
  if (uid.empty() || slash == std::string::npos) return std::nullopt;
  return PodRef{.pod_namespace = pod.substr(0, slash), .name = pod.substr(slash + 1), .uid = uid};
}

struct Part {
  std::string_view key;
  std::string_view before;
};
// What happened, in the order in which a person asks for it; the rest is in the log.
constexpr auto kDetails = std::to_array<Part>({{"mode", "mode "},
                                               {"label", "label "},
                                               {"value", "value "},
                                               {"err", ""},
                                               {"reason", ""},
                                               {"why", ""},
                                               {"text", ""},
                                               {"errno", ""},
                                               {"step", "step "},
                                               {"holder", "held by "},
                                               {"now", "now "},
                                               {"try", "try by hand: "}});
constexpr auto kTail = std::to_array<Part>({{"remedy", "Remedy: "}, {"next", "Next: "}});

std::string Cut(std::string text, size_t limit) {
  constexpr std::string_view kDots = "...";
  if (text.size() <= limit) return text;
  return text.substr(0, limit - kDots.size()).append(kDots);
}

std::string NoteOf(const Event& event, const Row& row, const About& about) {
  std::string head = absl::StrFormat("%s %s", about.text, row.says);
  std::string between = ": ";
  for (const auto& [key, before] : kDetails) {
    const std::string value = Field(event, key);
    if (value.empty()) continue;
    head += absl::StrFormat("%s%s%s", between, before, value);
    between = "; ";
  }
  std::string tail;
  for (const auto& [key, before] : kTail) {
    const std::string value = Field(event, key);
    if (!value.empty()) tail += absl::StrFormat(". %s%s", before, value);
  }
  // A group of many devices must not push out what to do about it.
  tail = Cut(Printable(tail, kLongestNote), kLongestNote / 2);
  return Cut(Printable(head, size_t{4} * kLongestNote), kLongestNote - tail.size()) + tail;
}

}  // namespace

std::string ReasonOf(std::string_view code) {
  std::string reason;
  for (const std::string_view word : Split(code, '-')) {
    reason += absl::ascii_toupper(static_cast<unsigned char>(word.front()));
    reason += word.substr(1);
  }
  return reason;
}

std::optional<NodeEvent> ToNodeEvent(const Event& event) {
  const auto* const row = std::ranges::find(kRows, event.name, &Row::name);
  if (row == kRows.end() || IsOfMode(event)) return std::nullopt;
  const std::string code = CodeIn(event);
  const bool usual = std::ranges::any_of(kUsual, [&](Code each) { return CodeName(each) == code; });
  const bool of_unit = event.name == "unit_unhealthy";
  const About about = AboutOf(event);
  NodeEvent told{.reason = code.empty() ? std::string(row->reason) : ReasonOf(code),
                 .type = std::string(of_unit && usual ? kNormal : row->type),
                 .action = std::string(row->action),
                 .subject = about.key,
                 .note = NoteOf(event, *row, about),
                 .pod = PodIn(event)};
  if (row->of_pod) {
    told.resource = Field(event, "resource");
    const std::string ids = Field(event, "ids");
    for (const std::string_view id : Split(ids, ',')) told.units.emplace_back(id);
  }
  return told;
}

}  // namespace vfio_agent
