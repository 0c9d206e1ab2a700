// What the agent keeps of root's power, and what it says of what it has not got.
#include "agent/privileges/privileges.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "agent/daemon/report.h"
#include "sysfs/tree.h"
#include "test/privileges/pod_seccomp.h"
#include "test/privileges/pod_spec.h"

namespace vfio_agent {
namespace {

std::vector<std::string> NamesOf(const std::vector<Lack>& lacks) {
  std::vector<std::string> names;
  for (const Lack& lack : lacks) names.emplace_back(lack.what);
  return names;
}

std::string ReadPackaged(const std::string& name) {
  std::ifstream file(std::string(PACKAGING) + "/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What follows the heading of that name, up to the next of its kind.
std::string Section(const std::string& text, const std::string& heading) {
  const size_t begin = text.find("\n## " + heading + "\n");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

constexpr Privileges kNothing = {
    .superuser = false, .writable_sysfs = false, .all_processes = false, .capabilities = kNoRights};

TEST_CASE("who has every privilege has none to tell of", "[agent]") {
  CHECK(FindLacks(Privileges{}).empty());
  // More than the agent uses is not its matter.
  CHECK(FindLacks(Privileges{.capabilities = ~kNoRights}).empty());
}

TEST_CASE("each privilege that is missing is named alone, and all of them the gravest first",
          "[agent]") {
  const auto without = [](unsigned capability) {
    return Privileges{.capabilities = kAgentRights & ~RightSet({capability})};
  };
  using Names = std::vector<std::string>;
  CHECK(NamesOf(FindLacks({.superuser = false})) == Names{"uid 0"});
  CHECK(NamesOf(FindLacks({.writable_sysfs = false})) == Names{"a writable /sys"});
  CHECK(NamesOf(FindLacks({.all_processes = false})) == Names{"hostPID"});
  CHECK(NamesOf(FindLacks(without(CAP_SYS_PTRACE))) == Names{"CAP_SYS_PTRACE"});
  CHECK(NamesOf(FindLacks(without(CAP_DAC_READ_SEARCH))) == Names{"CAP_DAC_READ_SEARCH"});
  CHECK(NamesOf(FindLacks(without(CAP_SYS_ADMIN))) == Names{"CAP_SYS_ADMIN"});
  CHECK(NamesOf(FindLacks(without(CAP_SYS_MODULE))) == Names{"CAP_SYS_MODULE"});
  CHECK(NamesOf(FindLacks(kNothing)) == Names{"uid 0", "a writable /sys", "hostPID",
                                              "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH",
                                              "CAP_SYS_ADMIN", "CAP_SYS_MODULE"});
}

TEST_CASE("what is missing is one line, with what it means", "[agent]") {
  const Event event = PrivilegesMissing(
      FindLacks({.capabilities = RightSet({CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH})}));
  CHECK(ToText(event) ==
        "event=privileges_missing missing=CAP_SYS_MODULE text=\"without CAP_SYS_MODULE vfio "
        "drivers are not loaded: the node has to load them\"");
  CHECK(event.level == Level::kWarn);
}

TEST_CASE("the guide's table of privileges has each one that the agent may say is missing",
          "[agent]") {
  const std::string table = Section(ReadPackaged("OPERATING.md"), "Privileges");
  for (const Lack& lack : FindLacks(kNothing)) {
    CAPTURE(lack.what);
    CHECK_THAT(table, Catch::Contains("| " + std::string(lack.what) + " |"));
  }
}

TEST_CASE("the systemd unit leaves the agent just the capabilities that it uses", "[agent]") {
  std::istringstream lines(ReadPackaged("systemd/vfio-agent.service"));
  std::string words;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("CapabilityBoundingSet=")) words = line.substr(line.find('=') + 1);
  }
  std::istringstream names(words);
  std::set<std::string> bound;
  for (std::string name; names >> name;) bound.insert(name);
  std::set<std::string> used;
  for (const std::string& name : NamesOf(FindLacks(kNothing))) {
    if (name.starts_with("CAP_")) used.insert(name);
  }
  CHECK(bound == used);
}

TEST_CASE("the overlay without privileged adds no capability that the agent would drop",
          "[agent]") {
  const PodSpec spec = ReadPodSpec(UNPRIVILEGED);
  std::set<std::string> used;
  for (const std::string& name : NamesOf(FindLacks(kNothing))) {
    if (name.starts_with("CAP_")) used.insert(name.substr(4));
  }
  CHECK(std::ranges::includes(used, spec.capabilities));
  CHECK(spec.read_only_root);
  CHECK(spec.no_new_privileges);
  CHECK(spec.runtime_seccomp);
  CHECK_FALSE(spec.host_network);
}

TEST_CASE("the agent makes no system call that container runtimes block", "[agent]") {
  CHECK(AllowedCalls().size() > 50);
  for (const std::string call : AllowedCalls()) {
    CAPTURE(call);
    const auto blocked = CallsThatRuntimesBlock();
    CHECK(std::ranges::find(blocked, call) == blocked.end());
  }
}

TEST_CASE("a root without /sys is not called read-only: that is told elsewhere", "[agent]") {
  const absl::StatusOr<Tree> tree = Tree::Open("/dev");
  REQUIRE(tree.ok());
  CHECK(ReadPrivileges(*tree).writable_sysfs);
}

}  // namespace
}  // namespace vfio_agent
