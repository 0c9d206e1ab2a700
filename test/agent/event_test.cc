#include "agent/daemon/event.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

TEST_CASE("an event is one line of keys and values", "[agent]") {
  Event event{.name = "bind_done"};
  event.With("group", "17").With("empty", "");
  CHECK(ToText(event) == "event=bind_done group=17");
  CHECK(ToJsonFields(event) == R"("event":"bind_done","group":"17")");
}

TEST_CASE("a value with spaces, quotes or line ends stays inside its line", "[agent]") {
  Event event{.name = "bind_failed"};
  event.With("err", "no driver \"took\" it\nlevel=info event=bind_done");
  const std::string text = ToText(event);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text == R"(event=bind_failed err="no driver \"took\" it\nlevel=info event=bind_done")");
}

TEST_CASE("bytes that are no UTF-8 do not break the line", "[agent]") {
  Event event{.name = "note"};
  event.With("text", "a b\xff");
  CHECK(ToText(event).find("a b") != std::string::npos);
  CHECK(ToJsonFields(event).find('\xff') == std::string::npos);
}

}  // namespace
}  // namespace vfio_agent
