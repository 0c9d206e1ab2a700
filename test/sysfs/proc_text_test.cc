#include "sysfs/proc_text.h"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

#include "sysfs/fd.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

using Views = std::vector<std::string_view>;

TEST_CASE("a short read is not taken for the end of a file of proc", "[sysfs]") {
  // Each packet is one read, as each page of records is in proc.
  std::array<int, 2> ends = {};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const Fd reader(ends[0]);
  {
    const Fd writer(ends[1]);
    for (const char* part : {"one\n", "two\n", "three\n"}) {
      REQUIRE(::write(writer.get(), part, std::string_view(part).size()) > 0);
    }
  }
  CHECK(*ReadToEnd(reader.get(), "parts", 100) == "one\ntwo\nthree\n");
}

TEST_CASE("a file of proc that is longer than it may be is an error, not cut", "[sysfs]") {
  FakeTree fake;
  fake.Write("proc/long", std::string(200'000, 'x'));
  CHECK(ReadProcText(fake.Open(), "proc/long")->size() == 200'000);
  CHECK(absl::IsOutOfRange(ReadProcText(fake.Open(), "proc/long", 199'999).status()));
  CHECK(absl::IsNotFound(ReadProcText(fake.Open(), "proc/none").status()));
}

TEST_CASE("lines and fields leave out what is empty", "[sysfs]") {
  CHECK(Lines("\na b\n\nc") == Views{"a b", "c"});
  CHECK(Fields(" a \t b\r") == Views{"a", "b"});
  CHECK(Split("/x//y/", '/') == Views{"x", "y"});
  CHECK(Lines("").empty());
  CHECK(Fields(" \t ").empty());
}

TEST_CASE("a number is the whole text or none", "[sysfs]") {
  CHECK(ParseNumber("ff", 16) == 255U);
  CHECK(ParseNumber("18446744073709551615", 10) == UINT64_MAX);
  for (const char* bad : {"", "-1", "+1", "0x1", "1 ", "18446744073709551616"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseNumber(bad, 10));
  }
}

TEST_CASE("names that others chose are made fit for messages", "[sysfs]") {
  CHECK(Printable("a\nb\x1b\x7f\xc3\xa4") == "a?b????");
  CHECK(Printable("abcdef", 3) == "abc");
}

}  // namespace
}  // namespace vfio_agent
