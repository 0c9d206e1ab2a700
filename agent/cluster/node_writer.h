// NodeWriter: what is to be written to the Node next, and when. Pure: it is told what is wanted,
// what is there, answers and the time.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/cluster/api_answer.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/moment.h"
#include "agent/cluster/node_document.h"
#include "agent/cluster/retry.h"

namespace vfio_agent {

struct NodeWrite {
  enum class Part { kCondition, kLabels, kStaleLabels };
  Part part = Part::kCondition;
  ApiJson document;  // a merge patch for kStaleLabels, else for server-side apply
};

class NodeWriter {
 public:
  struct Options {
    std::string node;
    Retry::Limits limits;
    absl::Duration own_pause;      // between two writes of ours, however fast we change our mind
    absl::Duration rewrite_pause;  // after which another's change is put right; then doubled
    absl::Duration heartbeat;
  };
  explicit NodeWriter(Options options)
      : options_(std::move(options)),
        condition_{.retry = Retry(options_.limits)},
        labels_{.retry = Retry(options_.limits)} {}

  void Want(WantedNode wanted);
  // What the watch shows; nullopt: there is no Node. `listed`: by a list, after which nothing older
  // follows: it counts whatever its version, for an etcd that was restored begins with lower ones.
  void Saw(const std::optional<ApiNode>& node, bool listed = false);
  // The Node may not be seen: so it is written as if nothing were there.
  void Blind() { blind_ = true; }

  // No pause between two writes of ours any more.
  void Hurry() { options_.own_pause = absl::ZeroDuration(); }

  // The request to make now. One at a time: OnAnswer follows.
  std::optional<NodeWrite> Next(Moment now);
  void OnAnswer(const ApiAnswer& answer, Moment now);
  // When to call Next() again; infinite while an answer is awaited.
  absl::Time due() const;
  bool busy() const { return underway_.has_value(); }

  bool wishes() const { return wanted_.has_value(); }
  // What is wanted stands there, as far as is known.
  bool written() const;
  // OK, or why the last write of something that is still to be written failed.
  absl::Status status() const;
  // How often in a row another's changes were put right.
  int rewrites() const { return std::max(condition_.rewrites, labels_.rewrites); }

 private:
  // One of the two things that are ours on a Node. A failure of the one does not hold up the other:
  // they need different rights.
  struct Part {
    Retry retry;
    absl::Time retry_at = absl::InfinitePast();
    absl::Status status;
    absl::Time written = absl::InfinitePast();  // the last time
    bool settled = false;  // what is wanted now was there after a write of ours
    int rewrites = 0;
  };
  bool Known() const { return node_.has_value() || blind_; }
  bool ConditionDiffers() const;
  bool LabelsDiffer() const;
  absl::Time DueOf(const Part& part, bool differs) const;
  absl::Time ConditionDue() const;
  absl::Time LabelsDue() const;
  NodeWrite WriteLabels() const;
  void Written(Part& part, bool settled, absl::Time now);

  Options options_;
  std::optional<WantedNode> wanted_;
  std::optional<ApiNode> node_;
  WantedNode known_;  // what was written last: all that is known of a Node that may not be seen
  bool blind_ = false;
  std::string type_ = "PassthroughReady";  // of our condition, also when none is wanted
  Part condition_;
  Part labels_;
  std::optional<NodeWrite::Part> underway_;
  WantedNode sent_;
};

}  // namespace vfio_agent
