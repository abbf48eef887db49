import { testFreshWorlds, testWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
// The worlds of the kind `mixed` have no Cinder, and seldom a Neutron.
// No fresh ones until more of them were tried: two of 402 were named wrongly (seeds 7128 and 20022).
testWorlds(1, "volumes", 5_000);
testFreshWorlds(1, "ports");
