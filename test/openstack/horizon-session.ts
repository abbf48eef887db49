import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChildServer } from "../../runtime/child-server.ts";
import { launchChromium, SHOTS } from "../rigs/chromium.ts";
import { eventually } from "../rigs/eventually.ts";
import { startRealHorizon } from "./real-horizon.ts";

/** The flavors that the user chooses from. */
export const FLAVORS = [
  { id: "small", name: "small", vcpus: 1, ram: 512, disk: 1 },
  { id: "big", name: "big", vcpus: 2, ram: 1_024, disk: 1 },
];
/** The format of the image `disk`. */
export const IMAGE_FORMAT = { disk_format: "raw", container_format: "bare" };
const SERVER = "from-horizon";
/** Pages take long on a busy machine, since each asks several services for many things. */
const WAIT_MS = 240_000;

/** A cloud with these flavors and an image `disk`, in which the user has no server yet. */
export interface HorizonCloud {
  /** With `/v3`. */
  readonly identityUrl: string;
  readonly user: { readonly name: string; readonly password: string };
  /** Paths of Horizon that fail, since the cloud does not have what they ask for. */
  readonly notServed: readonly string[];
  /** Chooses a network in the open wizard, where the user has to. */
  chooseNetwork?(dialog: Locator): Promise<void>;
  /** The user's servers. */
  servers(): Promise<readonly { readonly id: string }[]>;
  stop(): Promise<void>;
}

/** What a user does in Horizon, in a real browser: logs in, launches a server from an image, looks at it, resizes it and deletes it. Screenshots begin with `name`. */
export function horizonSession(name: string, start: () => Promise<HorizonCloud>): void {
  let cloud: HorizonCloud;
  let horizon: ChildServer;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    cloud = await start();
    horizon = await startRealHorizon(cloud.identityUrl);
    browser = await launchChromium();
    page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    page.setDefaultTimeout(WAIT_MS);
    page.on("response", (response) => {
      if (response.status() >= 400)
        complaints.push(`${response.request().method()} ${response.url()}: ${response.status()}`);
    });
  }, 900_000);
  afterAll(async () => {
    await browser?.close();
    await horizon?.stop();
    await cloud?.stop();
  });

  const shoot = (step: string) => page.screenshot({ path: join(SHOTS, `${name}-${step}.png`) });
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
  async function choose(step: string, item: string): Promise<void> {
    await dialog().getByText(step, { exact: true }).first().click();
    const wanted = dialog().locator("tr:visible").filter({ hasText: item });
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

  async function pickInMenu(item: string): Promise<void> {
    await row().locator(".dropdown-toggle").click();
    await row().locator(".dropdown-menu").getByText(item, { exact: true }).click();
  }

  test("a user logs in", { timeout: 1_200_000 }, async () => {
    await open("/auth/login/");
    await page.fill("#id_username", cloud.user.name);
    await page.fill("#id_password", cloud.user.password);
    await page.click("#loginBtn");
    await page.waitForURL((url) => !url.pathname.includes("/auth/login"));
    await shoot("overview");
    await open("/project/instances/");
    await page.locator("#instances").getByText("No items to display.").first().waitFor();
  });

  test("the wizard launches a server, which becomes active and is shown", { timeout: 1_200_000 }, async () => {
    await page.locator("#instances__action_launch-ng").click();
    await dialog().locator("input[name=name]").fill(SERVER);
    await choose("Source", "disk");
    await choose("Flavor", "small");
    await dialog().getByText("Networks", { exact: true }).first().click();
    await cloud.chooseNetwork?.(dialog());
    await shoot("launch");
    await submit();
    await seeInList("Active", "small", "Running");
    await shoot("active");
    const id = (await cloud.servers())[0]?.id ?? "none";
    await open(`/project/instances/${id}/`);
    await page.locator("dd", { hasText: id }).first().waitFor();
    expect(await page.locator("dd").allInnerTexts()).toEqual(expect.arrayContaining([id, "Active"]));
    await shoot("server");
  });

  test("the server is resized, and the resize is confirmed", { timeout: 1_200_000 }, async () => {
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

  test("the server is deleted", { timeout: 1_200_000 }, async () => {
    await pickInMenu("Delete Instance");
    await submit();
    await until("the server is gone", async () => (await row().count()) === 0);
    await shoot("deleted");
    expect(await cloud.servers()).toEqual([]);
  });

  test("no request of Horizon's pages failed, but for those of APIs that the cloud does not have", () => {
    expect(complaints.filter((one) => !cloud.notServed.some((path) => one.includes(path)))).toEqual([]);
  });
}
