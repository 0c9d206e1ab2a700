#include "test/cluster/support.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"

namespace vfio_agent {

using Json = nlohmann::json;

AccountDir::AccountDir() {
  char name[] = "/tmp/vfa-cluster-XXXXXX";
  if (::mkdtemp(name) == nullptr) ::abort();
  path_ = name;
}

AccountDir::~AccountDir() {
  std::error_code ignored;  // a test may have taken it away itself
  std::filesystem::remove_all(path_, ignored);
}

ApiAnswer Success(const std::string& body, int code) { return {.code = code, .body = body}; }

ApiAnswer Failure(int code, const std::string& message, const std::string& reason) {
  const Json status = {{"kind", "Status"}, {"message", message}, {"reason", reason}};
  return Judge({.code = code, .body = status.dump()});
}

ApiAnswer NoAnswer() { return {.status = absl::UnavailableError("Connection refused")}; }

std::string NodeText(const std::string& version, const std::map<std::string, std::string>& labels,
                     const std::string& condition) {
  Json node = {
      {"kind", "Node"},
      {"metadata",
       {{"name", kNode}, {"uid", "u-1"}, {"resourceVersion", version}, {"labels", labels}}},
      {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  if (!condition.empty()) {
    const NodeCondition ready = Ready(condition);
    node["status"]["conditions"].push_back({{"type", ready.type},
                                            {"status", ready.status},
                                            {"reason", ready.reason},
                                            {"message", ready.message},
                                            {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  }
  return node.dump();
}

NodeCondition Ready(const std::string& status, const std::string& message) {
  return {.type = "PassthroughReady",
          .status = status,
          .reason = status == "True" ? "AllServed" : "Refused",
          .message = message};
}

ClusterEvent TestEvent(const std::string& name, int count) {
  return {.reason = "GroupRefused",
          .note = "group 14: foreign-member",
          .type = "Warning",
          .action = "Bind",
          .count = count,
          .first = absl::FromUnixSeconds(1'790'000'000),
          .last = absl::FromUnixSeconds(1'790'000'000 + count),
          .name = name};
}

HttpsAnswer Ask(const std::string& url, const std::string& ca) {
  const std::unique_ptr<Transport> transport = *Transport::Open();
  std::optional<HttpsAnswer> answer;
  transport->Start({.url = url, .ca = ca, .limit = absl::Seconds(5)},
                   [&answer](HttpsAnswer said) { answer = std::move(said); });
  while (!answer) transport->Run(absl::Seconds(1));
  return *answer;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

ClusterOptions::Times QuickTimes() {
  return {.connect = absl::Seconds(2),
          .answer = absl::Seconds(3),
          .watch = absl::Minutes(5),
          .first_pause = absl::Milliseconds(20),
          .longest_pause = absl::Milliseconds(200),
          .rewrite_pause = absl::Milliseconds(50),
          .heartbeat = absl::InfiniteDuration()};
}

ClusterStand::ClusterStand(const std::string& host) : server_(host) {
  server_.WriteServiceAccount(account());
  server_.AddNode(kNode, {{"nvidia.com/gpu.workload.config", "vm-passthrough"}});
  options_ = {.node_name = kNode,
              .server = server_.url(),
              .token_file = account() + "/token",
              .ca_file = account() + "/ca.crt",
              .times = QuickTimes()};
}

Cluster& ClusterStand::Start() {
  cluster_ = *Cluster::Start(options_, [this] { ++wakes_; });
  return *cluster_;
}

bool ClusterStand::WaitForLabel(const std::string& key, const std::string& value) {
  return WaitFor([&] {
    if (const std::optional<SeenNode> node = cluster_->TakeNode()) seen_ = *node;
    const auto found = seen_.labels.find(key);
    return (found == seen_.labels.end() ? "" : found->second) == value && !seen_.uid.empty();
  });
}

std::string ClusterStand::Notes() {
  for (const std::string& note : cluster_->TakeNotes()) notes_ += note + "\n";
  return notes_;
}

std::string ClusterStand::ConditionField(const std::string& field) const {
  const Json node = server_.Get(kNodePath);
  for (const Json& condition :
       node.value(Json::json_pointer("/status/conditions"), Json::array())) {
    if (condition["type"] == "PassthroughReady") return condition.value(field, "");
  }
  return "";
}

std::string ClusterStand::Label(const std::string& key) const {
  return server_.Get(kNodePath)["metadata"]["labels"].value(key, "");
}

}  // namespace vfio_agent
