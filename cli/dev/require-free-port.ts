import { freePort } from "../../runtime/free-port.ts";
import { SettingsError } from "../../runtime/settings.ts";

/**
 * Throws a `SettingsError` if nothing can listen on this port of 127.0.0.1. Called before the cloud starts, which takes a while, and
 * which nobody needs without its API.
 */
export async function requireFreePort(port: number): Promise<void> {
  try {
    await freePort(port);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new SettingsError(
      code === "EADDRINUSE"
        ? `BERTH_PORT (--port) ${port}: another program listens there already. If it is another \`berth dev\`, stop it, or start this one with another --port (0: any free one) and another --data-dir`
        : `BERTH_PORT (--port) ${port}: cannot listen there (${message}); choose another port (0: any free one)`,
    );
  }
}
