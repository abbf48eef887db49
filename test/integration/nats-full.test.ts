import { spawnSync } from "node:child_process";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type LocalNats, startLocalNats } from "../../adapters/nats/local-server.ts";
import { createNatsBus, type NatsBus } from "../../adapters/nats/nats-bus.ts";
import { apiStreams, schedulerRequestsConsumer, schedulerRequestsSubject } from "../../adapters/nats/streams.ts";
import { createRegistry } from "../../adapters/telemetry/metrics.ts";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import { natsConfig } from "../../deploy/nats-config.ts";
import { type ApiService, createApi } from "../../services/api/service.ts";
import { DEFAULT_API_SETTINGS } from "../../services/api/settings.ts";
import { eventually } from "../rigs/eventually.ts";
import { SchedulerRig } from "../rigs/scheduler-rig.ts";

/** The storage limit of the server, over all streams. */
const STORE_BYTES = 256 * 1_024;
/** A separate stream fills the store, so that its messages do not go to the consumers of requests. */
const BALLAST = { stream: "BALLAST", subject: "ballast" };
const ADMIN = { user: "admin", password: "of-this-test" };

let nats: LocalNats;
let admin: NatsConnection;
let bus: NatsBus;
let events: string[];
beforeEach(async () => {
  const withAdmin = (config: string) =>
    config.replace("    users: [", `    users: [\n      { user: "${ADMIN.user}", password: "${ADMIN.password}" }`);
  const small = (config: string) => config.replace("jetstream {", `jetstream {\n  max_file_store: ${STORE_BYTES}`);
  nats = await startLocalNats({ cells: [], writeConfig: (layout) => withAdmin(small(natsConfig(layout))) });
  admin = await connect({ servers: `127.0.0.1:${nats.port}`, user: ADMIN.user, pass: ADMIN.password });
  events = [];
  bus = createNatsBus({ url: nats.apiUrl, name: "test", onEvent: ({ kind }) => events.push(kind) });
  await bus.ensureStreams(apiStreams);
  const ballast = { name: BALLAST.stream, subjects: [BALLAST.subject], storage: "file", num_replicas: 1 };
  await admin.request(`$JS.API.STREAM.CREATE.${BALLAST.stream}`, JSON.stringify(ballast));
});
afterEach(async () => {
  await bus.close();
  await admin.close();
  await nats.stop();
});

/** Publishes until not even a message of one byte can be stored. */
async function fill(): Promise<void> {
  for (const bytes of [64 * 1_024, 1_024, 1]) {
    for (let count = 0; ; count += 1) {
      expect(count).toBeLessThan(STORE_BYTES);
      const answer = await admin.request(BALLAST.subject, new Uint8Array(bytes));
      if (answer.json<{ readonly error?: unknown }>().error !== undefined) break;
    }
  }
}

/** A write beyond the limit is cut short and fails, as on a full disk. */
function limitFiles(pid: number, bytes: string): void {
  const { status, stderr } = spawnSync("prlimit", ["--pid", `${pid}`, `--fsize=${bytes}:`]);
  expect(status, `${stderr}`).toBe(0);
}

const makeRoom = () => admin.request(`$JS.API.STREAM.PURGE.${BALLAST.stream}`);

test("a full store refuses at once, reports that until there is room, and then accepts messages again", async () => {
  await fill();
  await expect(bus.publish(schedulerRequestsSubject, new Uint8Array(100))).rejects.toMatchObject({ code: "full" });
  await expect(bus.publish(schedulerRequestsSubject, new Uint8Array(100))).rejects.toMatchObject({ code: "full" });
  expect(bus.streamState()).toBe("full");
  let received = 0;
  await bus.consume(schedulerRequestsConsumer, { maxInFlight: 10 }, (message) => {
    received += 1;
    message.ack();
  });
  await makeRoom();
  await bus.publish(schedulerRequestsSubject, new Uint8Array(100));
  await eventually("the message", () => received === 1);
  expect(bus.streamState()).toBe("there");
  expect(events).toEqual(["connected", "streams-full", "streams-have-room"]);
});

test("an account that has used its storage counts as full, too", async () => {
  const limited = await startLocalNats({
    cells: [],
    writeConfig: (layout) =>
      natsConfig(layout).replace(/jetstream: enabled/, "jetstream: { max_file: 16KB, max_mem: 0 }"),
  });
  const ofAccount = createNatsBus({ url: limited.apiUrl, name: "test", onEvent: ({ kind }) => events.push(kind) });
  try {
    await ofAccount.ensureStreams(apiStreams);
    const publish = () => ofAccount.publish(schedulerRequestsSubject, new Uint8Array(4_096));
    const refusal = await Promise.all([publish(), publish(), publish(), publish(), publish()]).catch((error) => error);
    expect(refusal).toMatchObject({ code: "full" });
    expect(ofAccount.streamState()).toBe("full");
  } finally {
    await ofAccount.close();
    await limited.stop();
  }
});

test.runIf(process.platform === "linux")(
  "a disk that accepts no more bytes prevents streams from being set up again, and they are not reported as missing",
  async () => {
    const asked: string[] = [];
    admin.subscribe("$JS.API.>", { callback: (_, { subject }) => void asked.push(subject) });
    await admin.flush();
    limitFiles(nats.pid, "0");
    const other = createNatsBus({ url: nats.apiUrl, name: "other", onEvent: ({ kind }) => events.push(kind) });
    await expect(other.ensureStreams(apiStreams)).rejects.toMatchObject({ code: "refused" });
    const looked = `$JS.API.CONSUMER.INFO.${schedulerRequestsConsumer.stream}.${schedulerRequestsConsumer.consumer}`;
    await eventually("it to look at what there is", () => asked.includes(looked));
    await expect(other.publish(schedulerRequestsSubject, new Uint8Array(100))).rejects.toMatchObject({ code: "full" });
    expect(other.streamState()).toBe("full");
    limitFiles(nats.pid, "unlimited");
    await other.ensureStreams(apiStreams);
    await other.publish(schedulerRequestsSubject, new Uint8Array(100));
    expect(other.streamState()).toBe("there");
    expect(events).toEqual(["connected", "connected", "streams-full", "streams-have-room"]);
    await other.close();
  },
);

test("requests that are accepted while the store is full are placed by the sweep, and later ones again by their messages", async () => {
  const rig = new SchedulerRig();
  const cell = await rig.addCell("cell-1");
  await cell.addHosts([100]);
  const scheduler = await rig.start([cell.open()], { bus });
  const apiBus = createNatsBus({ url: nats.apiUrl, name: "api" });
  const api = apiOf(rig, apiBus);
  try {
    await api.open();
    await rig.apiStore.createFlavor(FLAVOR);
    const readyz = async () => (await api.http.inject({ method: "GET", url: "/readyz" })).payload;
    expect(await readyz()).toBe("ready\n");

    await fill();
    const early = await boot(api);
    await eventually("the api to say so", async () => (await readyz()).includes("full"));
    expect(await readyz()).toMatch(/^ready\n/);
    expect(scheduler.ready).toBe(true);
    // Its message is lost for good and the rig's clock stands still, so no scheduler has read it.
    expect(await rig.state(early)).toBe("accepted");
    await rig.passUntil(early, /^dispatched cell-1$/);

    await makeRoom();
    const late = await boot(api);
    await eventually("it to be placed by its message", async () => (await rig.state(late)) === "dispatched cell-1");
    expect(await readyz()).toBe("ready\n");
  } finally {
    await api.close();
    await apiBus.close();
    await rig.close();
  }
});

function apiOf(rig: SchedulerRig, apiBus: NatsBus): ApiService {
  return createApi(
    {
      ...{ store: rig.apiStore, groups: rig.groups, reservations: rig.reservations, cells: [], bus: apiBus },
      ...{
        clock: rig.clock,
        logger: pino({ level: "silent" }),
        registry: createRegistry({ service: "api", withProcess: false }),
        tracing: noTracing,
      },
    },
    DEFAULT_API_SETTINGS,
  );
}

/** A flavor with one VCPU and nothing else. */
const FLAVOR = {
  ...{ id: "1", name: "one", vcpus: 1, memoryMib: 512, diskGib: 1, ephemeralGib: 0, swapMib: 0, rxtxFactor: 1 },
  ...{ isPublic: true, description: null },
  extraSpecs: { "resources:VCPU": "1", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0" },
};

async function boot(api: ApiService): Promise<string> {
  const payload = { server: { name: "one", flavorRef: FLAVOR.id } };
  const answer = await api.http.inject({ method: "POST", url: "/v2.1/servers", payload });
  expect(answer.statusCode).toBe(202);
  return answer.json<{ readonly server: { readonly id: string } }>().server.id;
}
