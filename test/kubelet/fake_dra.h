// FakeDra: the kubelet's side of dynamic resource allocation, as far as a driver can tell.
//
// It looks for sockets in its directory plugins_registry, asks each who it is, takes the first of
// the versions that it knows itself, tells the driver so, and then calls it. Of health it asks for
// v1alpha1, whether that was told or not.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deviceplugin/dra/dra_claims.h"
#include "proto/dra_health_v1alpha1.grpc.pb.h"
#include "proto/pluginregistration.grpc.pb.h"

namespace vfio_agent {

class FakeDra {
 public:
  struct Options {
    std::string dir;
    std::vector<std::string> known = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
    std::string refuse;  // the driver is not taken, for this reason
  };
  struct Answer {
    std::vector<ClaimDevice> devices;
    std::string error;
  };
  using Answers = std::map<std::string, Answer>;  // by uid

  explicit FakeDra(Options options) : options_(std::move(options)) {}
  ~FakeDra() { EndHealth(); }
  FakeDra(const FakeDra&) = delete;
  FakeDra& operator=(const FakeDra&) = delete;

  // Takes in the driver of this name, when it is there. Empty: it was; else why not.
  std::string Register(const std::string& driver, absl::Duration limit);

  // Of the driver taken in last.
  const pluginregistration::PluginInfo& info() const { return info_; }
  const std::string& version() const { return version_; }

  absl::StatusOr<Answers> Prepare(const std::vector<ClaimRef>& claims) const;
  // Errors by uid; no claim is left out.
  absl::StatusOr<std::map<std::string, std::string>> Unprepare(
      const std::vector<ClaimRef>& claims) const;

  void WatchHealth();
  void EndHealth();
  // The newest of each device; and how many messages have come.
  bool WaitHealth(const std::string& device, v1alpha1::HealthStatus wanted, absl::Duration limit);
  bool WaitMessages(int count, absl::Duration limit);
  v1alpha1::DeviceHealth HealthOf(const std::string& device);

 private:
  std::string TakeIn(const std::string& path);

  const Options options_;
  pluginregistration::PluginInfo info_;
  std::string version_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> health_;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, v1alpha1::DeviceHealth> devices_;
  int messages_ = 0;
};

}  // namespace vfio_agent
