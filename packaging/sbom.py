#!/usr/bin/python3
"""The bill of materials of a build of vfio-agent, SPDX 2.3 as JSON, on standard output.

What is in the program is not guessed: the linker's own list of the files that it read names the
packages of the archives (linked in) and of the shared libraries (loaded), ninja's list of headers
names those that come as headers alone, and the names of libraries that the program opens when it
wants them stand in the program. Versions are dpkg's. The same build gives the same bytes.

    packaging/sbom.py --program FILE --build DIRECTORY --version TEXT [--epoch SECONDS]
"""

import argparse
import datetime
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

HEADER_ONLY = ("spdlog/", "fmt/", "nlohmann/", "CLI/", "yaml-cpp/")


def run(*command, cwd=None):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def linked_files(build):
    """The files that the linker read for the program and that are not the build's own."""
    text = (build / "vfio-agent.link.d").read_text().replace("\\\n", " ")
    words = text.split(":", 1)[1].split()
    return {word.rstrip(":") for word in words if word.startswith("/")}


def header_files(build):
    """The headers of libraries that have nothing to link, as far as the program's files read them."""
    found, wanted = set(), False
    for line in run("ninja", "-t", "deps", cwd=build).splitlines():
        if not line.startswith(" "):
            wanted = line.startswith(("CMakeFiles/vfio_agent_", "CMakeFiles/vfio-agent.dir/"))
        elif wanted and any("/usr/include/" + part in line for part in HEADER_ONLY):
            found.add(line.strip())
    return found


def opened_files(program):
    """The shared libraries whose names stand in the program."""
    names = set(re.findall(rb"\blib[A-Za-z0-9_+-]+\.so\.[0-9]+\b", program.read_bytes()))
    cache = dict(re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.M)[::-1])
    return {cache[name.decode()] for name in names if name.decode() in cache}


def owners(files):
    """The package of each file that has one: dpkg's name of it, path by path."""
    found = {}
    paths = {}
    for name in files:
        # /lib is a link to /usr/lib, and dpkg knows a file by one of the two names.
        real = str(Path(name).resolve())
        for path in (name, real, real.removeprefix("/usr")):
            paths[path] = name
    answer = subprocess.run(["dpkg-query", "-S", *sorted(paths)], capture_output=True, text=True)
    for line in answer.stdout.splitlines():
        package, _, path = line.partition(": ")
        if path in paths and "," not in package and not package.startswith("diversion "):
            found[paths[path]] = package.split(":")[0]
    return found


def package_facts(names):
    fields = ("Package", "Version", "Architecture", "source:Package", "source:Version", "Homepage")
    form = "\\t".join("${" + field + "}" for field in fields) + "\\n"
    rows = run("dpkg-query", "-W", "-f", form, *sorted(names)).splitlines()
    # With several architectures installed the first one is this machine's.
    return {row.split("\t")[0]: row.split("\t") for row in reversed(rows)}


def spdx_id(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def debian_package(row, release):
    name, version, architecture, source, source_version, homepage = row
    purl_version = version.replace(":", "%3A").replace("+", "%2B")
    return {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "homepage": homepage or "NOASSERTION",
        "sourceInfo": f"built from source package {source} {source_version}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator":
                f"pkg:deb/debian/{name.replace('+', '%2B')}@{purl_version}"
                f"?arch={architecture}&distro={release}",
        }],
    }


def agent_package(program, version):
    return {
        "SPDXID": spdx_id("vfio-agent"),
        "name": "vfio-agent",
        "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256",
                       "checksumValue": hashlib.sha256(program.read_bytes()).hexdigest()}],
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }


def kinds(build, program):
    """How each package is in the program. What is linked in wins: its headers are no news."""
    kind = {}
    for package in owners(header_files(build)).values():
        kind[package] = "STATIC_LINK"
    for path, package in owners(linked_files(build)).items():
        # A library's link in its -dev package is the way to the library, not a part.
        if path.endswith((".a", ".o")):
            kind[package] = "STATIC_LINK"
    for path, package in owners(opened_files(program)).items():
        kind.setdefault(package, "DYNAMIC_LINK")
    kind["pci.ids"] = "RUNTIME_DEPENDENCY_OF"
    return kind


def relationship(package, kind):
    agent, other = spdx_id("vfio-agent"), spdx_id(package)
    if kind == "RUNTIME_DEPENDENCY_OF":
        agent, other = other, agent
    return {"spdxElementId": agent, "relationshipType": kind, "relatedSpdxElement": other}


def document(options):
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.M))
    kind = kinds(options.build, options.program)
    facts = package_facts(kind)
    missing = sorted(set(kind) - set(facts))
    if missing:
        raise SystemExit(f"sbom.py: dpkg knows nothing of {', '.join(missing)}")
    distro = f"{release['ID']}-{release['VERSION_ID']}"
    packages = [agent_package(options.program, options.version)]
    packages += [debian_package(facts[name], distro) for name in sorted(kind)]
    body = {"packages": packages, "relationships": [
        {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
         "relatedSpdxElement": spdx_id("vfio-agent")},
        *(relationship(name, kind[name]) for name in sorted(kind))]}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(options.epoch, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"vfio-agent-{options.version}",
        # Nothing has to be there; the name has to be this document's alone.
        "documentNamespace": f"https://spdx.org/spdxdocs/vfio-agent-{options.version}-{digest[:32]}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: vfio-agent-sbom"]},
        **body,
    }


def main():
    parser = argparse.ArgumentParser(description="SPDX bill of materials of vfio-agent")
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True, help="the build's folder")
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, default=0, help="SOURCE_DATE_EPOCH")
    json.dump(document(parser.parse_args()), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
