// What a device, a file or a word on the command line may hold never moves a terminal.
#include <filesystem>
#include <fstream>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kEvil[] = "\x1b[31mEVIL\a";

// One device, whose id and whose driver are what an attacker likes.
class HostileTree {
 public:
  HostileTree() {
    const std::string name = "0000:01:00.0";
    const std::string device = root() + "/sys/devices/pci0000:00/" + name;
    fs::create_directories(device);
    fs::create_directories(root() + "/sys/bus/pci/devices");
    fs::create_symlink("../../../devices/pci0000:00/" + name,
                       root() + "/sys/bus/pci/devices/" + name);
    std::ofstream(device + "/vendor") << kEvil << "\n";
    std::ofstream(device + "/device") << "0x2330\n";
    std::ofstream(device + "/class") << "0x030200\n";
    fs::create_symlink("../../../bus/pci/drivers/e\x1b[31mvil", device + "/driver");
  }
  const std::string& root() const { return dir_.path(); }

 private:
  ScratchDir dir_;
};

bool IsClean(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
}

TEST_CASE("control characters of a tree reach neither of the terminal's streams", "[list]") {
  const HostileTree tree;
  std::vector<std::string> words =
      GENERATE(std::vector<std::string>{"plan"}, std::vector<std::string>{"plan", "--all"},
               std::vector<std::string>{"list", "--all"},
               std::vector<std::string>{"list", "--all", "-o", "wide"},
               std::vector<std::string>{"list", "--all", "-o", "json"},
               std::vector<std::string>{"explain", "01:00.0"}, std::vector<std::string>{"topology"},
               std::vector<std::string>{"kubevirt"}, std::vector<std::string>{"doctor"});
  CAPTURE(words);
  const bool doctor = words.front() == "doctor";
  words.insert(words.end(), {"--root", tree.root()});
  const ProgramResult result = RunAgent(words);
  CAPTURE(result.out, result.err);
  CHECK((result.out + result.err).find_first_of("\x1b\a") == std::string::npos);
  if (!doctor) CHECK_THAT(result.err, Catch::Contains("[31mEVIL"));
}

TEST_CASE("what could not be read is told by explain without its control characters", "[list]") {
  const HostileTree tree;
  const ProgramResult result = RunAgent({"explain", "01:00.0", "--root", tree.root()});
  CHECK(result.exit_code == 0);
  CHECK(IsClean(result.out));
  CHECK_THAT(result.out,
             Catch::Contains("could not be read: vendor: ") && Catch::Contains("'?[31mEVIL?'"));
}

TEST_CASE("control characters of a configuration file and of its name are shown as '?'",
          "[usage]") {
  const ScratchDir dir;
  const std::string key = dir.Write("key.yaml", "\"a\\x1b[31mb\": 1\n");
  const std::string raw = dir.Write("raw.yaml", std::string("mode: \"a\xc2\x9b") + "31mb\"\n");
  const std::string name = dir.Write(std::string("name") + kEvil + ".yaml", "mode: container\n");
  for (const std::string& file : {key, raw, name, dir.path() + "/none\x1b[31m"}) {
    CAPTURE(file);
    const ProgramResult result = RunAgent({"config", "check", "--config", file});
    CHECK(IsClean(result.out));
    CHECK(IsClean(result.err));
    CHECK((result.exit_code == 0) == (file == name));
  }
}

TEST_CASE("a selector with control characters is refused without them", "[usage]") {
  const HostileTree tree;
  const ProgramResult result = RunAgent({"explain", "\x1b[31m", "--root", tree.root()});
  CHECK(result.exit_code == 2);
  CHECK(IsClean(result.err));
  CHECK_THAT(result.err, Catch::Contains("'?[31m' is no selector"));
}

}  // namespace
}  // namespace vfio_agent
