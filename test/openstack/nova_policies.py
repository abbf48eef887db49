"""Prints the rules of an openstack/nova checkout as JSON: name, default, scopes, and the calls that each is about."""
import json
import os
import sys

sys.dont_write_bytecode = True
checkout = os.path.realpath(sys.argv[1])
sys.path.insert(0, checkout)
from nova import policies  # noqa: E402

# Without its package in the checkout, Python would take a Nova that is installed on this machine.
if not os.path.realpath(policies.__file__).startswith(checkout + os.sep):
    sys.exit(f"{checkout} has no Nova: {policies.__file__} was found instead")

rules = [
    {
        "name": rule.name,
        "check": rule.check_str,
        "scopes": rule.scope_types,
        "operations": [[one["method"], one["path"]] for one in getattr(rule, "operations", None) or []],
    }
    for rule in policies.list_rules()
]
print(json.dumps(rules))
