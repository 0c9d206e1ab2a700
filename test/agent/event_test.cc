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

TEST_CASE("what a terminal would obey or not show reaches the log as its number", "[agent]") {
  Event event{.name = "note"};
  event.With(
      "text",
      "\x1b[2J \x7f \xc2\x9b[m \xe2\x80\xae \xef\xbb\xbf \xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80");
  const std::string shown = R"("\u001b[2J \u007f \u009b[m \u202e \ufeff )"
                            "\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80\"";
  CHECK(ToText(event) == "event=note text=" + shown);
  CHECK(ToJsonFields(event) == R"("event":"note","text":)" + shown);
}

TEST_CASE("text and JSON have the same fields, in the same order", "[agent]") {
  Event event{.name = "bind_failed"};
  event.With("group", "17").With("err", "a b").With("next", "later");
  CHECK(ToText(event) == "event=bind_failed group=17 err=\"a b\" next=later");
  CHECK(ToJsonFields(event) == R"("event":"bind_failed","group":"17","err":"a b","next":"later")");
}

TEST_CASE("bytes that are no UTF-8 do not break the line", "[agent]") {
  Event event{.name = "note"};
  event.With("text", "a b\xff");
  CHECK(ToText(event).find("a b") != std::string::npos);
  CHECK(ToJsonFields(event).find('\xff') == std::string::npos);
}

}  // namespace
}  // namespace vfio_agent
