#include "deviceplugin/grpc/timer_engine.h"

#include <future>
#include <string>

#include "catch2/catch.hpp"

namespace vfio_agent {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kLong(10);

TEST_CASE("work runs in the order in which it is due, whatever the order of the requests",
          "[deviceplugin]") {
  std::promise<std::string> done;
  std::string order;  // touched by the engine's thread only, until `done`
  TimerEngine engine;
  engine.RunAfter(milliseconds(600), [&] { done.set_value(order + "c"); });
  engine.RunAfter(milliseconds(300), [&] { order += "b"; });
  engine.Run([&] { order += "a"; });
  auto result = done.get_future();
  REQUIRE(result.wait_for(kLong) == std::future_status::ready);
  CHECK(result.get() == "abc");
}

TEST_CASE("work is cancelled once, and not after it has run", "[deviceplugin]") {
  TimerEngine engine;
  const auto waits = engine.RunAfter(hours(1), [] {});
  CHECK(engine.Cancel(waits));
  CHECK_FALSE(engine.Cancel(waits));
  std::promise<void> done;
  const auto runs = engine.RunAfter(milliseconds(0), [&] { done.set_value(); });
  REQUIRE(done.get_future().wait_for(kLong) == std::future_status::ready);
  CHECK_FALSE(engine.Cancel(runs));
}

TEST_CASE("an engine that ends drops what is not due, and may be ended by its own work",
          "[deviceplugin]") {
  const auto held = std::make_shared<int>();
  {
    TimerEngine engine;
    engine.RunAfter(hours(1), [held] {});
  }
  CHECK(held.use_count() == 1);
  std::promise<bool> done;
  auto engine = std::make_shared<TimerEngine>();
  TimerEngine& ends_itself = *engine;
  ends_itself.RunAfter(milliseconds(0), [&done, engine = std::move(engine)]() mutable {
    const bool own = engine->IsWorkerThread();
    engine.reset();
    done.set_value(own);
  });
  auto result = done.get_future();
  REQUIRE(result.wait_for(kLong) == std::future_status::ready);
  CHECK(result.get());
}

}  // namespace
}  // namespace vfio_agent
