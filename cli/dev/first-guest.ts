import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { GUEST_FILES } from "../../adapters/qemu/virtual-machine.ts";

const FLAVOR = { id: "nano", name: "nano", vcpus: 1, ram: 16, disk: 1 };
const NAME = "nano";
/** The first one in which a server can ask for no networks. */
const MICROVERSION = "compute 2.37";
const WAIT_MS = 60_000;
const POLL_MS = 100;
const LINES = 3;

export interface FirstGuest {
  readonly serverId: string;
  /** The file that the guest's console is logged to. */
  readonly consoleLog: string;
  /** The first lines of the console. */
  readonly lines: readonly string[];
}

/**
 * Boots a server of the nano image through the public API, unless there is one from the last time, and resolves when its console has shown
 * something. Rejects with an Error that says what is wrong when that takes longer than a minute.
 */
export async function bootFirstGuest(
  apiUrl: string,
  headers: Readonly<Record<string, string>>,
  instancesPath: string,
): Promise<FirstGuest> {
  const call: Call = async (method, path, body) => {
    const answer = await fetch(`${apiUrl}/v2.1${path}`, {
      method,
      headers: { ...headers, "content-type": "application/json", "openstack-api-version": MICROVERSION },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = await answer.text();
    // The flavor is there from the last time.
    if (answer.status === 409) return null;
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  };
  const { servers } = (await call("GET", `/servers?name=^${NAME}$&status=ACTIVE`)) as {
    readonly servers: readonly Named[];
  };
  const serverId = servers[0]?.id ?? (await boot(call));
  for (let waited = 0; waited < WAIT_MS; waited += POLL_MS) {
    const found = consoleOf(instancesPath, serverId);
    if (found !== null && found.lines.length >= LINES) return { serverId, ...found };
    const { server: shown } = (await call("GET", `/servers/${serverId}`)) as { readonly server: Shown };
    if (shown.status === "ERROR")
      throw new Error(`the first server failed: ${shown.fault?.message ?? "no reason is known"}`);
    await delay(POLL_MS);
  }
  throw new Error(`the first server's console showed nothing within ${WAIT_MS / 1_000} s`);
}

type Call = (method: string, path: string, body?: unknown) => Promise<unknown>;

async function boot(call: Call): Promise<string> {
  await call("POST", "/flavors", { flavor: FLAVOR });
  const server = { name: NAME, flavorRef: FLAVOR.id, imageRef: NANO_IMAGE_ID, networks: "none" };
  return ((await call("POST", "/servers", { server })) as { readonly server: Named }).server.id;
}

interface Named {
  readonly id: string;
}
interface Shown {
  readonly status: string;
  readonly fault?: { readonly message: string };
}

function consoleOf(
  instancesPath: string,
  serverUuid: string,
): { readonly consoleLog: string; readonly lines: readonly string[] } | null {
  for (const name of readdirSync(instancesPath)) {
    const dir = join(instancesPath, name);
    if (readGuestRecord(dir)?.serverUuid !== serverUuid) continue;
    const consoleLog = join(dir, GUEST_FILES.consoleLog);
    if (!existsSync(consoleLog)) return null;
    return { consoleLog, lines: readFileSync(consoleLog, "latin1").split(/\r?\n/).filter(Boolean) };
  }
  return null;
}
