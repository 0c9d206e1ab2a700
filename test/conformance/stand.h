// Stand: a kubelet and a plugin in directories of their own, for one check or for several.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "test/conformance/process.h"
#include "test/conformance/suite_options.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent::conformance {

using Wanted = std::function<bool(const FakeResource& resource)>;

class Stand {
 public:
  Stand(const SuiteOptions& options, FakeKubelet::Generation generation);
  ~Stand();  // kills the plugin
  Stand(const Stand&) = delete;
  Stand& operator=(const Stand&) = delete;

  const SuiteOptions& options() const { return options_; }
  FakeKubelet& kubelet() { return *kubelet_; }
  // Another kubelet object, not started yet.
  void ReplaceKubelet(FakeKubelet::Sweep sweep);
  absl::Status RestartKubelet(bool killed = false);
  // Takes the directory away and makes an empty one of the same name.
  absl::Status ReplaceDirectory();

  absl::Status StartPlugin();
  Process& plugin() { return *plugin_; }
  // SIGKILL or another signal; waits for the end.
  absl::Status EndPlugin(int signal, absl::Duration limit);

  // Kubelet, then plugin, then WaitServed().
  absl::Status Serve();
  // Until the kubelet sees all devices healthy, and no more of them come.
  absl::Status WaitServed();
  // Likewise, registered on another socket than `endpoint`.
  absl::Status WaitServedAnew(const std::string& endpoint);
  // `what`: what the plugin is to do, for the message.
  absl::Status WaitFor(const std::string& what, const Wanted& wanted);
  absl::Status WaitFor(const std::string& what, const Wanted& wanted, absl::Duration limit);

  const std::string& resource() const { return options_.resource; }
  FakeResource Now() const;
  std::vector<std::string> Ids() const;
  // The kubelet's calls for our resource; for any while we do not know which is ours.
  std::vector<FakeRegisterCall> Calls() const;
  std::vector<std::string> SocketsInDirectory() const;  // without kubelet.sock
  std::string PathOf(const std::string& file) const { return dir_ + "/" + file; }

  // Runs the shell command for the device.
  absl::Status RunHook(const std::string& hook, const std::string& id) const;
  // The end of the plugin's output.
  std::string Output() const;

 private:
  std::string Filled(std::string text) const;
  std::string Explain(const std::string& what) const;
  void FindResource();

  SuiteOptions options_;
  const FakeKubelet::Generation generation_;
  std::string scratch_;
  std::string dir_, root_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::optional<Process> plugin_;
};

}  // namespace vfio_agent::conformance
