/** An editor at `heddle acp`, on the standard streams of a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Dialled, Received } from "./dialled.ts";
import { LAUNCHER, type World } from "./world.ts";

/** A process of its own beside the server, as an editor starts one. */
export async function editorDoor(world: World, model: readonly string[]) {
  const options = ["-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write"];
  const editor = openEditor(world, [...options, ...model]);
  await editor.call("initialize", { protocolVersion: 1, clientInfo: { name: "probe" } });
  const cwd = world.workspace;
  const prompt = (sessionId: string, text: string) =>
    editor.call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  const steered: Promise<unknown>[] = [];
  return {
    by: "user:owner",
    create: async () => idIn(await editor.call("session/new", { cwd, mcpServers: [] })),
    rename: (sessionId: string, title: string) => editor.call("session/set_title", { sessionId, title }),
    settings: (sessionId: string, value: string) =>
      editor.call("session/set_config_option", { sessionId, configId: "model", value }),
    async turn(id: string, text: string) {
      await prompt(id, text);
      await Promise.all(steered.splice(0));
    },
    // Answered with the end of the turn.
    async steer(id: string, _turnId: string, text: string) {
      steered.push(prompt(id, text));
    },
    async approve(sessionId: string) {
      const asked = await editor.waitFor(
        ({ method, params }) => method === "session/request_permission" && params?.["sessionId"] === sessionId,
      );
      editor.answer(asked.id, { outcome: { outcome: "selected", optionId: "allow" } });
    },
    async interrupt(sessionId: string) {
      editor.note("session/cancel", { sessionId });
    },
    fork: async (sessionId: string) => idIn(await editor.call("session/fork", { sessionId, cwd })),
    remove: (sessionId: string) => editor.call("session/delete", { sessionId }),
    [Symbol.asyncDispose]: () => editor[Symbol.asyncDispose](),
  };
}

interface Editor extends Omit<Dialled, typeof Symbol.dispose>, AsyncDisposable {
  /** Everything it was told, in order. */
  readonly received: readonly Received[];
  note(method: string, params: unknown): void;
}

export function openEditor(world: Pick<World, "workspace" | "env">, args: readonly string[]): Editor {
  const child = spawn(process.execPath, [LAUNCHER, "acp", ...args], {
    cwd: world.workspace,
    env: world.env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = once(child, "close");
  const { stdin, stdout } = child;
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  createInterface({ input: stdout }).on("line", (line) => {
    received.push(JSON.parse(line) as Received);
    for (const wake of waiting) wake();
    waiting.clear();
  });
  const send = (message: object): void => void stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const waitFor = async (fits: (one: Received) => boolean): Promise<Received> => {
    for (;;) {
      const found = received.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
  };
  let next = 1;
  return {
    received,
    waitFor,
    async call(method, params = {}) {
      const id = next++;
      send({ id, method, params });
      const { result, error } = await waitFor((one) => one.id === id && one.method === undefined);
      if (error !== undefined) throw new Error(`${method}: ${error.message}`);
      return result;
    },
    note: (method, params) => send({ method, params }),
    answer: (id, result) => send({ id, result }),
    async [Symbol.asyncDispose]() {
      stdin.end();
      await ended;
    },
  };
}

function idIn(result: unknown): string {
  if (typeof result === "object" && result !== null && "sessionId" in result) return String(result.sessionId);
  throw new Error(`there is no session in ${JSON.stringify(result)}`);
}
