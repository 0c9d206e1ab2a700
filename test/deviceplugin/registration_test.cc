#include "test/deviceplugin/registration_story.h"

namespace vfio_agent {
namespace {

// A resource that the kubelet watches since second 0.
Registration Serving() {
  Registration registration;
  for (const Event event : {Event::kKubeletSeen, Event::kServed, Event::kRegisterSent,
                            Event::kRegisterOk, Event::kListOpened}) {
    registration.On(event, At(0), 0);
  }
  CHECK(registration.registered());
  return registration;
}

TEST_CASE("R1: a resource is served before it is registered", "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kRegisterSent, "wait"},
                      {1, Event::kRegisterOk, "wait until 11"},
                      {2, Event::kListOpened, "wait"},
                      {999, std::nullopt, "wait"}});
  CHECK(registration.registered());
}

TEST_CASE("a stream that is seen before the kubelet's answer counts", "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kRegisterSent, "wait"},
                      {0, Event::kListOpened, "wait"}});
  CHECK_FALSE(registration.registered());
  Tell(registration, {{0, Event::kRegisterOk, "wait"}});
  CHECK(registration.registered());
}

TEST_CASE("without a kubelet the server waits for one", "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, std::nullopt, "serve"},
                      {0, Event::kServed, "wait"},
                      {500, Event::kKubeletMissing, "wait"},
                      {600, Event::kKubeletRestarted, "register"}});
}

TEST_CASE("R9: an unreachable kubelet is called again for ever, at most every 30 s",
          "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kKubeletUnreachable, "wait until 1"},
                      {1, std::nullopt, "register"},
                      {1, Event::kKubeletUnreachable, "wait until 3"},
                      {3, Event::kKubeletUnreachable, "wait until 7"},
                      {7, Event::kKubeletUnreachable, "wait until 15"},
                      {15, Event::kKubeletUnreachable, "wait until 31"},
                      {31, Event::kKubeletUnreachable, "wait until 61"}});
  for (int i = 0; i < 100; ++i) registration.On(Event::kKubeletUnreachable, At(100), 0);
  CHECK(Print(registration.Next(At(100))) == "wait until 130");
  CHECK(Print(registration.Next(At(130))) == "register");
}

TEST_CASE("R9: jitter lengthens a wait by up to a quarter", "[deviceplugin]") {
  Registration registration;
  registration.On(Event::kKubeletSeen, At(0), 0);
  registration.On(Event::kServed, At(0), 0);
  registration.On(Event::kKubeletUnreachable, At(0), 1);
  CHECK(Print(registration.Next(At(0))) == "wait until 1.25");
}

TEST_CASE("R9: a refused registration is tried again from a new socket", "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kRegisterSent, "wait"},
                      {15, Event::kRegisterRefused, "wait until 16"},
                      {16, std::nullopt, "serve"},
                      {16, Event::kServed, "register"},
                      {31, Event::kRegisterRefused, "wait until 33"}});
}

TEST_CASE("R9: a final answer is asked for again only after a minute", "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kRegisterSent, "wait"},
                      {0, Event::kRegisterRejected, "wait until 60"},
                      {60, std::nullopt, "register"}});
}

TEST_CASE("a server that cannot be started is tried again, more and more slowly",
          "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kServeFailed, "wait until 1"},
                      {1, std::nullopt, "serve"},
                      {1, Event::kServeFailed, "wait until 3"},
                      {2, Event::kKubeletRestarted, "serve"}});
}

TEST_CASE("R11: no stream within 10 s of the kubelet's yes means not registered",
          "[deviceplugin]") {
  Registration registration;
  Tell(registration, {{0, Event::kKubeletSeen, "serve"},
                      {0, Event::kServed, "register"},
                      {0, Event::kRegisterSent, "wait"},
                      {0, Event::kRegisterOk, "wait until 10"},
                      {9.9, std::nullopt, "wait until 10"},
                      {10, std::nullopt, "serve"},
                      {10, Event::kServed, "register"}});
}

TEST_CASE("R12: a lost stream means a new server after a pause", "[deviceplugin]") {
  Registration registration = Serving();
  Tell(registration, {{100, Event::kListClosed, "wait until 101"},
                      {101, std::nullopt, "serve"},
                      {101, Event::kServed, "register"}});
  CHECK_FALSE(registration.registered());

  Registration jittered = Serving();
  jittered.On(Event::kListClosed, At(100), 1);
  CHECK(Print(jittered.Next(At(100))) == "wait until 103");
}

TEST_CASE("R13: of two streams one may end", "[deviceplugin]") {
  Registration registration = Serving();
  Tell(registration, {{1, Event::kListOpened, "wait"}, {2, Event::kListClosed, "wait"}});
  CHECK(registration.registered());
  CHECK(registration.streams() == 1);
}

TEST_CASE("R56: three streams lost within a minute each slow the plugin down, until one lasts",
          "[deviceplugin]") {
  Registration registration = Serving();
  const auto serve_again = [&](double at, const std::string& then) {
    Tell(registration, {{at, std::nullopt, "serve"},
                        {at, Event::kServed, "register"},
                        {at, Event::kRegisterSent, "wait"},
                        {at, Event::kListOpened, "wait"},
                        {at, Event::kRegisterOk, then}});
  };
  Tell(registration, {{10, Event::kListClosed, "wait until 11"}});
  serve_again(11, "wait");
  Tell(registration, {{20, Event::kListClosed, "wait until 21"}});
  CHECK_FALSE(registration.contended());
  serve_again(21, "wait");
  Tell(registration, {{30, Event::kListClosed, "wait until 60"}});
  CHECK(registration.contended());
  serve_again(60, "wait until 120");
  SECTION("not yet") {
    Tell(registration, {{119, Event::kListClosed, "wait until 149"}});
    CHECK(registration.contended());
  }
  SECTION("a minute") {
    Tell(registration, {{120, std::nullopt, "wait"}});
    CHECK_FALSE(registration.contended());
    Tell(registration, {{121, Event::kListClosed, "wait until 122"}});
    CHECK_FALSE(registration.contended());
  }
}

TEST_CASE("R14: our socket is gone: a new server at once", "[deviceplugin]") {
  Registration registration = Serving();
  Tell(registration, {{5, Event::kSocketGone, "serve"},
                      // The old stream was alive: the kubelet is to see its end first.
                      {5, Event::kServed, "wait until 5.25"},
                      {5.25, std::nullopt, "register"}});
}

TEST_CASE("R14: a socket that is taken away again and again is not made anew without pause",
          "[deviceplugin]") {
  Registration registration;
  registration.On(Event::kKubeletMissing, At(0), 0);
  for (int i = 0; i < 3; ++i) {
    Tell(registration, {{0, Event::kServed, "wait"}, {0, Event::kSocketGone, "serve"}});
  }
  Tell(registration, {{0, Event::kServed, "wait"}, {0, Event::kSocketGone, "wait until 8"}});
}

TEST_CASE("R15: another kubelet: a new server at once, in every phase but one", "[deviceplugin]") {
  Registration registration = Serving();
  SECTION("while it is watched") {}
  SECTION("while a lost stream's pause lasts") { registration.On(Event::kListClosed, At(5), 1); }
  SECTION("while a call to the old kubelet is under way") {
    registration.On(Event::kListClosed, At(1), 0);
    registration.On(Event::kServed, At(2), 0);
    registration.On(Event::kRegisterSent, At(2), 0);
  }
  SECTION("after a failure") { registration.On(Event::kServeFailed, At(5), 1); }
  registration.On(Event::kKubeletRestarted, At(5), 0);
  CHECK(Print(registration.Next(At(5))) == "serve");
}

TEST_CASE("R15: a server of which no kubelet has heard is registered as it is", "[deviceplugin]") {
  Registration registration;
  registration.On(Event::kServed, At(0), 0);
  registration.On(Event::kKubeletUnreachable, At(0), 0);
  registration.On(Event::kKubeletRestarted, At(0.5), 0);
  CHECK(registration.phase() == Phase::kListening);
  CHECK(Print(registration.Next(At(0.5))) == "register");
}

TEST_CASE("R56, T1: a rival that leaves may have taken us down: a new registration after a pause",
          "[deviceplugin]") {
  Registration registration = Serving();
  Tell(registration, {{100, Event::kRivalGone, "wait until 101"},
                      {101, std::nullopt, "serve"},
                      // The old stream was open all the time.
                      {101, Event::kServed, "wait until 101.25"},
                      {101.25, std::nullopt, "register"},
                      {101.25, Event::kRivalGone, "register"}});
}

}  // namespace
}  // namespace vfio_agent
