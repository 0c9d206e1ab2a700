#include "agent/dra/slice_writer.h"

#include <utility>

#include "absl/strings/numbers.h"

namespace vfio_agent {
namespace {

SeenSlice ReadSlice(const ApiJson& object) {
  SeenSlice slice{.name = TextAt(object, {"metadata", "name"}),
                  .content = TextAt(object, {"metadata", "annotations", kContentAnnotation})};
  const ApiJson* const pool = At(object, {"spec", "pool"});
  if (pool == nullptr) return slice;
  slice.generation = NumberAt(*pool, {"generation"});
  slice.count = NumberAt(*pool, {"resourceSliceCount"});
  return slice;
}

// False where `one` is certainly older than `other`: versions are numbers on every server there is,
// but nobody has promised that.
bool IsAsNew(const std::string& one, const std::string& other) {
  uint64_t left = 0;
  uint64_t right = 0;
  return !absl::SimpleAtoi(one, &left) || !absl::SimpleAtoi(other, &right) || left >= right;
}

// Slices are not owned by a Node that is not to be seen; they stay until somebody removes them.
bool IsNoAnswerAboutNode(const absl::Status& status) {
  return !status.ok() && !absl::IsNotFound(status) && !absl::IsPermissionDenied(status);
}

}  // namespace

bool SliceWriter::IsOurs(const ApiJson& object) const {
  return !TextAt(object, {"metadata", "name"}).empty() &&
         TextAt(object, {"spec", "driver"}) == options_.driver &&
         TextAt(object, {"spec", "nodeName"}) == options_.node;
}

void SliceWriter::Note(const ApiJson& object) {
  if (!IsOurs(object)) return;
  const std::string name = TextAt(object, {"metadata", "name"});
  const std::string version = TextAt(object, {"metadata", "resourceVersion"});
  const auto known = seen_.find(name);
  // The watch may still be behind the answer to our own request, or that behind the watch.
  if (known != seen_.end() && !IsAsNew(version, known->second.version)) return;
  const auto gone = gone_.find(name);
  if (gone != gone_.end() && (version == gone->second || !IsAsNew(version, gone->second))) return;
  seen_[name] = {.slice = ReadSlice(object), .version = version};
}

void SliceWriter::Forget(const ApiJson& object) {
  if (!IsOurs(object)) return;
  const std::string name = TextAt(object, {"metadata", "name"});
  const std::string version = TextAt(object, {"metadata", "resourceVersion"});
  gone_[name] = version;
  const auto known = seen_.find(name);
  // One that was made anew since has a later version.
  if (known != seen_.end() && IsAsNew(version, known->second.version)) seen_.erase(known);
}

void SliceWriter::Saw(const WatchNews& news) {
  if (news.kind == WatchNews::Kind::kAll) {
    seen_.clear();
    listed_ = true;
  }
  for (const ApiJson& object : news.objects) {
    news.kind == WatchNews::Kind::kGone ? Forget(object) : Note(object);
  }
}

SlicePlan SliceWriter::Plan() const {
  std::vector<SeenSlice> seen;
  for (const auto& entry : seen_) seen.push_back(entry.second.slice);
  return PlanSlices({.driver = options_.driver, .node = options_.node, .node_uid = node_uid_},
                    *wanted_, seen, generation_);
}

bool SliceWriter::written() const {
  return wanted_ && listed_ && !underway_ && calls_.empty() && Plan().empty();
}

absl::Time SliceWriter::due() const {
  if (!wanted_ || !listed_ || underway_ || written()) return absl::InfiniteFuture();
  return round_ ? absl::InfinitePast() : not_before_;
}

void SliceWriter::Begin() {
  SlicePlan plan = Plan();
  generation_ = plan.generation;
  for (Json& slice : plan.apply) {
    const std::string name = slice["metadata"]["name"];
    calls_.push_back({.kind = SliceCall::Kind::kApply, .name = name, .document = std::move(slice)});
  }
  for (const std::string& name : plan.remove) {
    calls_.push_back({.kind = SliceCall::Kind::kRemove, .name = name});
  }
}

std::optional<SliceCall> SliceWriter::Next(absl::Time now) {
  if (due() > now) return std::nullopt;
  if (!round_) {
    underway_ = SliceCall{.kind = SliceCall::Kind::kReadNode, .name = options_.node};
    return underway_;
  }
  underway_ = std::move(calls_.front());
  calls_.pop_front();
  return underway_;
}

void SliceWriter::Answered(const SliceCall& call, const ApiAnswer& answer) {
  const absl::StatusOr<ApiJson> object = ParseApiJson(answer.body);
  switch (call.kind) {
    case SliceCall::Kind::kReadNode:
      node_uid_ = object.ok() ? TextAt(*object, {"metadata", "uid"}) : "";
      round_ = true;
      Begin();
      break;
    case SliceCall::Kind::kApply:
      if (object.ok()) Note(*object);
      break;
    case SliceCall::Kind::kRemove:
      seen_.erase(call.name);
      break;
  }
}

void SliceWriter::OnAnswer(const ApiAnswer& answer, absl::Time now) {
  const SliceCall call = *std::exchange(underway_, std::nullopt);
  const bool gone = call.kind == SliceCall::Kind::kRemove && absl::IsNotFound(answer.status);
  const bool blind = call.kind == SliceCall::Kind::kReadNode && !IsNoAnswerAboutNode(answer.status);
  if (!answer.status.ok() && !gone && !blind) {
    status_ = answer.status;
    calls_.clear();
    round_ = false;
    not_before_ = now + retry_.After(answer);
    return;
  }
  Answered(call, answer);
  if (!calls_.empty()) return;
  round_ = false;
  not_before_ = now + options_.pause;
  status_ = absl::OkStatus();
  retry_.Succeeded();
}

}  // namespace vfio_agent
