#include "test/kubelet/commands.h"

#include <algorithm>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;
using Answer = absl::StatusOr<Json>;
using Command = Answer (*)(FakeKubelet& kubelet, const Words& words);

constexpr absl::Duration kPatience = absl::Seconds(10);

Words Split(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

absl::Status Need(const Words& words, size_t least) {
  if (words.size() > least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s needs %d arguments at least", words.front(), least));
}

absl::StatusOr<int> ToNumber(const std::string& word) {
  int number = 0;
  if (absl::SimpleAtoi(word, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(absl::StrFormat("not a number: '%s'", word));
}

// The optional number of seconds at `position`.
absl::StatusOr<absl::Duration> ToSeconds(const Words& words, size_t position,
                                         absl::Duration or_so) {
  if (words.size() <= position) return or_so;
  double seconds = 0;
  if (absl::SimpleAtod(words[position], &seconds)) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrFormat("not a number of seconds: '%s'", words[position]));
}

Words From(const Words& words, size_t position) {
  return {words.begin() + static_cast<std::ptrdiff_t>(std::min(position, words.size())),
          words.end()};
}

Answer WaitForCount(FakeKubelet& kubelet, const Words& words,
                    size_t (*count)(const FakeResource& resource)) {
  RETURN_IF_ERROR(Need(words, 2));
  ASSIGN_OR_RETURN(const int wanted, ToNumber(words[2]));
  ASSIGN_OR_RETURN(const absl::Duration limit, ToSeconds(words, 3, kPatience));
  size_t last = 0;
  const bool reached = kubelet.WaitFor(
      [&](const FakeResources& resources) {
        const auto found = resources.find(words[1]);
        last = found == resources.end() ? 0 : count(found->second);
        return last == static_cast<size_t>(wanted);
      },
      limit);
  if (reached) return Json{{"count", last}};
  return absl::DeadlineExceededError(absl::StrFormat("%s has %d after %s, not %d", words[1], last,
                                                     absl::FormatDuration(limit), wanted));
}

Answer Wait(FakeKubelet& kubelet, const Words& words) {
  return WaitForCount(kubelet, words, [](const FakeResource& it) { return it.Healthy(); });
}

Answer WaitTotal(FakeKubelet& kubelet, const Words& words) {
  return WaitForCount(kubelet, words, [](const FakeResource& it) { return it.devices.size(); });
}

Answer Saw(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 2));
  ASSIGN_OR_RETURN(const int wanted, ToNumber(words[2]));
  ASSIGN_OR_RETURN(const absl::Duration limit, ToSeconds(words, 3, kPatience));
  std::vector<size_t> history;
  const bool seen = kubelet.WaitFor(
      [&](const FakeResources& resources) {
        const auto found = resources.find(words[1]);
        if (found != resources.end()) history = found->second.history;
        return std::ranges::count(history, static_cast<size_t>(wanted)) > 0;
      },
      limit);
  if (seen) return Json{{"history", history}};
  return absl::DeadlineExceededError(absl::StrFormat(
      "%s has not come to %d in %s, but to %s", words[1], wanted, absl::FormatDuration(limit),
      history.empty() ? "nothing new" : absl::StrJoin(history, ", ")));
}

Answer List(FakeKubelet& kubelet, const Words&) {
  Json resources = Json::object();
  for (const auto& [name, resource] : kubelet.Resources()) {
    Json devices = Json::array();
    for (const auto& [id, device] : resource.devices) {
      devices.push_back({{"id", id},
                         {"health", device.healthy ? "Healthy" : "Unhealthy"},
                         {"numa", device.numa}});
    }
    resources[name] = {{"endpoint", resource.endpoint},
                       {"stopped", resource.stopped},
                       {"registrations", resource.registrations},
                       {"messages", resource.messages},
                       {"devices", std::move(devices)}};
  }
  return Json{{"resources", std::move(resources)}};
}

Answer Allocate(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 2));
  ASSIGN_OR_RETURN(const auto response, kubelet.Allocate(words[1], From(words, 2)));
  Json envs = Json::object();
  for (const auto& [name, value] : response.envs()) envs[name] = value;
  Json devices = Json::array();
  for (const v1beta1::DeviceSpec& device : response.devices()) {
    devices.push_back({{"host_path", device.host_path()},
                       {"container_path", device.container_path()},
                       {"permissions", device.permissions()}});
  }
  return Json{{"envs", std::move(envs)}, {"devices", std::move(devices)}};
}

Answer Preferred(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 3));
  ASSIGN_OR_RETURN(const int size, ToNumber(words[2]));
  const auto dashes = std::ranges::find(words, "--");
  const Words available(words.begin() + 3, dashes);
  const Words must(dashes == words.end() ? dashes : dashes + 1, words.end());
  ASSIGN_OR_RETURN(const Words ids, kubelet.Preferred(words[1], available, must, size));
  return Json{{"ids", ids}};
}

Answer PreStart(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 2));
  RETURN_IF_ERROR(kubelet.PreStart(words[1], From(words, 2)));
  return Json::object();
}

Answer Restart(FakeKubelet& kubelet, const Words& words) {
  ASSIGN_OR_RETURN(const absl::Duration down, ToSeconds(words, 1, absl::ZeroDuration()));
  kubelet.Stop();
  absl::SleepFor(down);
  RETURN_IF_ERROR(kubelet.Start());
  return Json::object();
}

Answer Sleep(FakeKubelet&, const Words& words) {
  RETURN_IF_ERROR(Need(words, 1));
  ASSIGN_OR_RETURN(const absl::Duration time, ToSeconds(words, 1, absl::ZeroDuration()));
  absl::SleepFor(time);
  return Json::object();
}

Answer SetPod(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 5));
  kubelet.SetPod(words[1], words[2], words[3], words[4], From(words, 5));
  return Json::object();
}

Answer RemovePod(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 2));
  if (kubelet.RemovePod(words[1], words[2])) return Json::object();
  return absl::NotFoundError(absl::StrFormat("no pod %s/%s", words[1], words[2]));
}

Answer PodResources(FakeKubelet& kubelet, const Words& words) {
  RETURN_IF_ERROR(Need(words, 1));
  const std::string& how = words[1];
  if (how != "silent" && how != "refuse" && how != "answer") {
    return absl::InvalidArgumentError(absl::StrFormat("not silent, refuse or answer: '%s'", how));
  }
  kubelet.RefusePodResources(how == "refuse" ? "refused by command" : "");
  kubelet.SilencePodResources(how == "silent");
  return Json::object();
}

Answer Run(FakeKubelet& kubelet, const Words& words) {
  static const std::map<std::string, Command> kCommands = {
      {"wait", Wait},         {"wait-total", WaitTotal}, {"saw", Saw},
      {"list", List},         {"allocate", Allocate},    {"preferred", Preferred},
      {"prestart", PreStart}, {"restart", Restart},      {"sleep", Sleep}};
  static const std::map<std::string, Command> kPodCommands = {
      {"pod", SetPod}, {"pod-gone", RemovePod}, {"pod-resources", PodResources}};
  const auto found = kCommands.find(words.front());
  if (found != kCommands.end()) return found->second(kubelet, words);
  const auto about_pods = kPodCommands.find(words.front());
  if (about_pods != kPodCommands.end()) {
    if (kubelet.ServesPodResources()) return about_pods->second(kubelet, words);
    return absl::FailedPreconditionError(absl::StrFormat("%s needs --root-dir", words.front()));
  }
  return absl::InvalidArgumentError(absl::StrFormat("no such command: '%s'", words.front()));
}

Json Line(const Answer& answer) {
  if (!answer.ok()) return {{"ok", false}, {"error", Message(answer.status())}};
  Json line = {{"ok", true}};
  line.update(*answer);
  return line;
}

}  // namespace

int RunCommands(const FakeKubelet::Options& options, std::istream& in, std::ostream& out) {
  FakeKubelet kubelet(options);
  const absl::Status started = kubelet.Start();
  if (!started.ok()) {
    out << Line(started).dump() << std::endl;
    return 1;
  }
  out << Json{{"ready", true}}.dump() << std::endl;
  bool failed = false;
  for (std::string text; std::getline(in, text);) {
    const Words words = Split(text);
    if (words.empty() || words.front().starts_with('#')) continue;
    if (words.front() == "quit") break;
    const Answer answer = Run(kubelet, words);
    failed = failed || !answer.ok();
    // Before the answer is read: whatever it makes the reader do comes later.
    kubelet.ForgetHistory();
    out << Line(answer).dump() << std::endl;
  }
  return failed ? 1 : 0;
}

}  // namespace vfio_agent
