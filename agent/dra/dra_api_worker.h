// DraApiWorker: what happens on DraApi's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/cluster/api_client.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/notes.h"
#include "agent/cluster/object_watch.h"
#include "agent/cluster/transport.h"
#include "agent/dra/slice_writer.h"
#include "deviceplugin/dra/dra_claims.h"

namespace vfio_agent {

class DraApiWorker {
 public:
  // `server` as ServerUrl() has it.
  DraApiWorker(const ClusterOptions& options, const std::string& driver, const std::string& server,
               Transport& transport);

  void Want(std::vector<DraDevice> devices) { writer_.Want(std::move(devices)); }
  // `done` is called within Turn(), once; the object as the server gave it.
  void Fetch(const ClaimRef& claim, std::function<void(absl::StatusOr<std::string>)> done);

  // Starts what is due and works until something has happened.
  void Turn();

  std::vector<std::string> TakeNotes() { return notes_.Take(); }
  bool written() const { return writer_.written(); }
  ApiClient::Counts requests() const;
  bool some() const { return writer_.some(); }
  // Why not all is written, and what to do; empty where it is, or nothing has failed yet.
  std::string failure() const;

 private:
  void StartWatching(absl::Time now);
  void StartWriting(absl::Time now);
  void OnList(const ApiAnswer& answer);
  void OnLine(std::string_view line);
  void OnWatchEnd(const ApiAnswer& answer);
  void TakeNews(absl::Time now);

  ClusterOptions options_;
  Transport& transport_;
  ApiClient client_;
  ApiClient claims_;
  ObjectWatch watch_;
  absl::Status watched_;  // what the last answer to watch_ was
  SliceWriter writer_;
  ClusterNotes notes_;
  std::string query_;      // our slices
  uint64_t watching_ = 0;  // the request
};

}  // namespace vfio_agent
