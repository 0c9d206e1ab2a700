#!/usr/bin/python3
"""Writes the config.json with which runc starts a container of the image: nothing but the image's
own file system, read-only, the mounts that are named, and the capabilities of the pod that is not
privileged (packaging/kustomize/overlays/unprivileged).

    bundle.py ROOTFS BUNDLE [--mount SOURCE:TARGET[:ro]]... -- COMMAND...
"""

import json
import subprocess
import sys
from pathlib import Path


def main():
    rootfs, bundle, *rest = sys.argv[1:]
    split = rest.index("--")
    options, command = rest[:split], rest[split + 1:]
    Path(bundle).mkdir()
    subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
    file = Path(bundle) / "config.json"
    spec = json.loads(file.read_text())
    spec["root"] = {"path": rootfs, "readonly": True}
    spec["process"].update(args=command, terminal=False, cwd="/", noNewPrivileges=True)
    sets = ("bounding", "permitted", "effective")
    spec["process"]["capabilities"] = {name: ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"] for name in sets}
    for value in options[1::2]:
        source, target, *mode = value.split(":")
        spec["mounts"].append({"source": source, "destination": target, "type": "bind",
                               "options": ["rbind", "rslave", *(mode or ["rw"])]})
    file.write_text(json.dumps(spec))


if __name__ == "__main__":
    main()
