import { testFreshWorlds } from "./fresh-worlds.ts";

testFreshWorlds(8);
