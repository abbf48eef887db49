import { Ajv } from "ajv";
import type { FastifySchemaValidationError } from "fastify";
import { expect, it } from "vitest";
import { CreateServerBody } from "../compute/servers/create-schema.ts";
import { explainSchemaError } from "./explain-schema-error.ts";

const check = new Ajv({ strict: false }).compile(CreateServerBody);
const server = { name: "web", flavorRef: "1" };

function refusalOf(body: unknown): string {
  expect(check(body)).toBe(false);
  return explainSchemaError(check.errors as FastifySchemaValidationError[], body, "body").message;
}

it.each([
  [{ networks: "nonee" }, "server.networks. Value: nonee. must be one of none, auto, or of type array"],
  [{ imageRef: "cirros" }, "server.imageRef. Value: cirros. It is not a UUID."],
  [{ availability_zone: "" }, "server.availability_zone. Value: . must not be empty"],
  [{ name: 5 }, "server.name. Value: 5. must be string"],
  [{ networks: 5 }, "server.networks. Value: 5. must be one of none, auto, or of type array"],
  [{ imageRef: 5 }, 'server.imageRef. Value: 5. must be one of "", or of type string'],
  // A value that has one of the allowed forms is compared with that form alone.
  [{ networks: [{ port: 7 }] }, "server.networks.0.port. Value: 7. must be string"],
])("says of %j what is allowed", (fields, expected) => {
  expect(refusalOf({ server: { ...server, ...fields } })).toBe(`Invalid input for field/attribute ${expected}`);
});

it("says of a list with too many items how many are allowed, where words are allowed as well", () => {
  const message = refusalOf({ server: { ...server, networks: Array(500).fill({}) } });
  expect(message).toMatch(/server\.networks\. Value: a list of 500\. must NOT have more than \d+ items$/);
});

it("names a field that a value of an allowed form must not have", () => {
  const message = refusalOf({ server: { ...server, networks: [{ uuid: "a", fixed: "b" }] } });
  expect(message).toBe("Additional properties are not allowed ('fixed' was unexpected)");
});
