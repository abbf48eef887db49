import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type HttpSender, PoolSender } from "./pool-sender.ts";
import { WorkerSender } from "./worker-sender.ts";

let server: Server | undefined;
let sender: HttpSender | undefined;
afterEach(async () => {
  await sender?.close();
  server?.closeAllConnections();
  server?.close();
});

async function listen(listener: RequestListener): Promise<string> {
  const listening = createServer(listener);
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
}

describe.each([
  ["PoolSender", (apiUrl: string) => new PoolSender({ apiUrl, connections: 2 })],
  ["WorkerSender", (apiUrl: string) => new WorkerSender({ apiUrl, connections: 2 })],
])("%s", (_name, open) => {
  it("delivers the call and its answer, even if a multi-byte character is split between chunks", async () => {
    const called: string[] = [];
    const word = Buffer.from('{"name":"Zürich"}');
    const url = await listen((request, response) => {
      const heard: Buffer[] = [];
      request.on("data", (chunk: Buffer) => heard.push(chunk));
      request.on("end", () => {
        called.push(`${request.method} ${request.url} ${request.headers["content-type"]} ${Buffer.concat(heard)}`);
        response.writeHead(202);
        const cut = word.indexOf("ü") + 1;
        response.write(word.subarray(0, cut), () => response.end(word.subarray(cut)));
      });
    });
    sender = open(url);
    const answer = await sender.send({ method: "POST", path: "/v2.1/servers", body: '{"a":1}' });
    expect(answer).toEqual({ status: 202, text: '{"name":"Zürich"}' });
    expect(called).toEqual(['POST /v2.1/servers application/json {"a":1}']);
  });

  it("sends a call without a body, and accepts an answer without one", async () => {
    const called: string[] = [];
    const url = await listen((request, response) => {
      called.push(`${request.method} ${request.url} ${request.headers["content-type"] ?? "-"}`);
      response.writeHead(204).end();
    });
    sender = open(url);
    expect(await sender.send({ method: "DELETE", path: "/v2.1/servers/1", body: null })).toEqual({
      status: 204,
      text: "",
    });
    expect(called).toEqual(["DELETE /v2.1/servers/1 -"]);
  });

  it("rejects when the connection breaks, and continues with the next call", async () => {
    let calls = 0;
    const url = await listen((request, response) => {
      calls += 1;
      if (calls === 1) request.socket.destroy();
      else response.end("well");
    });
    sender = open(url);
    await expect(sender.send({ method: "GET", path: "/", body: null })).rejects.toThrow();
    expect(await sender.send({ method: "GET", path: "/", body: null })).toEqual({ status: 200, text: "well" });
  });
});
