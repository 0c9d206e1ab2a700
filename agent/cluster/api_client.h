// ApiClient: the verbs of Kubernetes' API over a Transport, each request with the credentials that
// are there when it begins.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "agent/cluster/api_answer.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/transport.h"

namespace vfio_agent {

// Who we are as an owner of fields.
inline constexpr char kFieldManager[] = "vfio-agent";

class ApiClient {
 public:
  struct Options {
    std::string server;  // ServerUrl()
    std::string token_file;
    std::string ca_file;
    std::string user_agent;
    absl::Duration connect;
    absl::Duration answer;
  };
  using OnDone = std::function<void(const ApiAnswer&)>;
  using OnLine = Transport::OnLine;

  ApiClient(Transport& transport, Options options)
      : transport_(transport), options_(std::move(options)) {}

  // Paths begin with a slash; a query ("fieldSelector=...") is given ready to be sent. Callbacks as
  // the transport has them.
  void Get(const std::string& path, OnDone done);
  // Of a collection what `query` asks for, as it is now and not as a cache has it.
  void List(const std::string& path, const std::string& query, OnDone done);
  // From `version` on, with bookmarks, for `length`; the server ends it then.
  uint64_t Watch(const std::string& path, const std::string& query, const std::string& version,
                 absl::Duration length, OnLine line, OnDone done);
  void Create(const std::string& path, const ApiJson& object, OnDone done);
  // Server-side apply: what `object` has is ours, whoever had it; what we applied before and is not
  // in it any more goes.
  void Apply(const std::string& path, const ApiJson& object, OnDone done);
  // A merge patch: what is null in it is removed.
  void Merge(const std::string& path, const ApiJson& patch, OnDone done);
  void Delete(const std::string& path, OnDone done);
  void Cancel(uint64_t id) { transport_.Cancel(id); }

  // Requests that have ended, by verb and result (ClusterStatus).
  using Counts = std::map<std::pair<std::string, std::string>, uint64_t>;
  const Counts& counts() const { return counts_; }

 private:
  struct Call {
    std::string verb;
    std::string method;
    std::string path;
    std::string type;  // of the body
    std::string body;
    absl::Duration limit;
  };
  uint64_t Send(Call call, OnDone done, OnLine line = nullptr);

  Transport& transport_;
  Options options_;
  Counts counts_;
};

}  // namespace vfio_agent
