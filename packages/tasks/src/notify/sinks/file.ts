/** Notifications as files in a folder: each appears whole or not at all, under a name of its own, and the oldest go. */
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { NotificationName } from "../names.ts";
import type { Outgoing, SendResult, Sink } from "../sink.ts";

export interface FileSinkOptions {
  readonly name: string;
  readonly folder: string;
  readonly events: ReadonlySet<NotificationName>;
  readonly prefix?: string;
  /** How many files stay. */
  readonly keep?: number;
}

const DEFAULT_PREFIX = "heddle";
const DEFAULT_KEEP = 1_000;
/** Looking through the folder for what may go costs more than a file too many. */
const WRITES_BETWEEN_CLEANING = 50;

export function fileSink({
  name,
  folder,
  events,
  prefix = DEFAULT_PREFIX,
  keep = DEFAULT_KEEP,
}: FileSinkOptions): Sink {
  let writes = 0;
  return {
    name,
    kind: "file",
    target: folder,
    events,
    secrets: [],
    async send(notification): Promise<SendResult> {
      const file = path.join(folder, fileName(prefix, notification));
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeWhole(file, `${JSON.stringify(notification.payload, undefined, 2)}\n`);
      if (writes % Math.min(WRITES_BETWEEN_CLEANING, keep) === 0) await clean(folder, prefix, keep);
      writes += 1;
      return { kind: "delivered", message: path.basename(file) };
    },
  };
}

/** The time is that of the event and the end is the id, so that a second try writes the same file. */
function fileName(prefix: string, { id, event, payload }: Outgoing): string {
  const seconds = payload["timestamp"];
  const at = new Date(typeof seconds === "number" ? Math.round(seconds * 1000) : 0).toISOString();
  const stamp = at.slice(0, 19).replaceAll(/[-:]/g, "");
  return `${prefix}-${event}-${stamp}-${at.slice(20, 23)}-${id}.json`;
}

async function writeWhole(file: string, text: string): Promise<void> {
  const draft = path.join(path.dirname(file), `.${path.basename(file)}.partial`);
  try {
    await using handle = await open(draft, "w", 0o600);
    await handle.writeFile(text);
    await handle.sync();
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await rename(draft, file);
}

async function clean(folder: string, prefix: string, keep: number): Promise<void> {
  const own = (await readdir(folder)).flatMap((name) => {
    const stamp = name.startsWith(`${prefix}-`) ? STAMPED.exec(name)?.[1] : undefined;
    return stamp === undefined ? [] : [{ name, stamp }];
  });
  const oldestFirst = own.toSorted((a, b) => (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0));
  for (const { name } of oldestFirst.slice(0, Math.max(0, own.length - keep))) {
    await rm(path.join(folder, name), { force: true });
  }
}

/** Time, milliseconds and id sort as they happened. */
const STAMPED = /-(\d{8}T\d{6}-\d{3}-ntf_[0-9a-f-]+)\.json$/;
