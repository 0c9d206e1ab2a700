#include "sysfs/fact.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

namespace vfio_agent {
namespace {

TEST_CASE("absent, unknown and zero are three different answers", "[sysfs]") {
  const auto absent = Fact<int>::Absent();
  const auto unknown = Fact<int>::Unknown(EACCES);
  const Fact<int> zero(0);
  CHECK((absent.absent() && !absent.unknown() && !absent.known()));
  CHECK((unknown.unknown() && !unknown.absent() && !unknown.known()));
  CHECK((zero.known() && !zero.absent() && !zero.unknown()));
  CHECK_FALSE(absent == unknown);
  CHECK_FALSE(absent == zero);
  CHECK_FALSE(unknown == zero);
}

TEST_CASE("a fact that nobody filled in is absent", "[sysfs]") {
  CHECK(Fact<std::string>() == Fact<std::string>::Absent());
}

TEST_CASE("an unknown fact says why, a known one has no error", "[sysfs]") {
  CHECK(Fact<int>::Unknown(EIO).error() == EIO);
  CHECK_FALSE(Fact<int>::Unknown(EIO) == Fact<int>::Unknown(EACCES));
  CHECK(Fact<int>(7).error() == 0);
}

TEST_CASE("only a known fact is equal to a value", "[sysfs]") {
  CHECK(Fact<int>(0).is(0));
  CHECK_FALSE(Fact<int>(1).is(0));
  CHECK_FALSE(Fact<int>::Absent().is(0));
  CHECK_FALSE(Fact<int>::Unknown(EIO).is(0));
}

TEST_CASE("a fact that is not known gives the value asked for in its place", "[sysfs]") {
  CHECK(Fact<std::string>("D0").value_or("?") == "D0");
  CHECK(Fact<std::string>::Absent().value_or("?") == "?");
  CHECK(Fact<std::string>::Unknown(EIO).value_or("?") == "?");
  CHECK(Fact<std::string>::Unknown(EIO).value().empty());
}

}  // namespace
}  // namespace vfio_agent
