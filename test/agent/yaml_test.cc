// The documents of a file.
#include "agent/config/yaml.h"

#include <catch2/catch.hpp>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<YamlValue> value = ParseYaml(yaml, "c.yaml");
  return value.ok() ? "valid" : Message(value.status());
}

TEST_CASE("a second document is an error where it begins", "[agent]") {
  struct Row {
    const char* yaml;
    const char* error;
  };
  const Row row = GENERATE(Row{"mode: container\n---\nmode: container\n", "c.yaml:2:1: a second"},
                           Row{"mode: container\n---\n---\n", "c.yaml:2:1: a second"},
                           Row{"---\n---\nmode: container\n", "c.yaml:2:1: a second"},
                           Row{"mode: container\n...\n# note\nnode: 1\n", "c.yaml:4:1: a second"},
                           Row{"mode: container\n--- x\n--- y\n", "c.yaml:2:1: a second"},
                           Row{"mode: container\n---\na: [", "c.yaml:"},
                           Row{"{mode: container}\nnode: 1\n", "c.yaml:2:1: a second"},
                           Row{"mode: container\n]", "c.yaml:2:1: "});
  CAPTURE(row.yaml);
  CHECK_THAT(ErrorOf(row.yaml), Catch::StartsWith(row.error));
}

TEST_CASE("one document may begin with --- and end with ...", "[agent]") {
  for (const char* yaml : {"---\nmode: container\n...\n", "# note\n---\nmode: container\n",
                           "%YAML 1.2\n---\nmode: container\n...\n# note\n", "---\n", "...\n",
                           "mode: container\n...\n\n...\n", "mode: container\n---\n",
                           "---\nmode: container\n---\n# note\n"}) {
    CAPTURE(yaml);
    CHECK(ErrorOf(yaml) == "valid");
  }
}

TEST_CASE("aliases below long keys are given up before their places fill the memory", "[agent]") {
  const std::string yaml =
      "? " + std::string(3000, 'x') + "\n: {" + "a: &a [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], " +
      "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], " +
      "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], d: [*c,*c,*c]}\n";
  CHECK_THAT(ErrorOf(yaml), Catch::Contains("too many values"));
}

}  // namespace
}  // namespace vfio_agent
