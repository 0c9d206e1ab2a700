#!/usr/bin/env python3
"""Says where ResourceSlices (vfio-agent list slices -o json) exceed what resource.k8s.io/v1 takes."""
import json
import re
import sys

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def complaints(slices):
    names = [device["name"] for one in slices for device in one["spec"].get("devices", [])]
    if len(names) != len(set(names)):
        yield "a device is in the pool twice"
    sets = {}
    for one in slices:
        for counters in one["spec"].get("sharedCounters", []):
            sets[counters["name"]] = counters["counters"]
    for one in slices:
        spec, name = one["spec"], one["metadata"]["name"]
        if not SUBDOMAIN.fullmatch(name):
            yield f"{name}: no name of an object"
        if spec["pool"]["resourceSliceCount"] != len(slices):
            yield f"{name}: of another number of slices"
        if ("devices" in spec) == ("sharedCounters" in spec):
            yield f"{name}: must have either devices or sharedCounters"
        if len(spec.get("sharedCounters", [])) > 8:
            yield f"{name}: too many counter sets"
        if any(len(counters["counters"]) > 32 for counters in spec.get("sharedCounters", [])):
            yield f"{name}: too many counters"
        devices = spec.get("devices", [])
        more = any("taints" in device or "consumesCounters" in device for device in devices)
        if len(devices) > (64 if more else 128):
            yield f"{name}: too many devices"
        for device in devices:
            yield from complaints_of_device(device, sets)


def complaints_of_device(device, sets):
    name, attributes = device["name"], device["attributes"]
    if not LABEL.fullmatch(name):
        yield f"{name}: no name of a device"
    if len(attributes) + len(device.get("capacity", {})) > 32:
        yield f"{name}: too many attributes"
    for key, value in attributes.items():
        if len(value) != 1 or len(str(value.get("string", ""))) > 64:
            yield f"{name}: attribute {key} cannot be {value}"
    for consumed in device.get("consumesCounters", []):
        for counter in consumed["counters"]:
            if counter not in sets.get(consumed["counterSet"], {}):
                yield f"{name}: the counter {counter} is in no set"


found = list(complaints(json.load(sys.stdin)["slices"]))
print("\n".join(found), end="\n" if found else "")
sys.exit(1 if found else 0)
