#include "agent/usage/commit.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

TEST_CASE("a version names its commit behind the plus, or none", "[usage]") {
  struct Row {
    const char* version;
    const char* commit;
  };
  const Row row = GENERATE(
      Row{"0.1.0+5.g0123456789ab", "0123456789ab"}, Row{"0.1.0+g0123456789ab", "0123456789ab"},
      Row{"0.1.0+5.g0123456789ab.dirty", "0123456789ab"}, Row{"0.1.0", ""}, Row{"0.1.0+dirty", ""},
      Row{"0.1.0+ghijklmnop", ""}, Row{"0.1.0+g12", ""}, Row{"0.1.g0123456789ab", ""}, Row{"", ""});
  CAPTURE(row.version);
  CHECK(CommitOf(row.version) == row.commit);
}

}  // namespace
}  // namespace vfio_agent
