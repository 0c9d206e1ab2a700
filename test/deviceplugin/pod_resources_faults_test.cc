// Kubelets that do not say which pods they have.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/pod_resources.h"
#include "proto/podresources_v1.grpc.pb.h"
#include "sysfs/fd.h"
#include "test/deviceplugin/pod_node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// Answers every List with one status.
class Refusing final : public v1::PodResourcesLister::Service {
 public:
  Refusing(const std::string& socket, grpc::Status answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }
  ~Refusing() override { server_->Shutdown(std::chrono::system_clock::now()); }
  Refusing(const Refusing&) = delete;
  Refusing& operator=(const Refusing&) = delete;

  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse*) override {
    return answer_;
  }

 private:
  const grpc::Status answer_;
  std::unique_ptr<grpc::Server> server_;
};

// A socket with a name, on which nobody ever accepts.
Fd ListenOn(const std::string& path, int backlog) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(fd.get(), backlog) == 0);
  return fd;
}

Fd ConnectTo(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

// Open descriptors of this process.
auto Descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

TEST_CASE("a kubelet that was killed refuses the connection, and once it is back it is heard",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SetPod("vms", "a", "compute", kGpu, {"0000:11:00.0"});
  node.kubelet.Stop(true);
  const PodClaims claims = node.Read();
  CHECK_FALSE(claims.known);
  CHECK(claims.why_unknown == node.NoConnection("Connection refused"));
  node.Start();
  CHECK(node.Read().list.size() == 1);
}

TEST_CASE("what is no socket refuses the connection", "[deviceplugin][grpc]") {
  PodNode node;
  fs::create_directory(node.socket);
  CHECK(node.Read().why_unknown == node.NoConnection("Connection refused"));
}

TEST_CASE("a socket whose name is too long is told as it is", "[deviceplugin][grpc]") {
  PodNode node;
  const KubeletPlace deep{.root_dir = node.dir.path() + "/" + std::string(100, 'd')};
  fs::create_directories(deep.root_dir + "/pod-resources/kubelet.sock");
  const PodClaims claims = ReadPodClaims(deep, absl::Seconds(20));
  CHECK_FALSE(claims.known);
  CHECK_THAT(claims.why_unknown,
             Catch::Contains("/pod-resources/kubelet.sock: File name too long"));
}

TEST_CASE("an error of the kubelet leaves the claims unknown and is told", "[deviceplugin][grpc]") {
  using Code = grpc::StatusCode;
  PodNode node;
  const auto [code, name] =
      GENERATE(table<Code, std::string>({{Code::PERMISSION_DENIED, "PERMISSION_DENIED"},
                                         {Code::UNIMPLEMENTED, "UNIMPLEMENTED"},
                                         {Code::RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
                                         {Code::UNAVAILABLE, "UNAVAILABLE"},
                                         {Code::UNKNOWN, "UNKNOWN"}}));
  const Refusing kubelet(node.socket, {code, "not for you"});
  const PodClaims claims = node.Read();
  CHECK_FALSE(claims.known);
  CHECK(claims.why_unknown == absl::StrFormat("the kubelet does not list its pods on %s: %s: %s",
                                              node.socket, name, "not for you"));
}

TEST_CASE("a kubelet without PodResources leaves the claims unknown", "[deviceplugin][grpc]") {
  PodNode node;
  v1beta1::Registration::Service other;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + node.socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&other);
  const auto server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  const PodClaims claims = node.Read();
  CHECK_FALSE(claims.known);
  CHECK_THAT(claims.why_unknown, Catch::Contains("UNIMPLEMENTED"));
}

TEST_CASE("a kubelet that hangs up leaves the claims unknown", "[deviceplugin][grpc]") {
  PodNode node;
  const Fd kubelet = ListenOn(node.socket, 8);
  std::thread hangs_up([&] { const Fd taken(::accept(kubelet.get(), nullptr, nullptr)); });
  const PodClaims claims = node.Read();
  hangs_up.join();
  CHECK_FALSE(claims.known);
  CHECK_THAT(claims.why_unknown, Catch::Contains("UNAVAILABLE"));
}

// A question takes a second, the limit, and not several.
void CheckGivenUpInTime(PodNode& node) {
  const absl::Time begin = absl::Now();
  const PodClaims claims = node.Read(absl::Seconds(1));
  const absl::Duration took = absl::Now() - begin;
  CHECK_FALSE(claims.known);
  CHECK(claims.why_unknown == node.NoAnswer("nothing within 1s"));
  CHECK(took >= absl::Seconds(1));
  CHECK(took < absl::Seconds(5));
}

TEST_CASE("a kubelet that takes the call and never answers costs the limit and no more",
          "[deviceplugin][grpc]") {
  PodNode node;
  node.Start();
  node.kubelet.SilencePodResources(true);
  CheckGivenUpInTime(node);
  node.kubelet.SilencePodResources(false);
  CHECK(node.Read().known);
}

TEST_CASE("a kubelet that never takes the connection costs the limit and no more",
          "[deviceplugin][grpc]") {
  PodNode node;
  const Fd kubelet = ListenOn(node.socket, 8);
  CheckGivenUpInTime(node);
}

TEST_CASE("a kubelet whose queue of connections is full is not waited for",
          "[deviceplugin][grpc]") {
  PodNode node;
  const Fd kubelet = ListenOn(node.socket, 0);
  const Fd first = ConnectTo(node.socket);
  CHECK(node.Read().why_unknown == node.NoConnection("Resource temporarily unavailable"));
}

TEST_CASE("no question leaves a descriptor behind, whatever came of it", "[deviceplugin][grpc]") {
  PodNode node;
  const int how = GENERATE(range(0, 4));
  CAPTURE(how);
  Fd nobody;
  if (how < 3) node.Start();
  if (how == 1) node.kubelet.SilencePodResources(true);
  if (how == 2) node.kubelet.Stop(true);
  if (how == 3) nobody = ListenOn(node.socket, 100);
  const auto ask = [&] { return node.Read(absl::Milliseconds(how == 0 ? 20000 : 50)).known; };
  REQUIRE(ask() == (how == 0));  // what gRPC keeps for good is there now
  const auto before = Descriptors();
  for (int i = 0; i < 20; ++i) REQUIRE(ask() == (how == 0));
  // The server's ends are closed by its threads.
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (Descriptors() > before && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
  CHECK(Descriptors() <= before);
}

}  // namespace
}  // namespace vfio_agent
