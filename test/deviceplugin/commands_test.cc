// The command language of fake-kubelet.
#include "test/kubelet/commands.h"

#include <atomic>
#include <functional>
#include <future>
#include <istream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/pod_resources.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

constexpr char kGpu[] = "nvidia.com/GH100_H100_SXM5_80GB";

struct Run {
  int code = 0;
  std::vector<json> lines;
};

std::vector<json> Parse(const std::string& text) {
  std::vector<json> parsed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) parsed.push_back(json::parse(line));
  return parsed;
}

// Runs the commands against a node with two units, which is driven meanwhile.
Run Commands(const std::string& text) {
  TempDir dir;
  UnitTree node;
  const Offer offer = TestOffer(kGpu, {TestUnit("0000:11:00.0", 0), TestUnit("0000:91:00.0", 1)});
  node.AddAll(offer);
  std::istringstream in(text);
  std::ostringstream out;
  Run run;
  std::atomic<bool> done = false;
  std::thread kubelet([&] {
    run.code = RunCommands({.dir = dir.path()}, in, out);
    done = true;
  });
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set({offer});
  CHECK(loop.RunUntil([&] { return done.load(); }, absl::Seconds(60)));
  kubelet.join();
  run.lines = Parse(out.str());
  return run;
}

TEST_CASE("a whole session over stdin and stdout", "[kubelet][grpc]") {
  const std::string gpu = kGpu;
  const Run run = Commands("wait " + gpu + " 2 30\n" +              //
                           "wait-total " + gpu + " 2\n" +           //
                           "list\n" +                               //
                           "allocate " + gpu + " 0000:91:00.0\n" +  //
                           "preferred " + gpu + " 1 0000:11:00.0 0000:91:00.0 -- 0000:91:00.0\n" +
                           "prestart " + gpu + " 0000:91:00.0\n" +  //
                           "restart 0.01\n\n# a comment\n" +        //
                           "wait " + gpu + " 2 30\nsleep 0.01\nquit\nlist\n");
  CHECK(run.code == 0);
  REQUIRE(run.lines.size() == 10);
  CHECK(run.lines[0] == json{{"ready", true}});
  for (size_t i = 1; i < run.lines.size(); ++i) CHECK(run.lines[i].at("ok") == true);
  CHECK(run.lines[1].at("count") == 2);
  const json& devices = run.lines[3].at("resources").at(kGpu).at("devices");
  CHECK(devices[0] == json{{"id", "0000:11:00.0"}, {"health", "Healthy"}, {"numa", {0}}});
  const json& allocated = run.lines[4];
  CHECK(allocated.at("envs") ==
        json{{"PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB", "0000:91:00.0"}});
  CHECK(allocated.at("devices")[1].at("host_path") == "/dev/vfio/155");
  CHECK(allocated.at("devices")[1].at("permissions") == "mrw");
  CHECK(run.lines[5].at("ids") == json{"0000:91:00.0"});
}

TEST_CASE("a command that fails is told in its line and by the exit code", "[kubelet][grpc]") {
  const std::string command =
      GENERATE(as<std::string>(), "dance", "wait", "wait nvidia.com/X one", "wait nvidia.com/X 1 0",
               "wait nvidia.com/X 0 soon", "saw", "saw nvidia.com/X 0 0",
               "allocate nvidia.com/X 0000:11:00.0", "allocate", "preferred nvidia.com/X 1",
               "prestart nvidia.com/X 0000:11:00.0", "pod vms a compute nvidia.com/X 0000:11:00.0",
               "pod-resources silent");
  CAPTURE(command);
  const Run run = Commands(command + "\nsleep 0\n");
  CHECK(run.code == 1);
  REQUIRE(run.lines.size() == 3);
  CHECK(run.lines[1].at("ok") == false);
  CHECK_FALSE(run.lines[1].at("error").get<std::string>().empty());
  CHECK(run.lines[2].at("ok") == true);
}

// An input whose lines are made when they are read: what the line before did can be looked at.
class Script : public std::streambuf {
 public:
  using Line = std::function<std::string()>;
  explicit Script(std::vector<Line> lines) : lines_(std::move(lines)) {}

 private:
  int_type underflow() override {
    if (next_ == lines_.size()) return traits_type::eof();
    text_ = lines_[next_++]() + "\n";
    setg(text_.data(), text_.data(), text_.data() + text_.size());
    return traits_type::to_int_type(text_.front());
  }

  const std::vector<Line> lines_;
  size_t next_ = 0;
  std::string text_;
};

// A plugin that ends and another that registers, before the next command is read.
TEST_CASE("what was for a moment counts until the next answer", "[kubelet][grpc]") {
  TempDir dir;
  UnitTree node;
  const Offer offer = TestOffer(kGpu, {TestUnit("0000:11:00.0"), TestUnit("0000:91:00.0")});
  node.AddAll(offer);
  std::atomic<bool> served = false, done = false;
  std::promise<void> again;
  const std::string gpu = kGpu;
  Script script({[&] { return "wait " + gpu + " 2 30"; },
                 [&] {
                   served = true;
                   again.get_future().wait();
                   return "saw " + gpu + " 0 30";
                 },
                 [&] { return "wait " + gpu + " 2 30"; },
                 [&] { return "saw " + gpu + " 2 0.01"; }});
  std::istream in(&script);
  std::ostringstream out;
  std::thread kubelet([&] {
    RunCommands({.dir = dir.path()}, in, out);
    done = true;
  });
  auto loop = std::make_unique<PluginLoop>(dir.path(), node.tree());
  loop->plugins().Set({offer});
  CHECK(loop->RunUntil([&] { return served.load(); }, absl::Seconds(60)));
  loop.reset();
  loop = std::make_unique<PluginLoop>(dir.path(), node.tree());
  loop->plugins().Set({offer});
  CHECK(loop->RunUntil([&] { return loop->plugins().AllRegistered(); }, absl::Seconds(60)));
  again.set_value();
  CHECK(loop->RunUntil([&] { return done.load(); }, absl::Seconds(120)));
  kubelet.join();
  const std::vector<json> lines = Parse(out.str());
  REQUIRE(lines.size() == 5);
  for (size_t i = 1; i < 4; ++i) CHECK(lines[i].at("ok") == true);
  CHECK_THAT(lines[4].at("error").get<std::string>(), Catch::Contains("but to nothing new"));
}

TEST_CASE("pods come and go by command, and PodResources tells of them or not", "[kubelet][grpc]") {
  TempDir dir;
  const auto claims = [&] {
    return ReadPodClaims({.device_plugin_dir = dir.path(), .root_dir = dir.path()},
                         absl::Seconds(2));
  };
  PodClaims both, one, silent, refused, again;
  const auto after = [&](PodClaims& out, const std::string& line) {
    return [&out, line, claims] { return out = claims(), line; };
  };
  Script script({[] { return "pod vms a compute " + std::string(kGpu) + " 0000:11:00.0"; },
                 [] { return "pod vms b compute " + std::string(kGpu) + " 0000:91:00.0"; },
                 after(both, "pod-gone vms a"), after(one, "pod-resources silent"),
                 after(silent, "pod-resources refuse"), after(refused, "pod-resources answer"),
                 after(again, "pod-gone vms a"), [] { return "pod-resources dance"; }});
  std::istream in(&script);
  std::ostringstream out;
  CHECK(RunCommands({.dir = dir.path(), .root_dir = dir.path()}, in, out) == 1);
  CHECK(both.list.size() == 2);
  REQUIRE(one.list.size() == 1);
  CHECK(one.list[0].pod == "b");
  CHECK_THAT(silent.why_unknown, Catch::Contains("nothing within"));
  CHECK_THAT(refused.why_unknown, Catch::Contains("refused by command"));
  CHECK(again == one);
  CHECK_THAT(out.str(), Catch::EndsWith("{\"ok\":true}\n"
                                        "{\"ok\":false,\"error\":\"no pod vms/a\"}\n"
                                        "{\"ok\":false,\"error\":\"not silent, refuse or answer: "
                                        "'dance'\"}\n"));
}

TEST_CASE("a kubelet that cannot listen says so and fails", "[kubelet][grpc]") {
  std::istringstream in;
  std::ostringstream out;
  CHECK(RunCommands({.dir = "/nonexistent"}, in, out) == 1);
  CHECK(json::parse(out.str()).at("ok") == false);
}

}  // namespace
}  // namespace vfio_agent
