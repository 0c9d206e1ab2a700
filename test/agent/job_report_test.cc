// The line of a failed bind or release: whoever reads it at night need not look anywhere else.
#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "agent/daemon/report.h"
#include "iommu/apply.h"
#include "sysfs/status.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
const std::vector<Action> kBind = {
    LoadModule{"vfio-pci"},     SetD3cold{At(kGpu), false},  SetOverride{At(kGpu), "vfio-pci"},
    Unbind{At(kGpu), "nvidia"}, Probe{At(kGpu), "vfio-pci"}, AwaitNode{17}};

JobEvent Failed(size_t step, absl::Status status, Code code) {
  JobEvent event{.job = {.group = 17, .actions = kBind},
                 .done = step,
                 .status = std::move(status),
                 .code = code,
                 .took = absl::Milliseconds(12)};
  event.job.records[At(kGpu)] = {.address = At(kGpu), .vendor = 0x10de, .device = 0x2330};
  return event;
}

std::string Line(const JobEvent& event) {
  return ToText(JobEnded(event, {.now = std::string(kGpu) + "=nvidia",
                                 .holder = "0000:3b:00.0 is open in pid 4711 (python3)",
                                 .next = "put back; tried again in 1s"}));
}

bool Has(const std::string& line, const std::string& key) {
  return line.find(" " + key + "=") != std::string::npos;
}

// What each step of a bind can fail with: the kernel's answers, and our own where it has none.
std::vector<JobEvent> EveryFailure() {
  std::vector<JobEvent> failures;
  for (size_t step = 0; step < kBind.size(); ++step) {
    std::vector<absl::Status> answers = {absl::AbortedError("another driver has it"),
                                         absl::FailedPreconditionError("vfio-pci did not take it"),
                                         absl::DeadlineExceededError("the node did not appear")};
    for (const int error : {EBUSY, EINVAL, ENODEV, ENXIO, EIO, EACCES, EPERM, EROFS, ENOENT}) {
      answers.push_back(ErrnoStatus(error, "write sys/x"));
    }
    for (const absl::Status& answer : answers) {
      failures.push_back(Failed(step, answer, CodeOfFailure(kBind[step], answer)));
    }
  }
  const absl::Status words = absl::FailedPreconditionError("in words");
  failures.push_back(Failed(0, words, Code::kHeld));
  for (const Code code : {Code::kUnbindTimeout, Code::kUnbindStuck}) {
    failures.push_back(Failed(3, words, code));
    failures.back().kind =
        code == Code::kUnbindStuck ? JobEvent::Kind::kStuck : JobEvent::Kind::kTimedOut;
    failures.back().stack = {"nv_pci_remove", "pci_device_remove"};
  }
  return failures;
}

TEST_CASE("every failure of a bind has all parts in one line, whatever its code", "[log]") {
  std::set<std::string> codes;
  for (const JobEvent& event : EveryFailure()) {
    const std::string line = Line(event);
    INFO(line);
    codes.insert(std::string(CodeName(event.code)));
    for (const char* key : {"group", "members", "device", "id", "from", "to", "step", "try", "code",
                            "err", "holder", "now", "remedy", "next", "took_ms"}) {
      CAPTURE(key);
      CHECK(Has(line, key));
    }
    CHECK(Has(line, "errno") == (ErrnoOf(event.status) != 0));
    CHECK(Has(line, "stack") == !event.stack.empty());
    CHECK(line.find("<address>") == std::string::npos);  // it can be typed as it stands
  }
  CHECK(codes == std::set<std::string>{"device-gone", "driver-changed", "held", "node-missing",
                                       "override-unsupported", "permission-denied", "power-d3cold",
                                       "probe-refused", "unbind-stuck", "unbind-timeout",
                                       "vfio-driver-missing"});
}

TEST_CASE("a failed bind's line reads as one would tell it", "[log]") {
  const JobEvent event = Failed(3, ErrnoStatus(EBUSY, "write sys/bus/pci/drivers/nvidia/unbind"),
                                Code::kDriverChanged);
  CHECK(
      Line(event) ==
      "event=bind_failed group=17 members=0000:3b:00.0 device=0000:3b:00.0 id=10de:2330 "
      "from=nvidia to=vfio-pci step=4/6 "
      "try=\"echo 0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/unbind\" code=driver-changed "
      "err=\"write sys/bus/pci/drivers/nvidia/unbind: Device or resource busy\" errno=EBUSY "
      "holder=\"0000:3b:00.0 is open in pid 4711 (python3)\" now=\"0000:3b:00.0=nvidia\" "
      "remedy=\"somebody bound the device to another driver; the agent takes it back when nothing "
      "uses it\" next=\"put back; tried again in 1s\" took_ms=12");
}

TEST_CASE("a device that had no driver is taken from none", "[log]") {
  JobEvent event = Failed(0, absl::FailedPreconditionError("x"), Code::kProbeRefused);
  event.job.actions = {SetOverride{At(kGpu), "vfio-pci"}, Probe{At(kGpu), "vfio-pci"}};
  CHECK_THAT(Line(event), Catch::Contains("from=none to=vfio-pci"));
}

TEST_CASE("a failed release says that the kernel was to choose the driver", "[log]") {
  JobEvent event = Failed(1, ErrnoStatus(EBUSY, "write"), Code::kDriverChanged);
  event.job.kind = JobKind::kRelease;
  event.job.actions = {SetOverride{At(kGpu), ""}, Unbind{At(kGpu), "vfio-pci"},
                       Probe{At(kGpu), ""}};
  CHECK_THAT(Line(event),
             Catch::Contains("event=release_failed") && Catch::Contains("from=vfio-pci to=any"));
}

}  // namespace
}  // namespace vfio_agent
