#include "test/conformance/stand.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "sysfs/status.h"

namespace vfio_agent::conformance {
namespace {

namespace fs = std::filesystem;

// No other number for so long: the plugin has told all that it has.
constexpr absl::Duration kSettled = absl::Milliseconds(400);
constexpr size_t kTail = 600;

void Empty(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) fs::remove_all(entry.path(), error);
}

}  // namespace

Stand::Stand(const SuiteOptions& options, FakeKubelet::Generation generation)
    : options_(options), generation_(generation) {
  scratch_ = (fs::temp_directory_path() / "dpc-XXXXXX").string();
  if (::mkdtemp(scratch_.data()) == nullptr) std::abort();
  dir_ = options_.dir.empty() ? scratch_ + "/dp" : options_.dir;
  root_ = options_.root.empty() ? scratch_ + "/kl" : options_.root;
  std::error_code error;  // what is missing shows when the kubelet starts
  fs::create_directories(dir_, error);
  fs::create_directories(root_, error);
  Empty(dir_);
  ReplaceKubelet(FakeKubelet::Sweep::kSockets);
}

Stand::~Stand() {
  plugin_.reset();
  kubelet_.reset();
  Empty(dir_);
  std::error_code ignored;  // what is left below /tmp hurts nobody
  fs::remove_all(scratch_, ignored);
}

void Stand::ReplaceKubelet(FakeKubelet::Sweep sweep) {
  kubelet_.reset();
  kubelet_ = std::make_unique<FakeKubelet>(FakeKubelet::Options{
      .dir = dir_, .generation = generation_, .sweep = sweep, .root_dir = root_});
}

absl::Status Stand::RestartKubelet(bool killed) {
  kubelet_->Stop(killed);
  return kubelet_->Start();
}

absl::Status Stand::ReplaceDirectory() {
  std::error_code error;
  fs::rename(dir_, dir_ + ".old", error);
  if (error) return ErrnoStatus(error.value(), absl::StrFormat("cannot move %s", dir_));
  fs::create_directory(dir_, error);
  fs::remove_all(dir_ + ".old", error);
  return absl::OkStatus();
}

absl::Status Stand::StartPlugin() {
  std::vector<std::string> command;
  for (const std::string& word : options_.command) command.push_back(Filled(word));
  ASSIGN_OR_RETURN(Process started, Process::Start(std::move(command),
                                                   {"CONFORMANCE_PLUGIN_DIR=" + dir_,
                                                    "CONFORMANCE_KUBELET_ROOT=" + root_},
                                                   scratch_ + "/output"));
  plugin_.emplace(std::move(started));
  return absl::OkStatus();
}

absl::Status Stand::EndPlugin(int signal, absl::Duration limit) {
  plugin_->Signal(signal);
  if (plugin_->WaitForEnd(limit)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("it still runs %s after signal %d", absl::FormatDuration(limit), signal));
}

absl::Status Stand::Serve() {
  RETURN_IF_ERROR(kubelet_->Start());
  RETURN_IF_ERROR(StartPlugin());
  return WaitServed();
}

void Stand::FindResource() {
  if (!options_.resource.empty()) return;
  for (const auto& [name, resource] : kubelet_->Resources()) {
    if (resource.Healthy() > 0) options_.resource = name;
  }
}

absl::Status Stand::WaitServed() { return WaitServedAnew(""); }

absl::Status Stand::WaitServedAnew(const std::string& endpoint) {
  const auto any = [&](const FakeResources& resources) {
    for (const auto& [name, it] : resources) {
      const bool ours = options_.resource.empty() || options_.resource == name;
      const size_t least = std::max<size_t>(options_.devices, 1);
      if (ours && !it.stopped && it.Healthy() >= least && it.endpoint != endpoint) return true;
    }
    return false;
  };
  if (!kubelet_->WaitFor(any, options_.timeout)) {
    return absl::FailedPreconditionError(Explain(endpoint.empty() ? "it does not serve its devices"
                                                                  : "it does not serve them anew"));
  }
  FindResource();
  if (options_.devices > 0) return absl::OkStatus();
  // Not until the lists end: a plugin may repeat itself for ever.
  const absl::Time limit = absl::Now() + options_.timeout;
  for (size_t healthy = 0; healthy != Now().Healthy() && absl::Now() < limit;) {
    healthy = Now().Healthy();
    kubelet_->WaitFor(
        [&](const FakeResources& all) { return all.at(resource()).Healthy() != healthy; },
        kSettled);
  }
  options_.devices = Now().Healthy();
  return absl::OkStatus();
}

absl::Status Stand::WaitFor(const std::string& what, const Wanted& wanted) {
  return WaitFor(what, wanted, options_.timeout);
}

absl::Status Stand::WaitFor(const std::string& what, const Wanted& wanted, absl::Duration limit) {
  const bool reached = kubelet_->WaitFor(
      [&](const FakeResources& resources) {
        const auto found = resources.find(resource());
        return found != resources.end() && wanted(found->second);
      },
      limit);
  if (reached) return absl::OkStatus();
  return absl::FailedPreconditionError(Explain(absl::StrFormat("it does not %s", what)));
}

std::string Stand::Explain(const std::string& what) const {
  std::string seen = "; no Register so far";
  for (const auto& [name, it] : kubelet_->Resources()) {
    seen = absl::StrFormat("; %s has %d devices, %d of them healthy, after %d Register calls%s",
                           name, it.devices.size(), it.Healthy(), it.registrations,
                           it.stopped ? ", and no stream" : "");
    if (!it.ended_with.empty()) seen += absl::StrFormat("; a stream ended: %s", it.ended_with);
  }
  return what + seen;
}

FakeResource Stand::Now() const {
  const FakeResources resources = kubelet_->Resources();
  const auto found = resources.find(resource());
  return found == resources.end() ? FakeResource() : found->second;
}

std::vector<std::string> Stand::Ids() const {
  std::vector<std::string> ids;
  for (const auto& entry : Now().devices) ids.push_back(entry.first);
  return ids;
}

std::vector<FakeRegisterCall> Stand::Calls() const {
  std::vector<FakeRegisterCall> calls = kubelet_->RegisterCalls();
  std::erase_if(calls, [&](const FakeRegisterCall& call) {
    return !resource().empty() && call.request.resource_name() != resource();
  });
  return calls;
}

std::vector<std::string> Stand::SocketsInDirectory() const {
  std::vector<std::string> sockets;
  for (const auto& entry : fs::directory_iterator(dir_)) {
    const std::string name = entry.path().filename();
    if (entry.is_socket() && name != "kubelet.sock") sockets.push_back(name);
  }
  return sockets;
}

absl::Status Stand::RunHook(const std::string& hook, const std::string& id) const {
  const std::string text = absl::StrReplaceAll(Filled(hook), {{"{id}", id}});
  ASSIGN_OR_RETURN(Process shell,
                   Process::Start({"/bin/sh", "-c", text}, {}, scratch_ + "/output"));
  const auto code = shell.WaitForEnd(options_.timeout);
  if (code == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the hook failed: %s: %s", text, code ? absl::StrFormat("exit code %d", *code) : "no end"));
}

std::string Stand::Output() const {
  std::ifstream file(scratch_ + "/output");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.size() <= kTail ? text : text.substr(text.size() - kTail);
}

std::string Stand::Filled(std::string text) const {
  return absl::StrReplaceAll(text, {{"{dir}", dir_}, {"{root}", root_}});
}

}  // namespace vfio_agent::conformance
