import type { InProcessCloud, Nemesis } from "berth/chaos";

/**
 * An own nemesis: an operator who takes one host after the other out of service for some time, and begins again after the last one. The
 * history shows each as a fault.
 */
export function rollingMaintenance(hosts: readonly string[], eachMs: number): Nemesis<InProcessCloud> {
  return async ({ cloud, signal, pause, fault }) => {
    const setDisabled = async (host: string, disabled: boolean) => {
      const { status, json } = await cloud.call("PUT", `/berth/v1/hosts/${host}`, { disabled });
      if (status !== 200) throw new Error(`${host} could not be changed: ${status} ${JSON.stringify(json)}`);
    };
    for (let turn = 0; !signal.aborted; turn = (turn + 1) % hosts.length) {
      const host = hosts[turn] ?? "";
      await fault({ fault: "own", target: `maintenance of ${host}` }, async () => {
        try {
          await setDisabled(host, true);
          await pause(eachMs);
        } finally {
          await setDisabled(host, false);
        }
      });
    }
  };
}
