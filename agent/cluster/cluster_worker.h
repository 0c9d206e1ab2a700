// ClusterWorker: what happens on the cluster's thread. Watches the Node, writes what is wanted,
// posts events, and keeps account of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/cluster/api_client.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/event_queue.h"
#include "agent/cluster/moment.h"
#include "agent/cluster/node_writer.h"
#include "agent/cluster/notes.h"
#include "agent/cluster/object_watch.h"
#include "agent/cluster/transport.h"

namespace vfio_agent {

class ClusterWorker {
 public:
  // `server` as ServerUrl() has it.
  ClusterWorker(const ClusterOptions& options, const std::string& server, Transport& transport);

  void Want(WantedNode wanted) { writer_.Want(std::move(wanted)); }
  void Post(std::vector<ClusterEvent> events) { events_.Post(std::move(events)); }

  // Starts what is due and works until something has happened, at most until `limit` (steady).
  void Turn(absl::Time limit);

  // The end is near: what was written a moment ago is written anew without a pause.
  void Hurry() { writer_.Hurry(); }
  // Nothing is left to be sent that could be before `limit`.
  bool IsDone(absl::Time limit) const;

  std::optional<SeenNode> TakeNode() { return std::exchange(node_news_, std::nullopt); }
  std::vector<std::string> TakeNotes() { return notes_.Take(); }
  ClusterStatus Status() const;

 private:
  void StartWatching(Moment now);
  void StartWriting(Moment now);
  void StartPosting(Moment now);
  void OnList(const ApiAnswer& answer);
  void OnLine(std::string_view line);
  void OnWatchEnd(const ApiAnswer& answer);
  void TakeNews();
  void NodeIs(std::optional<ApiNode> node, bool listed);
  // Of every answer: what is counted and told.
  void Account(const absl::Status& status, Moment now);
  absl::Time Due() const;
  std::string NodePath() const;

  ClusterOptions options_;
  Transport& transport_;
  ApiClient client_;
  ObjectWatch watch_;
  NodeWriter writer_;
  EventQueue events_;
  ClusterNotes notes_;
  uint64_t watching_ = 0;  // the request
  bool listing_ = false;
  std::optional<SeenNode> node_;
  std::optional<SeenNode> node_news_;
  absl::Time missing_since_ = absl::InfinitePast();  // the Node; of the wall clock
  ClusterStatus status_;
};

}  // namespace vfio_agent
