#include "agent/usage/node_words.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

using List = std::vector<std::string>;

const char kResource[] = "nvidia.com/GH100_H100_SXM5_80GB";

List WordsFrom(const NodeFacts& facts, const std::string& start) {
  List words;
  for (const Candidate& candidate : SelectorWords(facts, DefaultPlan(facts), TestNames(), start)) {
    words.push_back(candidate.word);
  }
  return words;
}

NodeFacts TwoGroups() {
  return Node({Gpu("0000:1b:00.0", 23), Audio("0000:1b:00.1", 23), Bridge("0000:1a:00.0", 23),
               Nvme("0000:1c:00.0", 24), Gpu("0001:1b:00.0", 25)});
}

TEST_CASE("where nothing is typed, what is selected is offered", "[usage]") {
  CHECK(WordsFrom(TwoGroups(), "") ==
        List{"0000:1b:00.0", "group:23", "0001:1b:00.0", "group:25", kResource});
}

TEST_CASE("what is typed may mean any endpoint or group, but no bridge", "[usage]") {
  CHECK(WordsFrom(TwoGroups(), "0000:1") == List{"0000:1b:00.0", "0000:1b:00.1", "0000:1c:00.0"});
  CHECK(WordsFrom(TwoGroups(), "group:2") == List{"group:23", "group:24", "group:25"});
  CHECK(WordsFrom(TwoGroups(), "nv") == List{kResource});
  CHECK(WordsFrom(TwoGroups(), "spoons").empty());
}

TEST_CASE("an address of the first domain is completed without its domain too", "[usage]") {
  CHECK(WordsFrom(TwoGroups(), "1b:") == List{"1b:00.0", "1b:00.1"});
}

TEST_CASE("what the words mean stands beside them", "[usage]") {
  const NodeFacts facts = TwoGroups();
  const auto words = SelectorWords(facts, DefaultPlan(facts), TestNames(), "0000:1b:00.0");
  REQUIRE(words.size() == 1);
  CHECK(words.front().help == TestNames().at({0x10de, 0x2330}));
  const auto group = SelectorWords(facts, DefaultPlan(facts), TestNames(), "group:24");
  CHECK(group.front().help == "unselected");
}

TEST_CASE("a name that a shell could take for something else is not offered", "[usage]") {
  const NodeFacts facts = TwoGroups();
  Plan plan = DefaultPlan(facts);
  plan.resources.front().name = "nvidia.com/$(reboot)";
  for (const Candidate& word : SelectorWords(facts, plan, TestNames(), "")) {
    CHECK(word.word.find('$') == std::string::npos);
  }
}

}  // namespace
}  // namespace vfio_agent
