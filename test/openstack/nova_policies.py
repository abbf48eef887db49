"""Prints the rules of an openstack/nova checkout as JSON: name, default, scopes, and the calls that each is about."""
import json
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from nova import policies  # noqa: E402

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
