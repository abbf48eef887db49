import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { UsersFile } from "./users-file.ts";

export type RoleName = "admin" | "member" | "reader";

/** A project, a user or a role: everything here lies in the domain `default`. */
export interface Named {
  readonly id: string;
  readonly name: string;
}

export interface KnownUser extends Named {
  readonly defaultProjectId: string;
  /** The roles in each project, by the project's id, with those that a role implies. */
  readonly roles: ReadonlyMap<string, readonly RoleName[]>;
}

/** Each role implies those after it, as in a Keystone that was bootstrapped. */
const ROLE_NAMES: readonly RoleName[] = ["admin", "member", "reader"];

/**
 * The users, projects and roles of the Identity API, which never change while the process runs. Ids are derived from names, so that they
 * are the same after a restart.
 */
export class UserDirectory {
  readonly users: readonly KnownUser[];
  readonly projects: readonly Named[];
  readonly roles: readonly Named[] = ROLE_NAMES.map((name) => ({ id: idOf("role", name), name }));
  /** Passwords are kept as keyed hashes, whose key exists only in this process. */
  readonly #key = randomBytes(32);
  readonly #passwords: ReadonlyMap<string, Buffer>;
  /** A password is compared with this hash when the user does not exist. */
  readonly #ofNobody = this.#hash("");

  constructor({ users }: UsersFile) {
    const projectNames = new Set(users.flatMap((user) => Object.keys(user.projects)));
    this.projects = Array.from(projectNames, (name) => ({ id: idOf("project", name), name }));
    this.users = users.map(({ name, projects }) => {
      const roles = Object.entries(projects).map(
        ([project, role]) => [idOf("project", project), ROLE_NAMES.slice(ROLE_NAMES.indexOf(role))] as const,
      );
      return { id: idOf("user", name), name, defaultProjectId: roles[0]?.[0] ?? "", roles: new Map(roles) };
    });
    this.#passwords = new Map(users.map(({ name, password }) => [idOf("user", name), this.#hash(password)]));
  }

  user(by: { readonly id?: string; readonly name?: string }): KnownUser | null {
    return find(this.users, by);
  }

  project(by: { readonly id?: string; readonly name?: string }): Named | null {
    return find(this.projects, by);
  }

  /** The time that this takes reveals neither the password nor whether the user exists. */
  isPassword(user: KnownUser | null, password: string): boolean {
    const expected = (user && this.#passwords.get(user.id)) ?? this.#ofNobody;
    const isEqual = timingSafeEqual(this.#hash(password), expected);
    return user !== null && isEqual;
  }

  #hash(password: string): Buffer {
    return createHmac("sha256", this.#key).update(password).digest();
  }
}

/** Finds by id, else by name. Nothing is found when neither is given. */
function find<Item extends Named>(items: readonly Item[], by: { readonly id?: string; readonly name?: string }) {
  if (by.id !== undefined) return items.find(({ id }) => id === by.id) ?? null;
  return items.find(({ name }) => name === by.name) ?? null;
}

/** Returns an id as Keystone makes them: 32 hexadecimal digits. */
export function idOf(kind: "user" | "project" | "role" | "service" | "endpoint", name: string): string {
  return hash("sha256", `berth ${kind} ${name}`).slice(0, 32);
}
