import { testFreshWorlds, testWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
// The worlds of the kind `mixed` have no Cinder, and seldom a Neutron.
// No fresh ones: four of some 1,900 showed a fault (seeds 7128, 20022, 910058 and 950011, all mended). `berth sim --soak --profile volumes` is for these.
testWorlds(1, "volumes", 5_000);
testFreshWorlds(1, "ports");
