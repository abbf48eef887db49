import { expect, test } from "vitest";
import { expectedFailure, passingEntries } from "./expected-failures.ts";

const EXPECTED = "servers.test_create_server_multi_nic.ServersTestMultiNic.test_verify_duplicate_network_nics";
const TIMED =
  "images.test_images_oneserver_negative.ImagesOneServerNegativeTestJSON.test_create_second_image_when_first_image_is_being_saved";

test("a test that is expected to fail has a reason, and must be removed from the list when it passes", () => {
  expect(expectedFailure(EXPECTED, "trial")).toBe("simple networks have one network, and no other can be made");
  expect(passingEntries([EXPECTED], [], "trial")).toEqual(["servers.test_create_server_multi_nic.ServersTestMultiNic"]);
  expect(passingEntries([], [EXPECTED], "trial")).toEqual([]);
});

test("a test whose outcome depends on the machine's speed may fail, with a reason, and may pass", () => {
  expect(expectedFailure(TIMED, "real")).toContain("only if the machine is slow");
  expect(passingEntries([TIMED], [], "trial")).toEqual([]);
});

test("a test that the list does not name is not expected to fail", () => {
  expect(
    expectedFailure("servers.test_servers.ServersTestJSON.test_create_server_with_admin_password", "real"),
  ).toBeNull();
});
