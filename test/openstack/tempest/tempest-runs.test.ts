import { expect, test } from "vitest";
import { selectModules } from "./tempest-runs.ts";

const ALL = ["images.test_images", "images.test_images_negative", "servers.test_servers"];

test("the name of a module selects it alone, any other text the modules that contain it, and none all of them", () => {
  expect(selectModules(ALL, "images.test_images")).toEqual(["images.test_images"]);
  expect(selectModules(ALL, "images.test_images,servers.")).toEqual(["images.test_images", "servers.test_servers"]);
  expect(selectModules(ALL, "negative")).toEqual(["images.test_images_negative"]);
  expect(selectModules(ALL, "")).toEqual(ALL);
});
