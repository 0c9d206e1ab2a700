// FakeApiServer::State: what its thread and the test's share, behind one lock.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "sysfs/fd.h"
#include "test/apiserver/fake_api_server.h"
#include "test/apiserver/identity.h"
#include "test/apiserver/object_store.h"
#include "test/apiserver/tls_connection.h"

namespace vfio_agent {

struct FakeApiServer::State {
  // What a connection waits for, if anything.
  struct Client {
    TlsConnection connection;
    std::optional<HttpCall> delayed;  // is answered at `answer_at`, with the fault
    ApiFault fault;
    absl::Time answer_at = absl::InfiniteFuture();
    bool hung = false;
    bool watching = false;
    bool bookmarks = false;
    std::string collection;
    std::string selector;
    int64_t version = 0;
    absl::Time watch_until = absl::InfiniteFuture();
    std::optional<size_t> cut;  // bytes of answer that are left
  };

  explicit State(std::string on_host) : host(std::move(on_host)) {}

  // With the lock held, all of them.
  void Listen();
  void Accept();
  void Serve(Client& client);
  void Begin(Client& client, HttpCall call);
  void Answer(Client& client, const HttpCall& call, const ApiFault& fault);
  void StartWatch(Client& client, const HttpCall& call, const ApiPath& path, const ApiFault& fault);
  void Feed(Client& client);
  void Send(Client& client, const std::string& text);
  void EndWatch(Client& client);
  StoreAnswer Do(const HttpCall& call, const ApiPath& path);
  StoreAnswer DoList(const ApiPath& path, const std::map<std::string, std::string>& query);
  StoreAnswer Judge(const HttpCall& call, const ApiPath& path);
  ApiFault TakeFault(const HttpCall& call, bool watch);
  absl::Time NextDeadline() const;

  void Run();  // the thread
  void Wake() const;

  const std::string host;
  Fd wake;
  std::thread thread;

  std::mutex mutex;
  std::condition_variable heard;
  bool stopping = false;
  Fd reserved;  // keeps the port ours while nobody listens
  Fd listener;
  int port = 0;
  TlsIdentity identity = MakeTlsIdentity();
  std::string token = "token-1";
  int tokens = 1;
  std::set<std::string> denied;
  std::list<ApiFault> faults;
  ObjectStore store;
  std::list<Client> clients;
  std::vector<HttpCall> calls;
};

}  // namespace vfio_agent
