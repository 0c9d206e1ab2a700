#include "test/apiserver/fake_api_server.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "sysfs/clock.h"
#include "test/apiserver/server_state.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void WriteFile(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// A link that is there, or is not, leads to `target` from one moment to the next.
void Relink(const fs::path& target, const fs::path& link) {
  const fs::path fresh = link.string() + "_tmp";
  fs::create_symlink(target, fresh);
  fs::rename(fresh, link);
}

}  // namespace

FakeApiServer::FakeApiServer(const std::string& host) : state_(std::make_unique<State>(host)) {
  state_->wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  state_->Listen();
  sigset_t pipe;
  sigset_t before;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

FakeApiServer::~FakeApiServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->Wake();
  state_->thread.join();
}

int FakeApiServer::port() const {
  const std::lock_guard lock(state_->mutex);
  return state_->port;
}

std::string FakeApiServer::url() const {
  const bool v6 = state_->host.find(':') != std::string::npos;
  return v6 ? absl::StrFormat("https://[%s]:%d", state_->host, port())
            : absl::StrFormat("https://%s:%d", state_->host, port());
}

void FakeApiServer::WriteServiceAccount(const std::string& dir) const {
  const std::lock_guard lock(state_->mutex);
  const std::string fresh = absl::StrFormat("..%d", absl::ToUnixNanos(absl::Now()));
  fs::create_directories(fs::path(dir) / fresh);
  WriteFile(fs::path(dir) / fresh / "token", state_->token);
  WriteFile(fs::path(dir) / fresh / "ca.crt", state_->identity.ca);
  Relink(fresh, fs::path(dir) / "..data");
  for (const char* name : {"token", "ca.crt"}) {
    const fs::path link = fs::path(dir) / name;
    if (!fs::is_symlink(link)) fs::create_symlink(fs::path("..data") / name, link);
  }
}

void FakeApiServer::RotateToken() {
  const std::lock_guard lock(state_->mutex);
  state_->token = absl::StrFormat("token-%d", ++state_->tokens);
}

void FakeApiServer::RotateCa() {
  const std::lock_guard lock(state_->mutex);
  state_->identity = MakeTlsIdentity();
}

void FakeApiServer::Deny(const std::string& verb_and_resource) {
  const std::lock_guard lock(state_->mutex);
  state_->denied.insert(verb_and_resource);
}

void FakeApiServer::Allow(const std::string& verb_and_resource) {
  const std::lock_guard lock(state_->mutex);
  state_->denied.erase(verb_and_resource);
}

void FakeApiServer::AddNode(const std::string& name,
                            const std::map<std::string, std::string>& labels) {
  Json node = {{"apiVersion", "v1"},
               {"kind", "Node"},
               {"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}},
               {"status",
                {{"conditions", Json::array({{{"type", "Ready"},
                                              {"status", "True"},
                                              {"reason", "KubeletReady"},
                                              {"message", "kubelet is posting ready status"}}})}}}};
  for (const auto& [key, value] : labels) node["metadata"]["labels"][key] = value;
  Create("/api/v1/nodes/" + name, node);
}

Json FakeApiServer::Get(const std::string& path) const {
  const std::lock_guard lock(state_->mutex);
  const StoreAnswer answer = state_->store.Get(ParseApiPath(path).value());
  return answer.code == 200 ? answer.body : Json();
}

std::vector<Json> FakeApiServer::List(const std::string& collection) const {
  const std::lock_guard lock(state_->mutex);
  return state_->store.List(ParseApiPath(collection).value(), "").body["items"];
}

void FakeApiServer::Create(const std::string& path, const Json& object) {
  const std::lock_guard lock(state_->mutex);
  state_->store.Create(ParseApiPath(path).value(), object);
  state_->Wake();
}

void FakeApiServer::Merge(const std::string& path, const Json& patch) {
  const std::lock_guard lock(state_->mutex);
  const ApiPath parsed = ParseApiPath(path).value();
  Json object = state_->store.Get(parsed).body;
  object.merge_patch(patch);
  state_->store.Replace(parsed, std::move(object));
  state_->Wake();
}

void FakeApiServer::Delete(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  state_->store.Delete(ParseApiPath(path).value());
  state_->Wake();
}

void FakeApiServer::Add(ApiFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.push_back(std::move(fault));
}

void FakeApiServer::ClearFaults() {
  const std::lock_guard lock(state_->mutex);
  state_->faults.clear();
}

void FakeApiServer::Compact() {
  const std::lock_guard lock(state_->mutex);
  state_->store.Compact();
}

void FakeApiServer::Say(const std::string& line) {
  const std::lock_guard lock(state_->mutex);
  for (State::Client& client : state_->clients) {
    if (client.watching) state_->Send(client, Chunk(line + "\n"));
  }
  state_->Wake();
}

void FakeApiServer::EndWatches() {
  const std::lock_guard lock(state_->mutex);
  for (State::Client& client : state_->clients) {
    if (client.watching) state_->EndWatch(client);
  }
  state_->Wake();
}

void FakeApiServer::CutConnections() {
  const std::lock_guard lock(state_->mutex);
  for (State::Client& client : state_->clients) client.connection.CloseWhenSent();
  state_->Wake();
}

void FakeApiServer::Down() {
  CutConnections();
  const std::lock_guard lock(state_->mutex);
  state_->listener = Fd();
}

void FakeApiServer::Up() {
  const std::lock_guard lock(state_->mutex);
  state_->Listen();
  state_->Wake();
}

std::vector<HttpCall> FakeApiServer::Calls() const {
  const std::lock_guard lock(state_->mutex);
  return state_->calls;
}

int FakeApiServer::Count(const std::string& method, const std::string& path) const {
  const std::vector<HttpCall> calls = Calls();
  return static_cast<int>(std::ranges::count_if(calls, [&](const HttpCall& call) {
    return call.method == method && call.path.starts_with(path);
  }));
}

int FakeApiServer::Watches() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(std::ranges::count_if(
      state_->clients, [](const State::Client& client) { return client.watching; }));
}

bool FakeApiServer::WaitFor(const std::function<bool()>& reached, absl::Duration limit) const {
  const absl::Time deadline = MonotonicNow() + limit;
  while (!reached()) {
    if (MonotonicNow() > deadline) return false;
    std::unique_lock lock(state_->mutex);
    state_->heard.wait_for(lock, std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace vfio_agent
