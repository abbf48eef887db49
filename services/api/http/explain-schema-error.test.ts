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
])("says of %j what is allowed", (fields, expected) => {
  expect(refusalOf({ server: { ...server, ...fields } })).toBe(`Invalid input for field/attribute ${expected}`);
});
