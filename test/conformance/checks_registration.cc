// What a kubelet sees of a plugin while it registers.
#include <grpcpp/client_context.h>

#include <chrono>
#include <mutex>
#include <set>

#include "absl/time/clock.h"
#include "sysfs/status.h"
#include "test/conformance/check.h"

namespace vfio_agent::conformance {
namespace {

// The kubelet's directory takes 32 of the 107 bytes of a socket's path.
constexpr size_t kLongestEndpoint = 75;
// The kubelet dials back for up to ten seconds before it answers.
constexpr absl::Duration kLeastPatience = absl::Seconds(12);

// The calls so far; at least one.
absl::StatusOr<std::vector<FakeRegisterCall>> SomeCalls(Stand& stand) {
  auto calls = stand.Calls();
  // The list may be there before the fake kubelet has written down how its Register ended.
  for (const absl::Time end = absl::Now() + absl::Seconds(5); calls.empty() && absl::Now() < end;) {
    stand.kubelet().WaitFor([](const FakeResources&) { return false; }, absl::Milliseconds(5));
    calls = stand.Calls();
  }
  if (calls.empty()) return absl::FailedPreconditionError("no Register call");
  return calls;
}

absl::Status ListensFirst(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  for (const FakeRegisterCall& call : calls) {
    RETURN_IF_ERROR(
        Require(call.listening, "nobody listened on %s as Register came", call.request.endpoint()));
  }
  return absl::OkStatus();
}

absl::Status AnswersDuringRegister(Stand& stand) {
  RETURN_IF_ERROR(stand.kubelet().Start());
  std::mutex mutex;
  std::vector<grpc::Status> answers;
  stand.kubelet().DuringRegister([&](FakeKubelet::Stub& plugin) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    const auto stream = plugin.ListAndWatch(&context, v1beta1::Empty());
    v1beta1::ListAndWatchResponse list;
    const bool answered = stream->Read(&list);
    context.TryCancel();
    const grpc::Status end = stream->Finish();
    const std::unique_lock lock(mutex);
    answers.push_back(answered ? grpc::Status::OK : end);
  });
  RETURN_IF_ERROR(stand.StartPlugin());
  RETURN_IF_ERROR(stand.WaitServed());
  stand.kubelet().DuringRegister(nullptr);
  const std::unique_lock lock(mutex);
  for (const grpc::Status& answer : answers) {
    RETURN_IF_ERROR(Require(answer.ok(), "ListAndWatch failed while Register was under way: %s",
                            answer.error_message()));
  }
  return absl::OkStatus();
}

absl::Status OptionsDuringRegister(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  for (const FakeRegisterCall& call : calls) {
    RETURN_IF_ERROR(
        Require(call.refused.empty(), "its Register came to nothing: %s", call.refused));
    RETURN_IF_ERROR(Require(call.answered_after < absl::Seconds(2), "options came after %s",
                            absl::FormatDuration(call.answered_after)));
  }
  return absl::OkStatus();
}

absl::Status RequestFields(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  for (const FakeRegisterCall& call : calls) {
    const std::string& endpoint = call.request.endpoint();
    RETURN_IF_ERROR(
        Require(call.request.version() == "v1beta1", "version is \"%s\"", call.request.version()));
    RETURN_IF_ERROR(Require(!endpoint.empty() && endpoint.find('/') == std::string::npos,
                            "endpoint \"%s\" is no bare file name", endpoint));
  }
  return absl::OkStatus();
}

// A plugin with a name that is refused has no resource here: all calls count.
absl::Status ResourceName(Stand& stand) {
  RETURN_IF_ERROR(stand.kubelet().Start());
  RETURN_IF_ERROR(stand.StartPlugin());
  const absl::Status served = stand.WaitServed();
  for (const FakeRegisterCall& call : stand.kubelet().RegisterCalls()) {
    const std::string wrong = CheckResourceName(call.request.resource_name());
    RETURN_IF_ERROR(Require(wrong.empty(), "%s", wrong));
  }
  return served;
}

absl::Status EndpointLength(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  const size_t size = calls.back().request.endpoint().size();
  return Require(size <= kLongestEndpoint,
                 "its socket's name has %d bytes, the kubelet's directory leaves %d", size,
                 kLongestEndpoint);
}

absl::Status OneSocketEach(Stand& stand) {
  std::set<std::string> endpoints;
  const FakeResources resources = stand.kubelet().Resources();
  if (resources.size() < 2) return NotTried("it serves one resource only");
  for (const auto& [name, resource] : resources) {
    RETURN_IF_ERROR(Require(endpoints.insert(resource.endpoint).second,
                            "%s shares the socket %s with another resource", name,
                            resource.endpoint));
  }
  return absl::OkStatus();
}

absl::Status RegisterDeadline(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  return Require(calls.back().patience >= kLeastPatience - absl::Seconds(1),
                 "it waits %s for the answer to Register, the kubelet's dial alone may take 10s",
                 absl::FormatDuration(calls.back().patience));
}

absl::Status SameOptions(Stand& stand) {
  ASSIGN_OR_RETURN(const auto calls, SomeCalls(stand));
  const auto& sent = calls.back().request.options();
  const auto& said = calls.back().options;
  return Require(sent.SerializeAsString() == said.SerializeAsString(),
                 "Register says pre_start_required=%d get_preferred_allocation_available=%d, "
                 "GetDevicePluginOptions %d and %d",
                 sent.pre_start_required(), sent.get_preferred_allocation_available(),
                 said.pre_start_required(), said.get_preferred_allocation_available());
}

constexpr auto kPlugin = Check::Needs::kPlugin;
constexpr auto kOwn = Check::Needs::kOwn;

constexpr Check kChecks[] = {
    {"listens-first", "R1", "its socket takes connections before Register is called", kPlugin,
     ListensFirst},
    {"options-in-register", "R2", "options are answered while Register is under way", kPlugin,
     OptionsDuringRegister},
    {"list-in-register", "R2", "ListAndWatch is answered while Register is under way", kOwn,
     AnswersDuringRegister},
    {"register-fields", "R3", "version v1beta1, and the socket's bare file name", kPlugin,
     RequestFields},
    {"resource-name", "R5", "the resource has a name that the kubelet takes", kOwn, ResourceName},
    {"endpoint-length", "R6", "the socket's path fits into 107 bytes", kPlugin, EndpointLength},
    {"one-socket-each", "R8", "each resource has a socket of its own", kPlugin, OneSocketEach},
    {"register-deadline", "R9", "it waits twelve seconds for Register's answer", kPlugin,
     RegisterDeadline},
    {"same-options", "R20", "Register names the options that GetDevicePluginOptions gives", kPlugin,
     SameOptions},
};

}  // namespace

std::span<const Check> RegistrationChecks() { return kChecks; }

}  // namespace vfio_agent::conformance
