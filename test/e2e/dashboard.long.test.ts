import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dropDatabase } from "../../adapters/postgres/client/databases.ts";
import { DashboardProxy } from "../../cli/operators/dashboard-proxy.ts";
import { type EmbeddedCloud, startCloud } from "../../cloud/embedded-cloud.ts";
import { createLogger } from "../../runtime/logger.ts";
import { generateHosts } from "../../services/compute-agent/host-config.ts";
import { hasChromium, launchChromium, SHOTS } from "../rigs/chromium.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WAIT_MS = 30_000;
const FLAVORS = [
  ["small", 2],
  ["huge", 2_000],
] as const;

if (!hasChromium)
  console.warn("no Chromium is installed (Debian: apt-get install chromium): the dashboard is not tested");

describe.runIf(hasChromium)("the dashboard in a browser", () => {
  let database: TestDatabase;
  let cloud: EmbeddedCloud;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  const requests: string[] = [];

  const start = (port: number) =>
    startCloud({
      ...{ databaseUrl: database.url, dataDir: null, schedulers: 1, conductors: 2, dashboard: true },
      cells: ["cell-1", "cell-2"].map((name) => ({ name, hosts: generateHosts(`${name}-host`, 12) })),
      listen: { host: "127.0.0.1", port },
      logger: createLogger({ name: "test", level: "silent" }),
      fail: (error) => {
        throw error;
      },
    });

  beforeAll(async () => {
    mkdirSync(SHOTS, { recursive: true });
    database = await freshDatabase("api");
    cloud = await start(0);
    browser = await launchChromium();
    page = await openPage(1500, 1250, "light");
    for (const [name, vcpus] of FLAVORS)
      await call("POST", "/v2.1/flavors", { flavor: { id: name, name, vcpus, ram: 2048, disk: 10 } });
  });
  afterAll(async () => {
    await browser?.close();
    await cloud?.close();
    for (const cell of ["cell-1", "cell-2"])
      await dropDatabase(database.url, `${new URL(database.url).pathname.slice(1)}_cell_${cell}`);
    await database?.drop();
  });

  async function openPage(width: number, height: number, colorScheme: "light" | "dark"): Promise<Page> {
    const opened = await browser.newPage({ viewport: { width, height }, colorScheme });
    opened.setDefaultTimeout(WAIT_MS);
    opened.on("pageerror", (error) => complaints.push(String(error)));
    opened.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) complaints.push(message.text());
    });
    opened.on("request", (request) => requests.push(request.url()));
    await opened.goto(`${cloud.apiUrl}/dashboard`);
    await opened.getByText("live", { exact: true }).waitFor();
    return opened;
  }

  async function call(method: string, path: string, body: unknown) {
    const headers = { "content-type": "application/json", "openstack-api-version": "compute 2.90" };
    const answer = await fetch(`${cloud.apiUrl}${path}`, { method, headers, body: JSON.stringify(body) });
    return answer.status === 204 ? null : answer.json();
  }

  async function boot(name: string, metadata: Record<string, string> = {}): Promise<string> {
    const server = { name, flavorRef: "small", imageRef: "", networks: "none", metadata };
    return ((await call("POST", "/v2.1/servers", { server })) as { server: { id: string } }).server.id;
  }

  const shoot = (of: Page, name: string) => of.screenshot({ path: join(SHOTS, `${name}.png`) });

  async function faultsOfAxe(of: Page): Promise<readonly string[]> {
    // The policy of the page forbids scripts from elsewhere, so this one comes by the debugger.
    await of.evaluate(AXE);
    return of.evaluate(async () => {
      const axe = (
        globalThis as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        }
      ).axe;
      const { violations } = await axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
    });
  }

  test("shows every cell and host, and loads nothing from elsewhere", async () => {
    for (const cell of ["cell-1", "cell-2"]) {
      await page.getByRole("button", { name: cell, exact: true }).waitFor();
      await page.getByRole("application", { name: new RegExp(`Hosts of ${cell}`) }).waitFor();
    }
    expect(await page.getByText("12 hosts").count()).toBe(2);
    expect(requests.filter((url) => !url.startsWith(cloud.apiUrl))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("a boot whose first two hosts fail appears with its way, and a click tells its whole story", async () => {
    const script = { outcome: "reschedule", first: 2, reason: "disk full", duration_ms: 300 };
    await boot("hopper", { "berth:fake": JSON.stringify(script) });
    const row = page.locator(".path", { hasText: "hopper" });
    await row.locator(".chip.end.active").waitFor();
    await row.locator(".chip.success").waitFor();
    expect(await row.locator(".chip.failed").count()).toBe(2);
    expect(await row.locator(".chip.failed").first().textContent()).toContain("disk full");
    await page.locator(".tile", { hasText: "Hops" }).locator(".value", { hasText: /^2$/ }).waitFor();
    await row.getByRole("button").click();
    const story = page.getByRole("dialog");
    await story.getByText("hops from").first().waitFor();
    expect(await story.getByText("hops from").count()).toBe(2);
    expect(await story.textContent()).toContain("asked for by user admin of project default");
    // `berth explain` prints this address.
    const server = new URL(page.url()).hash.slice("#server/".length);
    const life = (await call("GET", `/berth/v1/explain/${server}`, undefined)) as { readonly dashboard: string };
    expect(`${cloud.apiUrl}${life.dashboard}`).toBe(page.url());
    await shoot(page, "story");
    await page.keyboard.press("Escape");
    await story.waitFor({ state: "hidden" });
  });

  test("shows what each scheduler and conductor does, and how much of a class was in use over time", async () => {
    const control = page.getByRole("region", { name: "Schedulers and conductors" });
    const schedulers = control.getByRole("table").first();
    await eventually("a rate of placements, and a time in the queue", async () => {
      await boot("steady");
      const cells = await schedulers.getByRole("cell").allTextContents();
      return /^[1-9]\d*(\.\d)? \/ s$|^0\.\d \/ s$/.test(cells[0] ?? "") && /^\d.* m?s$/.test(cells[3] ?? "");
    });
    await control.getByText("conductor-1 holds its lease").first().waitFor();
    const chart = page.getByRole("region", { name: "Capacity over time" });
    await chart
      .getByRole("img", { name: /^vCPU in use over the last .*: between \d+ and \d+, now \d+ of 768$/ })
      .waitFor();
    await page.getByLabel("Shade by").selectOption({ label: "Disk" });
    await chart.getByText("Disk in use").waitFor();
    await page.getByLabel("Shade by").selectOption({ label: "vCPU" });
  });

  test("requests are filtered by outcome, and by words", async () => {
    await boot("plain");
    await page.locator(".path", { hasText: "plain" }).locator(".chip.end.active").waitFor();
    await page.getByLabel("Show").selectOption("hopped");
    expect(await page.locator(".path-name b").allTextContents()).toEqual(["hopper"]);
    await page.getByLabel("Show").selectOption("all");
    await page.getByPlaceholder("project, host or server").fill("plai");
    expect(await page.locator(".path-name b").allTextContents()).toEqual(["plain"]);
    await page.getByPlaceholder("project, host or server").fill("");
  });

  test("the map is used by keys alone: a host is named in words, and Enter opens its providers", async () => {
    await page.getByRole("application", { name: /Hosts of cell-1/ }).focus();
    await page.keyboard.press("ArrowRight");
    expect(await page.locator(".pointed").textContent()).toMatch(/^cell-1-host-2 in cell-1: up/);
    await page.keyboard.press("Enter");
    const panel = page.getByRole("dialog");
    await panel.getByRole("heading", { name: "Host cell-1-host-2" }).waitFor();
    await panel.getByRole("rowheader", { name: "vCPU" }).waitFor();
    await shoot(page, "host");
    expect(page.url()).toMatch(/#host\/cell-1-host-2$/);
    await panel.getByRole("button", { name: "Close" }).click();
  });

  test("what-if answers as one types, and says why there is no host", async () => {
    const form = page.getByRole("region", { name: "What if" });
    await form.getByLabel("Flavor").selectOption("small");
    await form.getByText("It goes to").waitFor();
    await form.getByLabel("What of this host?").pressSequentially("cell-2-host-3");
    await form.getByText("cell-2-host-3: passes every step").waitFor();
    await form.getByLabel("Flavor").selectOption("huge");
    await form.getByText("No valid host.").waitFor();
    await form.getByText("24 not enough VCPU (2000 asked for)").waitFor();
    await form.getByRole("heading", { name: "Nearest misses" }).waitFor();
  });

  test("the fault panel breaks builds, a host and a conductor, and the cloud heals", async () => {
    const panel = page.getByRole("region", { name: "Try it" });
    await panel.getByLabel("Builds that fail").fill("50");
    await panel.getByText("50 %").waitFor();
    await panel.getByLabel("Take a host down").selectOption("cell-1-host-3");
    await panel.getByRole("button", { name: "Take down" }).click();
    await panel.getByRole("button", { name: "cell-1-host-3 heal" }).waitFor();
    await panel.getByLabel("Kill a conductor").selectOption("cell-2-conductor-1");
    await panel.getByRole("button", { name: "Kill", exact: false }).click();
    await page.locator(".cell", { hasText: "1 down" }).waitFor();
    await page.getByText("lease over").waitFor();
    await panel.getByLabel("Boot servers").fill("30");
    await panel.getByRole("button", { name: "Boot", exact: true }).click();
    await page.locator(".path", { hasText: "demo" }).locator(".chip.failed").first().waitFor();
    await shoot(page, "faults");
    await panel.getByRole("button", { name: "Heal everything" }).click();
    await page.locator(".cell", { hasText: "1 down" }).waitFor({ state: "detached" });
    await page.locator(".chip.success[title='cell-2-conductor-1']").waitFor();
    await eventually("nothing in motion", async () => {
      const values = await page.locator(".tile .value").allTextContents();
      return values[0] === "0" && values[1] === "0";
    });
    await page.locator(".lamp.holds").nth(5).waitFor();
    expect(await page.locator(".lamp.broken").count()).toBe(0);
  });

  test("a cell that the fault panel cuts off is shown as silent, loses no request, and answers when it is healed", async () => {
    const panel = page.getByRole("region", { name: "Try it" });
    const names: string[] = [];
    await panel.getByLabel("Cut off a cell").selectOption("cell-2");
    await panel.getByRole("button", { name: "Cut off cell-2" }).click();
    await page.locator(".cell.cut", { hasText: "cell-2" }).getByText("The cell does not answer.").waitFor();
    for (let i = 0; i < 6; i++) {
      names.push(`during-the-cut-${i}`);
      await boot(names[i] as string);
    }
    await shoot(page, "cut");
    await panel.getByRole("button", { name: "cell-2 heal" }).click();
    await page.locator(".cell.cut").waitFor({ state: "detached" });
    for (const name of names) await page.locator(".path", { hasText: name }).locator(".chip.end.active").waitFor();
    await page.locator(".lamp.holds").nth(5).waitFor();
    expect(await page.locator(".lamp.broken").count()).toBe(0);
  });

  test("has no fault of accessibility that axe finds, in light and dark colours, and with a panel open", async () => {
    await shoot(page, "light");
    expect(await faultsOfAxe(page)).toEqual([]);
    // The newest servers fill the list.
    await page.getByPlaceholder("project, host or server").fill("hopper");
    await page.locator(".path", { hasText: "hopper" }).getByRole("button").first().click();
    await page.getByRole("dialog").getByText("hops from").first().waitFor();
    expect(await faultsOfAxe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByPlaceholder("project, host or server").fill("");
    const dark = await openPage(1500, 1250, "dark");
    await dark.locator(".path").first().waitFor();
    await shoot(dark, "dark");
    expect(await faultsOfAxe(dark)).toEqual([]);
    await dark.close();
  });

  test("berth dashboard shows the same page, at an address of its own", async () => {
    const proxy = new DashboardProxy({ apiUrl: cloud.apiUrl, token: null, port: 0 });
    const served = await browser.newPage();
    try {
      served.setDefaultTimeout(WAIT_MS);
      await served.goto(await proxy.start());
      await served.getByText("live", { exact: true }).waitFor();
      await served.getByPlaceholder("project, host or server").fill("hopper");
      await served.locator(".path", { hasText: "hopper" }).waitFor();
      expect(served.url()).toMatch(/\/dashboard$/);
    } finally {
      await served.close();
      await proxy.close();
    }
  });

  test("fits a phone: nothing is wider than the screen", async () => {
    const phone = await openPage(390, 844, "light");
    await phone.locator(".path").first().waitFor();
    await phone.screenshot({ path: join(SHOTS, "phone.png"), fullPage: true });
    const { width, height } = await phone.evaluate<{ readonly width: number; readonly height: number }>(
      "({ width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight })",
    );
    expect(width).toBeLessThanOrEqual(390);
    expect(height).toBeLessThan(6_000);
    await phone.close();
  });

  test("a page that was open while the api restarts continues by itself", async () => {
    const { port } = new URL(cloud.apiUrl);
    await cloud.close();
    await page.getByText("connection lost, trying again").waitFor();
    cloud = await start(Number(port));
    await page.getByText("live", { exact: true }).waitFor();
    const id = await boot("phoenix");
    await page.locator(".path", { hasText: "phoenix" }).locator(".chip.end.active").waitFor();
    expect(id).not.toBe("");
    expect(complaints).toEqual([]);
  });
});
