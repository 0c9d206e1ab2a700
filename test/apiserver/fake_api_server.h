// FakeApiServer: Kubernetes' API over HTTPS, on a thread of its own, with everything that can go
// wrong with it on request. It keeps any object at any path; of Nodes and events it knows more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "test/apiserver/fault.h"

namespace vfio_agent {

class FakeApiServer {
 public:
  // `host`: "127.0.0.1" or "::1". Listens when it returns; aborts where it cannot.
  explicit FakeApiServer(const std::string& host = "127.0.0.1");
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  int port() const;
  std::string url() const;  // "https://127.0.0.1:40123"

  // The files token and ca.crt as the kubelet lays them into a pod: links that change at once.
  void WriteServiceAccount(const std::string& dir) const;
  // Another token is the only valid one from now on; another CA signs what new connections see.
  // What is written already stays as it is.
  void RotateToken();
  void RotateCa();
  // "patch nodes/status" is forbidden from now on; "" forbids nothing more.
  void Deny(const std::string& verb_and_resource);
  void Allow(const std::string& verb_and_resource);

  // A Node as a kubelet would have made it: Ready, with labels.
  void AddNode(const std::string& name, const std::map<std::string, std::string>& labels = {});
  // As another client would. `path` is the object's; nullptr for what is not there.
  nlohmann::json Get(const std::string& path) const;
  void Create(const std::string& path, const nlohmann::json& object);
  void Merge(const std::string& path, const nlohmann::json& patch);  // of the whole object
  void Delete(const std::string& path);
  std::vector<nlohmann::json> List(const std::string& collection) const;

  void Add(ApiFault fault);
  void ClearFaults();
  // The history is forgotten: watches from before it get 410.
  void Compact();
  void SendBookmarks();
  // A line to all who watch.
  void Say(const std::string& line);
  void EndWatches();      // in order
  void CutConnections();  // not in order
  void Down();            // nobody listens
  void Up();              // on the same port

  // All requests so far, by the time of their arrival.
  std::vector<HttpCall> Calls() const;
  // How many of them fit a method and the beginning of a path.
  int Count(const std::string& method, const std::string& path) const;
  int Watches() const;  // that are open
  // False where `reached` has not become true in time. It is asked after each request.
  bool WaitFor(const std::function<bool()>& reached,
               absl::Duration limit = absl::Seconds(20)) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfio_agent
