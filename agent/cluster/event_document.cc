#include "agent/cluster/event_document.h"

#include "absl/strings/str_format.h"
#include "agent/cluster/node_document.h"

namespace vfio_agent {
namespace {

// The API server's own limits.
constexpr size_t kNote = 1024;
constexpr size_t kWord = 128;

// Events about what is in no namespace are kept there, as those of the kubelet.
std::string NamespaceOf(const ClusterEvent& event) {
  return event.pod ? event.pod->pod_namespace : "default";
}

ApiJson SeriesOf(const ClusterEvent& event) {
  return {{"count", event.count}, {"lastObservedTime", ApiMicroTime(event.last)}};
}

ApiJson RegardingOf(const ClusterEvent& event, const Reporter& reporter) {
  if (!event.pod) {
    // `kubectl describe node` looks for both uids: the kubelet's events have the name there.
    return {{"apiVersion", "v1"},
            {"kind", "Node"},
            {"name", reporter.node},
            {"uid", reporter.node_uid.empty() ? reporter.node : reporter.node_uid}};
  }
  ApiJson pod = {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"namespace", event.pod->pod_namespace},
                 {"name", event.pod->name}};
  if (!event.pod->uid.empty()) pod["uid"] = event.pod->uid;
  return pod;
}

}  // namespace

absl::Status CheckEvent(const ClusterEvent& event) {
  if (!IsObjectName(event.name)) return absl::InvalidArgumentError("no name of an object");
  if (event.pod && !(IsObjectName(event.pod->pod_namespace) && IsObjectName(event.pod->name))) {
    return absl::InvalidArgumentError("about a pod whose name is none");
  }
  if (event.reason.empty() || event.action.empty() || event.count < 1) {
    return absl::InvalidArgumentError("without a reason, an action or a count");
  }
  return absl::OkStatus();
}

std::string EventsPath(const ClusterEvent& event) {
  return absl::StrFormat("/apis/events.k8s.io/v1/namespaces/%s/events", NamespaceOf(event));
}

std::string EventPath(const ClusterEvent& event) {
  return absl::StrFormat("%s/%s", EventsPath(event), event.name);
}

ApiJson EventDocument(const ClusterEvent& event, const Reporter& reporter) {
  ApiJson document = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", event.name}, {"namespace", NamespaceOf(event)}}},
      {"eventTime", ApiMicroTime(event.first)},
      {"reportingController", "vfio-agent"},
      {"reportingInstance",
       CutText(reporter.instance.empty() ? reporter.node : reporter.instance, kWord)},
      {"action", CutText(event.action, kWord)},
      {"reason", CutText(event.reason, kWord)},
      {"regarding", RegardingOf(event, reporter)},
      {"note", CutText(event.note, kNote)},
      {"type", event.type == "Warning" ? "Warning" : "Normal"}};
  if (event.count > 1) document["series"] = SeriesOf(event);
  return document;
}

ApiJson SeriesPatch(const ClusterEvent& event) { return {{"series", SeriesOf(event)}}; }

}  // namespace vfio_agent
