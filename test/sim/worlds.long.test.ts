import { testFreshWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
// The worlds of the kind `mixed` have no Cinder.
testFreshWorlds(1, "volumes");
