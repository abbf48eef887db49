import type { DamagedCopy } from "../../adapters/qemu/image-cache.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { CpuHolder } from "./guest-pins.ts";
import type { GuestName } from "./journal.ts";

/** Returns the callbacks by which a driver with real guests warns its operator about single guests. */
export function driverWarnings(logger: Logger) {
  return {
    onStrayCpus: ({ host, serverUuid, held }: CpuHolder) =>
      logger.warn(
        { host, serverUuid, cpus: held },
        "a guest keeps CPUs for itself that are no longer in --cpu-dedicated-set; other guests may run on them: move or rebuild its server",
      ),
    onDamaged: ({ imageId, path }: DamagedCopy) =>
      logger.error(
        { imageId, path },
        "the checked copy of an image was changed on this host; it is made again from the image's file, and guests that were built on it read what was changed until they are stopped and started: find out what wrote to it",
      ),
    onStorage: (directory: string, silence: string | null) => {
      if (silence === null) logger.info({ directory }, "the storage of a directory answers again");
      else
        logger.error(
          { directory, reason: silence },
          "the storage of a directory does not answer; guests go on, and what needs it waits: see whether its file system is mounted and its server runs",
        );
    },
    onFunctionsKept: (guest: GuestName | { readonly dir: string }, error: unknown) =>
      logger.error(
        { ...guest, err: error },
        "a network card keeps the MAC address of a guest that has stopped or is gone, so it may take frames that are for the guest's port elsewhere; the card is told again every minute, and no other guest gets the function before: clear the virtual function that the error names (ip link set CARD vf N mac 00:00:00:00:00:00 vlan 0)",
      ),
    onNotesUnwritten: (path: string, error: unknown) =>
      logger.error(
        { path, err: error },
        "the virtual functions that network cards were told of cannot be noted in a file; after its next start the agent may leave the addresses of guests that are gone on a card, or clear what you have set meanwhile: make room on the file system, or give the agent's user the right to write there. It is tried again every minute",
      ),
    onUnmarked: (error: unknown) =>
      logger.warn(
        { err: error },
        "the directory of guests could not be marked, so the agent cannot tell it from an empty mount point in its place: make room, or give the agent's user the right to write in the directory that the error names, and start the agent again",
      ),
    onDamagedRecord: (dir: string) =>
      logger.error(
        { dir },
        "the record of a guest is damaged, so nobody knows whose guest it is, and no order reaches it: restore the directory's guest.json, or end the guest's QEMU and remove the directory, and start the agent again",
      ),
    onUnknown: ({ host, serverUuid, attemptId }: GuestName, error: unknown) =>
      logger.warn(
        { host, serverUuid, attemptId, err: error },
        "the state of a guest could not be found out, so the guest is left alone",
      ),
    onVolumesLeft: ({ host, serverUuid, attemptId }: GuestName, error: unknown) =>
      logger.warn(
        { host, serverUuid, attemptId, err: error },
        "a guest lacks a volume of its server, since the agent ended or failed in the middle of connecting it, and cannot get it now; it gets the volume when it is stopped and started, unless the order to connect it is repeated before",
      ),
    onInterfacesLeft: ({ host, serverUuid, attemptId }: GuestName, error: unknown) =>
      logger.warn(
        { host, serverUuid, attemptId, err: error },
        "the agent ended in the middle of a change of a guest's interfaces, and its next process cannot complete the change; attach or detach the interface again, or stop and start the server",
      ),
    onWithoutInterfaces: ({ host, serverUuid, attemptId }: GuestName, error: unknown) =>
      logger.error(
        { host, serverUuid, attemptId, err: error },
        "the interfaces of a guest could not be changed before its hard reboot; it gets its server's interfaces when it is stopped and started",
      ),
  };
}
