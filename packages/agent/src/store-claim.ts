/**
 * One owner a store: a long-lived server says in the home that it is there, and a second one is refused with the first
 * one's name. Runs beside it (`exec`) need no claim, because the journal takes several writers. Each claim has a number
 * of its own, made with one atomic link: of two that find a dead owner, one gets the next number and the other finds it
 * there. A claim is judged by the identity of its process, never by its age, so a stopped owner is still the owner.
 */
import { mkdir, link, readdir, readFile, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, uuidv7, type Holder } from "@heddle/protocol";
import { stateOf, thisHolder } from "./holder.ts";

export interface StoreClaim extends AsyncDisposable {
  /** Higher than that of every owner before. */
  readonly number: number;
}

interface Found {
  readonly number: number;
  readonly what: string;
  readonly holder: Holder | undefined;
}

const FOLDER = "owner";
/** Each try loses to another process that won; more of them than this do not start at once. */
const MAX_TRIES = 100;

/** `what`: how the owner is named to others: `heddle serve`. Throws `store.owned` while another one lives. */
export async function claimStore(home: string, what: string): Promise<StoreClaim> {
  const folder = join(home, FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const claims = await readClaims(folder);
    for (const claim of claims) refuseLiving(claim, home);
    const number = Math.max(0, ...claims.map((claim) => claim.number)) + 1;
    if (!(await make(folder, number, what))) continue;
    for (const claim of claims) await rm(join(folder, String(claim.number)), { force: true });
    return { number, [Symbol.asyncDispose]: () => release(folder, number) };
  }
  throw new HeddleError("store.busy", `${home} is claimed by one server after another; try again`);
}

/** The number stays taken: whoever looked just before must not get it again. */
async function release(folder: string, number: number): Promise<void> {
  await writeFile(join(folder, String(number)), "", { mode: 0o600 }).catch(() => undefined);
}

/** False: somebody else has this number. */
async function make(folder: string, number: number, what: string): Promise<boolean> {
  const draft = join(folder, `draft-${uuidv7()}`);
  await writeFile(draft, JSON.stringify({ what, holder: thisHolder() }), { mode: 0o600, flag: "wx" });
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
  const { what, holder } = parse(text);
  return { number: Number(name), what, holder };
}

/** Empty or unreadable: released, or gone since it was listed. */
function parse(text: string): Omit<Found, "number"> {
  try {
    const { what, holder } = record(JSON.parse(text));
    return { what: String(what), holder: holderFrom(record(holder)) };
  } catch {
    return { what: "", holder: undefined };
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

function refuseLiving({ what, holder, number }: Found, home: string): void {
  if (holder === undefined) return;
  const state = stateOf(holder);
  if (state === "dead") return;
  const hint =
    state === "alive"
      ? "stop it first, or use another HEDDLE_HOME"
      : `whether it lives cannot be seen from here; if it does not, remove ${join(home, FOLDER, String(number))}`;
  throw new HeddleError("store.owned", `${home} belongs to ${what} (process ${holder.pid}); ${hint}`, {
    details: { pid: holder.pid, what, number },
  });
}
