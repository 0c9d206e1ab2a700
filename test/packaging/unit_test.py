#!/usr/bin/python3
"""The systemd unit: how long it may keep the kubelet back, and where it may write.

    unit_test.py SOURCE
"""

import re
import sys
import unittest
from pathlib import Path

UNIT = Path(sys.argv[1]) / "packaging/systemd/vfio-agent.service"
SECONDS = {"s": 1, "min": 60}


def values(key):
    return re.findall(rf"^{key}=(.*)$", UNIT.read_text(), re.M)


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|min)", text).groups()
    return int(number) * SECONDS[unit]


class Unit(unittest.TestCase):
    def test_what_runs_before_the_kubelet_has_an_end_and_its_failure_fails_nothing(self):
        self.assertIn("kubelet.service", " ".join(values("Before")).split())
        (line,) = values("ExecStartPre")
        found = re.fullmatch(r"-timeout --kill-after=(\d+s) (\d+s) vfio-agent bind", line)
        self.assertTrue(found, line)
        most = sum(seconds(part) for part in found.groups())
        self.assertLessEqual(most, 100)
        # systemd's own limit would fail the unit in spite of the dash.
        self.assertLess(most, seconds(*values("TimeoutStartSec")))

    def test_what_the_configuration_may_name_in_etc_can_be_written(self):
        self.assertEqual(values("ProtectSystem"), ["full"])
        paths = " ".join(values("ReadWritePaths")).split()
        # The dash: they need not be there.
        self.assertLessEqual({"-/etc/kubernetes/node-feature-discovery", "-/etc/cdi", "-/var/run/cdi"}, set(paths))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
