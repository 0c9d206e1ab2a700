// What a watched answer may take of a terminal.
#include "agent/listing/screen.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

TEST_CASE("a line takes as many rows as the terminal needs for it, colours none", "[list]") {
  CHECK(RowsOf("", 10) == 1);
  CHECK(RowsOf("0123456789", 10) == 1);
  CHECK(RowsOf("0123456789a", 10) == 2);
  CHECK(RowsOf("\x1b[32m0123456789\x1b[0m", 10) == 1);
  CHECK(RowsOf("0123456789a", 0) == 1);
}

TEST_CASE("lines that the terminal folds leave less room, and what is left is counted", "[list]") {
  CHECK(ScreenText("a\n0123456789abc\nb\nc\n", 10, 3) ==
        "a\x1b[K\n0123456789abc\x1b[K\n... 2 more lines\x1b[K\n");
  CHECK(ScreenText("a\n0123456789abc\nb\n", 10, 2) == "a\x1b[K\n... 2 more lines\x1b[K\n");
  CHECK(ScreenText("a\nb\n", 10, 2) == "a\x1b[K\nb\x1b[K\n");
}

TEST_CASE("the empty line between two tables stays", "[list]") {
  CHECK(ScreenText("a\n\nb\n", 10, 5) == "a\x1b[K\n\x1b[K\nb\x1b[K\n");
}

TEST_CASE("a line that fills its row is not cleared behind, where its last letter stands",
          "[list]") {
  CHECK(ScreenText("0123456789\nb\n", 10, 5) == "0123456789\nb\x1b[K\n");
}

}  // namespace
}  // namespace vfio_agent
