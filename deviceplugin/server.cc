#include "deviceplugin/server.h"

#include <grpc/support/log.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "deviceplugin/completion.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// FNV-1a, 32 bits: short and the same in every build, unlike std::hash.
uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// The mode of a socket is decided by bind(), which gRPC calls: only the umask reaches it without a
// moment at which others could connect.
class OwnerOnly {
 public:
  OwnerOnly() : before_(::umask(0177)) {}
  ~OwnerOnly() { ::umask(before_); }
  OwnerOnly(const OwnerOnly&) = delete;
  OwnerOnly& operator=(const OwnerOnly&) = delete;

 private:
  mode_t before_;
};

}  // namespace

std::string SocketName(std::string_view resource, uint32_t tag, int count) {
  return absl::StrFormat("vfio-%08x-%08x-%d.sock", Hash(resource), tag, count);
}

absl::StatusOr<std::string> SocketPath(const std::string& dir, const std::string& name) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  std::string path = absl::StrFormat("%s/%s", dir, name);
  if (path.size() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a unix socket's path has at most %d bytes, this has %d: choose a "
                        "shorter device-plugin directory",
                        path, kMost, path.size()));
  }
  return path;
}

void SilenceGrpc() {
  // Nothing in this process sets variables.
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;  // NOLINT(concurrency-mt-unsafe)
  gpr_set_log_function([](gpr_log_func_args*) {});
}

PluginServer::PluginServer(std::string path, std::unique_ptr<DevicePluginService> service)
    : path_(std::move(path)), service_(std::move(service)) {}

PluginServer::~PluginServer() { Shutdown(absl::InfinitePast()); }

absl::StatusOr<std::unique_ptr<PluginServer>> PluginServer::Start(
    const std::string& path, std::unique_ptr<DevicePluginService> service) {
  std::unique_ptr<PluginServer> started(new PluginServer(path, std::move(service)));
  // gRPC tells a failure to listen only to its log, so the likely one is looked for here.
  const std::string dir = path.substr(0, path.rfind('/'));
  struct stat info = {};
  if (::stat(dir.c_str(), &info) != 0) return ErrnoStatus("device-plugin directory " + dir);
  RETURN_IF_ERROR(started->Listen());
  return started;
}

absl::Status PluginServer::Listen() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
  builder.RegisterService(&service_->rpc());
  queue_ = builder.AddCompletionQueue();
  lease_ = LeaseOut(*queue_);
  {
    const OwnerOnly owner_only;
    server_ = builder.BuildAndStart();
  }
  if (server_ == nullptr) {
    lease_.reset();
    HandleCalls();  // a queue must be read empty before it ends
    return absl::UnavailableError(absl::StrFormat("cannot listen on %s", path_));
  }
  service_->Serve(lease_);
  thread_ = std::thread([this] { HandleCalls(); });
  return absl::OkStatus();
}

void PluginServer::HandleCalls() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) Completion::Proceed(tag, ok);
}

void PluginServer::Shutdown(absl::Time deadline) {
  if (server_ == nullptr) return;
  EndStreams();
  server_->Shutdown(absl::ToChronoTime(deadline));
  lease_.reset();
  thread_.join();  // ends with the last call
  server_.reset();
}

}  // namespace vfio_agent
