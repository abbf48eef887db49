import { postgresUrl } from "../../adapters/postgres/client/postgres-url.ts";
import { processSettings } from "../../runtime/lifecycle.ts";
import { directory, hostPort, integer, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";

const hostName = text({
  pattern: /^[A-Za-z0-9.:[\]-]{1,255}$/,
  allowed: "host names, with a port if the page has one",
});

export const consoleProxyDeclaration = {
  command: "berth console-proxy",
  about: "Connects clients of remote consoles, over WebSocket, with the hosts of their servers.",
  settings: {
    ...processSettings,
    databaseUrl: setting(postgresUrl, { about: "the API database, in which the tokens are" }),
    // The address of Nova's serial proxy.
    listen: setting(hostPort, {
      about: "address for clients; behind a proxy that adds TLS, unless it is loopback",
      default: "127.0.0.1:6083",
    }),
    // The option of this name in Nova's section [console].
    allowedOrigins: optional(listOf(hostName), {
      about: "hosts of web pages, other than this address itself, from which browsers may open consoles",
    }),
    // The option of this name of nova-novncproxy.
    web: optional(directory, {
      about: "directory of web pages that are served beside the consoles, such as /usr/share/novnc with noVNC",
    }),
    sessionsMax: setting(integer({ min: 1, max: 100_000 }), {
      about: "maximum number of open consoles",
      default: "1000",
    }),
    metricsListen: setting(hostPort, { about: "address of /healthz, /readyz and /metrics", default: "127.0.0.1:0" }),
  },
} as const;

export type ConsoleProxyOptions = ValuesOf<typeof consoleProxyDeclaration.settings>;
