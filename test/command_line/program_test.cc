// The command line of the real binary.
#include "test/agent/program.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace vfio_agent {
namespace {

TEST_CASE("what is misspelt ends with 2, and with a suggestion on standard error", "[usage]") {
  struct Row {
    std::vector<std::string> words;
    const char* text;
  };
  const Row row = GENERATE(
      Row{{"plam"}, "no command is called 'plam'; did you mean 'plan'?"},
      Row{{"spoons"}, "no command is called 'spoons'; see `vfio-agent help`"},
      Row{{"config", "chekc"}, "no command is called 'config chekc'; did you mean 'config check'?"},
      Row{{"help", "plam"}, "did you mean 'plan'?"},
      Row{{"plan", "--exitcode"}, "plan has no option '--exitcode'; did you mean '--exit-code'?"},
      Row{{"plan", "--confg=x.yaml"}, "did you mean '--config'?"},
      Row{{"--rot", "/copy", "plan"}, "did you mean '--root'?"},
      Row{{"plan", "-x"}, "plan has no option '-x'"},
      Row{{"plan", "-o", "jsn"},
          "--output: 'jsn' is none of table|wide|json|yaml; did you mean "
          "'json'?"},
      Row{{"list", "grups"},
          "list: 'grups' is none of devices|groups|resources|slices; did you mean "
          "'groups'?"},
      Row{{"bind", "--all"}, "bind has no option '--all'"},
      Row{{"--all", "list"}, "--all is an option of list: it stands behind that word"},
      Row{{"config", "check", "-o", "json"}, "config check has no option '--output'"},
      Row{{"-o", "json", "health"}, "health has no option '--output'"},
      Row{{"completion", "bash", "--output=json"}, "completion has no option '--output'"},
      Row{{"help", "plan", "-o", "yaml"}, "help has no option '--output'"},
      Row{{"-w", "list"}, "-w is an option of list: it stands behind that word"},
      Row{{"help", "config", "chek"}, "did you mean 'config check'? see `vfio-agent help`"});
  CAPTURE(row.words);
  const ProgramResult result = RunAgent(row.words);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Catch::StartsWith("vfio-agent: ") && Catch::Contains(row.text));
}

TEST_CASE("what is missing or too much ends with 2, and says what", "[usage]") {
  struct Row {
    std::vector<std::string> words;
    const char* text;
  };
  const Row row =
      GENERATE(Row{{}, "a command is missing; see `vfio-agent help`"},
               Row{{"config"}, "a command is missing after config"},
               Row{{"explain"}, "explain: SELECTOR is missing; see `vfio-agent help explain`"},
               Row{{"plan", "--config"}, "--config wants a value: FILE; see"},
               Row{{"topology", "--guest"}, "--guest wants a value: libvirt|kubevirt; see"},
               Row{{"plan", "group:1"},
                   "plan takes no word 'group:1': it shows all groups; `vfio-agent explain "
                   "group:1` tells of one, `vfio-agent bind group:1` binds it; see"},
               Row{{"list", "65:00.0"},
                   "is none of devices|groups|resources|slices; `vfio-agent explain 65:00.0` "
                   "tells of one device or group; see"},
               Row{{"config", "check", "new.yaml"},
                   "config check takes no word 'new.yaml'; did you mean --config new.yaml? see"},
               Row{{"config", "show", "new.yaml"}, "did you mean --config new.yaml? see"},
               Row{{"completion", "csh"}, "'csh' is none of bash|zsh|fish; did you mean"},
               Row{{"list", "groups", "devices"}, "list takes no word 'devices' as well"},
               Row{{"plan", "--all=maybe"}, "--all"});
  CAPTURE(row.words);
  const ProgramResult result = RunAgent(row.words);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::StartsWith("vfio-agent: ") && Catch::Contains(row.text));
}

TEST_CASE("a word with control characters is shown without them", "[usage]") {
  const ProgramResult result = RunAgent({"pl\x1b[31m"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find('\x1b') == std::string::npos);
}

TEST_CASE("help is for the program, for what was named so far, and for a command", "[usage]") {
  const std::string overview = RunAgent({"help"}).out;
  CHECK_THAT(overview, Catch::StartsWith("Usage: vfio-agent COMMAND"));
  CHECK(RunAgent({"--help"}).out == overview);
  CHECK(RunAgent({"-h"}).out == overview);
  const std::string plan = RunAgent({"help", "plan"}).out;
  CHECK_THAT(plan, Catch::StartsWith("Usage: vfio-agent plan"));
  CHECK(RunAgent({"plan", "--help"}).out == plan);
  // Whatever else is missing.
  CHECK_THAT(RunAgent({"explain", "--help"}).out, Catch::StartsWith("Usage: vfio-agent explain"));
  CHECK_THAT(RunAgent({"config", "--help"}).out,
             Catch::Contains("config check") && Catch::Contains("config show"));
  CHECK_THAT(RunAgent({"help", "config", "show"}).out,
             Catch::StartsWith("Usage: vfio-agent config show"));
}

TEST_CASE("an empty value behind '=' is the option's own, and the next word is another",
          "[usage]") {
  const ProgramResult result = RunAgent({"config", "show", "--nfd-dir=", "--cdi-dir=/x",
                                         "--metrics-listen=", "--node-name=", "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto shown = nlohmann::json::parse(result.out);
  CHECK(shown.at("nfd").at("dir") == "");
  CHECK(shown.at("cdi").at("dir") == "/x");
  CHECK(shown.at("metrics").at("listen") == "");
  CHECK(shown.at("api").at("nodeName") == "");
}

TEST_CASE("an empty value that an option does not take is told as any other", "[usage]") {
  struct Row {
    std::vector<std::string> words;
    const char* text;
  };
  const Row row = GENERATE(
      Row{{"config", "show", "--resync=", "--cdi-dir=/x"},
          "resync (from --resync): '': want a duration"},
      Row{{"config", "show", "--state-dir="}, "stateDir (from --state-dir): '': want an absolute"},
      Row{{"plan", "--output=", "--all"}, "--output: '' is none of table|wide|json|yaml"},
      Row{{"topology", "--guest="}, "--guest: '' is none of libvirt|kubevirt"},
      Row{{"plan", "--spoon="}, "plan has no option '--spoon='"});
  CAPTURE(row.words);
  const ProgramResult result = RunAgent(row.words);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains(row.text));
}

TEST_CASE("of an option that stands twice the last counts", "[usage]") {
  CHECK(RunAgent({"version", "-o", "table", "-o", "json"}).out.front() == '{');
}

TEST_CASE("the version comes with what it was built from", "[usage]") {
  CHECK_THAT(RunAgent({"version"}).out, Catch::StartsWith("vfio-agent "));
  CHECK(RunAgent({"--version"}).out == RunAgent({"version"}).out);
  const auto document = nlohmann::json::parse(RunAgent({"version", "-o", "json"}).out);
  CHECK(document.at("schema") == "vfio-agent/version/v1");
  CHECK(document.contains("commit"));  // null where the version names none
  CHECK_THAT(document.at("compiler").get<std::string>(), Catch::Contains("."));
  for (const char* library : {"abseil", "glibc", "grpc", "nlohmann_json", "protobuf", "zlib"}) {
    CAPTURE(library);
    CHECK_THAT(document.at("libraries").at(library).get<std::string>(), Catch::Contains("."));
  }
  CHECK_THAT(RunAgent({"version", "-o", "wide"}).out, Catch::Contains("protobuf"));
}

TEST_CASE("a key of the file that is misspelt gets a suggestion", "[usage]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "bind: {paralel: 3}\n");
  const ProgramResult result = RunAgent({"config", "check", "--config", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("bind.paralel: unknown key (known here: ") &&
                             Catch::Contains("did you mean 'parallel'?"));
}

TEST_CASE("a file of two documents is refused at the second one", "[usage]") {
  const ScratchDir dir;
  const std::string file = dir.Write("config.yaml", "mode: container\n---\nmode: sideways\n");
  const ProgramResult result = RunAgent({"config", "check", "--config", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("config.yaml:2:1: a second document"));
}

TEST_CASE("a misspelt variable is told by config check and config show, and no error", "[usage]") {
  const std::string command = GENERATE("check", "show");
  CAPTURE(command);
  const ProgramResult result =
      RunAgent({"config", command, "--config", "/dev/null"},
               {"VFIO_AGENT_UNBIND_TIMOUT=5s", "VFIO_AGENT_PORT=tcp://10.0.0.1:9431"});
  CHECK(result.exit_code == 0);
  CHECK(result.err ==
        "vfio-agent: VFIO_AGENT_UNBIND_TIMOUT of the environment means nothing; did you mean "
        "VFIO_AGENT_UNBIND_TIMEOUT?\n");
}

TEST_CASE("what cannot be a listening address is a usage error with its setting", "[node]") {
  const ProgramResult result = RunAgent({"config", "check", "--metrics-listen", "localhost:1"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("metrics.listen (from --metrics-listen): 'localhost:1'"));
}

}  // namespace
}  // namespace vfio_agent
