import { testFreshWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
// The worlds of the kind `mixed` have neither Cinder nor Neutron.
testFreshWorlds(1, "volumes");
testFreshWorlds(1, "ports");
