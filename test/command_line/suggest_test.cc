#include "agent/usage/suggest.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

const std::vector<std::string> kKnown = {"run", "plan", "bind", "release", "list", "completion"};

TEST_CASE("the distance counts letters more, less, other ones, and neighbours that changed places",
          "[usage]") {
  struct Row {
    const char* a;
    const char* b;
    size_t distance;
  };
  const Row row = GENERATE(Row{"plan", "plan", 0}, Row{"", "plan", 4}, Row{"plan", "", 4},
                           Row{"plam", "plan", 1}, Row{"pln", "plan", 1}, Row{"plaan", "plan", 1},
                           Row{"lpan", "plan", 1}, Row{"kitten", "sitting", 3});
  CAPTURE(row.a, row.b);
  CHECK(Distance(row.a, row.b) == row.distance);
}

TEST_CASE("the nearest words are suggested, and none for a word that is far from all", "[usage]") {
  struct Row {
    const char* word;
    std::vector<std::string> suggested;
  };
  const Row row = GENERATE(Row{"plam", {"plan"}}, Row{"rnu", {"run"}}, Row{"relaese", {"release"}},
                           Row{"PLAN", {"plan"}}, Row{"comp", {"completion"}}, Row{"spoons", {}},
                           Row{"xy", {}}, Row{"", {}}, Row{"p", {}});
  CAPTURE(row.word);
  CHECK(Suggest(row.word, kKnown) == row.suggested);
}

TEST_CASE("words that are equally near are suggested together, three at most", "[usage]") {
  CHECK(Suggest("lisp", {"list", "lisa", "lispp", "lips"}) ==
        std::vector<std::string>{"lispp"});  // the beginning of one
  CHECK(DidYouMean("lisx", {"list", "lisa", "lisb", "lisc"}) ==
        "; did you mean 'list' or 'lisa' or 'lisb'?");
  CHECK(DidYouMean("spoons", kKnown).empty());
}

TEST_CASE("a word of more than 64 letters is none that was misspelt: it would only cost time",
          "[usage]") {
  CHECK(Suggest(std::string(64, 'p'), {std::string(63, 'p')}).size() == 1);
  CHECK(Suggest(std::string(65, 'p'), {std::string(64, 'p')}).empty());
}

}  // namespace
}  // namespace vfio_agent
