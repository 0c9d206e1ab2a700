#include "test/bench/load.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "absl/time/clock.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kConnect = absl::Seconds(10);

std::shared_ptr<grpc::Channel> Connect(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // shared with nobody
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

// Empty where the answer is that of the unit `id`.
std::string WhyWrong(const grpc::Status& status, const v1beta1::AllocateResponse& response,
                     const std::string& id, bool checked) {
  if (!status.ok()) return id + ": " + status.error_message();
  if (!checked) return "";
  if (response.container_responses_size() != 1) return id + ": no answer for the container";
  const auto& variables = response.container_responses(0).envs();
  if (variables.size() == 1 && variables.begin()->second == id) return "";
  return id + ": the answer is another unit's";
}

class Client {
 public:
  Client(const LoadPlan& plan, int number)
      : plan_(plan),
        channel_(Connect(plan.socket)),
        stub_(v1beta1::DevicePlugin::NewStub(channel_)),
        next_(static_cast<size_t>(number) * plan.ids.size() / static_cast<size_t>(plan.clients)) {
    result_.micros.reserve(static_cast<size_t>(plan.calls));
  }

  bool Connected() {
    return channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + kConnect));
  }

  void Run() {
    for (int i = 0; i < plan_.calls; ++i) CallOnce(plan_.ids[next_++ % plan_.ids.size()]);
  }

  const LoadResult& result() const { return result_; }

 private:
  void CallOnce(const std::string& id) {
    v1beta1::AllocateRequest request;
    request.add_container_requests()->add_devices_ids(id);
    v1beta1::AllocateResponse response;
    grpc::ClientContext context;
    const absl::Time start = absl::Now();
    const grpc::Status status = stub_->Allocate(&context, request, &response);
    result_.micros.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
    const std::string wrong = WhyWrong(status, response, id, plan_.checked);
    if (wrong.empty()) return;
    ++result_.errors;
    if (result_.first_error.empty()) result_.first_error = wrong;
  }

  const LoadPlan& plan_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  size_t next_;
  LoadResult result_;
};

}  // namespace

void LoadResult::Add(const LoadResult& other) {
  micros.insert(micros.end(), other.micros.begin(), other.micros.end());
  seconds += other.seconds;
  errors += other.errors;
  if (first_error.empty()) first_error = other.first_error;
}

double Quantile(std::vector<double> values, double rank) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(last * rank);
  std::ranges::nth_element(values, at);
  return *at;
}

LoadResult RunLoad(const LoadPlan& plan) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < plan.clients; ++i) {
    clients.push_back(std::make_unique<Client>(plan, i));
    if (!clients.back()->Connected()) {
      return {.errors = 1, .first_error = "no connection to " + plan.socket};
    }
  }
  std::barrier line(plan.clients + 1);
  std::vector<std::jthread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&line, &client] {
      line.arrive_and_wait();
      client->Run();
    });
  }
  line.arrive_and_wait();
  const absl::Time start = absl::Now();
  threads.clear();  // joins them
  LoadResult all{.seconds = absl::ToDoubleSeconds(absl::Now() - start)};
  for (const auto& client : clients) {
    LoadResult one = client->result();
    one.seconds = 0;
    all.Add(one);
  }
  return all;
}

}  // namespace vfio_agent
