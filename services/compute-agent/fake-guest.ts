import { runsNow } from "../../core/agent/runs-now.ts";
import type { ClaimedDevices } from "../../core/pinning/choose-devices.ts";
import type { HostedGuest } from "./driver.ts";
import type { FakePower } from "./fake-power.ts";
import type { FakeReplacements } from "./fake-replacements.ts";
import type { FakeFiles } from "./fake-volume-files.ts";
import type { GuestName } from "./journal.ts";

/** A guest of the fake driver. */
export type FakeGuest = GuestName & {
  readonly running: boolean;
  /** It runs from a rescue image. */
  readonly rescued?: true;
  /** It stopped without an order so recently that its server may still be ACTIVE. */
  readonly justEnded?: true;
  /** The ids of its volumes, sorted, if it has any. */
  readonly volumes?: readonly string[];
  /** The other volumes that it uses in the place of its own, or that are copies of these. */
  readonly replacements?: FakeReplacements;
  /** The files of its volumes in Cinder. */
  readonly files?: FakeFiles;
  /** The ids of the ports of its interfaces, if it has any. */
  readonly interfaces?: readonly string[];
  /** The devices that its claim names, if it names any. */
  readonly devices?: readonly ClaimedDevices[];
};

/** A guest as the fake driver keeps it. */
export type StoredGuest = Omit<FakeGuest, "running" | "rescued" | "justEnded"> & {
  readonly power: FakePower;
  readonly endedAtMs?: number;
  readonly vcpus?: number;
  /** Where it waits for another guest, until it runs or is paused. */
  readonly listensAt?: string | undefined;
  /** Whether it was ever told to run. */
  readonly hasRun?: boolean;
  /** The files that it has from its next start. */
  readonly nextFiles?: FakeFiles;
};
/** When a guest has ended by itself, its server is SHUTOFF after this time, because its agent and a conductor have acted by then. */
const ENDED_JUST_MS = 30_000;

/** The guest as an auditor sees it. */
export function shownGuest(guest: StoredGuest, nowMs: number): FakeGuest {
  const {
    power,
    endedAtMs,
    volumes = [],
    files = {},
    interfaces = [],
    devices = [],
    vcpus: _,
    listensAt: _at,
    hasRun: _ran,
    nextFiles: _next,
    ...name
  } = guest;
  const justEnded = endedAtMs !== undefined && endedAtMs > nowMs - ENDED_JUST_MS;
  return {
    ...name,
    running: runsNow(power),
    ...(power === "rescued" ? { rescued: true } : {}),
    ...(justEnded ? { justEnded } : {}),
    ...(volumes.length > 0 ? { volumes } : {}),
    ...(Object.keys(files).length > 0 ? { files } : {}),
    ...(interfaces.length > 0 ? { interfaces } : {}),
    ...(devices.length > 0 ? { devices } : {}),
  };
}

/** The guests of these hosts, as the driver describes them to an agent that may not know them. */
export function hostedAmong(guests: Iterable<StoredGuest>, hosts: ReadonlySet<string>): readonly HostedGuest[] {
  return [...guests].flatMap(({ host, serverUuid, attemptId, hasRun = false, listensAt, volumes = [] }) =>
    hosts.has(host)
      ? {
          ...{ host, serverUuid, attemptId, volumeIds: volumes },
          ...(hasRun ? { stage: "has-run" } : { stage: "prepared", ...(listensAt !== undefined && { listensAt }) }),
        }
      : [],
  );
}
