import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { removeCluster } from "../../adapters/postgres/embedded/embedded-cluster.ts";
import { ServiceProcess } from "../../chaos/local/service-process.ts";
import type { Answer } from "./samples/answer.ts";

export interface DevUser {
  readonly name: string;
  readonly password: string;
  readonly project: string;
  readonly role: "admin" | "member" | "reader";
}

/** A cloud of `berth dev --auth password` with users of its own, four hosts that pretend to build, and images with data. */
export interface DevCloud {
  readonly url: string;
  /** The directory of the cloud's data, which is removed when the cloud stops. */
  readonly directory: string;
  /** Makes a call as the first user and returns the body of the answer. Throws if the answer is no success. */
  call(method: string, path: string, body: unknown, type?: string): Promise<Answer>;
  stop(): Promise<void>;
}

/** Starts the cloud. Cost: some ten seconds. */
export async function startDevCloud(users: readonly DevUser[], flags: readonly string[] = []): Promise<DevCloud> {
  const directory = await mkdtemp(join(tmpdir(), "berth-dev-"));
  await mkdir(join(directory, "images"));
  const usersFile = join(directory, "users.yaml");
  const listed = users.map(({ name, password, project, role }) => ({ name, password, projects: { [project]: role } }));
  await writeFile(usersFile, stringify({ users: listed }), { mode: 0o600 });
  const files = ["--users-file", usersFile, "--images-path", join(directory, "images"), "--data-dir", directory];
  const size = ["--cells", "1", "--hosts", "4", "--port", "0", "--log-level", "error"];
  const cloud = new ServiceProcess({
    name: "dev",
    argv: ["dev", "--auth", "password", ...files, ...size, ...flags],
    env: () => ({}),
  });
  const stop = async () => {
    await cloud.kill();
    removeCluster(join(directory, "postgres"));
    removeCluster(directory);
  };
  try {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await cloud.start())?.[0];
    if (url === undefined) throw new Error("berth dev has not said where it serves");
    const token = await logIn(url, users[0] as DevUser);
    const call: DevCloud["call"] = async (method, path, body, type = "application/json") => {
      const headers = { "x-auth-token": token, "content-type": type };
      const sent = type === "application/json" ? JSON.stringify(body) : String(body);
      const answer = await fetch(`${url}${path}`, { method, headers, body: sent });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return text === "" ? {} : JSON.parse(text);
    };
    return { url, directory, call, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function logIn(url: string, { name, password, project }: DevUser): Promise<string> {
  const domain = { id: "default" };
  const auth = {
    identity: { methods: ["password"], password: { user: { name, password, domain } } },
    scope: { project: { name: project, domain } },
  };
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/identity/v3/auth/tokens`, {
    method: "POST",
    headers,
    body: JSON.stringify({ auth }),
  });
  const token = answer.headers.get("x-subject-token");
  if (token === null) throw new Error(`no login: ${answer.status} ${await answer.text()}`);
  return token;
}
