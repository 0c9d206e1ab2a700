#include "agent/cluster/api_client.h"

#include "absl/strings/str_format.h"
#include "agent/cluster/credentials.h"

namespace vfio_agent {
namespace {

// How much longer than it was asked to a watch may take to end.
constexpr absl::Duration kWatchGrace = absl::Seconds(30);

std::string Joined(const std::string& path, const std::string& query) {
  return query.empty() ? path : absl::StrFormat("%s?%s", path, query);
}

}  // namespace

uint64_t ApiClient::Send(Call call, OnDone done, OnLine line) {
  auto on_done = [this, verb = call.verb, done = std::move(done)](HttpsAnswer answer) {
    const ApiAnswer judged = Judge(std::move(answer));
    ++counts_[{verb, judged.code == 0 ? "error" : absl::StrFormat("%d", judged.code)}];
    done(judged);
  };
  const absl::StatusOr<Credentials> credentials =
      ReadCredentials(options_.token_file, options_.ca_file);
  if (!credentials.ok()) return transport_.Fail(credentials.status(), std::move(on_done));
  HttpsRequest request{
      .method = std::move(call.method),
      .url = options_.server + call.path,
      .headers = {"Authorization: Bearer " + credentials->token, "Accept: application/json",
                  "User-Agent: " + options_.user_agent, "Expect:"},  // no question before a body
      .body = std::move(call.body),
      .ca = credentials->ca,
      .connect_limit = options_.connect,
      .limit = call.limit};
  if (!call.type.empty()) request.headers.push_back("Content-Type: " + call.type);
  return transport_.Start(std::move(request), std::move(on_done), std::move(line));
}

void ApiClient::Get(const std::string& path, OnDone done) {
  Send({.verb = "get", .method = "GET", .path = path, .limit = options_.answer}, std::move(done));
}

void ApiClient::List(const std::string& path, const std::string& query, OnDone done) {
  Send({.verb = "list", .method = "GET", .path = Joined(path, query), .limit = options_.answer},
       std::move(done));
}

uint64_t ApiClient::Watch(const std::string& path, const std::string& query,
                          const std::string& version, absl::Duration length, OnLine line,
                          OnDone done) {
  const int64_t seconds = std::max(int64_t{1}, absl::ToInt64Seconds(length));
  std::string full = absl::StrFormat(
      "watch=true&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d", version, seconds);
  if (!query.empty()) full += "&" + query;
  return Send({.verb = "watch",
               .method = "GET",
               .path = Joined(path, full),
               .limit = absl::Seconds(seconds) + kWatchGrace},
              std::move(done), std::move(line));
}

void ApiClient::Create(const std::string& path, const ApiJson& object, OnDone done) {
  Send({.verb = "create",
        .method = "POST",
        .path = Joined(path, absl::StrFormat("fieldManager=%s", kFieldManager)),
        .type = "application/json",
        .body = DumpApiJson(object),
        .limit = options_.answer},
       std::move(done));
}

void ApiClient::Apply(const std::string& path, const ApiJson& object, OnDone done) {
  Send({.verb = "patch",
        .method = "PATCH",
        .path = Joined(path, absl::StrFormat("fieldManager=%s&force=true", kFieldManager)),
        .type = "application/apply-patch+yaml",  // JSON is YAML
        .body = DumpApiJson(object),
        .limit = options_.answer},
       std::move(done));
}

void ApiClient::Merge(const std::string& path, const ApiJson& patch, OnDone done) {
  Send({.verb = "patch",
        .method = "PATCH",
        .path = Joined(path, absl::StrFormat("fieldManager=%s", kFieldManager)),
        .type = "application/merge-patch+json",
        .body = DumpApiJson(patch),
        .limit = options_.answer},
       std::move(done));
}

void ApiClient::Delete(const std::string& path, OnDone done) {
  Send({.verb = "delete", .method = "DELETE", .path = path, .limit = options_.answer},
       std::move(done));
}

}  // namespace vfio_agent
