import { stat } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { type ChosenAccel, chooseAccel } from "../../../adapters/qemu/choose-accel.ts";
import { warnOfFewThreads } from "../../../adapters/qemu/file-threads.ts";
import { QemuError } from "../../../adapters/qemu/qemu-error.ts";
import { qemuVersion } from "../../../adapters/qemu/qemu-version.ts";
import { type CpuOffer, chooseCpuModel } from "../../../core/pinning/choose-cpu-model.ts";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import { requiredCpuTraits } from "../../../core/pinning/required-cpu-traits.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { SettingsError } from "../../../runtime/settings.ts";
import { SilentStorageError } from "../../../runtime/storage-gate.ts";
import { driverWarnings } from "../driver-warnings.ts";
import type { HostConfig } from "../host-config.ts";
import type { GuestName } from "../journal.ts";
import { messageOf } from "../message-of.ts";
import { cpuModelsOf, refuseTwoLists } from "./cpu-models.ts";
import { STORAGE_THREADS } from "./host-storage.ts";
import { KnownCpuOffers } from "./known-cpu-offers.ts";
import type { MachineDefaults } from "./machine-of-server.ts";
import { QemuDriver } from "./qemu-driver.ts";
import type { QemuSettings } from "./qemu-settings.ts";

/**
 * Like Nova's driver, repeats a press of the power button after this time, because the first one may have come too
 * early.
 */
const PRESS_AGAIN_MS = 10_000;
const MIB = 1_048_576;

export interface OpenedQemuDriver {
  readonly driver: QemuDriver;
  /** Hypervisor facts for filters and weighers, used for hosts whose configuration does not state them. */
  readonly hypervisor: NonNullable<HostConfig["hypervisor"]>;
  /** `onChanged` is called when `hypervisor` or `closedBecause` has changed. */
  watch(onChanged: () => void): void;
  /**
   * Resolves when the directory of the guests can be used, and also if its storage does not answer now, since the agent has to say so. Rejects with a SettingsError if it
   * cannot be used.
   */
  ready(): Promise<void>;
  /** Why no guest can be built here at present, or null. */
  closedBecause(): string | null;
  /** Leaves the guests as they are. */
  close(): void;
}

interface QemuSurroundings {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The CPUs behind a host's resource providers, as in `HostSource`. */
  readonly layoutOf?: (host: string) => MachineLayout | null;
  /** Keeps the flags of guests' CPUs for the next process. Absent where nobody uses them: QEMU is not asked for them then. */
  readonly cpuFlagsFile?: string;
  /** Keeps which virtual functions the network cards were told of. */
  readonly functionNotes?: string;
  /** Keeps the mark of the directory of guests. Absent where any directory in its place may be used. */
  readonly directoryNote?: string;
}

/** Opens a driver of virtual machines with an operator's settings. Throws a SettingsError when something is missing. */
export function openQemuDriver(
  settings: QemuSettings & { readonly instancesPath: string; readonly sysroot: string | null },
  { clock, logger, layoutOf, cpuFlagsFile, functionNotes, directoryNote }: QemuSurroundings,
): OpenedQemuDriver {
  const { qemu: program, liveMigrationInboundAddr: transferHost, shutdownTimeout: shutdownMs } = settings;
  const { instancesPath, imagesPath } = givenPaths(settings);
  refuseTwoLists(settings);
  const fewThreads = warnOfFewThreads(STORAGE_THREADS);
  if (fewThreads !== null) logger.warn({ warning: fewThreads }, "the agent has too few threads for files");
  const version = versionOf(program);
  // This is found out once, when the first guest is built, because it may take half a minute.
  let chosen: Promise<ChosenAccel> | null = null;
  const accelOf = (): Promise<ChosenAccel> => {
    chosen ??= settings.accel === "auto" ? chooseAccel(program) : Promise.resolve(asTold(settings.accel));
    return chosen;
  };
  if (settings.accel === "auto") logChoice(accelOf(), logger);
  const cpuOffers = new KnownCpuOffers({
    path: cpuFlagsFile ?? null,
    of: questionMark(settings, version),
    question: async () => {
      const { accel } = await accelOf();
      return { program, accel, cpuModels: cpuModelsOf(settings, accel) };
    },
    ...{ clock, logger },
  });
  const defaults = async (): Promise<MachineDefaults> => {
    const { accel } = await accelOf();
    const { machineType, bridge } = settings;
    const display = settings.vncEnabled ? settings.videoModel : null;
    const models = cpuModelsOf(settings, accel);
    const chooseCpuModel = (server: ServerSpec) => chosenModel(server, models, () => cpuOffers.offers());
    const choice = settings.cpuModels === null ? {} : { chooseCpuModel };
    return { accel, machineType, bridge, display, cpuModel: models[0], ...choice };
  };
  const driver = new QemuDriver({
    ...{ clock, program, instancesPath, imagesPath, transferHost, shutdownMs, defaults },
    hasDisplays: settings.vncEnabled,
    traits: traitsOf(settings),
    userNetwork: settings.userNetwork,
    sysroot: settings.sysroot ?? "/",
    ...(layoutOf && { layoutOf }),
    ...{ functionNotes, directoryNote },
    volumeDir: settings.volumeDir === null ? undefined : resolve(settings.volumeDir),
    volumeMounts: settings.volumeMounts === null ? undefined : resolve(settings.volumeMounts),
    hasSecretTransfers: settings.liveMigrationWithNativeTls,
    imageCache: resolve(settings.imageCache ?? join(instancesPath, "_base")),
    pressAgainMs: PRESS_AGAIN_MS,
    bytesPerSecond: settings.liveMigrationBandwidth === 0 ? undefined : settings.liveMigrationBandwidth * MIB,
    ...driverWarnings(logger),
    onHandedOver: (guest, { haltedMs }) => logHandedOver(logger, guest, haltedMs),
  });
  const hypervisor = hypervisorOf(settings, version);
  const watchers: (() => void)[] = [];
  const tell = (): void => {
    for (const onChanged of watchers) onChanged();
  };
  driver.watchStorage(tell);
  if (cpuFlagsFile !== undefined) followCpuFlags(hypervisor, cpuOffers, tell);
  const close = () => {
    for (const one of [cpuOffers, driver]) one.close();
  };
  return {
    ...{ driver, hypervisor, close, closedBecause: () => driver.closedBecause },
    watch: (onChanged) => void watchers.push(onChanged),
    ready: () => readyToBuild(driver, settings, logger),
  };
}

/** Adds the flags of guests' CPUs to the facts about the hypervisor: those that are kept at once, and QEMU's answer when it comes. */
function followCpuFlags(hypervisor: OpenedQemuDriver["hypervisor"], offers: KnownCpuOffers, tell: () => void): void {
  offers.learn((flags) => {
    hypervisor.guest_cpu_flags = flags;
    tell();
  });
  const kept = offers.kept();
  if (kept !== null) hypervisor.guest_cpu_flags = kept;
}

/** The directories of guests and images. Throws a SettingsError when one is missing. */
function givenPaths(settings: Pick<QemuSettings, "imagesPath"> & { readonly instancesPath: string }) {
  const instancesPath = resolve(settings.instancesPath);
  if (instancesPath === "/")
    throw new SettingsError(
      "BERTH_INSTANCES_PATH (--instances-path) is missing: --driver qemu needs a directory for the disks of guests",
    );
  if (settings.imagesPath === null)
    throw new SettingsError(
      "BERTH_IMAGES_PATH (--images-path) is missing: --driver qemu needs the directory of images",
    );
  return { instancesPath, imagesPath: resolve(settings.imagesPath) };
}

function logHandedOver(logger: Logger, { host, serverUuid, attemptId }: GuestName, haltedMs: number): void {
  logger.info(
    { host, serverUuid, attemptId, haltedMs },
    "a guest was handed over to its destination; it is halted until the destination starts it",
  );
}

function logChoice(choice: Promise<ChosenAccel>, logger: Logger): void {
  choice.then(
    ({ accel, reason }) =>
      logger.info({ accel, reason }, "the driver chose the accelerator with which QEMU runs guests"),
    (error: unknown) =>
      logger.error(
        { err: error },
        "the driver could not find out which accelerators QEMU has: name one in BERTH_ACCEL",
      ),
  );
}

/** Everything that the flags of guests' CPUs depend on and that is known at once. Earlier versions knew one model, and what they kept counts. */
function questionMark(settings: QemuSettings, version: number): readonly (string | number | null)[] {
  const { qemu, accel, cpuModel, cpuModels, cpuModelExtraFlags } = settings;
  const more = cpuModels === null && cpuModelExtraFlags === null ? [] : [cpuModels, cpuModelExtraFlags];
  return [qemu, version, accel, cpuModel, ...more.map((list) => list?.join() ?? null)];
}

/** Gives a server the first CPU model of the list that has the flags which it requires. QEMU is asked only if that makes a difference. */
async function chosenModel(
  server: ServerSpec,
  [first, ...others]: readonly [string, ...string[]],
  offers: () => Promise<readonly CpuOffer[]>,
): Promise<string> {
  const required = requiredCpuTraits(server);
  if (required.length === 0 && others.length === 0) return first;
  const chosen = chooseCpuModel(await offers(), required);
  if (chosen.kind === "refused") throw new QemuError("state", chosen.reason);
  return chosen.cpuModel;
}

function hypervisorOf(
  { accel, liveMigrationInboundAddr: address }: Pick<QemuSettings, "accel" | "liveMigrationInboundAddr">,
  version: number,
): OpenedQemuDriver["hypervisor"] {
  const kinds = accel === "tcg" ? ["qemu"] : ["kvm", "qemu"];
  return {
    ...{ type: "QEMU", version, supported_instances: kinds.map((kind) => ["x86_64", kind, "hvm"]) },
    ...(isOfNetwork(address) && { host_ip: address }),
  };
}

/** Whether other machines can have the address as this one's. The default of the setting is the loopback address. */
function isOfNetwork(address: string): boolean {
  return isIP(address) !== 0 && !/^127\.|^0\.0\.0\.0$|^::1?$/.test(address);
}

/** What the hardware of guests is, as images ask for it. */
const traitsOf = ({ vncEnabled, videoModel }: Pick<QemuSettings, "vncEnabled" | "videoModel">): readonly string[] => [
  ...["HW_ARCH_X86_64", "COMPUTE_ARCH_X86_64", "COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_VIRTIO"],
  ...(vncEnabled ? [`COMPUTE_GRAPHICS_MODEL_${videoModel.toUpperCase()}`] : []),
];

async function readyToBuild(
  driver: QemuDriver,
  { volumeDir, volumeMounts }: Pick<QemuSettings, "volumeDir" | "volumeMounts">,
  logger: Logger,
): Promise<void> {
  for (const dir of [volumeDir, volumeMounts]) if (dir !== null) warnOfMissing(resolve(dir), logger);
  try {
    await driver.open();
  } catch (error) {
    // The driver has told the operator.
    if (error instanceof SilentStorageError) return;
    throw new SettingsError(`BERTH_INSTANCES_PATH (--instances-path) cannot be used: ${messageOf(error)}`);
  }
}

/**
 * The agent starts also without the directory of volumes, for its guests that have no volumes. It never makes the directory, since the storage may only not be
 * mounted yet. Nobody waits for this: the storage may hang.
 */
function warnOfMissing(volumeDir: string, logger: Logger): void {
  const warn = () =>
    logger.warn({ volumeDir }, "the directory of volumes is not there, so no volume can be attached until it is");
  stat(volumeDir).then((found) => (found.isDirectory() ? undefined : warn()), warn);
}

function versionOf(program: string): number {
  try {
    return qemuVersion(program);
  } catch (error) {
    if (error instanceof QemuError) throw new SettingsError(`--driver qemu: ${error.message}`);
    throw error;
  }
}

const asTold = (accel: "tcg" | "kvm"): ChosenAccel => ({ accel, reason: "the settings say so" });
