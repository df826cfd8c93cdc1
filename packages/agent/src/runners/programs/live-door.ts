/**
 * Where a person joins a turn that runs, in the agent's own interface: a socket in the program's own folder, which exists inside
 * the sandbox of the turn and outside, and leads to the program's server. The file that says so is in Heddle's home, which no
 * agent sees; whoever may read that is the owner.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { z } from "zod";
import type { ReadJournal } from "../../threads/history.ts";
import { readLastSettings } from "../../threads/past.ts";
import { EMBEDDED, type RunnerConfigs } from "../config.ts";
import { ownFolders, programOf, requireProgram, type AgentProgram } from "./find-program.ts";
import { liveFile } from "./live-file.ts";
import { PASSWORD } from "./opencode-forwarder.ts";

const LiveDoorFile = z.object({
  runner: z.string(),
  /** The conversation that the turn continues. */
  handle: z.string(),
  socket: z.string(),
  user: z.string(),
  /** Of the turn alone; absent: the owner's variable has it. */
  password: z.string().optional(),
});
type LiveDoorFile = z.infer<typeof LiveDoorFile>;

/** Of a path of a socket: the kernel takes 107 bytes. */
const MAX_SOCKET_BYTES = 100;
const USER = "opencode";

export interface LiveDoor {
  readonly socket: string;
  /** For a server of the turn's own. */
  readonly password: string;
  /** Once the conversation is known. */
  open(handle: string): Promise<void>;
  close(): Promise<void>;
}

interface DoorOf {
  readonly program: AgentProgram;
  readonly home: string;
  readonly turnId: string;
}

/** undefined: its program has no folder of its own, or one whose path is too long for a socket. */
export function liveDoorOf({ program, home, turnId }: DoorOf): LiveDoor | undefined {
  const folder = ownFolders(program).at(-1);
  const socket = folder === undefined ? "" : join(folder, `heddle-${turnId.slice(-12)}.sock`);
  if (folder === undefined || Buffer.byteLength(socket) > MAX_SOCKET_BYTES) return undefined;
  const password = randomBytes(24).toString("hex");
  const file = liveFile(home, turnId);
  return {
    socket,
    password,
    async open(handle) {
      const { runner, server } = program;
      const who = server === undefined ? { user: USER, password } : { user: server.user };
      const door: LiveDoorFile = { runner, handle, socket, ...who };
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(file, JSON.stringify(door), { mode: 0o600 });
    },
    async close() {
      await rm(file, { force: true });
      await rm(socket, { force: true });
    },
  };
}

/** What a person starts to join, as long as it is open. */
interface JoiningProgram extends AsyncDisposable {
  readonly argv: readonly string[];
  /** Beside those of the person. */
  readonly variables: Readonly<Record<string, string>>;
}

interface Joining {
  readonly journal: ReadJournal;
  readonly home: string;
  readonly runners: RunnerConfigs;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** `turn.not-found`: no turn runs. `runner.unsupported`: its agent lets nobody join. */
export async function joinTurn(
  { journal, home, runners, env }: Joining,
  threadId: string,
): Promise<JoiningProgram & { readonly turnId: string }> {
  const last = await journal.threads.lastTurn(threadId);
  const instead = `heddle attach ${threadId} takes it over`;
  if (last?.status !== "open")
    throw new HeddleError("turn.not-found", `no turn runs in thread ${threadId} that a person could join; ${instead}`);
  const { runner = EMBEDDED } = (await readLastSettings(journal, threadId)) ?? {};
  const text = await readFile(liveFile(home, last.id), "utf8").catch(() => undefined);
  const door = text === undefined ? undefined : LiveDoorFile.safeParse(JSON.parse(text)).data;
  if (door === undefined) {
    const why = `nobody can join turn ${last.id} of ${runner} while it runs: of the agents that Heddle drives only OpenCode lets a second interface in`;
    throw new HeddleError("runner.unsupported", `${why}; ${instead}, after stopping what runs`, {
      details: { runner },
    });
  }
  const program = programOf(door.runner, runners[door.runner] ?? {}, env);
  return { turnId: last.id, ...(await openJoining(door, { program, env })) };
}

/** Its program knows addresses, not sockets: an address on loopback, for this program alone, leads to the socket. */
async function openJoining(
  door: LiveDoorFile,
  { program, env }: { readonly program: AgentProgram; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<JoiningProgram> {
  const file = requireProgram(program, env);
  const ends = new Set<Socket>();
  const server = createServer((one) => {
    const to = connect(door.socket);
    for (const end of [one, to]) {
      ends.add(end);
      end
        .on("error", () => undefined)
        .on("close", () => {
          ends.delete(end);
          one.destroy();
          to.destroy();
        });
    }
    one.pipe(to).pipe(one);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // The turn waits from now on, however long the program takes to come up.
  const presence = connect(door.socket).on("error", () => undefined);
  ends.add(presence);
  const address = server.address();
  if (address === null || typeof address === "string") throw new HeddleError("internal", "no port was given");
  const password = door.password ?? env[program.server?.passwordName ?? ""] ?? "";
  return {
    argv: [file, "attach", `http://127.0.0.1:${address.port}`, "-s", door.handle],
    variables: { [PASSWORD]: password, OPENCODE_SERVER_USERNAME: door.user },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const end of ends) end.destroy();
      await closed;
    },
  };
}
