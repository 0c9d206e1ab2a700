// The words of the command line, before they are parsed.
#include "agent/usage/words.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("an option that ends with '=' is followed by an empty value", "[usage]") {
  struct Row {
    Words words;
    Words split;
  };
  const Row row = GENERATE(
      Row{{"run", "--nfd-dir=", "--cdi-dir=/x"}, {"run", "--nfd-dir", "", "--cdi-dir=/x"}},
      Row{{"--config=", "plan"}, {"--config", "", "plan"}},
      Row{{"plan", "-o="}, {"plan", "-o", ""}},
      Row{{"kubevirt", "--diff="}, {"kubevirt", "--diff", ""}},
      // No value of its own, no such option, no option at all.
      Row{{"plan", "--all="}, {"plan", "--all="}}, Row{{"plan", "--spoon="}, {"plan", "--spoon="}},
      Row{{"plan", "--config=a="}, {"plan", "--config=a="}},
      Row{{"snapshot", "a="}, {"snapshot", "a="}},
      // The value of the option before it, and what stands behind the options.
      Row{{"run", "--config", "--root="}, {"run", "--config", "--root="}},
      Row{{"run", "--config", "--", "--root="}, {"run", "--config", "--", "--root", ""}},
      Row{{"complete", "--", "--config="}, {"complete", "--", "--config="}}, Row{{}, {}});
  CAPTURE(row.words);
  CHECK(SplitEmptyValues(row.words) == row.split);
}

}  // namespace
}  // namespace vfio_agent
