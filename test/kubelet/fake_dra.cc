#include "test/kubelet/fake_dra.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <filesystem>

#include "absl/time/clock.h"
#include "proto/dra_v1.grpc.pb.h"
#include "proto/dra_v1beta1.grpc.pb.h"

namespace vfio_agent {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra;

constexpr absl::Duration kAnswer = absl::Seconds(45);
constexpr absl::Duration kGetInfo = absl::Seconds(1);

std::shared_ptr<grpc::Channel> Dial(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

void SetDeadline(grpc::ClientContext& context, absl::Duration limit) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
}

absl::Status ToStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

template <typename Request>
Request RequestOf(const std::vector<ClaimRef>& claims) {
  Request request;
  for (const ClaimRef& claim : claims) {
    auto& out = *request.add_claims();
    out.set_namespace_(claim.claim_namespace);
    out.set_name(claim.name);
    out.set_uid(claim.uid);
  }
  return request;
}

// The kubelet counts a claim without an entry as failed.
template <typename Map>
absl::Status CheckComplete(const std::vector<ClaimRef>& claims, const Map& answers) {
  for (const ClaimRef& claim : claims) {
    if (!answers.contains(claim.uid)) return absl::InternalError("no answer about " + claim.uid);
  }
  return answers.size() == claims.size() ? absl::OkStatus()
                                         : absl::InternalError("answers that nobody asked for");
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<FakeDra::Answers> PrepareBy(Stub& stub, const std::vector<ClaimRef>& claims) {
  grpc::ClientContext context;
  SetDeadline(context, kAnswer);
  Response response;
  const grpc::Status status =
      stub.NodePrepareResources(&context, RequestOf<Request>(claims), &response);
  if (!status.ok()) return ToStatus(status);
  FakeDra::Answers answers;
  for (const auto& [uid, answer] : response.claims()) {
    FakeDra::Answer& out = answers[uid];
    out.error = answer.error();
    for (const auto& device : answer.devices()) {
      out.devices.push_back(
          {.requests = {device.request_names().begin(), device.request_names().end()},
           .pool = device.pool_name(),
           .device = device.device_name(),
           .cdi_ids = {device.cdi_device_ids().begin(), device.cdi_device_ids().end()}});
    }
  }
  if (absl::Status complete = CheckComplete(claims, answers); !complete.ok()) return complete;
  return answers;
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<std::map<std::string, std::string>> UnprepareBy(
    Stub& stub, const std::vector<ClaimRef>& claims) {
  grpc::ClientContext context;
  SetDeadline(context, kAnswer);
  Response response;
  const grpc::Status status =
      stub.NodeUnprepareResources(&context, RequestOf<Request>(claims), &response);
  if (!status.ok()) return ToStatus(status);
  std::map<std::string, std::string> errors;
  for (const auto& [uid, answer] : response.claims()) errors[uid] = answer.error();
  if (absl::Status complete = CheckComplete(claims, errors); !complete.ok()) return complete;
  return errors;
}

}  // namespace

std::string FakeDra::Register(const std::string& driver, absl::Duration limit) {
  std::string why = "no socket of the driver";
  for (const absl::Time end = absl::Now() + limit; absl::Now() < end;) {
    std::error_code error;  // the directory may not be there yet
    for (const auto& entry : std::filesystem::directory_iterator(options_.dir, error)) {
      std::error_code gone;
      const std::string name = entry.path().filename();
      if (name.starts_with(".") || !std::filesystem::is_socket(entry.status(gone))) continue;
      why = TakeIn(entry.path());
      if (why.empty() && info_.name() == driver) return "";
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return why;
}

std::string FakeDra::TakeIn(const std::string& path) {
  const auto channel = Dial(path);
  const auto stub = pluginregistration::Registration::NewStub(channel);
  grpc::ClientContext asked;
  SetDeadline(asked, kGetInfo);
  if (!stub->GetInfo(&asked, pluginregistration::InfoRequest(), &info_).ok()) return "no answer";
  if (info_.type() != "DRAPlugin") return "another type";
  const auto known = std::ranges::find_first_of(info_.supported_versions(), options_.known);
  pluginregistration::RegistrationStatus told;
  std::string why = options_.refuse;
  if (known == info_.supported_versions().end()) why = "no version that this kubelet knows";
  told.set_plugin_registered(why.empty());
  told.set_error(why);
  pluginregistration::RegistrationStatusResponse response;
  grpc::ClientContext notified;
  SetDeadline(notified, kGetInfo);
  stub->NotifyRegistrationStatus(&notified, told, &response);
  if (!why.empty()) return why;
  version_ = *known;
  channel_ = Dial(info_.endpoint());
  return "";
}

absl::StatusOr<FakeDra::Answers> FakeDra::Prepare(const std::vector<ClaimRef>& claims) const {
  if (version_ == "v1.DRAPlugin") {
    const auto stub = dra::v1::DRAPlugin::NewStub(channel_);
    return PrepareBy<dra::v1::DRAPlugin::Stub, dra::v1::NodePrepareResourcesRequest,
                     dra::v1::NodePrepareResourcesResponse>(*stub, claims);
  }
  const auto stub = dra::v1beta1::DRAPlugin::NewStub(channel_);
  return PrepareBy<dra::v1beta1::DRAPlugin::Stub, dra::v1beta1::NodePrepareResourcesRequest,
                   dra::v1beta1::NodePrepareResourcesResponse>(*stub, claims);
}

absl::StatusOr<std::map<std::string, std::string>> FakeDra::Unprepare(
    const std::vector<ClaimRef>& claims) const {
  if (version_ == "v1.DRAPlugin") {
    const auto stub = dra::v1::DRAPlugin::NewStub(channel_);
    return UnprepareBy<dra::v1::DRAPlugin::Stub, dra::v1::NodeUnprepareResourcesRequest,
                       dra::v1::NodeUnprepareResourcesResponse>(*stub, claims);
  }
  const auto stub = dra::v1beta1::DRAPlugin::NewStub(channel_);
  return UnprepareBy<dra::v1beta1::DRAPlugin::Stub, dra::v1beta1::NodeUnprepareResourcesRequest,
                     dra::v1beta1::NodeUnprepareResourcesResponse>(*stub, claims);
}

void FakeDra::WatchHealth() {
  EndHealth();
  health_ = std::make_unique<grpc::ClientContext>();
  reader_ = std::thread([this] {
    const auto stub = v1alpha1::DRAResourceHealth::NewStub(channel_);
    const auto stream =
        stub->NodeWatchResources(health_.get(), v1alpha1::NodeWatchResourcesRequest());
    v1alpha1::NodeWatchResourcesResponse list;
    while (stream->Read(&list)) {
      const std::unique_lock lock(mutex_);
      for (const auto& device : list.devices()) devices_[device.device().device_name()] = device;
      ++messages_;
      changed_.notify_all();
    }
    stream->Finish();
  });
}

void FakeDra::EndHealth() {
  if (!reader_.joinable()) return;
  health_->TryCancel();
  reader_.join();
}

bool FakeDra::WaitHealth(const std::string& device, v1alpha1::HealthStatus wanted,
                         absl::Duration limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit), [&] {
    const auto found = devices_.find(device);
    return found != devices_.end() && found->second.health() == wanted;
  });
}

bool FakeDra::WaitMessages(int count, absl::Duration limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                           [&] { return messages_ >= count; });
}

v1alpha1::DeviceHealth FakeDra::HealthOf(const std::string& device) {
  const std::unique_lock lock(mutex_);
  const auto found = devices_.find(device);
  return found == devices_.end() ? v1alpha1::DeviceHealth() : found->second;
}

}  // namespace vfio_agent
