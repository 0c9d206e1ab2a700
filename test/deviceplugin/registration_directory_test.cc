// Registration where the kubelet's plugin watcher finds us.
#include "test/deviceplugin/registration_story.h"

namespace vfio_agent {
namespace {

// One that waits to be found.
Registration Found() {
  Registration registration(Registration::Way::kDirectory);
  Tell(registration, {{0, std::nullopt, "serve"},
                      {0, Event::kServed, "wait"},
                      {500, std::nullopt, "wait"},
                      {500, Event::kListOpened, "wait"}});
  CHECK(registration.registered());
  Tell(registration, {{500, Event::kRegisterOk, "wait"}});
  CHECK(registration.registered());
  return registration;
}

TEST_CASE("T23: a lost stream means that the socket goes, and another comes once that was seen",
          "[deviceplugin]") {
  Registration registration = Found();
  Tell(registration, {{600, Event::kListClosed, "wait until 601"},
                      {601, std::nullopt, "withdraw"},
                      {601, Event::kWithdrawn, "wait until 603.5"},
                      {603.5, std::nullopt, "serve"},
                      {603.5, Event::kServed, "wait"}});
  CHECK_FALSE(registration.registered());
}

TEST_CASE("R14: a kubelet that comes back to the socket soon finds it", "[deviceplugin]") {
  Registration registration = Found();
  Tell(registration, {{600, Event::kListClosed, "wait until 601"},
                      {600.5, Event::kKubeletRestarted, "wait until 601"},
                      {600.7, Event::kListOpened, "wait"},
                      {601, Event::kRegisterOk, "wait"}});
  CHECK(registration.registered());
}

TEST_CASE("R11: a watcher that says yes but never watches gets another socket", "[deviceplugin]") {
  Registration registration(Registration::Way::kDirectory);
  Tell(registration, {{0, std::nullopt, "serve"},
                      {0, Event::kServed, "wait"},
                      {1, Event::kRegisterOk, "wait until 11"},
                      {11, std::nullopt, "withdraw"},
                      {11, Event::kWithdrawn, "wait until 13.5"}});
}

TEST_CASE("R9: a watcher that says no comes again, and gets another socket where it does not",
          "[deviceplugin]") {
  Registration registration(Registration::Way::kDirectory);
  const Event no = GENERATE(Event::kRegisterRefused, Event::kRegisterRejected);
  Tell(registration, {{0, std::nullopt, "serve"},
                      {0, Event::kServed, "wait"},
                      {1, no, "wait until 181"},
                      {121, no, "wait until 301"}});
  SECTION("it takes us at last") {
    Tell(registration, {{241, Event::kListOpened, "wait"}, {241, Event::kRegisterOk, "wait"}});
    CHECK(registration.registered());
  }
  SECTION("it has given up") { Tell(registration, {{301, std::nullopt, "withdraw"}}); }
}

TEST_CASE("R14: a socket taken out of plugins_registry is replaced once that was seen",
          "[deviceplugin]") {
  Registration registration = Found();
  Tell(registration, {{600, Event::kSocketGone, "wait until 602.5"},
                      {601, Event::kListClosed, "wait until 602.5"},
                      {602, Event::kSocketGone, "wait until 602.5"},
                      {602.5, std::nullopt, "serve"}});
}

}  // namespace
}  // namespace vfio_agent
