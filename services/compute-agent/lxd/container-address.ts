import { bracketedHost } from "../../../runtime/address-text.ts";

/** Where a prepared container waits for the disk of another one. */
export interface ContainerAddress {
  /** Names the LXD, by the fingerprint of its certificate. */
  readonly lxd: string;
  readonly host: string;
  readonly port: number;
  /** The key of this transfer, in hexadecimal digits. */
  readonly key: string;
}

const SCHEME = "lxd:";
/** The address of a guest that needs no data of the guest that it replaces. */
export const TAKES_NO_DISK = "takes nothing";
const PORT_MAX = 65_535;
const KEY = /^[0-9a-f]{64}$/;

export function formatContainerAddress({ lxd, host, port, key }: ContainerAddress): string {
  return `${SCHEME}//${bracketedHost(host)}:${port}/?${new URLSearchParams({ lxd, key })}`;
}

/** Reads an address; null for a guest that takes nothing. Throws an Error for anything else, in which no key is quoted. */
export function parseContainerAddress(text: string): ContainerAddress | null {
  if (text === TAKES_NO_DISK) return null;
  if (text === "") throw new Error("the destination did not say at which address its container waits");
  const url = URL.canParse(text) ? new URL(text) : null;
  const host = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  const port = Number(url?.port ?? "");
  const [lxd, key] = [url?.searchParams.get("lxd") ?? "", url?.searchParams.get("key") ?? ""];
  const isWhole = url?.protocol === SCHEME && host !== "" && port >= 1 && port <= PORT_MAX && KEY.test(key);
  if (!isWhole)
    throw new Error(
      `the guest at the destination waits at "${text.split("?")[0]?.slice(0, 100)}", which is not the address of a container: both hosts need agents of this version with --driver lxd`,
    );
  return { lxd, host, port, key };
}
