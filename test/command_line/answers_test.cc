// Answers of the real binary for a person: on a node without an IOMMU, to a reader of a pipe, to a
// user who is not root.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/config/config.h"
#include "test/agent/node.h"
#include "test/command_line/beside.h"

namespace vfio_agent {
namespace {

ProgramResult RunShell(const std::string& script, const std::vector<std::string>& words) {
  return RunAgent(words, {}, {"/bin/bash", "-c", script, "bash"});
}

TEST_CASE("list --all lists every function of a node whose IOMMU is off", "[list]") {
  const Node node("dell-r760-iommu-off-312dev");
  const ProgramResult all = node.Run({"list", "--all", "-o", "wide"});
  CHECK(all.exit_code == 0);
  const size_t devices = node.RunJson({"list", "--all"}).at("devices").size();
  CHECK(devices == 312);
  CHECK(static_cast<size_t>(std::ranges::count(all.out, '\n')) == devices + 1);
  CHECK_THAT(all.err, !Catch::Contains("--all") && Catch::Contains("no IOMMU groups"));
  CHECK_THAT(all.out, Catch::Contains("\n-      0000:"));
}

TEST_CASE("list slices says what would fill it where nothing is served by DRA", "[list]") {
  const Node node("hgx-8gpu");
  constexpr char kHint[] = "nothing is served by DRA";
  const ProgramResult none = node.Run({"list", "slices"});
  CHECK(none.exit_code == 0);
  CHECK_THAT(none.err, Catch::Contains(kHint) && Catch::Contains("`serve: dra`"));
  CHECK_THAT(node.Run({"list", "slices", "-o", "yaml"}).err, !Catch::Contains(kHint));
  CHECK_THAT(node.Run({"list"}).err, !Catch::Contains(kHint));
  const std::string file =
      node.dir().Write("dra.yaml", "resources: [{preset: nvidia, serve: dra}]");
  const ProgramResult served = node.Run({"list", "slices", "--config", file});
  CHECK_THAT(served.err, !Catch::Contains(kHint));
  CHECK_THAT(served.out, Catch::Contains("0000:1b:00.0"));
}

TEST_CASE("a table is as wide as the terminal, or as COLUMNS where there is none", "[list]") {
  const Node node("hgx-8gpu");
  const auto longest = [](const std::string& text) {
    size_t length = 0;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      length = std::max(length, line.size());
    }
    return length;
  };
  const std::string wide = node.Run({"list", "--all"}).out;
  CHECK(longest(wide) <= 100);
  CHECK_THAT(wide, Catch::Contains(".."));
  CHECK_THAT(node.Run({"list", "--all", "-o", "wide"}).out, !Catch::Contains(".."));
  const ProgramResult told = RunAgent(node.With({"list", "--all"}), {"COLUMNS=250"});
  CHECK(longest(told.out) > 100);
  CHECK_THAT(told.out, !Catch::Contains(".."));
  Beside list(node.With({"list", "--all"}), {.columns = 250, .no_color = true});
  REQUIRE(list.WaitForEnd() == 0);
  CHECK(list.Output() == told.out);
}

TEST_CASE("a reader that has gone is no error to tell, a full disk is one", "[usage]") {
  const std::vector<std::string> words = {"help", "--man"};
  const ProgramResult gone =
      RunShell("trap '' PIPE; exec 3> >(true); wait $!; exec \"$@\" >&3", words);
  CHECK(gone.exit_code == 1);
  CHECK(gone.err.empty());
  const ProgramResult full = RunShell("\"$@\" >/dev/full", words);
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.err, Catch::Contains("the answer could not be written"));
}

TEST_CASE("a configuration may come from a pipe whose writer takes its time", "[usage]") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  auto text = std::async(std::launch::async, [&reader] {
    return ReadConfigText(absl::StrFormat("/proc/self/fd/%d", reader.get()));
  });
  const std::string first = "mode: container\n", second = "resync: 5m\n";
  for (const std::string& part : {first, second}) {
    REQUIRE(::write(writer.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size()));
    int left = -1;
    CHECK(Eventually([&] { return ::ioctl(reader.get(), FIONREAD, &left) == 0 && left == 0; },
                     absl::Seconds(5)));
    PollPause();
  }
  writer = Fd();
  const absl::StatusOr<std::string> read = text.get();
  REQUIRE(read.ok());
  CHECK(*read == first + second);
}

TEST_CASE("who may not ask the daemon is told to be root", "[usage]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can be somebody else");
    return;
  }
  const ScratchDir dir;  // for its owner only
  REQUIRE(::chmod(dir.path().c_str(), 0700) == 0);
  const ProgramResult result =
      RunAgent({"status", "--state-dir", dir.path()}, {},
               {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains("needs root") && !Catch::Contains("no agent answers"));
}

TEST_CASE("a resource that is misspelt gets a suggestion", "[usage]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"explain", "nvidia.com/GH100_H100_SXM5_80G"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err,
             Catch::Contains("fits no group of this node; did you mean '" + std::string(kH100)));
}

TEST_CASE("health of a node without a daemon fails and names the socket", "[usage]") {
  const ScratchDir dir;
  const ProgramResult result = RunAgent({"health", "--state-dir", dir.path()});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains(dir.path() + "/status.sock"));
}

}  // namespace
}  // namespace vfio_agent
