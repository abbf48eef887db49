import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  type LxdDaemon,
  lxdDriverIn,
  startTwoLxds,
  TICKING_FLAVOR,
  TICKING_IMAGE_ID,
} from "../../../test/rigs/lxd-daemon.ts";
import type { GuestName } from "../journal.ts";
import { formatContainerAddress, parseContainerAddress } from "./container-address.ts";
import { containerName, OWN_KEYS } from "./container-of-server.ts";
import type { LxdDriver } from "./lxd-driver.ts";

const started = await startTwoLxds();
const whySkipped = typeof started === "string" ? started : null;
const [here, there] = typeof started === "string" ? [] : started;
const NEVER = new AbortController().signal;
const SERVER = serverSpec(1, { flavor: TICKING_FLAVOR, imageRef: TICKING_IMAGE_ID });
const PATIENT = { withinMs: 30_000 };

afterAll(async () => {
  for (const daemon of [here, there]) await daemon?.close();
});

describe.skipIf(whySkipped !== null)(
  `a cold move between two LXDs${whySkipped === null ? "" : ` (skipped: ${whySkipped})`}`,
  () => {
    let source: LxdDriver;
    let destination: LxdDriver;
    let home: GuestName;
    let away: GuestName;

    beforeEach(async () => {
      source = await opened(here);
      destination = await opened(there);
      const run = randomUUID();
      home = { host: "h1", serverUuid: SERVER.uuid, attemptId: `${run}/0` };
      away = { host: "h2", serverUuid: SERVER.uuid, attemptId: `${run}/1` };
      const built = { ...home, server: SERVER, allocation: undefined, movedFrom: null };
      expect(await source.prepare(built, { signal: NEVER, onStep: () => undefined })).toEqual({ kind: "prepared" });
      await source.start(home, NEVER);
      await ticking(source, home);
    });
    afterEach(async () => {
      await source.destroy(home);
      await destination.destroy(away);
      for (const driver of [source, destination]) driver.close();
    });

    const opened = async (daemon: LxdDaemon | undefined, adopt: readonly GuestName[] = []) => {
      if (daemon === undefined) throw new Error("LXD has not been started");
      const driver = lxdDriverIn(daemon);
      await driver.adopt(adopt.map((guest) => ({ ...guest, state: "prepared" as const })));
      return driver;
    };
    const prepareThere = async () => {
      const order = { ...away, server: SERVER, allocation: undefined, movedFrom: { ...home, by: "migrate" } };
      const prepared = await destination.prepare(order, { signal: NEVER, onStep: () => undefined });
      if (prepared.kind === "failed") throw new Error(prepared.reason);
      return prepared.listensAt ?? "";
    };
    const handOff = (listensAt: string, { orderId = "order/1", signal = NEVER } = {}) => {
      const order = { ...home, toHost: away.host, toAttemptId: away.attemptId, live: false, force: false };
      return source.handOff({ ...order, orderId, listensAt }, signal);
    };
    const ticksOf = async (driver: LxdDriver, guest: GuestName) => {
      const text = Buffer.from((await driver.readConsole(guest, 100_000)) ?? []).toString();
      return [...text.matchAll(/^tick (\d+)\r?$/gm)].map(([, count]) => Number(count));
    };
    const ticking = (driver: LxdDriver, guest: GuestName, after = 0) =>
      eventually(`ticks after ${after}`, async () => ((await ticksOf(driver, guest)).at(-1) ?? -1) > after, PATIENT);
    const configThere = async () =>
      (await there?.containers())?.find(({ name }) => name === containerName(away))?.config ?? {};

    test("continues with the disk, and neither copy runs before the destination is started", async () => {
      const listensAt = await prepareThere();
      await expect(destination.start(away, NEVER)).rejects.toThrow("has not arrived");
      await handOff(listensAt);
      // A repetition after the answer was lost sends nothing again.
      await handOff(listensAt);
      expect([await source.powersOf([home]), await destination.powersOf([away])]).toEqual([["stopped"], ["stopped"]]);
      const last = (await ticksOf(source, home)).at(-1) ?? 0;
      await destination.start(away, NEVER);
      await ticking(destination, away, last);
      expect((await ticksOf(destination, away))[0]).toBeGreaterThanOrEqual(last);
      expect(await configThere()).not.toHaveProperty(OWN_KEYS.listens);
      // No late client can write into the disk of a guest that runs.
      const { host = "", port = 0 } = parseContainerAddress(listensAt) ?? {};
      const late = connect({ host, port });
      const [error] = await once(late, "error");
      expect(error).toMatchObject({ code: "ECONNREFUSED" });
    });

    test("both agents may restart between the steps, and the address stays", async () => {
      const listensAt = await prepareThere();
      destination.close();
      destination = await opened(there, [away]);
      await handOff(listensAt);
      for (const driver of [source, destination]) driver.close();
      source = await opened(here, [home]);
      destination = await opened(there, [away]);
      await handOff(listensAt);
      const last = (await ticksOf(source, home)).at(-1) ?? 0;
      await destination.start(away, NEVER);
      await ticking(destination, away, last);
      expect(await source.powersOf([home])).toEqual(["stopped"]);
    });

    test.each(["the source's agent dies", "the destination's agent dies", "the move is called off"])(
      "when %s in the middle of the transfer, the destination cannot start, and a later order sends the disk as it is then",
      async (fault) => {
        const listensAt = await prepareThere();
        const slow = await slowProxy(listensAt);
        const control = new AbortController();
        const cut = handOff(slow.address, { signal: control.signal }).catch((error: unknown) => error);
        await eventually("a part of the disk", () => slow.passed() > 20_000, PATIENT);
        if (fault === "the move is called off") control.abort(new Error("the move is called off"));
        if (fault === "the source's agent dies") source.close();
        if (fault === "the destination's agent dies") destination.close();
        slow.close();
        expect(String(await cut)).toMatch(/called off|LXD|destination|closed/);
        if (fault === "the source's agent dies") source = await opened(here, [home]);
        if (fault === "the destination's agent dies") destination = await opened(there, [away]);
        await expect(destination.start(away, NEVER)).rejects.toThrow("has not arrived");
        // The source goes on, as after a move that was given up.
        const last = (await ticksOf(source, home)).at(-1) ?? 0;
        await source.power(home, "start", NEVER);
        await ticking(source, home, last);
        await handOff(listensAt, { orderId: "order/2" });
        const later = (await ticksOf(source, home)).at(-1) ?? 0;
        await destination.start(away, NEVER);
        await ticking(destination, away, later);
        expect((await ticksOf(destination, away))[0]).toBeGreaterThanOrEqual(later);
      },
    );

    test("a guest that ran again after its disk was sent is sent again, not started from the old disk", async () => {
      const listensAt = await prepareThere();
      await handOff(listensAt);
      await source.power(home, "start", NEVER);
      const old = (await ticksOf(source, home)).at(-1) ?? 0;
      await ticking(source, home, old + 5);
      await handOff(listensAt, { orderId: "order/2" });
      const last = (await ticksOf(source, home)).at(-1) ?? 0;
      await destination.start(away, NEVER);
      await ticking(destination, away, last);
      expect((await ticksOf(destination, away))[0]).toBeGreaterThan(old);
    });

    test("nobody without the key of the move reaches the container that waits", async () => {
      const address = parseContainerAddress(await prepareThere());
      if (address === null) throw new Error("the container waits at an address");
      const guessed = formatContainerAddress({ ...address, key: "0".repeat(64) });
      await expect(handOff(guessed)).rejects.toThrow("the destination's agent at");
      expect(await configThere()).toMatchObject({ [OWN_KEYS.receives]: "disk" });
    });

    test("a destination that is destroyed meanwhile leaves nothing, and the source goes on", async () => {
      const listensAt = await prepareThere();
      const slow = await slowProxy(listensAt);
      const cut = handOff(slow.address).catch((error: unknown) => error);
      await eventually("a part of the disk", () => slow.passed() > 20_000, PATIENT);
      await destination.destroy(away);
      expect(await cut).toBeInstanceOf(Error);
      slow.close();
      expect(await destination.powersOf([away])).toEqual(["missing"]);
      const last = (await ticksOf(source, home)).at(-1) ?? 0;
      await source.power(home, "start", NEVER);
      await ticking(source, home, last);
    });
  },
);

/** Passes on at most a few kilobytes at a time, so that a transfer lasts until it is ended. */
async function slowProxy(listensAt: string): Promise<{ readonly address: string; passed(): number; close(): void }> {
  const to = parseContainerAddress(listensAt);
  if (to === null) throw new Error("the container waits at an address");
  let passed = 0;
  const open = new Set<Socket>();
  const server: Server = createServer((client) => {
    const far = connect({ host: to.host, port: to.port });
    for (const socket of [client, far]) open.add(socket.on("error", () => undefined));
    client.on("data", (chunk) => {
      passed += chunk.length;
      far.write(chunk);
      client.pause();
      setTimeout(() => client.resume(), chunk.length / 50);
    });
    client.on("close", () => far.destroy());
    far.on("close", () => client.destroy());
    far.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has a port");
  return {
    address: formatContainerAddress({ ...to, port: address.port }),
    passed: () => passed,
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
