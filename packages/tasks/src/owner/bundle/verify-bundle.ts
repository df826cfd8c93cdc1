/**
 * Judges a task again from a bundle, in a home of its own that is removed afterwards. The bundle is somebody else's: its
 * commands run in the sandbox whatever its spec allows, without the network, and see neither Heddle's home nor the user's.
 */
import { mkdir, mkdtemp, realpath, stat } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { isSealedBy, verifyExport, type ExportReport } from "@heddle/journal";
import {
  HeddleError,
  isTaskEvent,
  nextTask,
  toHeddleError,
  type StoredEvent,
  type TaskEventBody,
  type TaskRecord,
} from "@heddle/protocol";
import { heddleFolders, temporaryFolder } from "@heddle/tools";
import { checkEvent } from "@heddle/protocol/check-event";
import { leavesOf } from "../../checks/names.ts";
import { removeTree } from "../../tree/remove-tree.ts";
import { missing, verifyAgain, type Reverified } from "../verify-again.ts";
import { keptBaseline, type TaskLog } from "../recorded.ts";
import { unpackBundle, type Unpacked } from "./read-bundle.ts";

export interface BundleOptions {
  readonly file: string;
  /** Heddle's own of this user; no command sees it. */
  readonly home: string;
  readonly signal: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  readonly onCheck?: (name: string) => void;
}

export interface BundleVerdict extends Reverified {
  readonly taskId?: string;
  readonly name?: string;
  /** Whose signature the record bears; whether that key is the right one only the reader knows. */
  readonly keyId?: string;
  /** Where its checks ran, when not where the task worked. */
  readonly workspace?: string;
}

export async function verifyBundle({
  file,
  home,
  signal,
  env = process.env,
  onCheck,
}: BundleOptions): Promise<BundleVerdict> {
  const own = await mkdtemp(join(temporaryFolder(), "heddle-bundle-"));
  try {
    const unpacked = join(own, "home");
    await mkdir(join(unpacked, "rooms"), { recursive: true, mode: 0o700 });
    const { taskId, record, ...end } = await unpackBundle(file, unpacked, signal);
    const report = await verifyExport(record);
    const doubt = report.thread === taskId ? doubtOf(report, end) : "its record is of something else";
    if (doubt !== undefined) return missing(doubt);
    const { keyId } = report;
    const log = eventsIn(record, taskId);
    const task = confined(folded(log));
    const { name } = task.spec;
    const who = { taskId, name, ...(keyId === undefined ? {} : { keyId }) };
    const open = leavesOf(task.spec.checks).find(
      (check) => check.kind === "http" || ("network" in check && check.network),
    );
    if (open !== undefined)
      return { ...missing(`its check ${open.kind} reaches the network, which checks of a bundle do not`), ...who };
    const workspace = await workspaceFor(keptBaseline(log)?.folder, own);
    const found = await verifyAgain({
      home: unpacked,
      task,
      log,
      signal,
      masked: heddleFolders(home),
      emptied: await userHomes(env),
      env: { ...env, HOME: PRIVATE_HOME },
      ...workspace,
      ...(onCheck === undefined ? {} : { onCheck }),
    });
    return { ...found, ...who, ...workspace };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = toHeddleError(error);
    if (code !== "store.damaged" && code !== "store.newer" && code !== "task.illegal" && code !== "task.stale")
      throw error;
    return missing(message);
  } finally {
    await removeTree(own, new AbortController().signal);
  }
}

/** Every event is signed, and so are all lines of the bundle, by the same key; undefined: they are. */
function doubtOf(
  { damage, publicKey, keyId, unsigned }: ExportReport,
  { sha256, signature }: Pick<Unpacked, "sha256" | "signature">,
): string | undefined {
  const [[first], [end]] = [damage, unsigned];
  if (first !== undefined) return `its record was changed: ${first.message}`;
  if (publicKey === undefined) return "nothing in its record is signed, so that anybody could have written it";
  if (end !== undefined)
    return `its record is signed up to event ${end.signedTo} of ${end.lastVersion}; anybody could have written the others`;
  if (signature !== undefined && isSealedBy(publicKey, sha256, signature)) return undefined;
  return `its record is signed by key ${keyId}, and the bundle as a whole is not: anybody could have changed its files`;
}

/** Every sandbox has one of its own here, empty when it opens. */
const PRIVATE_HOME = "/tmp";

/** As the environment has it, and as the system does. */
async function userHomes(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const named = [env["HOME"] ?? "", homedir(), homeInSystem()].filter((path) => isAbsolute(path));
  const real = await Promise.all(named.map((path) => realpath(path).catch(() => path)));
  // An account without a home has the root of the machine for one.
  return [...new Set(real)].filter((path) => path !== "/");
}

/** A number that no account has can run programs too. */
function homeInSystem(): string {
  try {
    return userInfo().homedir;
  } catch {
    return "";
  }
}

/** Commands may hold whole paths, so that the same one is best; only where it is a folder of this user's. */
async function workspaceFor(recorded: string | undefined, own: string): Promise<{ readonly workspace?: string }> {
  const found = recorded === undefined ? undefined : await stat(recorded).catch(() => undefined);
  const isOwn =
    found?.isDirectory() === true && found.uid === process.getuid?.() && (await realpath(recorded ?? "")) === recorded;
  if (isOwn && dirname(dirname(recorded)) !== dirname(recorded)) return {};
  const workspace = join(own, "workspace");
  await mkdir(workspace, { mode: 0o700 });
  return { workspace };
}

function confined(task: TaskRecord): TaskRecord {
  const { setup } = task.spec;
  const spec = {
    ...task.spec,
    sandbox: "workspace-write" as const,
    ...(setup === undefined ? {} : { setup: { ...setup, network: false } }),
  };
  return { ...task, spec };
}

function folded(log: TaskLog): TaskRecord {
  let task: TaskRecord | undefined;
  for (const event of log) task = nextTask(task, event);
  if (task === undefined) throw new HeddleError("store.damaged", "its record is empty");
  return task;
}

/** The chain holds; whether these are events that Heddle could have written is looked at too. */
function eventsIn(record: readonly string[], taskId: string): TaskLog {
  const events: StoredEvent<TaskEventBody>[] = [];
  for (const line of record) {
    const row = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (row["kind"] !== "event" || row["stream"] !== taskId) continue;
    const body = checkEvent(JSON.parse(String(row["body"])));
    if (!isTaskEvent(body)) throw new HeddleError("store.damaged", "its record holds events of something else");
    events.push({
      position: Number(row["position"]),
      stream: taskId,
      version: Number(row["version"]),
      id: String(row["id"]),
      at: Number(row["at"]),
      author: "system",
      body,
      hash: String(row["hash"]),
    });
  }
  return events;
}
