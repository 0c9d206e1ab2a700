// Transport: HTTPS requests, several at once, on the thread that calls it. The user of libcurl.
//
// No proxy, no redirect, no cookie; TLS 1.2 or newer, and only a server that the given CA vouches
// for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace vfio_agent {

struct HttpsRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  // "Accept: application/json"
  std::string body;                  // sent where it is not empty
  std::string ca;                    // PEM
  absl::Duration connect_limit = absl::Seconds(10);
  absl::Duration limit = absl::Seconds(30);  // from the start to the end of the answer
};

struct HttpsAnswer {
  // OK: a whole answer came. FailedPrecondition: the server's certificate is not what the CA
  // vouches for; DeadlineExceeded; OutOfRange: too large; else Unavailable, with curl's words.
  absl::Status status;
  int code = 0;      // of HTTP; 0 where none came
  std::string body;  // without the lines that were told
  absl::Duration retry_after;
};

class Transport {
 public:
  using OnDone = std::function<void(HttpsAnswer)>;
  using OnLine = std::function<void(std::string_view)>;

  // Unavailable without libcurl.
  static absl::StatusOr<std::unique_ptr<Transport>> Open();
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Both callbacks are called within Run(), `on_done` last; they may start and cancel requests.
  // With `on_line` a body of code 200 is told line by line as it comes, however long it gets; an
  // empty line goes before it, as soon as the code is known.
  uint64_t Start(HttpsRequest request, OnDone on_done, OnLine on_line = nullptr);
  // As if it had been tried and had ended so.
  uint64_t Fail(absl::Status status, OnDone on_done);
  // None of its callbacks is called any more.
  void Cancel(uint64_t id);
  void CancelAll();

  // Works until something was told, until Wake() or for `wait`.
  void Run(absl::Duration wait);
  // From any thread.
  void Wake();

 private:
  struct Transfer;
  struct Curl;
  explicit Transport(std::unique_ptr<Curl> curl);

  void Collect();
  bool Tell();
  void TellOf(uint64_t id);

  std::unique_ptr<Curl> curl_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace vfio_agent
