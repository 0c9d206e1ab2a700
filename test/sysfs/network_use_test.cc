#include "sysfs/use/network_use.h"

#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

constexpr char kRoute[] = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0   \n";
constexpr char kDefault[] = "eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0   \n";

struct Nic : UseTree {
  explicit Nic(const std::string& flags = "0x1003", const std::string& dir = "net/eth0/") {
    Below(kNic, dir + "flags", flags);
  }
  Nic& Route(const std::string& line) {
    Write("proc/1/net/route", Read("proc/1/net/route") + line);
    return *this;
  }
  using FakeTree::Read;
};

TEST_CASE("an interface that is up without an address is no use", "[sysfs]") {
  CHECK(Nic().Uses(kNic).empty());
  CHECK(Nic()
            .Route("eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n")
            .Uses(kNic)
            .empty());
}

TEST_CASE("an interface that is up with an address or the default route is a use", "[sysfs]") {
  CHECK(Nic().Route(kRoute).Uses(kNic) == "network: carries eth0, which is up with an address");
  CHECK(Nic().Route(kRoute).Route(kDefault).Uses(kNic) ==
        "network: carries eth0, which is up with the default route");
}

TEST_CASE("an interface that is down is no use, whatever routes are left", "[sysfs]") {
  CHECK(Nic("0x1002").Route(kDefault).Uses(kNic).empty());
}

TEST_CASE("IPv6 counts by an address that is not link-local, and by the default route", "[sysfs]") {
  Nic nic;
  nic.Write("proc/1/net/if_inet6", "fe800000000000000000000000000001 02 40 20 80     eth0\n");
  CHECK(nic.Uses(kNic).empty());
  SECTION("address") {
    nic.Write("proc/1/net/if_inet6", "fd000000000000000000000000000002 02 40 00 82     eth0\n");
    CHECK(nic.Uses(kNic) == "network: carries eth0, which is up with an address");
  }
  SECTION("default route") {
    const std::string zero(32, '0');
    nic.Write("proc/1/net/ipv6_route",
              absl::StrFormat("%s 00 %s 00 fe80%s 00000400 1 0 00000003 eth0\n", zero, zero,
                              std::string(28, '1')));
    CHECK(nic.Uses(kNic) == "network: carries eth0, which is up with the default route");
  }
}

TEST_CASE("a port of a bond or bridge is a use, up or down", "[sysfs]") {
  for (const char* flags : {"0x1803", "0x1802"}) {
    Nic nic(flags);
    nic.Link(nic.Real(kNic) + "/net/eth0/master", "sys/devices/virtual/net/bond0");
    nic.Link(nic.Real(kNic) + "/net/eth0/upper_bond0", "sys/devices/virtual/net/bond0");
    CHECK(nic.Uses(kNic) == "network: carries eth0, which is a port of bond0");
    CHECK(nic.Remedy(kNic) == "take it out first: ip link set eth0 nomaster");
  }
}

TEST_CASE("an interface below a VLAN or macvlan is a use", "[sysfs]") {
  Nic nic;
  nic.Link(nic.Real(kNic) + "/net/eth0/upper_eth0.100", "sys/devices/virtual/net/eth0.100");
  nic.Link(nic.Real(kNic) + "/net/eth0/lower_x", "sys/devices/virtual/net/x");
  CHECK(nic.Uses(kNic) == "network: carries eth0, which is below eth0.100");
}

TEST_CASE("interfaces are found below virtio and USB, and not in another function", "[sysfs]") {
  CHECK(Nic("0x1003", "virtio0/net/eth0/").Route(kRoute).Uses(kNic) ==
        "network: carries eth0, which is up with an address");
  Nic nic("0x1002");
  nic.Below(kNic, "0000:3c:00.0/net/eth1/flags", "0x1003");
  nic.Route("eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
  CHECK(nic.Uses(kNic).empty());
}

TEST_CASE("links are not followed on the way down", "[sysfs]") {
  Nic nic("0x1002");
  nic.Write("sys/devices/other/net/eth1/flags", "0x1003\n");
  nic.Link(nic.Real(kNic) + "/consumer", "sys/devices/other");
  nic.Route("eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
  CHECK(nic.Uses(kNic).empty());
}

TEST_CASE("an interface that is up is a use where the host's network cannot be seen", "[sysfs]") {
  Nic nic;
  nic.Remove("proc/1");
  CHECK(nic.Uses(kNic) ==
        "network: carries eth0, which is up (its addresses cannot be seen without hostPID)");
  Nic down("0x1002");
  down.Remove("proc/1");
  CHECK(down.Uses(kNic).empty());
}

TEST_CASE("an interface whose flags cannot be read counts as used, and says that it is unknown",
          "[sysfs]") {
  const std::string unknown =
      "network: carries eth0, which may be up: its state is unknown, its flags cannot be read";
  for (const char* flags : {"", "up", "0xzz", "0x"}) {
    CAPTURE(flags);
    CHECK(Nic(flags).Uses(kNic) == unknown);
    CHECK(Nic(flags).Route(kRoute).Uses(kNic) == unknown);
  }
  Nic nic;
  nic.Remove(nic.Real(kNic) + "/net/eth0/flags");
  CHECK(nic.Uses(kNic) == unknown);
}

TEST_CASE("a table that cannot be read is not an empty one", "[sysfs]") {
  Nic nic;
  nic.Remove("proc/1/net/if_inet6").Write("proc/1/net/if_inet6/x", "");
  CHECK_FALSE(ReadHostNetwork(nic.Open()).known);
  nic.Remove("proc/1/net/if_inet6");  // a kernel without IPv6
  CHECK(ReadHostNetwork(nic.Open()).known);
}

TEST_CASE("a network function without an interface may have it in a pod", "[sysfs]") {
  const std::string text =
      "network: is bound to mlx5_core and shows no network interface: it may be in another "
      "network namespace, a pod's";
  UseTree tree;
  CHECK(tree.Uses(kNic) == text);
  tree.Below(kNic, "net/.keep", "");
  CHECK(tree.Uses(kNic) == text);
  for (const char* driver : {"vfio-pci", "mlx5_vfio_pci", "uio_pci_generic", "pci-stub"}) {
    CAPTURE(driver);
    CHECK(tree.Bind(kNic, driver).Has("proc/1"));
    CHECK(tree.Uses(kNic).empty());
  }
}

TEST_CASE("an RDMA device is a use by each active port", "[sysfs]") {
  UseTree tree;
  tree.Below(kNic, "infiniband/mlx5_0/ports/1/state", "1: DOWN");
  CHECK(tree.Uses(kNic).empty());
  tree.Below(kNic, "infiniband/mlx5_0/ports/2/state", "4: ACTIVE");
  CHECK(tree.Uses(kNic) == "network: carries the RDMA device mlx5_0, whose port 2 is active");
}

TEST_CASE("hostile route tables give no interface", "[sysfs]") {
  const std::string text =
      GENERATE(as<std::string>{}, "", "eth0", "eth0 00000000 0", "eth0 zz 0 0003 0 0 0 00000000",
               "eth0 00000000 0 zzzz 0 0 0 00000000", "* 00000000 0 0200 0 0 0 00000000",
               "eth0 0 0 0201 0 0 0 0", std::string(100'000, ' '), std::string(100'000, '\xff'),
               std::string("\0\0\n\0 \0", 6));
  HostNetwork network;
  AddRoutes(text, network);
  AddRoutes6(text, network);
  AddAddresses6(text, network);
  CHECK(network == HostNetwork());
}

}  // namespace
}  // namespace vfio_agent
