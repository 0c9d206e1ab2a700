#!/usr/bin/python3
"""The bill of materials: the same twice, what SPDX 2.3 asks for, and everything that the program has
in it. Exit code 77: skipped.

    sbom_test.py SOURCE BUILD_DIR
"""

import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
PROGRAM = BUILD / "vfio-agent"


def write(*options):
    command = [str(SOURCE / "packaging/sbom.py"), "--program", str(PROGRAM), "--build", str(BUILD),
               "--version", "1.2.3", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = write("--epoch", "1700000000")
        cls.document = json.loads(cls.text)
        cls.packages = {package["name"]: package for package in cls.document["packages"]}
        cls.links = {(link["relatedSpdxElement"], link["relationshipType"])
                     for link in cls.document["relationships"]}

    def test_the_same_build_gives_the_same_bytes(self):
        self.assertEqual(self.text, write("--epoch", "1700000000"))
        self.assertEqual(self.document["creationInfo"]["created"], "2023-11-14T22:13:20Z")

    def test_it_has_what_spdx_asks_for(self):
        document = self.document
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["dataLicense"], "CC0-1.0")
        self.assertEqual(document["SPDXID"], "SPDXRef-DOCUMENT")
        self.assertRegex(document["documentNamespace"], r"^https?://[^#\s]+$")
        self.assertTrue(document["name"])
        for creator in document["creationInfo"]["creators"]:
            self.assertRegex(creator, r"^(Person|Organization|Tool): \S")
        names = [package["SPDXID"] for package in document["packages"]]
        self.assertEqual(len(names), len(set(names)))
        for package in document["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for key in ("name", "versionInfo", "downloadLocation"):
                self.assertTrue(package[key], package["name"])
            self.assertIs(package["filesAnalyzed"], False)
            for reference in package.get("externalRefs", []):
                self.assertRegex(reference["referenceLocator"],
                                 r"^pkg:deb/debian/[a-z0-9.%A-Z-]+@[^@\s+:]+\?arch=[a-z0-9]+&distro=debian-\d+$")

    def test_every_relationship_joins_two_that_are_there(self):
        known = {package["SPDXID"] for package in self.document["packages"]} | {"SPDXRef-DOCUMENT"}
        used = set()
        for link in self.document["relationships"]:
            self.assertLessEqual({link["spdxElementId"], link["relatedSpdxElement"]}, known)
            used |= {link["spdxElementId"], link["relatedSpdxElement"]}
        self.assertEqual(used, known)

    def kind(self, name):
        return {kind for other, kind in self.links if other == self.packages[name]["SPDXID"]}

    def test_what_is_linked_in_is_there(self):
        for name in ("libgrpc-dev", "libgrpc++-dev", "libprotobuf-dev", "libabsl-dev", "libyaml-cpp-dev",
                     "zlib1g-dev", "libre2-dev", "libc-ares-dev", "libspdlog-dev", "libfmt-dev",
                     "nlohmann-json3-dev", "libcli11-dev", "libarchive-dev"):
            self.assertEqual(self.kind(name), {"STATIC_LINK"}, name)
        self.assertTrue([name for name in self.packages if re.match(r"libstdc\+\+-\d+-dev", name)])

    def test_what_is_loaded_is_there(self):
        needed = subprocess.run(["ldd", str(PROGRAM)], check=True, capture_output=True, text=True).stdout
        names = set(re.findall(r"^\s*(lib\S+) =>", needed, re.M))
        self.assertIn("libpci.so.3", names)
        for name in ("libpci3", "libudev1", "libkmod2", "libcivetweb1", "libcurl4", "libc6"):
            self.assertEqual(self.kind(name), {"DYNAMIC_LINK"}, name)

    def test_what_is_not_in_the_program_is_not_there(self):
        for name in ("catch2", "libfuse3-dev", "libfuse3-3", "g++", "cmake", "libgrpc++1.51"):
            self.assertNotIn(name, self.packages)


if __name__ == "__main__":
    for tool in ("ninja", "dpkg-query", "ldd"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is missing")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
