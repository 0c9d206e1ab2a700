#include "agent/dra/dra_api_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kClaims[] = "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s";
constexpr char kNodes[] = "/api/v1/nodes";
// How many slices are listed at once: of 128 devices each, they are to stay within what is taken of
// one answer.
constexpr int kPage = 10;
// What is done, and what the role of the service account must allow for it.
constexpr char kWatching[] = "watch this node's ResourceSlices";
constexpr char kWriting[] = "publish ResourceSlices";
constexpr char kWatchRule[] = "resourceslices of resource.k8s.io: list, watch";
constexpr char kWriteRule[] = "resourceslices of resource.k8s.io: create, patch, delete";
constexpr char kReadRule[] = "resourceclaims of resource.k8s.io: get";

Retry::Limits LimitsOf(const ClusterOptions& options, unsigned salt) {
  return {.first = options.times.first_pause,
          .longest = options.times.longest_pause,
          .seed = static_cast<unsigned>(absl::ToUnixMicros(absl::Now())) + salt};
}

ApiClient::Options ClientOptions(const ClusterOptions& options, const std::string& server) {
  return {.server = server,
          .token_file = options.token_file,
          .ca_file = options.ca_file,
          .user_agent = absl::StrFormat("vfio-agent/%s",
                                        options.version.empty() ? "unknown" : options.version),
          .connect = options.times.connect,
          .answer = options.times.answer};
}

// A claim is small, and a pod waits for it: what was prepared before is started without it.
ApiClient::Options ClaimOptions(const ClusterOptions& options, const std::string& server) {
  constexpr absl::Duration kConnect = absl::Seconds(3);
  constexpr absl::Duration kAnswer = absl::Seconds(5);
  ApiClient::Options client = ClientOptions(options, server);
  client.connect = std::min(client.connect, kConnect);
  client.answer = std::min(client.answer, kAnswer);
  return client;
}

std::string Spell(const char* doing, const char* rule, const absl::Status& status) {
  return absl::StrFormat("cannot %s: %s: %s", doing, Message(status),
                         RequestRemedy(status.code(), rule));
}

}  // namespace

DraApiWorker::DraApiWorker(const ClusterOptions& options, const std::string& driver,
                           const std::string& server, Transport& transport)
    : options_(options),
      transport_(transport),
      client_(transport, ClientOptions(options, server)),
      claims_(transport, ClaimOptions(options, server)),
      watch_(LimitsOf(options, 4), kPage),
      writer_({.driver = driver,
               .node = options.node_name,
               .limits = LimitsOf(options, 5),
               .pause = std::min(options.times.first_pause, absl::Seconds(1))}),
      notes_(server),
      query_(absl::StrFormat("fieldSelector=spec.nodeName%%3D%s,spec.driver%%3D%s",
                             options.node_name, driver)) {}

void DraApiWorker::Fetch(const ClaimRef& claim,
                         std::function<void(absl::StatusOr<std::string>)> done) {
  claims_.Get(absl::StrFormat(kClaims, claim.claim_namespace, claim.name),
              [this, done = std::move(done)](const ApiAnswer& answer) {
                // A claim that is gone is no trouble of ours.
                const bool heard = answer.status.ok() || absl::IsNotFound(answer.status);
                notes_.Hear("read ResourceClaims", kReadRule,
                            heard ? absl::OkStatus() : answer.status, MonotonicNow());
                if (answer.status.ok()) return done(answer.body);
                done(answer.status);
              });
}

void DraApiWorker::StartWatching(absl::Time now) {
  if (watch_.due() > now) return;
  watch_.OnSent(now);
  if (watch_.wants() == ObjectWatch::Wants::kList) {
    return client_.List(kSlices, watch_.ListQuery(query_),
                        [this](const ApiAnswer& answer) { OnList(answer); });
  }
  watching_ = client_.Watch(
      kSlices, query_, watch_.version(), options_.times.watch,
      [this](std::string_view line) { OnLine(line); },
      [this](const ApiAnswer& answer) { OnWatchEnd(answer); });
}

void DraApiWorker::OnList(const ApiAnswer& answer) {
  const absl::Time now = MonotonicNow();
  watch_.OnList(answer, now);
  TakeNews(now);
}

void DraApiWorker::OnLine(std::string_view line) {
  const absl::Time now = MonotonicNow();
  if (!watch_.OnLine(line, now)) client_.Cancel(std::exchange(watching_, 0));
  TakeNews(now);
}

void DraApiWorker::OnWatchEnd(const ApiAnswer& answer) {
  const absl::Time now = MonotonicNow();
  watching_ = 0;
  watch_.OnEnd(answer, now);
  TakeNews(now);
}

void DraApiWorker::TakeNews(absl::Time now) {
  for (const WatchNews& news : watch_.TakeNews()) writer_.Saw(news);
  watched_ = watch_.status();
  notes_.Hear(kWatching, kWatchRule, watched_, now);
}

void DraApiWorker::StartWriting(absl::Time now) {
  const std::optional<SliceCall> call = writer_.Next(now);
  if (!call) return;
  auto done = [this](const ApiAnswer& answer) {
    const absl::Time then = MonotonicNow();
    writer_.OnAnswer(answer, then);
    notes_.Hear(kWriting, kWriteRule, writer_.status(), then);
  };
  const std::string path = absl::StrFormat("%s/%s", kSlices, call->name);
  switch (call->kind) {
    case SliceCall::Kind::kReadNode:
      return client_.Get(absl::StrFormat("%s/%s", kNodes, call->name), std::move(done));
    case SliceCall::Kind::kApply:
      return client_.Apply(path, ApiJson(call->document), std::move(done));
    case SliceCall::Kind::kRemove:
      return client_.Delete(path, std::move(done));
  }
}

ApiClient::Counts DraApiWorker::requests() const {
  ApiClient::Counts all = client_.counts();
  for (const auto& [what, count] : claims_.counts()) all[what] += count;
  return all;
}

std::string DraApiWorker::failure() const {
  if (written()) return "";
  // What cannot be seen is not written either.
  if (!watched_.ok()) return Spell(kWatching, kWatchRule, watched_);
  if (!writer_.status().ok()) return Spell(kWriting, kWriteRule, writer_.status());
  return "";
}

void DraApiWorker::Turn() {
  const absl::Time now = MonotonicNow();
  StartWatching(now);
  StartWriting(now);
  const absl::Time until = std::min(watch_.due(), writer_.due());
  transport_.Run(std::max(absl::ZeroDuration(), until - MonotonicNow()));
}

}  // namespace vfio_agent
