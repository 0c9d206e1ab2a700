#include "agent/cluster/node_writer.h"

#include <algorithm>
#include <utility>

namespace vfio_agent {
namespace {

constexpr int kDoublings = 5;
// After so many of the longest pauses without another's change, the next one is the first again.
constexpr int kQuiet = 2;
constexpr size_t kMessageBytes = 4096;

// As it comes back from the API server: otherwise it would differ for ever.
std::string Sendable(const std::string& text) {
  const ApiJson sent = ApiJson::parse(DumpApiJson(CutText(text, kMessageBytes)), nullptr, false);
  return sent.is_string() ? sent.get<std::string>() : "";
}

}  // namespace

void NodeWriter::Want(WantedNode wanted) {
  std::erase_if(wanted.labels,
                [](const auto& label) { return !label.first.starts_with(kOwnLabels); });
  if (wanted.condition) {
    wanted.condition->message = Sendable(wanted.condition->message);
    type_ = wanted.condition->type;
  }
  if (!wanted_ || wanted.condition != wanted_->condition) condition_.settled = false;
  const bool kept = wanted_ && wanted.keeps_labels == wanted_->keeps_labels;
  if (!kept || wanted.labels != wanted_->labels) labels_.settled = false;
  wanted_ = std::move(wanted);
}

// The watch may still be behind the answer to our own write.
void NodeWriter::Saw(const std::optional<ApiNode>& node, bool listed) {
  blind_ = false;
  const bool same = node && node_ && node->uid == node_->uid;
  if (same && !listed && !IsNewer(node->version, node_->version)) return;
  if (!same) condition_.settled = labels_.settled = false;  // nobody has changed what was not there
  node_ = node;
}

bool NodeWriter::ConditionDiffers() const {
  if (!node_) return wanted_->condition != known_.condition;
  const ApiNode::Condition* const there = node_->Find(type_);
  if (!wanted_->condition) return there != nullptr;
  return there == nullptr || there->said != *wanted_->condition;
}

bool NodeWriter::LabelsDiffer() const {
  return wanted_->keeps_labels && wanted_->labels != (node_ ? node_->OwnLabels() : known_.labels);
}

absl::Time NodeWriter::DueOf(const Part& part, bool differs) const {
  if (!differs) return absl::InfiniteFuture();
  const absl::Duration pause =
      part.settled ? options_.rewrite_pause * (1 << std::min(part.rewrites, kDoublings))
                   : options_.own_pause;
  return std::max(part.retry_at, part.written + pause);
}

absl::Time NodeWriter::ConditionDue() const {
  const bool differs = ConditionDiffers();
  if (differs || !wanted_->condition) return DueOf(condition_, differs);
  return std::max(condition_.retry_at, condition_.written + options_.heartbeat);
}

absl::Time NodeWriter::LabelsDue() const { return DueOf(labels_, LabelsDiffer()); }

absl::Time NodeWriter::due() const {
  if (!wanted_ || !Known() || underway_) return absl::InfiniteFuture();
  return std::min(ConditionDue(), LabelsDue());
}

absl::Status NodeWriter::status() const {
  if (!wanted_) return absl::OkStatus();
  const bool condition = wanted_->condition || ConditionDiffers();
  if (condition && !condition_.status.ok()) return condition_.status;
  return LabelsDiffer() ? labels_.status : absl::OkStatus();
}

bool NodeWriter::written() const {
  return wanted_ && Known() && !underway_ && !ConditionDiffers() && !LabelsDiffer();
}

// Apply takes away only what we have applied before. What is left over all the same, because
// somebody else had set it too, goes by name.
NodeWrite NodeWriter::WriteLabels() const {
  const std::map<std::string, std::string> there =
      node_ ? node_->OwnLabels() : std::map<std::string, std::string>();
  const bool has_all = std::ranges::all_of(wanted_->labels, [&there](const auto& label) {
    const auto found = there.find(label.first);
    return found != there.end() && found->second == label.second;
  });
  if (node_ && has_all) {
    return {NodeWrite::Part::kStaleLabels, StaleLabelsPatch(there, wanted_->labels)};
  }
  return {NodeWrite::Part::kLabels, LabelsDocument(options_.node, wanted_->labels)};
}

std::optional<NodeWrite> NodeWriter::Next(Moment now) {
  if (due() > now.steady) return std::nullopt;
  NodeWrite write;
  if (ConditionDue() <= now.steady) {
    const ApiNode::Condition* const before = node_ ? node_->Find(type_) : nullptr;
    write.document = ConditionDocument(options_.node, wanted_->condition, before, now.wall);
  } else {
    write = WriteLabels();
  }
  underway_ = write.part;
  sent_ = *wanted_;
  return write;
}

void NodeWriter::Written(Part& part, bool settled, absl::Time now) {
  const absl::Duration longest = options_.rewrite_pause * (1 << kDoublings);
  if (part.settled) {
    part.rewrites = now - part.written > longest * kQuiet ? 1 : part.rewrites + 1;
  }
  part.settled = settled;
  part.written = now;
}

void NodeWriter::OnAnswer(const ApiAnswer& answer, Moment now) {
  const NodeWrite::Part sent = *std::exchange(underway_, std::nullopt);
  const bool of_condition = sent == NodeWrite::Part::kCondition;
  Part& part = of_condition ? condition_ : labels_;
  part.status = answer.status;
  if (!answer.status.ok()) {
    part.retry_at = now.steady + part.retry.After(answer);
    return;
  }
  part.retry.Succeeded();
  const bool heartbeat = of_condition && !ConditionDiffers();
  const absl::StatusOr<ApiJson> json = ParseApiJson(answer.body);
  // A Node without a uid is none.
  if (json.ok() && !blind_ && !TextAt(*json, {"metadata", "uid"}).empty()) Saw(ReadNode(*json));
  if (of_condition) {
    known_.condition = sent_.condition;
    if (heartbeat) part.settled = false;  // nobody's change has been put right
    return Written(part, sent_.condition == wanted_->condition, now.steady);
  }
  known_.labels = sent_.labels;
  const bool settled = sent == NodeWrite::Part::kStaleLabels || !LabelsDiffer();
  Written(part, settled && sent_.labels == wanted_->labels, now.steady);
}

}  // namespace vfio_agent
