/**
 * Turns an order into a task, whether from a file, a request or a webhook. Where it runs, first wins:
 *
 *   thread     the order itself · the request · the default of the inbox
 *   workspace  the order itself · the request · the workspace of the thread · the default of the inbox
 *
 * Without a workspace there is no task; where roots are configured it must be in one of them.
 */
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import path from "node:path";
import { findThread } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { HeddleError, type TaskRecord } from "@heddle/protocol";
import type { TaskSource, TaskSpec, TaskSpecInput } from "@heddle/protocol/tasks";
import { refuseChangedSpec } from "../owner/changed-spec.ts";
import { requireAllowedWorkspace } from "../spec/allowed-roots.ts";
import { readSpec, type SpecText } from "../spec/read-spec.ts";
import type { Tasks } from "../open-tasks.ts";
import { endingOf } from "./order-names.ts";
import { withFrontMatter } from "./legacy-head.ts";

/** What all orders of a door share. */
export interface OrderDoor {
  readonly tasks: Tasks;
  readonly journal: Journal;
  /** Where the record of what agents left is; absent: orders are not files. */
  readonly home?: string | undefined;
  readonly defaultWorkspace?: string | undefined;
  readonly defaultThread?: string | undefined;
  /** Folders that workspaces must be in; absent: any. */
  readonly roots?: readonly string[] | undefined;
  /** For keys that an order leaves out. */
  readonly specDefaults?: Partial<TaskSpecInput> | undefined;
  /** The shortest interval of a schedule. */
  readonly minEveryMs?: number | undefined;
}

export interface Order {
  /** Its name; the extension tells the format, Markdown without one. */
  readonly file: string;
  readonly text: string | Uint8Array;
  /** Of its file; absent: it was not a file. */
  readonly path?: string;
  /** When that file last changed; absent: as it is now. */
  readonly changedAt?: number;
  readonly source: TaskSource;
  readonly key?: string;
  /** Sent beside its text. */
  readonly workspace?: string | undefined;
  readonly thread?: string | undefined;
}

export interface TakenOrder {
  readonly task: TaskRecord;
  readonly warnings: readonly string[];
}

/** Stands for a workspace that the order does not name; it exists everywhere, and no task works in it. */
const NOWHERE = path.parse(process.cwd()).root;
const MAX_NAME_CHARS = 80;
const UNNAMED = "order";

export async function takeOrder(door: OrderDoor, order: Order): Promise<TakenOrder> {
  const { spec, warnings } = await readOrder(door, order);
  await refuseLeft(door, order, spec);
  const task = await door.tasks.add({
    spec,
    source: order.source,
    ...(order.key === undefined ? {} : { key: order.key }),
  });
  return { task, warnings };
}

export interface ReadOrder {
  readonly spec: TaskSpec;
  readonly warnings: readonly string[];
}

/** The task that an order would become; `task.invalid` says all that is wrong with it. Nothing is stored. */
export async function readOrder(door: Omit<OrderDoor, "tasks">, order: Omit<Order, "source">): Promise<ReadOrder> {
  const { spec: given, warnings } = await parseOrder(door, order);
  const thread = given.thread === undefined ? undefined : await findThread(door.journal, given.thread);
  const workspace =
    given.workspace === NOWHERE ? (order.workspace ?? thread?.workspace ?? door.defaultWorkspace) : given.workspace;
  if (workspace === undefined) {
    throw new HeddleError(
      "task.invalid",
      "there is no workspace; write workspace: /the/folder at the head of the order",
    );
  }
  const spec: TaskSpec = {
    ...given,
    workspace: await existingFolder(workspace),
    ...(thread === undefined ? {} : { thread: thread.id }),
    ...(given.name === UNNAMED ? { name: firstLine(given.goal) } : {}),
  };
  requireAllowedWorkspace(spec.workspace, door.roots);
  return { spec, warnings };
}

/** A file that an agent wrote into an inbox is not an order. */
async function refuseLeft({ journal, home }: OrderDoor, order: Order, { workspace }: TaskSpec): Promise<void> {
  if (order.path === undefined || home === undefined) return;
  const sha256 = createHash("sha256").update(order.text).digest("hex");
  const help = "put it here again under another name when that task has ended if it is what you want";
  const { path: file, changedAt } = order;
  await refuseChangedSpec({ journal, home }, { file, sha256, changedAt, workspace, help });
}

/** An order is one task; a server that reads it does nothing else meanwhile. */
const MAX_ORDER_TOKENS = 20_000;

async function parseOrder(door: Omit<OrderDoor, "tasks">, order: Omit<Order, "source">): Promise<ReadOrder> {
  const thread = order.thread ?? door.defaultThread;
  const { specs, warnings } = readSpec(
    { file: order.file, ...(await writtenOrder(order)), folder: NOWHERE },
    {
      ...(door.minEveryMs === undefined ? {} : { minEveryMs: door.minEveryMs }),
      maxTokens: MAX_ORDER_TOKENS,
      defaults: {
        ...door.specDefaults,
        name: path.posix.basename(order.file, path.posix.extname(order.file)) || UNNAMED,
        workspace: NOWHERE,
        ...(thread === undefined ? {} : { thread }),
      },
    },
  );
  const [spec, second] = specs;
  if (spec === undefined || second !== undefined) {
    throw new HeddleError(
      "task.invalid",
      `an order is one task; write ${specs.length} files for ${specs.length} tasks`,
    );
  }
  return { spec, warnings };
}

async function writtenOrder({ file, text }: Pick<Order, "file" | "text">): Promise<Pick<SpecText, "text" | "format">> {
  switch (endingOf(file)) {
    case ".json":
    case ".yaml":
    case ".yml":
      return { text, format: "yaml" };
    case ".docx": {
      // Loaded only for the few orders that are documents.
      const { orderFromDocument } = await import("./docx/order-from-document.ts");
      return { text: orderFromDocument(file, Buffer.from(text)), format: "yaml" };
    }
    default:
      return { text: withFrontMatter(plainText(text)), format: "markdown" };
  }
}

function plainText(text: string | Uint8Array): string {
  if (typeof text === "string") return text;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
  } catch (error) {
    throw new HeddleError("task.invalid", "it is not UTF-8 text; save it as UTF-8", { cause: error });
  }
}

async function existingFolder(workspace: string): Promise<string> {
  const stats = await stat(workspace).catch(() => undefined);
  if (stats?.isDirectory() === true && path.isAbsolute(workspace)) return workspace;
  throw new HeddleError("task.invalid", `there is no folder ${workspace}; make it, or name another workspace`);
}

function firstLine(goal: string): string {
  const line =
    goal
      .split("\n")
      .find((one) => one.trim() !== "")
      ?.trim() ?? UNNAMED;
  return line.length <= MAX_NAME_CHARS ? line : `${line.slice(0, MAX_NAME_CHARS - 1)}…`;
}
