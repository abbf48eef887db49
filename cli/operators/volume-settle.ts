import { oneOf } from "../../runtime/setting-kinds.ts";
import { optional } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth volume settle",
  about:
    "Settles which of two volumes a server's guest uses, after the replacement of VOLUME by another one was broken off. The server's host is asked, unless --guest-uses says it. In VERIFY_RESIZE, a volume that is not in doubt is connected to the guest that the source keeps for a revert, which may lack it.",
  positionals: ["SERVER", "VOLUME"],
  settings: {
    ...operatorSettings,
    guestUses: optional(oneOf("own", "other"), {
      about:
        "own: the guest used VOLUME when it ran last, and Cinder deletes the other one; other: it used the other one, and Cinder deletes what VOLUME has stored. Only for a host that is forced down and whose record of the guest you have read",
    }),
  },
};

interface Settling {
  readonly server: string;
  readonly host: string;
  readonly volume: string;
  readonly replaced_by: string;
  readonly operation: string;
}

/** `berth volume settle SERVER VOLUME [--guest-uses own|other]`. */
export function runVolumeSettle(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async ({ guestUses, ...access }, [server = "", volume = ""]) => {
    const path = `/servers/${encodeURIComponent(server)}/volumes/${encodeURIComponent(volume)}/settle`;
    const begun = await callOperatorsApi<Settling>(access, "POST", path, {
      ...(guestUses !== null && { guest_uses: guestUses }),
    });
    const asked =
      guestUses === null ? `host ${begun.host} is asked` : `Cinder is told that the guest uses its ${guestUses} volume`;
    const settled =
      begun.replaced_by === ""
        ? `volume ${begun.volume}, which is not in doubt, is connected to the guest that is kept for a revert`
        : `${asked} (volume ${begun.volume}, replaced by ${begun.replaced_by})`;
    process.stdout.write(
      `server ${begun.server}: ${settled}; operation ${begun.operation}\n` +
        `see how it ends: berth explain ${begun.server}\n`,
    );
    return 0;
  });
}
