import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { consoleKeyOf, consoleTokenHash } from "../../../adapters/consoles/console-key.ts";
import { cellConsolesSubject } from "../../../adapters/nats/streams.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";
import { ApiEvents } from "../../../services/api/events.ts";
import { ApiRig } from "./api-rig.ts";

const BASE = "wss://console.example:6083/";
const PAGE = "https://console.example:6080/vnc_auto.html";
let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", serialConsoleBaseUrl: BASE, novncproxyBaseUrl: PAGE });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const as = (token: string, minor = 90) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });
const created = async (): Promise<string> => {
  const server = { name: "web", flavorRef: "1", networks: "auto" };
  return (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server.id;
};
const active = async (): Promise<string> => {
  const id = await created();
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const asked: ConsoleQuestion[] = [];
const answering = (answer: ConsoleAnswer["answer"]) =>
  rig.cell("north").bus.answer(cellConsolesSubject("north"), async (question) => {
    asked.push(ConsoleQuestion.decode(question));
    return ConsoleAnswer.encode({ answer }).finish();
  });
const open = async (
  id: string,
  console: object = { protocol: "serial", type: "serial" },
  token = OWNER,
  minor = 90,
) => {
  const answer = await rig.post(`/v2.1/servers/${id}/remote-consoles`, { remote_console: console }, as(token, minor));
  return [answer.statusCode, answer.json()] as const;
};
const fault = (code: number, name: string, message: unknown) => [code, { [name]: { code, message } }];
const show = (token: string, who = "admin:x", minor = 90) =>
  rig.get(`/v2.1/os-console-auth-tokens/${token}`, as(who, minor));

test("a console's URL has a token whose hash alone is stored, and whose key the host is told", async () => {
  const id = await active();
  await answering({ $case: "opened", value: "[fd00::7]:40000" });
  const [status, { remote_console }] = await open(id);
  expect([status, remote_console]).toEqual([200, { protocol: "serial", type: "serial", url: expect.any(String) }]);
  const url = new URL(remote_console.url);
  expect(url.origin + url.pathname).toBe(`${new URL(BASE).origin}/`);
  const token = url.searchParams.get("token") ?? "";
  const found = (await rig.cell("north").store.servers([id]))[0];
  const { session = "", key, lifetimeMs } = asked.at(-1)?.open ?? {};
  expect(asked.at(-1)).toMatchObject({ host: found?.host, serverUuid: id, attemptId: found?.attemptId });
  expect([key, lifetimeMs]).toEqual([consoleKeyOf(token, session), 600_000]);
  expect(await rig.consoleTokens.token(consoleTokenHash(token), Date.now())).toMatchObject({
    ...{ serverUuid: id, host: "fd00::7", port: 40_000, session },
  });
  const shown = { instance_uuid: id, host: "fd00::7", port: 40_000, internal_access_path: session };
  expect((await show(token)).json()).toEqual({ console: shown });
  expect((await show(token, "admin:x", 99)).json()).toEqual({ console: { ...shown, tls_port: null } });
  expect((await show(token, "admin:x", 30)).statusCode).toBe(401);
  expect((await show(token, OWNER)).statusCode).toBe(403);
  expect((await show("unknown")).json().itemNotFound.message).toBe("Token not found");
});

test("a display's URL is that of noVNC's page, which hands the token on to the proxy", async () => {
  const id = await active();
  await answering({ $case: "openedDisplay", value: "192.0.2.7:40000" });
  const [status, { remote_console }] = await open(id, { protocol: "vnc", type: "novnc" });
  expect([status, remote_console]).toMatchObject([200, { protocol: "vnc", type: "novnc" }]);
  const uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  const pattern = new RegExp(`^${PAGE.replaceAll(".", "\\.")}\\?path=%3Ftoken%3D(${uuid})$`);
  const [, token = ""] = pattern.exec(remote_console.url) ?? [];
  expect(asked.at(-1)?.open?.graphical).toBe(true);
  expect(await rig.consoleTokens.token(consoleTokenHash(token), Date.now())).toMatchObject({ consoleType: "novnc" });
  const shown = { instance_uuid: id, host: "192.0.2.7", port: 40_000, internal_access_path: null };
  expect((await show(token)).json()).toEqual({ console: shown });
  const body = { "os-getVNCConsole": { type: "novnc" } };
  const older = await rig.post(`/v2.1/servers/${id}/action`, body, as(OWNER, 5));
  expect(older.json()).toEqual({ console: { type: "novnc", url: expect.stringMatching(pattern) } });
});

test("a conductor that opened the serial console instead of the display gives no URL", async () => {
  const id = await active();
  await answering({ $case: "opened", value: "192.0.2.7:40000" });
  expect(await open(id, { protocol: "vnc", type: "novnc" })).toEqual(
    fault(400, "badRequest", "Unavailable console type novnc."),
  );
});

test("before 2.6 an action opens it", async () => {
  const id = await active();
  await answering({ $case: "opened", value: "host-7:40000" });
  const act = (action: string, type: unknown, minor: number) =>
    rig.post(`/v2.1/servers/${id}/action`, { [action]: { type } }, as(OWNER, minor));
  const answer = await act("os-getSerialConsole", "serial", 5);
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    { console: { type: "serial", url: expect.stringContaining(BASE) } },
  ]);
  expect((await act("os-getSerialConsole", "novnc", 5)).statusCode).toBe(400);
  expect((await act("os-getVNCConsole", "novnc", 5)).json().badRequest.message).toBe("Unavailable console type novnc.");
  expect((await act("os-getVNCConsole", "xvpvnc", 5)).json().badRequest.message).toBe("Invalid console type xvpvnc");
  expect((await act("os-getSPICEConsole", "spice-html5", 5)).json().badRequest.message).toBe(
    "Unavailable console type spice-html5.",
  );
  expect((await act("os-getSerialConsole", "serial", 6)).statusCode).toBe(404);
});

test.each([
  [{ $case: "absent", value: true } as const, fault(409, "conflictingRequest", expect.stringMatching(/is not ready$/))],
  [{ $case: "unavailable", value: true } as const, fault(400, "badRequest", "Unavailable console type serial.")],
  [{ $case: "failed", value: "x" } as const, [503, expect.anything()]],
  [{ $case: "output", value: Buffer.from("x") } as const, [503, expect.anything()]],
  [{ $case: "opened", value: "nowhere" } as const, [503, expect.anything()]],
])("an answer %j of the host gives no URL", async (answer, expected) => {
  const id = await active();
  await answering(answer);
  expect(await open(id)).toEqual(expected);
});

test("other types, protocols and fields are refused, and nothing is asked", async () => {
  const id = await active();
  const before = asked.length;
  await answering({ $case: "opened", value: "host-7:40000" });
  const message = async (console: object, minor?: number) => {
    const [status, body] = await open(id, console, OWNER, minor);
    return [status, body.badRequest?.message];
  };
  expect(await message({ protocol: "spice", type: "spice-html5" })).toEqual([
    400,
    "Unavailable console type spice-html5.",
  ]);
  expect(await message({ protocol: "mks", type: "webmks" })).toEqual([400, "Unavailable console type webmks."]);
  expect(await message({ protocol: "rdp", type: "rdp-html5" })).toEqual([400, "Unavailable console type rdp."]);
  expect(await message({ protocol: "vnc", type: "xvpvnc" })).toEqual([400, "Invalid console type xvpvnc"]);
  expect(await message({ protocol: "vnc", type: "serial" })).toEqual([400, "Invalid console type serial"]);
  expect((await message({ protocol: "mks", type: "webmks" }, 7))[1]).toContain("protocol");
  expect((await message({ protocol: "x", type: "serial" }))[0]).toBe(400);
  expect((await message({ protocol: "serial", type: "serial", more: 1 }))[0]).toBe(400);
  expect(asked.length).toBe(before);
});

test("a server without a host is not ready, and another project's does not exist", async () => {
  expect((await open(await created()))[0]).toBe(409);
  expect((await open(await active(), undefined, "eve:q"))[0]).toBe(404);
});

test("without a console proxy no console is available", async () => {
  const other = await ApiRig.start();
  try {
    const id = await other.bootActive("north", 1);
    const body = { remote_console: { protocol: "serial", type: "serial" } };
    const answer = await other.post(`/v2.1/servers/${id}/remote-consoles`, body, {
      "openstack-api-version": "compute 2.90",
    });
    expect([answer.statusCode, answer.json().badRequest?.message]).toEqual([400, "Unavailable console type serial."]);
    const graphical = { remote_console: { protocol: "vnc", type: "xvpvnc" } };
    const unknown = await other.post(`/v2.1/servers/${id}/remote-consoles`, graphical, {
      "openstack-api-version": "compute 2.90",
    });
    expect(unknown.json().badRequest?.message).toBe("Unavailable console type xvpvnc.");
  } finally {
    await other.close();
  }
});

test("a token is not logged when the database cannot be asked about it", async () => {
  const failed = vi.spyOn(ApiEvents.prototype, "failed");
  rig.consoleTokens.token = () =>
    Promise.reject(new StoreError("unavailable", "console_token", "the database is away"));
  const answer = await show("f3a1c0de-0000-4000-8000-000000000000");
  expect(answer.statusCode).toBe(503);
  expect(failed.mock.calls.map(([{ method, url }, status]) => [method, url, status])).toEqual([
    ["GET", "/v2.1/os-console-auth-tokens/:token", 503],
  ]);
  failed.mockRestore();
});

test("an address of a host that no client can reach is refused, and no token is stored", async () => {
  const id = await active();
  let address = "";
  await rig
    .cell("north")
    .bus.answer(cellConsolesSubject("north"), async () =>
      ConsoleAnswer.encode({ answer: { $case: "opened", value: address } }).finish(),
    );
  const stored = vi.spyOn(rig.consoleTokens, "putToken");
  for (address of ["", "host", "host:", ":40000", "[::1]", "host:70000", "two hosts:1"])
    expect([address, (await open(id))[0]]).toEqual([address, 503]);
  expect(stored).not.toHaveBeenCalled();
  address = "host.example:65535";
  expect((await open(id))[0]).toBe(200);
  expect(stored.mock.calls[0]?.[0]).toMatchObject({ host: "host.example", port: 65_535 });
});
