import { createHash, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { ApiRig } from "./api-rig.ts";

const PATH = "/v2.1/os-keypairs";
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHhLvOZ4OeDnHX6OFOHzQmfSSGMpzZPS2ZWTZlXiPDKz ann@laptop";
const FINGERPRINT = createHash("md5")
  .update(Buffer.from(KEY.split(" ")[1] ?? "", "base64"))
  .digest("hex")
  .match(/../g)
  ?.join(":");
const as = (token: string, minor = 96) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", quotas: { ...QUOTA_DEFAULTS.unlimited, key_pairs: 3 } });
});
afterEach(() => rig.close());
const create = (keypair: unknown, headers = as("ann:p1")) => rig.post(PATH, { keypair }, headers);
const list = async (headers = as("ann:p1"), query = "") =>
  (await rig.get(PATH + query, headers))
    .json()
    .keypairs.map((one: { readonly keypair: { readonly name: string } }) => one.keypair.name);

describe("/os-keypairs", () => {
  it("imports, shows, lists and deletes a key", async () => {
    const created = await create({ name: "laptop", public_key: KEY });
    expect(created.statusCode, created.body).toBe(201);
    const brief = { name: "laptop", type: "ssh", public_key: KEY, fingerprint: FINGERPRINT };
    expect(created.json()).toEqual({ keypair: { ...brief, user_id: "ann" } });
    expect((await rig.get(`${PATH}/laptop`, as("ann:p1"))).json()).toEqual({
      keypair: {
        ...{ ...brief, user_id: "ann", id: 1, updated_at: null, deleted: false, deleted_at: null },
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
      },
    });
    expect((await rig.get(PATH, as("ann:other"))).json()).toEqual({ keypairs: [{ keypair: brief }] });
    expect((await rig.delete(`${PATH}/laptop`, as("ann:p1"))).statusCode).toBe(204);
    const gone = await rig.delete(`${PATH}/laptop`, as("ann:p1"));
    expect(gone.json()).toEqual({ itemNotFound: { code: 404, message: "Keypair laptop not found for user ann" } });
    expect((await rig.get(`${PATH}/laptop`, as("ann:p1"))).statusCode).toBe(404);
  });

  it("answers 200 and 202 without a type in the first microversion", async () => {
    const created = await create({ name: "old", public_key: KEY }, as("ann:p1", 1));
    expect(created.statusCode).toBe(200);
    expect(created.json().keypair).not.toHaveProperty("type");
    expect((await rig.get(`${PATH}/old`, as("ann:p1", 1))).json().keypair).not.toHaveProperty("type");
    expect((await rig.get(PATH, as("ann:p1", 1))).json().keypairs[0].keypair).not.toHaveProperty("type");
    expect((await rig.delete(`${PATH}/old`, as("ann:p1", 1))).statusCode).toBe(202);
  });

  it("generates a key up to 2.91, whose private half matches the public one", async () => {
    const created = await create({ name: "made" }, as("ann:p1", 91));
    expect(created.statusCode, created.body).toBe(201);
    const { public_key, private_key, fingerprint } = created.json().keypair;
    expect(private_key).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/);
    expect(public_key).toMatch(/^ssh-rsa [A-Za-z0-9+/=]+ Generated-by-Nova$/);
    const { n } = createPublicKey(private_key).export({ format: "jwk" });
    const blob = Buffer.from(public_key.split(" ")[1], "base64");
    expect(blob.subarray(-256).toString("base64url")).toBe(n);
    expect(fingerprint.replaceAll(":", "")).toBe(createHash("md5").update(blob).digest("hex"));
    expect((await rig.get(`${PATH}/made`, as("ann:p1", 91))).body).not.toContain("PRIVATE KEY");
    const refused = await create({ name: "made-too" });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain("'public_key' is a required property");
  });

  it("generates a certificate that names its user, and imports one", async () => {
    const created = await create({ name: "win", type: "x509" }, as("ann:p1", 2));
    expect(created.statusCode, created.body).toBe(201);
    const { public_key, private_key, fingerprint, type } = created.json().keypair;
    const certificate = new X509Certificate(public_key);
    expect([type, certificate.subject]).toEqual(["x509", "CN=ann"]);
    expect(certificate.subjectAltName).toContain("ann@localhost");
    expect(fingerprint).toBe(certificate.fingerprint.toLowerCase());
    expect(Buffer.from(private_key, "base64")[0]).toBe(0x30);
    const imported = await create({ name: "win2", type: "x509", public_key });
    expect(imported.json().keypair.fingerprint).toBe(fingerprint);
  });

  it.each([
    ["a key of no known type", "ssh-foo AAAA"],
    ["a line without a key", "ssh-rsa"],
    ["a key that is cut off", KEY.slice(0, 60)],
    ["a key of another type than the line says", KEY.replace("ssh-ed25519", "ssh-rsa")],
    ["a private key", generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString()],
    ["nothing", ""],
  ])("refuses %s", async (_what, public_key) => {
    const refused = await create({ name: "bad", public_key });
    expect([refused.statusCode, refused.json().badRequest.message]).toEqual([
      400,
      "Keypair data is invalid: failed to generate fingerprint",
    ]);
    expect((await create({ name: "bad", type: "x509", public_key })).statusCode).toBe(400);
    expect(await list()).toEqual([]);
  });

  it("refuses names and fields that the microversion does not support", async () => {
    const status = async (keypair: unknown, minor: number) => (await create(keypair, as("ann:p1", minor))).statusCode;
    expect(await status({ name: "a", type: "ssh", public_key: KEY }, 1)).toBe(400);
    expect(await status({ name: "a", user_id: "ann", public_key: KEY }, 9)).toBe(400);
    expect(await status({ name: "a@b.c", public_key: KEY }, 91)).toBe(400);
    expect(await status({ name: "a@b.c", public_key: KEY }, 92)).toBe(201);
    expect((await rig.get(`${PATH}/a@b.c`, as("ann:p1"))).statusCode).toBe(200);
    for (const name of ["", " a", "a/b", "é", "a".repeat(256)]) {
      expect(await status({ name, public_key: KEY }, 96)).toBe(400);
    }
    expect(await status({ name: "a", type: "pgp", public_key: KEY }, 96)).toBe(400);
  });

  it("refuses a used name, and a key beyond the quota", async () => {
    for (const name of ["a", "b"]) expect((await create({ name, public_key: KEY })).statusCode).toBe(201);
    const taken = await create({ name: "a", public_key: KEY });
    expect(taken.json()).toEqual({ conflictingRequest: { code: 409, message: "Key pair 'a' already exists." } });
    await create({ name: "c", public_key: KEY });
    const over = await create({ name: "d", public_key: KEY });
    expect(over.json()).toEqual({ forbidden: { code: 403, message: "Quota exceeded, too many key pairs." } });
    expect((await create({ name: "d", public_key: KEY }, as("bob:p1"))).statusCode).toBe(201);
  });

  it("refuses a public key of many blanks at once, which an expression that goes back over them reads for minutes", async () => {
    const hostile = `ssh-rsa AAAA ${" ".repeat(65_000)}\nx`;
    for (let times = 0; times < 200; times += 1)
      expect((await create({ name: "k", public_key: hostile })).statusCode).toBe(400);
    expect((await create({ name: "k", public_key: `${KEY}${" ".repeat(66_000)}` })).statusCode).toBe(400);
    expect((await create({ name: "k", public_key: `  ${KEY} \n` })).statusCode).toBe(201);
  });

  it("generates no key for a name that is used, or beyond the quota", async () => {
    for (const name of ["a", "b"]) await create({ name, public_key: KEY });
    // A generated key would be handed to the store.
    const stored = vi.spyOn(rig.keypairs, "createKeypair");
    expect((await create({ name: "a" }, as("ann:p1", 91))).statusCode).toBe(409);
    await create({ name: "c", public_key: KEY });
    expect((await create({ name: "d" }, as("ann:p1", 91))).statusCode).toBe(403);
    expect(stored.mock.calls.map(([{ name }]) => name)).toEqual(["c"]);
  });

  it("lists by name, page by page from 2.35 on", async () => {
    for (const name of ["c", "a", "b"]) await create({ name, public_key: KEY });
    expect(await list(as("ann:p1", 34), "?limit=1&marker=a")).toEqual(["a", "b", "c"]);
    const page = (await rig.get(`${PATH}?limit=2`, as("ann:p1", 35))).json();
    expect(page.keypairs_links).toEqual([
      { rel: "next", href: "http://localhost:80/v2.1/os-keypairs?limit=2&marker=b" },
    ]);
    expect(await list(as("ann:p1", 35), "?limit=2&marker=b")).toEqual(["c"]);
    const unknown = await rig.get(`${PATH}?marker=x`, as("ann:p1", 35));
    expect(unknown.json().badRequest.message).toBe("Marker x could not be found.");
    expect((await rig.get(`${PATH}?colour=red`, as("ann:p1", 74))).statusCode).toBe(200);
    expect((await rig.get(`${PATH}?colour=red`, as("ann:p1", 75))).statusCode).toBe(400);
  });

  it("lets only an admin name another user, from 2.10 on", async () => {
    await create({ name: "anns", public_key: KEY });
    const admin = as("admin:ops");
    expect((await create({ name: "given", public_key: KEY, user_id: "ann" }, admin)).json().keypair.user_id).toBe(
      "ann",
    );
    expect(await list(admin, "?user_id=ann")).toEqual(["anns", "given"]);
    expect(await list(as("admin:ops", 9), "?user_id=ann")).toEqual([]);
    expect(await list(as("ann:p1"), "?user_id=ann")).toEqual(["anns", "given"]);
    const bob = as("bob:p1");
    const refusals = [
      await rig.get(`${PATH}?user_id=ann`, bob),
      await rig.get(`${PATH}/anns?user_id=ann`, bob),
      await rig.delete(`${PATH}/anns?user_id=ann`, bob),
      await create({ name: "x", public_key: KEY, user_id: "ann" }, bob),
    ];
    expect(refusals.map((answer) => answer.json().forbidden.message)).toEqual(
      ["index", "show", "delete", "create"].map(
        (rule) => `Policy doesn't allow os_compute_api:os-keypairs:${rule} to be performed.`,
      ),
    );
    expect((await rig.get(`${PATH}/anns`, bob)).statusCode).toBe(404);
    expect((await rig.delete(`${PATH}/anns?user_id=ann`, admin)).statusCode).toBe(204);
    expect(await list()).toEqual(["given"]);
  });
});
