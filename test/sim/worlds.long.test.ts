import { testFreshWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
// The worlds of the kind `mixed` have no Cinder, and seldom a Neutron.
testFreshWorlds(1, "volumes");
testFreshWorlds(1, "ports");
