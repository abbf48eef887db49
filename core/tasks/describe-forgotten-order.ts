import type { FoundGuest } from "./guest-fate.ts";

/** The fault of a server whose guest is not started at home, because another guest of the server is in quarantine, and may run. */
export function describeOtherGuest({ host, serverUuid }: FoundGuest): string {
  return (
    `The cell's database was restored or failed over, and another guest of the server is in quarantine and may run, so it was not started on ` +
    `${host}. Look for the other guest with \`berth cell quarantine\`, save its data, and mark it for destruction (--destroy ${serverUuid}). Then set the ` +
    "server to active (os-resetState), which starts it here, or delete it."
  );
}

/** The fault of a server whose guest was halted by an order that its cell's database has lost in a restore or failover. */
export function describeForgottenOrder(guest: FoundGuest, obeyed: number, known: number): string {
  const { host, state, serverUuid } = guest;
  return (
    `The cell's database was restored or failed over and has lost commits: the guest on ${host} is ${state} by order ${obeyed}, but the ` +
    `database only knows orders up to ${known}. The server may have been moved, and may run elsewhere, so it was not started here. Look for ` +
    `other guests of ${serverUuid} with \`berth cell quarantine\`; then set the server to active (os-resetState), which starts it here, or delete it.`
  );
}
