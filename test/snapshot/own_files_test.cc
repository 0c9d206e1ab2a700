// A snapshot from somewhere else reads and writes nothing of this machine.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/exit_code.h"
#include "agent/snapshot/own_files.h"
#include "agent/snapshot/replay_root.h"
#include "test/agent/program.h"
#include "test/doctor/report_json.h"
#include "test/snapshot/tar_bytes.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// An archive whose configuration is `config`, and whose state directory is a link to `state` unless
// that is empty.
std::string Archive(const ScratchDir& dir, const TarMember& config, const std::string& state = "") {
  std::string bytes =
      TarBytes({.name = "vfio-agent-snapshot.json", .text = "{}\n"}) + TarBytes(config);
  if (!state.empty()) {
    bytes += TarBytes({.name = "var/lib/vfio-agent", .type = '2', .target = state});
  }
  return dir.Write("node.tar.gz", bytes + TarEnd());
}

TarMember ConfigMember(const std::string& text) {
  return {.name = "etc/vfio-agent/config.yaml", .text = text};
}

TEST_CASE("what is written for a snapshot stays out of where its links lead", "[snapshot]") {
  const ScratchDir dir, victim;
  const std::string file = Archive(dir, ConfigMember("mode: vm-passthrough\n"), victim.path());
  const auto write = [&dir](Invocation& invocation) {  // in a child
    std::ofstream(dir.path() + "/root") << invocation.root;
    std::ofstream(invocation.flags.at("state-dir") + "/agent.lock") << "1\n";
    return fs::exists(invocation.flags.at("state-dir") + "/agent.lock") ? kExitDone : kExitFailed;
  };
  Invocation packed;
  packed.root = file;
  CHECK(WithRoot(packed, [&] { return write(packed); }) == kExitDone);
  CHECK(fs::is_empty(victim.path()));
  std::string unpacked_to;
  REQUIRE(std::ifstream(dir.path() + "/root") >> unpacked_to);
  CHECK(unpacked_to != file);
  CHECK_FALSE(fs::exists(unpacked_to));

  const ScratchDir place;
  std::ofstream(place.path() + "/vfio-agent-snapshot.json") << "{}\n";
  fs::create_directories(place.path() + "/var/lib");
  fs::create_directory_symlink(victim.path(), place.path() + "/var/lib/vfio-agent");
  Invocation unpacked;
  unpacked.root = place.path();
  CHECK(WithRoot(unpacked, [&] { return write(unpacked); }) == kExitDone);
  CHECK(fs::is_empty(victim.path()));
}

TEST_CASE("a snapshot's configuration is no file of this machine", "[snapshot]") {
  const ScratchDir dir, victim;
  const std::string secret = victim.Write("config.yaml", "secret: here\n");
  const std::string file =
      Archive(dir, {.name = "etc/vfio-agent/config.yaml", .type = '2', .target = secret});
  const ProgramResult result = RunAgent({"config", "show", "--root", file});
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("secret") == std::string::npos);
}

TEST_CASE("of a snapshot's configuration the settings are left out and told", "[snapshot]") {
  const ScratchDir root, place;
  fs::create_directories(root.path() + "/etc/vfio-agent");
  std::ofstream(root.path() + "/etc/vfio-agent/config.yaml")
      << "resources: [{name: example.org/gpu, select: [{vendor: \"10de\"}]}]\n"
         "kubelet: {iommufd: true, devicePluginDir: /victim}\nnfd: {dir: /victim}\n"
         "cdi: {dir: /victim}\nstateDir: /victim\nmetrics: {listen: \":80\"}\n";
  const auto notes = CopyOwnFiles(root.path(), place.path());
  REQUIRE(notes.ok());
  std::string told;
  for (const std::string& note : *notes) told += note + "\n";
  for (const char* key :
       {"kubelet.devicePluginDir", "nfd.dir", "cdi.dir", "stateDir", "metrics.listen"}) {
    CHECK_THAT(told, Catch::Contains(std::string(key) + " is not taken"));
  }
  CHECK(notes->size() == 5);
  const std::string text = Slurp(place.path() + kOwnConfigFile);
  CHECK_THAT(text, Catch::Contains("example.org/gpu") && Catch::Contains("iommufd: true"));
  CHECK(text.find("victim") == std::string::npos);
  CHECK(text.find(":80") == std::string::npos);
}

TEST_CASE("run serves no kubelet of this machine from a snapshot", "[snapshot]") {
  const ScratchDir dir;
  const std::string file = Archive(dir, ConfigMember("mode: vm-passthrough\n"));
  std::vector<std::string> words = {"run", "--root", file};
  for (int i = 0; i < 2; ++i) {
    const ProgramResult result = RunAgent(words);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Catch::Contains("--device-plugin-dir and --kubelet-root-dir"));
    words.insert(words.end(), {"--device-plugin-dir", dir.path()});  // one is not enough
  }
}

TEST_CASE("of a snapshot doctor tells nothing of the reader's daemon and disk", "[snapshot]") {
  const ScratchDir dir;
  const std::string file = Archive(dir, ConfigMember("mode: vm-passthrough\n"));
  const Report report = Report::parse(RunAgent({"doctor", "--root", file, "-o", "json"}).out);
  for (const char* check : {"state directory", "daemon", "writes", "registration"}) {
    CAPTURE(check);
    CHECK(StateOf(report, check) == "unknown");
  }
  const Report named = Report::parse(
      RunAgent({"doctor", "--root", file, "-o", "json", "--state-dir", dir.path()}).out);
  CHECK(StateOf(named, "state directory") != "unknown");
}

}  // namespace
}  // namespace vfio_agent
