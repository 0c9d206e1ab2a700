#!/usr/bin/python3
"""The chart's values.schema.json: it has every value, and refuses what is none. Exit code 77: skipped.

    schema_test.py SOURCE
"""

import copy
import json
import sys
import unittest
from pathlib import Path

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error} (packages python3-yaml, python3-jsonschema)")
    sys.exit(77)

CHART = Path(sys.argv[1]) / "packaging/helm/vfio-agent"


class Schema(unittest.TestCase):
    def setUp(self):
        self.schema = json.loads((CHART / "values.schema.json").read_text())
        self.values = yaml.safe_load((CHART / "values.yaml").read_text())
        jsonschema.Draft7Validator.check_schema(self.schema)

    def refused(self, change):
        values = copy.deepcopy(self.values)
        change(values)
        return list(jsonschema.Draft7Validator(self.schema).iter_errors(values))

    def test_the_defaults_are_valid(self):
        self.assertEqual(self.refused(lambda values: None), [])

    def test_every_value_is_in_the_schema_and_every_rule_has_its_value(self):
        self.compare(self.values, self.schema, "")

    def compare(self, values, schema, where):
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return
        self.assertEqual(set(values), set(properties) - {"global"}, where)
        for key in values:
            if isinstance(values[key], dict):
                self.compare(values[key], properties[key], f"{where}.{key}")

    def test_what_is_misspelt_or_of_another_type_is_refused(self):
        for change in (lambda v: v.update(tolerance=[]), lambda v: v["image"].update(tags="1"),
                       lambda v: v.update(hostPID="yes"), lambda v: v["metrics"].update(port=0),
                       lambda v: v["logging"].update(level="verbose"), lambda v: v.update(maxUnavailable=0),
                       lambda v: v.update(kubeletRootDir="var/lib"),
                       lambda v: v["image"].update(digest="sha256:1"),
                       lambda v: v.update(maxSurge=1), lambda v: v["config"].update(apiVersion="v2")):
            self.assertTrue(self.refused(change))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
