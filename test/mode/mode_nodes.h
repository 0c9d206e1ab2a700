// A simulated node with two cards whose mode is changed under the daemon.
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "test/agent/fault_node.h"

namespace vfio_agent {

class ModeNode {
 public:
  static constexpr absl::Duration kLong = absl::Seconds(90);
  static constexpr char kContainer[] = "mode: container\n";
  static constexpr char kPassthrough[] = "mode: vm-passthrough\n";

  explicit ModeNode(int groups = 2) : faults_(groups), kubelet_(node().StartKubelet()) {}

  const FaultNode& faults() const { return faults_; }
  const Node& node() const { return faults_.node(); }
  FakeKubelet& kubelet() const { return *kubelet_; }
  Daemon& daemon() const { return *daemon_; }

  void Start(const std::string& config, std::vector<std::string> more = {}) {
    Write(config);
    more.insert(more.end(), {"--config", node().dir().path() + "/config.yaml"});
    daemon_ = std::make_unique<Daemon>(node().DaemonArguments(std::move(more)));
  }
  void Kill() {
    KillWithChildren(*daemon_);
    daemon_.reset();
  }
  void Write(const std::string& config) const { node().dir().Write("config.yaml", config); }
  void Switch(const std::string& config) const {
    Write(config);
    daemon_->Signal(SIGHUP);
  }

  bool Says(const std::vector<std::string>& parts) const {
    return !daemon_->WaitForLine(parts, kLong).empty();
  }
  bool Healthy(size_t count) const { return kubelet_->WaitHealthy(kH100, count, kLong); }
  bool AllHome() const {
    return Eventually(
        [this] {
          for (int group = 1; group <= faults_.groups(); ++group) {
            if (!faults_.IsHome(group) || faults_.HasRecord(group, 0)) return false;
          }
          return true;
        },
        kLong);
  }
  bool AllTaken() const {
    return Eventually(
        [this] {
          for (int group = 1; group <= faults_.groups(); ++group) {
            if (!faults_.IsTaken(group)) return false;
          }
          return true;
        },
        kLong);
  }
  void SetPod(int group) const {
    kubelet_->SetPod("team", "vm", "compute", kH100, {FaultNode::AddressOf(group, 0)});
  }
  nlohmann::json ModeStatus() const { return node().RunJson({"status"}).at("mode"); }

 private:
  FaultNode faults_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace vfio_agent
