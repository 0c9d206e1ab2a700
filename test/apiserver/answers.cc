// What is answered: faults first, then who may what, then the objects.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "sysfs/clock.h"
#include "test/apiserver/server_state.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr char kReady[] = "application/json";

bool IsWatch(const HttpCall& call) {
  const std::map<std::string, std::string> query = ParseQuery(call.query);
  const auto watch = query.find("watch");
  return call.method == "GET" && watch != query.end() && watch->second != "false";
}

std::string VerbOf(const HttpCall& call, const ApiPath& path) {
  if (call.method == "POST") return "create";
  if (call.method == "PATCH") return "patch";
  if (call.method == "PUT") return "update";
  if (call.method == "DELETE") return "delete";
  if (IsWatch(call)) return "watch";
  return path.name.empty() ? "list" : "get";
}

std::string LineOf(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

std::string ValueOf(const std::map<std::string, std::string>& query, const char* key) {
  const auto found = query.find(key);
  return found == query.end() ? "" : found->second;
}

}  // namespace

ApiFault FakeApiServer::State::TakeFault(const HttpCall& call, bool watch) {
  for (ApiFault& fault : faults) {
    if (!fault.Fits(call, watch)) continue;
    if (fault.times > 0) --fault.times;
    return fault;
  }
  return {};
}

void FakeApiServer::State::Begin(Client& client, HttpCall call) {
  calls.push_back(call);
  const ApiFault fault = TakeFault(call, IsWatch(call));
  client.cut = fault.cut;
  client.hung = fault.hang;
  if (fault.hang) return;
  if (fault.delay > absl::ZeroDuration()) {
    client.answer_at = MonotonicNow() + fault.delay;
    client.delayed = std::move(call);
    client.fault = fault;
    return;
  }
  Answer(client, call, fault);
}

void FakeApiServer::State::Answer(Client& client, const HttpCall& call, const ApiFault& fault) {
  if (fault.code != 0) {
    const std::string body =
        fault.body.empty() ? Refusal(fault.code, "Fault", "on request").body.dump() : fault.body;
    return Send(client, HttpAnswerText(fault.code, body, fault.retry_after, fault.location));
  }
  const std::optional<ApiPath> path = ParseApiPath(call.path);
  StoreAnswer answer = path ? Judge(call, *path) : Refusal(404, "NotFound", "no such path");
  if (answer.code == 0 && IsWatch(call)) return StartWatch(client, call, *path, fault);
  if (answer.code == 0) answer = Do(call, *path);
  Send(client, HttpAnswerText(answer.code, answer.body.dump()));
}

// Code 0: go on.
StoreAnswer FakeApiServer::State::Judge(const HttpCall& call, const ApiPath& path) {
  if (call.token != token) return Refusal(401, "Unauthorized", "Unauthorized");
  const std::string resource =
      path.subresource.empty() ? path.resource : path.resource + "/" + path.subresource;
  const std::string wanted = absl::StrFormat("%s %s", VerbOf(call, path), resource);
  if (!denied.contains(wanted)) return {0, {}};
  return Refusal(403, "Forbidden",
                 absl::StrFormat("User \"system:serviceaccount:vfio-agent:vfio-agent\" cannot %s "
                                 "resource \"%s\"",
                                 VerbOf(call, path), resource));
}

StoreAnswer FakeApiServer::State::DoList(const ApiPath& path,
                                         const std::map<std::string, std::string>& query) {
  size_t limit = 0;
  const std::string rest = ValueOf(query, "continue");
  if (query.contains("limit") && !absl::SimpleAtoi(query.at("limit"), &limit)) {
    return Refusal(400, "BadRequest", "limit: not a number");
  }
  return rest.empty() ? store.List(path, ValueOf(query, "fieldSelector"), limit)
                      : store.ListOn(rest, limit);
}

StoreAnswer FakeApiServer::State::Do(const HttpCall& call, const ApiPath& path) {
  const std::map<std::string, std::string> query = ParseQuery(call.query);
  if (call.method == "GET") return path.name.empty() ? DoList(path, query) : store.Get(path);
  if (call.method == "DELETE") return store.Delete(path);
  Json body = Json::parse(call.body, nullptr, false);
  if (!body.is_object()) return Refusal(400, "BadRequest", "the body is no object");
  try {
    if (call.method == "PATCH") {
      return store.Patch(path, call.type, ValueOf(query, "fieldManager"), body);
    }
    if (call.type != kReady) return Refusal(415, "UnsupportedMediaType", call.type);
    if (call.method == "POST") return store.Create(path, std::move(body));
    if (call.method == "PUT") return store.Replace(path, std::move(body));
  } catch (const Json::exception& error) {
    return Refusal(400, "BadRequest", error.what());
  }
  return Refusal(405, "MethodNotAllowed", call.method);
}

void FakeApiServer::State::StartWatch(Client& client, const HttpCall& call, const ApiPath& path,
                                      const ApiFault& fault) {
  const std::map<std::string, std::string> query = ParseQuery(call.query);
  int seconds = 0;
  client.watching = true;
  client.bookmarks = ValueOf(query, "allowWatchBookmarks") == "true";
  client.collection = path.collection;
  client.selector = ValueOf(query, "fieldSelector");
  if (!absl::SimpleAtoi(ValueOf(query, "resourceVersion"), &client.version)) client.version = 0;
  if (absl::SimpleAtoi(ValueOf(query, "timeoutSeconds"), &seconds)) {
    client.watch_until = MonotonicNow() + absl::Seconds(seconds);
  }
  Send(client, StreamHead());
  if (fault.say) Send(client, Chunk(*fault.say));
}

void FakeApiServer::State::Feed(Client& client) {
  const auto changes = store.Since(client.version, client.collection);
  if (!changes) {
    Send(client, Chunk(LineOf("ERROR", Refusal(410, "Expired", "too old resource version").body)));
    return EndWatch(client);
  }
  for (const ObjectStore::Change& change : *changes) {
    client.version = change.version;
    if (Matches(change.object, client.selector)) {
      Send(client, Chunk(LineOf(change.type, change.object)));
    }
  }
}

void FakeApiServer::State::EndWatch(Client& client) {
  client.watching = false;
  client.watch_until = absl::InfiniteFuture();
  Send(client, LastChunk());
}

void FakeApiServer::SendBookmarks() {
  const std::lock_guard lock(state_->mutex);
  const std::string version = absl::StrFormat("%d", state_->store.version());
  const Json object = {
      {"kind", "Node"}, {"apiVersion", "v1"}, {"metadata", {{"resourceVersion", version}}}};
  for (State::Client& client : state_->clients) {
    if (!client.watching || !client.bookmarks) continue;
    state_->Feed(client);
    client.version = state_->store.version();
    state_->Send(client, Chunk(LineOf("BOOKMARK", object)));
  }
  state_->Wake();
}

}  // namespace vfio_agent
