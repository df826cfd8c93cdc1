/**
 * One owner per store: a server claims the home, and a second one is refused with the first one's name. `exec` needs no
 * claim, because the journal takes several writers. A claim is a numbered file, made by one atomic link; it is judged
 * by the identity of its process, never by its age. Where that identity means nothing (another pid namespace, no
 * /proc), a socket of the owner tells: the kernel refuses it once its process has ended.
 */
import { mkdir, link, readdir, readFile, rm, unlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { HeddleError, uuidv7, type Holder } from "@heddle/protocol";
import { isAnswered } from "./answered-socket.ts";
import { stateOf, thisHolder } from "./holder.ts";

export interface StoreClaim extends AsyncDisposable {
  readonly number: number;
}

interface Found {
  readonly number: number;
  readonly what: string;
  readonly holder: Holder | undefined;
  readonly socket: string;
}

const FOLDER = "owner";
/** Each try loses to another process; more than this do not start at once. */
const MAX_TRIES = 100;
/** The kernel allows no longer names. */
const MAX_SOCKET_BYTES = 107;

/** `what`: how the owner is named to others, such as `heddle serve`. Throws `store.owned` while another owner lives. */
export async function claimStore(home: string, what: string): Promise<StoreClaim> {
  const folder = join(home, FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await using unless = new AsyncDisposableStack();
  const { server, socket } = await listen(folder);
  unless.defer(() => close(server));
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const claims = await readClaims(folder);
    for (const claim of claims) await refuseLiving(claim, home);
    const number = Math.max(0, ...claims.map((claim) => claim.number)) + 1;
    if (!(await make(folder, number, JSON.stringify({ what, holder: thisHolder(), socket })))) continue;
    for (const claim of claims) await clean(folder, claim);
    unless.move();
    return { number, [Symbol.asyncDispose]: () => release(folder, number, server) };
  }
  throw new HeddleError("store.busy", `${home} is claimed by one server after another; try again`);
}

/** Listens before the claim exists, so that every visible claim can be tested. `socket`: "" where its name is too long. */
async function listen(folder: string): Promise<{ readonly server: Server; readonly socket: string }> {
  const server = createServer((client) => client.destroy());
  const socket = `${uuidv7()}.sock`;
  if (Buffer.byteLength(join(folder, socket)) > MAX_SOCKET_BYTES) return { server, socket: "" };
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(join(folder, socket), resolve);
  }).catch((cause: unknown) => {
    throw new HeddleError("store.failed", `${folder} cannot be written`, { cause });
  });
  server.unref();
  return { server, socket };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

async function clean(folder: string, { number, socket }: Found): Promise<void> {
  await rm(join(folder, String(number)), { force: true });
  if (/^[0-9a-f-]+\.sock$/.test(socket)) await rm(join(folder, socket), { force: true });
}

/** The number stays taken: a process that looked just before must not get it again. */
async function release(folder: string, number: number, server: Server): Promise<void> {
  await writeFile(join(folder, String(number)), "", { mode: 0o600 }).catch(() => undefined);
  await close(server);
}

async function make(folder: string, number: number, content: string): Promise<boolean> {
  const draft = join(folder, `draft-${uuidv7()}`);
  await writeFile(draft, content, { mode: 0o600, flag: "wx" });
  try {
    // The name appears with its whole content, or not at all.
    await link(draft, join(folder, String(number)));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw new HeddleError("store.failed", `${folder} cannot be written`, { cause: error });
  } finally {
    await unlink(draft);
  }
}

async function readClaims(folder: string): Promise<readonly Found[]> {
  const names = (await readdir(folder)).filter((name) => /^\d+$/.test(name));
  return Promise.all(names.map((name) => readClaim(folder, name)));
}

async function readClaim(folder: string, name: string): Promise<Found> {
  const text = await readFile(join(folder, name), "utf8").catch(() => "");
  return { number: Number(name), ...parse(text) };
}

/** Empty or unreadable: released, or removed since it was listed. */
function parse(text: string): Omit<Found, "number"> {
  try {
    const { what, holder, socket } = record(JSON.parse(text));
    return { what: String(what), holder: holderFrom(record(holder)), socket: typeof socket === "string" ? socket : "" };
  } catch {
    return { what: "", holder: undefined, socket: "" };
  }
}

/** By hand: every run loads this file, and none of them otherwise needs schemas. */
function holderFrom({ pid, startTicks, bootId, pidNamespace }: Readonly<Record<string, unknown>>): Holder | undefined {
  if (typeof pid !== "number" || typeof startTicks !== "string") return undefined;
  if (typeof bootId !== "string" || typeof pidNamespace !== "string") return undefined;
  return { pid, startTicks, bootId, pidNamespace };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

async function refuseLiving({ what, holder, number, socket }: Found, home: string): Promise<void> {
  if (holder === undefined) return;
  const folder = join(home, FOLDER);
  const state = stateOf(holder);
  if (state === "dead" || (state === "unknown" && socket !== "" && !(await isAnswered(join(folder, socket))))) return;
  const isSeen = state === "alive" || socket !== "";
  const hint = isSeen
    ? "stop it first, or use another HEDDLE_HOME"
    : `whether it still runs cannot be seen from here; if it does not, remove ${join(folder, String(number))}`;
  throw new HeddleError("store.owned", `${home} belongs to ${what} (process ${holder.pid}); ${hint}`, {
    details: { pid: holder.pid, what, number },
  });
}
