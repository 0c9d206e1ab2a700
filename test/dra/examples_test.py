#!/usr/bin/env python3
"""What packaging/examples/dra asks for is what the agent publishes.

    test/dra/examples_test.py VFIO_AGENT SIM_NODE

Each file is read, its names are followed from the machine to the device class, and its claims are
allocated from the slices of a machine with the configuration of the file's own comment.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: no PyYAML (package python3-yaml)")
    sys.exit(77)

AGENT, SIM = (str(Path(word).resolve()) for word in sys.argv[1:3])
HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "packaging/examples/dra"
MACHINES = HERE.parent / "machines"
DRIVER = "vfio-agent"
HAS = re.compile(r'"(\w+)" in device\.attributes\["([^"]+)"\]')
ATTRIBUTE = re.compile(r'device\.attributes\["([^"]+)"\]\.(\w+)')
failed = []


def complain(text):
    failed.append(text)
    print(text)


def configuration(text):
    """The lines of the comment that are set in; None where there are none."""
    lines = [line[4:] for line in text.splitlines() if line.startswith("#   ")]
    return "\n".join(lines) if lines else None


def published(machine, config, work):
    """The devices of a machine's slices: a recorded one's as it would be bound, one of ours once it is."""
    root = work / machine.stem
    if machine.parent == MACHINES:
        if not root.exists():
            subprocess.run([SIM, "--machine", machine, "--dump", root], check=True, stdout=subprocess.DEVNULL)
        return slices(machine, root, config, work)
    root.mkdir(exist_ok=True)
    command = [SIM, "--machine", machine, "--mount", root, "--exit-on-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        node.stdout.readline()  # it is mounted
        found = slices(machine, root, config, work, bind=True)
        node.stdin.close()
    return found


def slices(machine, root, config, work, bind=False):
    # The hosts were recorded while they used their adapters.
    adapters = [str(device["address"]) for device in yaml.safe_load(machine.read_text())["devices"]
                if "15b3" in str(device["vendor"])]
    file = work / "config.yaml"
    file.write_text(f"{config}\npciIds: {MACHINES}/golden/pci.ids\nguard: {{override: {json.dumps(adapters)}}}\n")
    place = ["--root", root, "--state-dir", work / "state", "--config", file]
    if bind:
        subprocess.run([AGENT, "bind", *place], stdout=subprocess.DEVNULL, check=False)
    command = [AGENT, "list", "slices", "-o", "json", *place]
    answer = subprocess.run(command, capture_output=True, text=True, env={"NODE_NAME": "node-1"}, check=False)
    if answer.returncode:
        complain(answer.stderr)
        return []
    found = json.loads(answer.stdout)["slices"]
    return [device for one in found for device in one["spec"].get("devices", [])]


def full(name):
    domain, _, rest = name.rpartition("/")
    return f"{domain or DRIVER}/{rest}"


def values(device):
    return {full(name): next(iter(value.values())) for name, value in device["attributes"].items()}


def fits(expression, attributes):
    """The few words of CEL that the examples use, as Python. KeyError: no such attribute."""
    text = HAS.sub(lambda match: f"'{match[2]}/{match[1]}' in attributes", expression)
    text = ATTRIBUTE.sub(lambda match: f"attributes['{match[1]}/{match[2]}']", text)
    text = text.replace("device.driver", "driver").replace("&&", " and ").replace("||", " or ")
    return eval(text, {"__builtins__": {}}, {"attributes": attributes, "driver": DRIVER})


def expressions(selectors):
    return [selector["cel"]["expression"] for selector in selectors]


def allocate(requests, constraints, devices):
    """True where each request can have a device of its own, as the constraints say."""
    names = [full(constraint["matchAttribute"]) for constraint in constraints]
    for chosen in {tuple(device.get(name) for name in names) for device in devices}:
        left = list(devices)
        for request, wanted in requests.items():
            same = [value for value, one in zip(zip(names, chosen), constraints) if request in one["requests"]]
            found = [device for device in left
                     if all(value is not None and device.get(name) == value for name, value in same) and
                     all(fits(expression, device) for expression in wanted)]
            if not found:
                break
            left.remove(found[0])
        else:
            return True
    return False


def check_claim(name, template, classes, config, work):
    spec = template["spec"]["spec"]["devices"]
    if set(spec) - {"requests", "constraints"}:
        complain(f"{name}: the driver takes no parameters")
    requests = {}
    for request in spec["requests"]:
        chosen = classes.get(request["exactly"]["deviceClassName"])
        if chosen is None:
            complain(f"{name}: {request['name']} is of a class that no file has")
            continue
        requests[request["name"]] = expressions(chosen["spec"]["selectors"]) + expressions(
            request["exactly"]["selectors"])
    for constraint in spec.get("constraints", []):
        if set(constraint["requests"]) - set(requests):
            complain(f"{name}: a constraint of requests that are not there")
    fitting = []
    for machine in sorted([*MACHINES.glob("*.yaml"), *HERE.glob("*.yaml")]):
        devices = [values(device) for device in published(machine, config, work)]
        try:
            if allocate(requests, spec.get("constraints", []), devices):
                fitting.append(machine.stem)
        except KeyError as error:
            complain(f"{name}: no attribute {error} of a device of {machine.stem}")
    if not fitting:
        complain(f"{name}: can be allocated from no machine")
    print(f"{name}: {len(requests)} requests; could be had from {', '.join(fitting) or 'nothing'}")
    return set(requests)


def check_user(name, user, templates):
    """A pod or a KubeVirt machine uses each request of its claim once."""
    pod = user["spec"] if user["kind"] == "Pod" else user["spec"]["template"]["spec"]
    claims = {claim["name"]: claim["resourceClaimTemplateName"] for claim in pod["resourceClaims"]}
    if user["kind"] == "Pod":
        used = [(claim["name"], claim["request"]) for container in pod["containers"]
                for claim in container["resources"]["claims"]]
    else:
        devices = pod["domain"]["devices"]
        used = [(item["claimName"], item["requestName"]) for kind in ("gpus", "hostDevices")
                for item in devices.get(kind, [])]
    wanted = [(claim, request) for claim, template in claims.items() for request in templates.get(template, ["?"])]
    if sorted(used) != sorted(wanted):
        complain(f"{name}: {user['kind']} uses {sorted(used)}, and its claims have {sorted(wanted)}")


def main():
    texts = {file.name: file.read_text() for file in sorted(EXAMPLES.glob("*.yaml"))}
    documents = {name: list(yaml.safe_load_all(text)) for name, text in texts.items()}
    classes = {one["metadata"]["name"]: one for all_of in documents.values() for one in all_of
               if one["kind"] == "DeviceClass"}
    table = (EXAMPLES / "README.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for name, all_of in documents.items():
            if f"`{name}`" not in table:
                complain(f"{name}: not in README.md")
            templates = {}
            for one in all_of:
                if one["kind"] == "ResourceClaimTemplate":
                    config = configuration(texts[name])
                    if config is None:
                        complain(f"{name}: its comment has no configuration")
                        continue
                    templates[one["metadata"]["name"]] = check_claim(name, one, classes, config, Path(folder))
            for one in all_of:
                if one["kind"] in ("Pod", "VirtualMachine"):
                    check_user(name, one, templates)
    if not classes or len(documents) < 2:
        complain("no examples")
    return 1 if failed else 0


sys.exit(main())
