// FakeRegistry: the kubelet's plugin watcher, as far as a device plugin can tell.
//
// It looks at its directory again and again, as the kubelet's does once a second: a socket that has
// come is dialled and asked who it is, within a second; then its endpoint is dialled and watched as
// after a Register; then the plugin is told what came of it. A socket that could not be registered
// is tried again, more and more slowly. A socket that has gone is taken out; where another one
// comes in the same round, that one is taken in first, since the kubelet does both at the same time
// and up to 1.36 takes out by the resource's name. A stream that ends is never opened again.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "proto/pluginregistration.grpc.pb.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {

// What the watcher knows of one resource.
struct RegistryEntry {
  pluginregistration::PluginInfo info;  // the newest answer
  std::map<std::string, bool> healthy;  // by device
  int registrations = 0;                // that were told as done
  int streams = 0;                      // open now
  size_t Healthy() const;
};
using RegistryEntries = std::map<std::string, RegistryEntry>;

class FakeRegistry {
 public:
  using Generation = FakeKubelet::Generation;
  struct Options {
    std::string dir;
    Generation generation = Generation::k136;
    absl::Duration period = absl::Milliseconds(10);         // a second in the kubelet
    absl::Duration first_backoff = absl::Milliseconds(20);  // half a second there
    bool encoded_authority = true;  // ":authority" is the path, percent-encoded or as it is
  };

  explicit FakeRegistry(Options options) : options_(std::move(options)) {}
  ~FakeRegistry() { Stop(); }
  FakeRegistry(const FakeRegistry&) = delete;
  FakeRegistry& operator=(const FakeRegistry&) = delete;

  void Start();
  // Ends every stream. Nothing is remembered.
  void Stop();

  // From now on no plugin is taken, for this reason; empty: no more.
  void Refuse(std::string text);
  // Cuts the newest stream of the resource, as when the connection is lost.
  void CancelList(const std::string& resource);

  RegistryEntries Entries() const;
  std::vector<std::string> Sockets() const;  // that it knows of now
  bool WaitFor(const std::function<bool(const RegistryEntries&)>& wanted,
               absl::Duration limit) const;
  bool WaitHealthy(const std::string& resource, size_t count, absl::Duration limit) const;
  bool WaitForNoSocket(absl::Duration limit) const;

 private:
  struct Client;
  using ClientPtr = std::shared_ptr<Client>;
  struct Socket {
    ino_t inode = 0;
    ClientPtr client;  // null: not registered
    absl::Time retry_at = absl::InfinitePast();
    absl::Duration backoff;
  };

  void Run();
  void Round();
  std::map<std::string, ino_t> Scan() const;
  ClientPtr Register(const std::string& path);
  std::string TakeIn(const pluginregistration::PluginInfo& info, const ClientPtr& client);
  void TakeOut(const ClientPtr& client);
  void Watch(const ClientPtr& client);

  const Options options_;
  std::thread thread_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stopping_ = false;
  std::string refuse_;
  RegistryEntries entries_;
  std::map<std::string, Socket> sockets_;  // by path
  std::vector<ClientPtr> clients_;         // oldest first
};

}  // namespace vfio_agent
