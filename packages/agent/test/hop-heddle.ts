/** A test Heddle with envelopes of its user: `look` has edges of every kind to `edit` and elsewhere. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventBody, EventOf, EventType } from "@heddle/protocol";
import { openTestHeddle, type TestHeddle, type TestHeddleOptions } from "./test-heddle.ts";

const LOOK = `
extends: explore
outcome: { type: object, properties: { found: { type: array } }, required: [found] }
exits:
  - { to: edit, by: [model, user, task], approval: auto }
  - { to: review, by: [model], approval: ask }
  - { to: full, by: [user], approval: auto }
  - { to: test, by: [model], approval: auto, guards: [{ kind: command, command: [/bin/sh, -c, "test -e ready"] }] }
  - { to: plan, by: [model], approval: auto, guards: [{ kind: evidence, query: { type: check.passed } }] }
  - { to: reflect, by: [model], approval: auto, guards: [{ kind: outcome }] }
  - to: deploy
    by: [model]
    approval: auto
    carry: { type: object, properties: { plan: { type: string } }, required: [plan], additionalProperties: false }
`;

export interface HopHeddle extends TestHeddle {
  bodies<T extends EventType>(threadId: string, ...types: readonly T[]): Promise<readonly EventOf<T>[]>;
  /** A turn with what the thread says, as a door would start it. */
  again(threadId: string): Promise<void>;
  /** The envelopes that the thread has been in, in order. */
  path(threadId: string): Promise<readonly string[]>;
}

export async function openHopHeddle(options: TestHeddleOptions = {}): Promise<HopHeddle> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "heddle-hops-")));
  await mkdir(join(folder, "home", "envelopes"), { recursive: true, mode: 0o700 });
  await writeFile(join(folder, "home", "envelopes", "look.yaml"), LOOK);
  const settings = { envelope: "look", ...options.settings };
  const t = await openTestHeddle({ ...options, folder, settings });
  const bodies = async <T extends EventType>(threadId: string, ...types: readonly T[]) => {
    const isWanted = (body: EventBody): body is EventOf<T> => types.some((type) => type === body.type);
    return (await t.events(threadId)).map(({ body }) => body).filter(isWanted);
  };
  return {
    ...t,
    bodies,
    async again(threadId) {
      const last = (await t.heddle.lastSettings(threadId)) ?? t.settings;
      const input = [{ type: "text" as const, text: "again" }];
      await (
        await t.heddle.as("user:owner").startTurn({ thread: threadId, input, settings: last })
      ).done;
    },
    path: async (threadId) => (await bodies(threadId, "envelope.entered")).map(({ envelope }) => envelope.id),
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

export const hopCall = (to: string, more: object = {}) => ({ tool: "hop", args: { to, reason: "because", ...more } });
export const runCall = (cmd: string) => ({ tool: "exec_command", args: { cmd } });
