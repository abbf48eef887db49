import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LimitSource } from "../../core/stores/api/limit-source.ts";

export interface LimitSourceSubject {
  readonly source: LimitSource;
  /** Two projects of the cloud. */
  readonly projects: readonly [string, string];
  /** Sets the limit of a project, or (null) the registered one. */
  set(projectId: string | null, resource: string, limit: number): Promise<void>;
  close(): Promise<void>;
}

/** The guarantees of Keystone's client and of its in-process twin. */
export function limitSourceContract(name: string, makeSubject: () => Promise<LimitSourceSubject>): void {
  describe(`unified limits in ${name}`, () => {
    let subject: LimitSourceSubject;
    beforeEach(async () => {
      subject = await makeSubject();
    });
    afterEach(() => subject.close());

    test("a cloud without limits has none", async () => {
      expect([...(await subject.source.registered())]).toEqual([]);
      expect([...(await subject.source.ofProject(subject.projects[0]))]).toEqual([]);
    });

    test("registered limits and those of single projects are told apart, and a later one replaces an earlier one", async () => {
      const { source, set, projects } = subject;
      const [first, second] = projects;
      await set(null, "servers", 10);
      await set(null, "class:VCPU", 20);
      await set(first, "servers", 3);
      expect(await source.registered()).toEqual(
        new Map([
          ["class:VCPU", 20],
          ["servers", 10],
        ]),
      );
      expect(await source.ofProject(first)).toEqual(new Map([["servers", 3]]));
      expect(await source.ofProject(second)).toEqual(new Map());
      await set(first, "servers", -1);
      await set(null, "class:VCPU", 0);
      expect((await source.ofProject(first)).get("servers")).toBe(-1);
      expect((await source.registered()).get("class:VCPU")).toBe(0);
    });

    test("an unknown project has no limits of its own", async () => {
      expect(await subject.source.ofProject("00000000000000000000000000000000")).toEqual(new Map());
    });
  });
}
