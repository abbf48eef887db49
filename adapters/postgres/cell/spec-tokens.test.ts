import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { specTokens } from "../../../core/stores/cell/spec-tokens.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { freshDatabase } from "../../../test/rigs/databases.ts";

const RANDOM = 300;

test("a damaged spec has some tokens or none, but no error that would keep its row from being written", async () => {
  const port = { portId: "p", networkId: "n", tag: "", networkName: "", slot: 3, floatingAddresses: [] };
  const spec = serverSpec(1, {
    ...{ hostname: "web", description: "x", accessIpV4: "10.0.0.1", configDrive: true, launchIndex: 200 },
    ...{ imageProperties: { kernel_id: "k" }, ports: [{ ...port, addresses: ["10.0.0.7"] }] },
  });
  const whole = Buffer.from(ServerSpec.encode(spec).finish());
  const cut = Array.from(whole, (_, length) => whole.subarray(0, length));
  const changed = Array.from({ length: RANDOM }, (_, at) => {
    const bytes = Buffer.from(whole);
    bytes[(at * 31) % bytes.length] = (at * 97) % 256;
    return bytes;
  });
  const random = Array.from({ length: RANDOM }, (_, at) => randomBytes(at % 60));
  const database = await freshDatabase("cell");
  const client = new pg.Client(database.url);
  try {
    await client.connect();
    for (const message of [...cut, ...changed, ...random])
      await client.query("select spec_tokens($1)", [message]).catch((error) => {
        throw new Error(`the tokens of ${message.toString("hex")}`, { cause: error });
      });
    const { rows } = await client.query<{ tokens: string[] }>("select spec_tokens($1) as tokens", [whole]);
    expect(rows[0]?.tokens.toSorted()).toEqual(specTokens(spec).toSorted());
  } finally {
    await client.end();
    await database.drop();
  }
});

test("a server whose port has an address that is longer than any address is stored, and is not found by it", async () => {
  const port = { portId: "p", networkId: "n", tag: "", networkName: "", slot: 3, floatingAddresses: [] };
  const [longest, tooLong] = [64, 65].map((length) => `:${"a".repeat(length - 1)}`);
  // Random, since an index compresses a long text that repeats itself.
  const huge = `:${randomBytes(3_000).toString("hex")}`;
  const database = await freshDatabase("cell");
  const client = new pg.Client(database.url);
  try {
    await client.connect();
    for (const [number, addresses, tokens] of [
      [1, [longest, tooLong], ["ip6", `ip=${longest}`]],
      [2, [tooLong], null],
      [3, [huge, "10.0.0.7"], ["ip=10.0.0.7"]],
    ] as const) {
      const spec = serverSpec(number, {
        description: undefined,
        ports: [{ ...port, addresses: [...addresses] as string[] }],
      });
      const { rows } = await client.query<{ tokens: string[] | null }>(
        `insert into servers (uuid, status, spec, project_id, user_id, name, created_at)
         values ($1, 'BUILD', $2, 'p', 'u', 'n', now()) returning spec_tokens(spec) as tokens`,
        [spec.uuid, Buffer.from(ServerSpec.encode(spec).finish())],
      );
      expect(rows[0]?.tokens?.toSorted() ?? null).toEqual(tokens);
      expect(specTokens(spec).toSorted()).toEqual(tokens ?? []);
    }
  } finally {
    await client.end();
    await database.drop();
  }
});
