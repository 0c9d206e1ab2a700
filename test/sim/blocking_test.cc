#include <atomic>
#include <cerrno>
#include <future>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

using std::chrono_literals::operator""ms;

// A write on a thread of its own. Constructed, it has begun.
class Writing {
 public:
  Writing(Kernel& kernel, const std::string& path, const std::string& text) {
    const std::string line = "=" + text + " running\n";
    const Caller caller{.killed = [this] { return killed_.load(); }};
    result_ = std::async(std::launch::async, [&kernel, path, text, caller] {
      return kernel.Write(path, text, caller);
    });
    began_ = Eventually([&] { return kernel.Log().ends_with(line) || Done(); });
  }
  void Kill() { killed_ = true; }
  bool Done() const { return result_.wait_for(0ms) == std::future_status::ready; }
  bool StaysBlocked() const {
    return began_ && result_.wait_for(50ms) != std::future_status::ready;
  }
  int Result() { return result_.get(); }

 private:
  std::atomic<bool> killed_ = false;
  bool began_ = false;
  std::future<int> result_;
};

std::string UnbindPath(const std::string& driver) {
  return "sys/bus/pci/drivers/" + driver + "/unbind";
}

TEST_CASE("unbinding from vfio-pci waits until the device is closed and then has happened",
          "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  REQUIRE(kernel->Control("hold 14 7001 qemu-system-x86") == 0);
  Writing unbind(*kernel, UnbindPath("vfio-pci"), kCard);
  CHECK(unbind.StaysBlocked());
  REQUIRE(kernel->Control("free 14") == 0);
  CHECK(unbind.Result() == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
}

TEST_CASE("while an unbind blocks, driver_override of that device blocks both ways", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: '0000:01:00.0', op: unbind, block: forever}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  REQUIRE(unbind.StaysBlocked());
  const std::string path = DevicePath(kCard) + "/driver_override";
  auto reading = std::async(std::launch::async, [&] { return ReadText(*kernel, path); });
  Writing writing(*kernel, path, "vfio-pci");
  CHECK(writing.StaysBlocked());
  CHECK(reading.wait_for(0ms) != std::future_status::ready);
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/vendor") == "0x8086\n");
  REQUIRE(kernel->Control("release-blocked 0000:01:00.0") == 0);
  CHECK(unbind.Result() == 0);
  CHECK(writing.Result() == 0);
  const std::string read = reading.get();
  CHECK((read == "(null)\n" || read == "vfio-pci\n"));
}

TEST_CASE("a blocked unbind does not hold up other devices of the same driver", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: '0000:01:00.0', op: unbind, block: forever}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  REQUIRE(unbind.StaysBlocked());
  CHECK(Unbind(*kernel, kFirst) == 0);
  CHECK(DriverOf(*kernel, kFirst).empty());
  unbind.Kill();
  CHECK(unbind.Result() == EINTR);
}

TEST_CASE("a killed writer leaves the device on its driver", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: '*', op: unbind, block: forever, once: true}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  REQUIRE(unbind.StaysBlocked());
  unbind.Kill();
  CHECK(unbind.Result() == EINTR);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
  CHECK(Unbind(*kernel, kCard) == 0);
}

TEST_CASE("an unkillable block ends only when it is released", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control(
              "fault {device: '0000:01:00.0', op: unbind, block: forever, unkillable: true}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  unbind.Kill();
  CHECK(unbind.StaysBlocked());
  REQUIRE(kernel->Control("release-blocked 0000:01:00.0") == 0);
  CHECK(unbind.Result() == 0);
}

TEST_CASE("a device that falls off the bus ends the unbind that waits for it", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: '0000:01:00.0', op: unbind, block: forever}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  REQUIRE(unbind.StaysBlocked());
  REQUIRE(kernel->Control("remove 0000:01:00.0") == 0);
  CHECK(unbind.Result() == ENODEV);
}

TEST_CASE("shutting down ends every blocked write", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control(
              "fault {device: '0000:01:00.0', op: unbind, block: forever, unkillable: true}") == 0);
  Writing unbind(*kernel, UnbindPath("e1000e"), kCard);
  REQUIRE(unbind.StaysBlocked());
  kernel->ShutDown();
  CHECK(unbind.Result() == EINTR);
}

TEST_CASE("a delay passes and the operation then happens", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: '0000:01:00.0', op: unbind, delay: 80ms}") == 0);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(Unbind(*kernel, kCard) == 0);
  CHECK(std::chrono::steady_clock::now() - begin >= 80ms);
  CHECK(DriverOf(*kernel, kCard).empty());
}

}  // namespace
}  // namespace vfio_agent::sim
