#include "agent/usage/complete.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

std::vector<std::string> WordsAt(const std::string& line) {
  std::vector<std::string> words;
  for (const Candidate& candidate : WantedAt(SplitLine(line)).candidates) {
    words.push_back(candidate.word);
  }
  return words;
}

std::string KindAt(const std::string& line) { return std::string(WantedAt(SplitLine(line)).kind); }

using Words = std::vector<std::string>;

TEST_CASE("a line is what follows the program's name, up to the cursor", "[usage]") {
  const Unfinished line = SplitLine("sudo /usr/bin/vfio-agent  plan\t--root /copy ex");
  CHECK(line.words == Words{"plan", "--root", "/copy"});
  CHECK(line.current == "ex");
  CHECK(SplitLine("vfio-agent plan ").current.empty());
  CHECK(SplitLine("vfio-agent plan ").words == Words{"plan"});
  CHECK(SplitLine("").words.empty());
  // Values may be called like the program.
  CHECK(SplitLine("vfio-agent plan --root /tmp/vfio-agent ").words ==
        Words{"plan", "--root", "/tmp/vfio-agent"});
  CHECK(WordsAt("vfio-agent bind --state-dir /var/lib/vfio-agent --unb") ==
        Words{"--unbind-timeout"});
}

TEST_CASE("commands are completed, of two words one at a time", "[usage]") {
  CHECK(WordsAt("vfio-agent pl") == Words{"plan"});
  CHECK(WordsAt("vfio-agent co") == Words{"config", "completion"});
  CHECK(WordsAt("vfio-agent config ") == Words{"check", "show"});
  CHECK(WordsAt("vfio-agent config s") == Words{"show"});
  CHECK(WordsAt("vfio-agent help bi") == Words{"bind"});
  CHECK(WordsAt("vfio-agent help config ch") == Words{"check"});
  CHECK(WordsAt("vfio-agent --root /copy pl") == Words{"plan"});
}

TEST_CASE("the command that only scripts use is not offered", "[usage]") {
  const Words words = WordsAt("vfio-agent ");
  CHECK(std::ranges::count(words, "list") == 1);
  CHECK(std::ranges::count(words, "complete") == 0);
}

TEST_CASE("options are completed, of the command and common ones", "[usage]") {
  CHECK(WordsAt("vfio-agent plan --ex") == Words{"--exit-code"});
  CHECK(WordsAt("vfio-agent bind --ex").empty());
  CHECK(WordsAt("vfio-agent bind --unb") == Words{"--unbind-timeout"});
  CHECK(WordsAt("vfio-agent --ro") == Words{"--root"});
  CHECK(WordsAt("vfio-agent version ").front() == "--config");  // it takes no other words
}

TEST_CASE("the words of an option, behind a blank or a sign", "[usage]") {
  CHECK(WordsAt("vfio-agent plan -o ") == Words{"table", "wide", "json", "yaml"});
  CHECK(WordsAt("vfio-agent plan --output j") == Words{"json"});
  CHECK(WordsAt("vfio-agent plan --output=j") == Words{"json"});
  CHECK(WantedAt(SplitLine("vfio-agent plan --output=j")).front == "--output=");
  CHECK(WordsAt("vfio-agent run --on-exit ") == Words{"keep", "release"});
  CHECK(WordsAt("vfio-agent run --resync ").empty());  // a duration
}

TEST_CASE("the words of an argument, as many as there may be", "[usage]") {
  CHECK(WordsAt("vfio-agent list ") == Words{"devices", "groups", "resources", "slices"});
  CHECK(WordsAt("vfio-agent list --all g") == Words{"groups"});
  CHECK(WordsAt("vfio-agent list groups g").empty());
  CHECK(WordsAt("vfio-agent completion z") == Words{"zsh"});
}

TEST_CASE("files, directories and what is on the node are for others to find", "[usage]") {
  CHECK(KindAt("vfio-agent plan --config ") == "FILE");
  CHECK(KindAt("vfio-agent plan --config=/etc/") == "FILE");
  CHECK(KindAt("vfio-agent kubevirt --diff c") == "FILE");
  CHECK(KindAt("vfio-agent --root /t") == "PATH");
  CHECK(KindAt("vfio-agent bind ") == "SELECTOR");
  CHECK(KindAt("vfio-agent bind group:1 0000:") == "SELECTOR");
  CHECK(KindAt("vfio-agent plan ").empty());
}

TEST_CASE("what is typed already counts: the node is that of --root", "[usage]") {
  const Wanted wanted =
      WantedAt(SplitLine("vfio-agent --config=new.yaml bind --root /copy --pci-ids /ids 65:"));
  CHECK(wanted.invocation.root == "/copy");
  CHECK(wanted.invocation.config_file == "new.yaml");
  CHECK(wanted.invocation.flags.at("pci-ids") == "/ids");
  CHECK(wanted.start == "65:");
}

TEST_CASE("an unknown word in the line stops nothing", "[usage]") {
  CHECK(WordsAt("vfio-agent plan --spoons --ex") == Words{"--exit-code"});
  CHECK(WordsAt("vfio-agent spoons li") == Words{"list"});
  CHECK(WordsAt("vfio-agent plan --spoons=").empty());
}

}  // namespace
}  // namespace vfio_agent
