import { expect, test } from "vitest";
import { consoleWords } from "./console-words.ts";

test.each([
  ["http://127.0.0.1:8774", "none", "npx berth console ID    # Ctrl-] ends it"],
  ["http://127.0.0.1:9000", "none", "npx berth console ID --api http://127.0.0.1:9000    # Ctrl-] ends it"],
  ["http://127.0.0.1:8774", "noauth2", "BERTH_TOKEN=admin npx berth console ID    # Ctrl-] ends it"],
  [
    "http://127.0.0.1:9000",
    "password",
    "BERTH_TOKEN=$(openstack token issue -f value -c id) npx berth console ID --api http://127.0.0.1:9000    # Ctrl-] ends it, after the export below",
  ],
] as const)("the command for a console at %s with the authentication %s works as it is", (apiUrl, auth, words) => {
  expect(consoleWords("ID", { apiUrl, auth })).toBe(words);
});
