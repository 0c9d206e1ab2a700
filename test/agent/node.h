// What the tests on simulated nodes share: a node, a state directory, a kubelet's directory.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/agent/program.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/sim/mount.h"

namespace vfio_agent {

inline constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";

class Node {
 public:
  // `machine`: a file below test/machines, without ".yaml". `scenario`: YAML, may be empty.
  explicit Node(const std::string& machine, const std::string& scenario = "") {
    Start(std::string(MACHINES) + "/" + machine + ".yaml", scenario);
  }
  // One that no file describes.
  struct MachineText {
    std::string yaml;
  };
  explicit Node(const MachineText& machine) { Start(dir_.Write("machine.yaml", machine.yaml), ""); }

  const std::string& root() const { return mount_->root(); }
  std::string kubelet_dir() const { return dir_.path() + "/dp"; }
  std::string kubelet_root() const { return dir_.path() + "/kl"; }
  std::string state_dir() const { return dir_.path() + "/state"; }
  // One that runs and, until it is told of pods, says that none has anything.
  std::unique_ptr<FakeKubelet> StartKubelet(
      FakeKubelet::Generation generation = FakeKubelet::Generation::k136) const {
    auto kubelet = std::make_unique<FakeKubelet>(FakeKubelet::Options{
        .dir = kubelet_dir(), .generation = generation, .root_dir = kubelet_root()});
    REQUIRE(kubelet->Start().ok());
    return kubelet;
  }
  const ScratchDir& dir() const { return dir_; }
  void Control(const std::string& command) const {
    INFO(command);
    REQUIRE(mount_->Control(command) == 0);
  }

  // Arguments that every subcommand needs here.
  std::vector<std::string> With(std::vector<std::string> words) const {
    words.insert(words.end(), {"--root", root(), "--state-dir", state_dir()});
    return words;
  }
  ProgramResult Run(std::vector<std::string> words) const {
    return RunAgent(With(std::move(words)));
  }
  nlohmann::json RunJson(std::vector<std::string> words) const {
    words.insert(words.end(), {"-o", "json"});
    const ProgramResult result = Run(std::move(words));
    INFO(result.out << result.err);
    return nlohmann::json::parse(result.out);
  }
  std::vector<std::string> DaemonArguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> words =
        With({"--device-plugin-dir", kubelet_dir(), "--kubelet-root-dir", kubelet_root()});
    if (std::ranges::count(more, "--resync") == 0) more.insert(more.end(), {"--resync", "200ms"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // The driver of a device now; "" where it has none.
  std::string DriverOf(const std::string& address) const {
    std::error_code error;
    const auto link = std::filesystem::read_symlink(
        root() + "/sys/bus/pci/devices/" + address + "/driver", error);
    return error ? "" : link.filename().string();
  }
  std::string OverrideOf(const std::string& address) const {
    const auto text = mount_->Read("sys/bus/pci/devices/" + address + "/driver_override");
    return text.ok() ? *text : std::string(text.status().message());
  }
  bool HasNode(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(root() + "/dev/vfio/" + name));
  }
  // The writes to the kernel so far, one a line.
  std::string Writes() const { return *mount_->Read(".log"); }

 private:
  void Start(const std::string& machine_file, const std::string& scenario) {
    std::vector<std::string> arguments = {"--machine", machine_file};
    if (!scenario.empty()) {
      arguments.insert(arguments.end(), {"--scenario", dir_.Write("scenario.yaml", scenario)});
    }
    auto mount = sim::SimMount::Start(std::move(arguments));
    INFO(mount.status());
    REQUIRE(mount.ok());
    mount_ = *std::move(mount);
    std::filesystem::create_directory(kubelet_dir());
  }

  ScratchDir dir_;
  std::unique_ptr<sim::SimMount> mount_;
};

}  // namespace vfio_agent
