import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { Type } from "typebox";
import { Value } from "typebox/value";
import { parse, stringify } from "yaml";
import { SettingsError } from "../../../runtime/settings.ts";

const NAME = Type.String({ minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9._@-]+$" });
const Role = Type.Union([Type.Literal("admin"), Type.Literal("member"), Type.Literal("reader")]);

/** The longest password that Keystone takes. */
const PASSWORD_CHARACTERS_MAX = 4096;

const UsersFile = Type.Object(
  {
    users: Type.Array(
      Type.Object(
        {
          name: NAME,
          password: Type.String({ minLength: 1, maxLength: PASSWORD_CHARACTERS_MAX }),
          /** The user's role in each project. The first project is the user's default. */
          projects: Type.Record(NAME, Role, { minProperties: 1, maxProperties: 64 }),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 200 },
    ),
  },
  { additionalProperties: false },
);
export type UsersFile = Type.Static<typeof UsersFile>;

const OTHERS = 0o077;
const HEAD = `# The users of \`berth dev --auth password\`, with their role in each project: admin, member or reader.
# The first project of a user is the default one. Changes count from the next start on.
`;

/**
 * Reads the users and the projects that they name. Throws a `SettingsError` for a file that cannot be read, that other users of this
 * machine may read, or that contains anything else. No error contains a password.
 */
export function readUsersFile(path: string): UsersFile {
  const refused = (why: string) => new SettingsError(`BERTH_USERS_FILE (--users-file) ${JSON.stringify(path)} ${why}`);
  let text: string;
  try {
    if ((statSync(path).mode & OTHERS) !== 0)
      throw refused("holds passwords and can be read by other users of this machine: chmod 600 it");
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw refused(`cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown error"}`);
  }
  const document = parsed(text);
  if (!Value.Check(UsersFile, document)) {
    const [error] = Value.Errors(UsersFile, document);
    const place = error?.instancePath.slice(1).replaceAll("/", ".") || "the document";
    throw refused(`is not a list of users: ${place} ${error?.message ?? "is not as it should be"}`);
  }
  const names = document.users.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw refused(`names the user ${twice} twice`);
  return document;
}

/** Writes a file with an administrator and an ordinary user, whose passwords are random, readable for its owner alone. Never replaces a file. */
export function writeUsersFile(path: string): void {
  const users: UsersFile["users"] = [
    { name: "admin", password: randomPassword(), projects: { admin: "admin", demo: "admin" } },
    { name: "demo", password: randomPassword(), projects: { demo: "member" } },
  ];
  // Written under another name first, so that no death of this process leaves half a file, which the next start would refuse.
  const fresh = `${path}.${randomUUID()}`;
  writeFileSync(fresh, HEAD + stringify({ users }), { mode: 0o600, flag: "wx" });
  try {
    linkSync(fresh, path);
  } finally {
    unlinkSync(fresh);
  }
}

const randomPassword = (): string => randomBytes(18).toString("base64url");

/** The message of a YAML error may quote the text, so it is not shown. */
function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return null;
  }
}
