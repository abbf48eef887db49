import { runCommand } from "../run-command.ts";
import { callCompute, operatorSettings } from "./operators-client.ts";
import { requireServerUuid } from "./require-server-uuid.ts";

const declaration = {
  command: "berth console",
  about:
    "Opens the serial console of a server in this terminal: shows what the guest writes, and types what is typed. Ctrl-] ends it; the guest goes on.",
  positionals: ["SERVER_UUID"],
  settings: operatorSettings,
};

/** Ctrl-], as in virsh and telnet. */
const ESCAPE = 0x1d;

/** `berth console SERVER_UUID`. The exit code is 0 when the user ended it, and 1 when the connection was lost. */
export function runConsoleCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, [server = ""]) => {
    const path = `/servers/${encodeURIComponent(requireServerUuid(server))}/remote-consoles`;
    const body = { remote_console: { protocol: "serial", type: "serial" } };
    const answer = await callCompute<{ remote_console: { url: string } }>(settings, "POST", path, body);
    return attach(answer.remote_console.url);
  });
}

async function attach(url: string): Promise<number> {
  const client = new WebSocket(url, "binary");
  client.binaryType = "arraybuffer";
  const { promise, resolve } = Promise.withResolvers<number>();
  let isOpen = false;
  const typed = (bytes: Buffer): void => {
    const end = process.stdin.isTTY ? bytes.indexOf(ESCAPE) : -1;
    client.send(end < 0 ? bytes : bytes.subarray(0, end));
    if (end >= 0) resolve(0);
  };
  client.addEventListener("open", () => {
    isOpen = true;
    if (process.stdin.isTTY) {
      process.stderr.write("Connected. Ctrl-] ends the connection.\n");
      process.stdin.setRawMode(true);
    }
    process.stdin.on("data", typed);
  });
  client.addEventListener("message", ({ data }) => process.stdout.write(Buffer.from(data as ArrayBuffer)));
  client.addEventListener("close", () => resolve(1));
  try {
    const code = await promise;
    const why = isOpen
      ? "the connection has ended: the guest was stopped, or another client has opened its console"
      : "the console proxy does not answer, or refuses the token";
    if (code !== 0) process.stderr.write(`\nberth console: ${why}\n`);
    return code;
  } finally {
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
    process.stdin.off("data", typed).pause();
    client.close();
  }
}
