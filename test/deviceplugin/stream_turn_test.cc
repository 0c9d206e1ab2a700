#include "deviceplugin/grpc/stream_turn.h"

#include "catch2/catch.hpp"

namespace vfio_agent {
namespace {

using Next = StreamTurn::Next;

TEST_CASE("changes during a write are one more write after it", "[deviceplugin]") {
  StreamTurn turn;
  CHECK(turn.Changed() == Next::kWrite);
  CHECK(turn.Changed() == Next::kNothing);
  CHECK(turn.Changed() == Next::kNothing);
  CHECK(turn.Written(true) == Next::kWrite);
  CHECK(turn.Written(true) == Next::kNothing);
  CHECK(turn.Changed() == Next::kWrite);
}

TEST_CASE("a stream is ended once, and after the write that is under way", "[deviceplugin]") {
  StreamTurn turn;
  CHECK(turn.Changed() == Next::kWrite);
  CHECK(turn.Changed() == Next::kNothing);
  CHECK(turn.Close() == Next::kNothing);
  CHECK(turn.Written(true) == Next::kFinish);
  CHECK(turn.Close() == Next::kNothing);
  CHECK(turn.Changed() == Next::kNothing);
}

TEST_CASE("a write that fails ends its stream, whatever is new", "[deviceplugin]") {
  StreamTurn turn;
  CHECK(turn.Changed() == Next::kWrite);
  CHECK(turn.Changed() == Next::kNothing);
  CHECK(turn.Written(false) == Next::kFinish);
}

}  // namespace
}  // namespace vfio_agent
