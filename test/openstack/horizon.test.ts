import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChildServer } from "../../runtime/child-server.ts";
import { hasChromium, launchChromium, SHOTS } from "../rigs/chromium.ts";
import { eventually } from "../rigs/eventually.ts";
import { type DevCloud, startDevCloud } from "./dev-cloud.ts";
import { isAsked } from "./is-asked.ts";
import { hasHorizon, startRealHorizon } from "./real-horizon.ts";

const USER = { name: "horizon", password: "only-for-tests", project: "horizon", role: "admin" } as const;
const FLAVORS = [
  { id: "small", name: "small", vcpus: 1, ram: 512, disk: 1 },
  { id: "big", name: "big", vcpus: 2, ram: 1_024, disk: 1 },
];
const SERVER = "from-horizon";
/** The Image API has no metadata definitions. The Block Storage API has no transfers, without which Horizon lists no volumes. */
const NOT_SERVED = ["/api/glance/metadefs/", "/api/cinder/volumes/"];
const WAIT_MS = 60_000;
const isPossible = hasHorizon && hasChromium;

if (isAsked && !isPossible)
  process.stderr.write(
    "Horizon is not tested: openstack-dashboard or Chromium is missing (Debian: apt-get install openstack-dashboard chromium).\n",
  );

describe.runIf(isAsked && isPossible)("Debian's Horizon in front of Berth", () => {
  let cloud: DevCloud;
  let horizon: ChildServer;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    cloud = await startDevCloud([USER]);
    for (const flavor of FLAVORS) await cloud.call("POST", "/v2.1/flavors", { flavor });
    const format = { disk_format: "raw", container_format: "bare" };
    const { id } = await cloud.call("POST", "/image/v2/images", { name: "disk", ...format });
    await cloud.call("PUT", `/image/v2/images/${id}/file`, "a disk".repeat(100), "application/octet-stream");
    horizon = await startRealHorizon(`${cloud.url}/identity/v3`);
    browser = await launchChromium();
    page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    page.setDefaultTimeout(WAIT_MS);
    page.on("response", (response) => {
      if (response.status() >= 400)
        complaints.push(`${response.request().method()} ${response.url()}: ${response.status()}`);
    });
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await horizon?.stop();
    await cloud?.stop();
  });

  const shoot = (name: string) => page.screenshot({ path: join(SHOTS, `horizon-${name}.png`) });
  const open = (path: string) => page.goto(`http://127.0.0.1:${horizon.port}${path}`);
  const row = () => page.locator("#instances tbody tr").filter({ hasText: SERVER });

  /** Opens the list of servers again and again until the server's row contains all of these words. */
  async function seeInList(...words: readonly string[]): Promise<void> {
    await until(`the row of the server has ${words.join(", ")}`, async () => {
      const text = await row().allInnerTexts();
      return text.length === 1 && words.every((word) => text[0]?.includes(word));
    });
  }

  async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const isTrue = async () => {
      await open("/project/instances/");
      await page.locator("#instances").waitFor();
      return holds();
    };
    await eventually(what, isTrue, { everyMs: 500, withinMs: WAIT_MS });
  }

  /** Moves the row of the open step of the wizard from the available ones to the chosen one. */
  async function choose(step: string, name: string): Promise<void> {
    await dialog().getByText(step, { exact: true }).first().click();
    const wanted = dialog().locator("tr:visible").filter({ hasText: name });
    await wanted.locator("button.fa-arrow-up").click();
    await wanted.locator("button.fa-arrow-down").waitFor();
  }

  const dialog = (): Locator => page.locator(".modal-dialog:visible");
  /** Clicks, and waits for the page that comes then. Else opening another page would call it off. */
  const clickThrough = async (target: Locator): Promise<void> => {
    await Promise.all([page.waitForEvent("load"), target.click()]);
  };
  /** Ends the open dialog with its main button. */
  const submit = () => clickThrough(dialog().locator(".modal-footer").locator(".btn-primary, .btn-danger"));

  async function pickInMenu(name: string): Promise<void> {
    await row().locator(".dropdown-toggle").click();
    await row().locator(".dropdown-menu").getByText(name, { exact: true }).click();
  }

  test("a user logs in", async () => {
    await open("/auth/login/");
    await page.fill("#id_username", USER.name);
    await page.fill("#id_password", USER.password);
    await page.click("#loginBtn");
    await page.waitForURL((url) => !url.pathname.includes("/auth/login"));
    await shoot("overview");
    await open("/project/instances/");
    await page.locator("#instances").getByText("No items to display.").first().waitFor();
  });

  test("the wizard launches a server, which becomes active and is shown", { timeout: 240_000 }, async () => {
    await page.locator("#instances__action_launch-ng").click();
    await dialog().locator("input[name=name]").fill(SERVER);
    await choose("Source", "disk");
    await choose("Flavor", "small");
    await dialog().getByText("Networks", { exact: true }).first().click();
    await shoot("launch");
    await submit();
    await seeInList("Active", "small", "Running");
    await shoot("active");
    const { servers } = await cloud.call("GET", "/v2.1/servers", undefined);
    await open(`/project/instances/${servers[0].id}/`);
    await page.locator("dd", { hasText: servers[0].id }).first().waitFor();
    expect(await page.locator("dd").allInnerTexts()).toEqual(expect.arrayContaining([servers[0].id, "Active"]));
    await shoot("server");
  });

  test("the server is resized, and the resize is confirmed", { timeout: 240_000 }, async () => {
    await seeInList("Active");
    await pickInMenu("Resize Instance");
    await dialog().locator("select[name=flavor]").selectOption({ label: "big" }, { force: true });
    await shoot("resize");
    await submit();
    await seeInList("Confirm or Revert Resize/Migrate");
    await shoot("verify-resize");
    await clickThrough(row().getByText("Confirm Resize/Migrate", { exact: true }).first());
    await seeInList("Active", "big");
    await shoot("resized");
  });

  test("the server is deleted", { timeout: 240_000 }, async () => {
    await pickInMenu("Delete Instance");
    await submit();
    await until("the server is gone", async () => (await row().count()) === 0);
    await shoot("deleted");
    expect((await cloud.call("GET", "/v2.1/servers", undefined)).servers).toEqual([]);
  });

  test("no request of Horizon's pages failed, but for those of APIs that Berth does not have", () => {
    expect(complaints.filter((one) => !NOT_SERVED.some((path) => one.includes(path)))).toEqual([]);
  });
});
