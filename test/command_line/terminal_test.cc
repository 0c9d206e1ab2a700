// What the real binary does on a terminal, and what it does not elsewhere.
#include <csignal>

#include "absl/strings/str_split.h"
#include "agent/listing/screen.h"
#include "test/agent/node.h"
#include "test/command_line/beside.h"

namespace vfio_agent {
namespace {

constexpr char kBegun[] = "\r\x1b[K0 of ";

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// Without what only changes colours.
std::string Plain(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return plain;
}

TEST_CASE("a bind of many groups shows on a terminal how far it is, and takes that line back",
          "[list]") {
  const Node node("hgx-8gpu");
  Beside bind(node.With({"bind", "--parallel", "1"}), {});
  REQUIRE(bind.WaitForEnd() == 0);
  const std::string output = bind.Output();
  CAPTURE(output);
  CHECK(output.find("\r\x1b[K0 of 8 groups done, 0s: writing to group ") != std::string::npos);
  CHECK(output.find("\r\x1b[K7 of 8 groups done") != std::string::npos);
  CHECK(output.find("\r\x1b[Kgroup ") != std::string::npos);  // the answer stands where it stood
  // Each step of a child wakes the program up; the line is written when it is another one.
  const std::vector<std::string> shown = absl::StrSplit(output, "\r\x1b[K");
  CHECK(shown.size() > 8);
  CHECK(std::ranges::adjacent_find(shown) == shown.end());
}

TEST_CASE("a release shows how far it is as well", "[list]") {
  const Node node("hgx-8gpu");
  REQUIRE(node.Run({"bind"}).exit_code == 0);
  Beside release(node.With({"release"}), {});
  REQUIRE(release.WaitForEnd() == 0);
  CHECK(release.Output().find(kBegun) != std::string::npos);
}

TEST_CASE("where standard error is no terminal there is no progress", "[list]") {
  const Node node("cases/VIA-05");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.find('\r') == std::string::npos);
  const Node other("cases/VIA-05");
  Beside dumb(other.With({"bind"}), {.type = "dumb"});
  CHECK(dumb.WaitForEnd() == 0);
  CHECK(dumb.Output().find('\x1b') == std::string::npos);
}

TEST_CASE("a list has the colours of a terminal and fits it", "[list]") {
  const Node node("hgx-8gpu");
  Beside list(node.With({"list"}), {.columns = 80});
  REQUIRE(list.WaitForEnd() == 0);
  const std::string output = list.Output();
  CAPTURE(output);
  CHECK(output.find("\x1b[1mGROUP") != std::string::npos);
  CHECK(output.find("\x1b[33mbind") != std::string::npos);
  for (const std::string& line : LinesOf(Plain(output))) CHECK(line.size() <= 80);
}

TEST_CASE("a topology fits the terminal as a list does", "[list]") {
  const auto columns = GENERATE(as<unsigned short>{}, 60, 120);
  const Node node("hgx-8gpu");
  Beside topology(node.With({"topology"}), {.columns = columns});
  REQUIRE(topology.WaitForEnd() == 0);
  size_t longest = 0;
  for (const std::string& line : LinesOf(topology.Output())) {
    CAPTURE(line);
    CHECK(line.size() <= columns);
    longest = std::max(longest, line.size());
  }
  CHECK(longest > columns - 20u);
}

TEST_CASE("a terminal that does not say how wide it is gets 100 columns", "[list]") {
  const Node node("hgx-8gpu");
  Beside list(node.With({"list"}), {.columns = 0});
  REQUIRE(list.WaitForEnd() == 0);
  CHECK(Plain(list.Output()) == node.Run({"list"}).out);
}

TEST_CASE("no colours elsewhere, with NO_COLOR, or where they are not wanted", "[list]") {
  const Node node("hgx-8gpu");
  CHECK(node.Run({"list"}).out.find('\x1b') == std::string::npos);
  CHECK(node.Run({"list", "--color", "always"}).out.find('\x1b') != std::string::npos);
  CHECK(node.Run({"list", "-o", "json", "--color", "always"}).out.find('\x1b') ==
        std::string::npos);
  for (const bool by_variable : {true, false}) {
    CAPTURE(by_variable);
    Beside list(node.With({"list", "--color", by_variable ? "auto" : "never"}),
                {.no_color = by_variable});
    REQUIRE(list.WaitForEnd() == 0);
    CHECK(list.Output().find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a watched list is drawn anew on a terminal, and ends with 0 on Ctrl-C", "[list]") {
  const Node node("hgx-8gpu");
  Beside watch(node.With({"list", "resources", "--watch"}), {});
  REQUIRE(watch.WaitFor("to-bind"));
  CHECK(watch.Output().starts_with("\x1b[Hlast change "));
  REQUIRE(node.Run({"bind", "1b:00.0"}).exit_code == 0);
  CHECK(watch.WaitFor("\x1b[32mready"));
  watch.Signal(SIGINT);
  CHECK(watch.WaitForEnd() == 0);
}

TEST_CASE("a watched list that does not fit the terminal tells how much is missing", "[list]") {
  const Node node("hgx-8gpu");
  Beside watch(node.With({"list", "--all", "--watch"}), {.rows = 10});
  CHECK(watch.WaitFor(" more lines\x1b[K\n\x1b[J"));
  const size_t lines = LinesOf(watch.Output()).size();
  CHECK(lines <= 10);
}

TEST_CASE("a watched list that is wider than the terminal does not run off it", "[list]") {
  const Node node("hgx-8gpu");
  constexpr size_t kRows = 12, kColumns = 60;
  Beside watch(node.With({"list", "-o", "wide", "--watch"}), {.columns = kColumns, .rows = kRows});
  REQUIRE(watch.WaitFor("\x1b[J"));
  const std::string output = watch.Output();
  CAPTURE(output);
  size_t rows = 1;  // of the cursor
  for (const std::string& line : LinesOf(output.substr(0, output.find("\x1b[J")))) {
    rows += RowsOf(line.substr(0, line.find("\x1b[K")), kColumns);
  }
  CHECK(rows <= kRows);
  CHECK(output.find(" more lines") != std::string::npos);
}

TEST_CASE("a watched list on a pipe tells the lines that are gone and new", "[list]") {
  const Node node("hgx-8gpu");
  Beside watch(node.With({"list", "resources", "-w"}), {.terminal = false});
  REQUIRE(watch.WaitFor("0000:1b:00.0"));
  REQUIRE(node.Run({"bind", "1b:00.0"}).exit_code == 0);
  REQUIRE(watch.WaitFor("\n+ "));
  const std::string output = watch.Output();
  CAPTURE(output);
  CHECK(output.find('\x1b') == std::string::npos);
  CHECK(output.find("\n- " + std::string(kH100) + "  0000:1b:00.0") != std::string::npos);
  watch.Signal(SIGTERM);
  CHECK(watch.WaitForEnd() == 0);
}

TEST_CASE("a watched document comes whole, once for each change", "[list]") {
  const Node node("cases/VIA-05");
  Beside watch(node.With({"list", "groups", "-o", "json", "--watch"}), {.terminal = false});
  REQUIRE(watch.WaitFor("\"bind\""));
  REQUIRE(node.Run({"bind"}).exit_code == 0);
  REQUIRE(watch.WaitFor("\"bound\""));
  watch.Signal(SIGINT);
  CHECK(watch.WaitForEnd() == 0);
  const std::string output = watch.Output();
  size_t documents = 0;
  for (size_t at = 0; (at = output.find("vfio-agent/groups/v1", at)) != std::string::npos; ++at) {
    ++documents;
  }
  CHECK(documents >= 2);
}

TEST_CASE("a status is watched also before there is a daemon", "[list]") {
  const Node node("cases/VIA-05");
  Beside watch(node.With({"status", "--watch"}), {.terminal = false});
  CHECK(watch.WaitFor("status.sock"));
  watch.Signal(SIGINT);
  CHECK(watch.WaitForEnd() == 0);
}

}  // namespace
}  // namespace vfio_agent
