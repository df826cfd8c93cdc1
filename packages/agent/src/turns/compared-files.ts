/**
 * Whether files of the workspace change while a turn runs in an envelope that does not write them: its commands cannot, so it was
 * somebody else. By what the file system says of each file, never by content: a list is begun while the model is awaited, is there
 * before the first call, and is compared when the turn ends or hops on. Both lists are bounded, and what is beyond is said to be
 * not examined. A turn without calls has none.
 */
import path from "node:path";
import type { Envelope, EventBody, EventOf } from "@heddle/protocol";
import type { BareIo, TurnRequest } from "../runners/runner.ts";
import type { FileList, ListLimits } from "./file-lists.ts";

type Compared = EventOf<"files.compared">;

/** A list of them takes some 100 ms on a slow machine; a checkout without its dependencies is smaller. */
const LIMITS: ListLimits = { maxFiles: 20_000, maxMs: 100 };
/** An answer that comes sooner leaves no time for it. */
const AHEAD_MS = 40;

export interface ComparedFiles extends Disposable {
  /** The turn's io, under which the list is there before a call or an agent program is on record. */
  watching(io: BareIo): BareIo;
  /** With what was found in front of the envelope that is left, in the same append. */
  around(events: readonly EventBody[]): Promise<readonly EventBody[]>;
  /** undefined: nothing was called, or the files may be written. */
  end(): Promise<Compared | undefined>;
}

type Turn = Pick<TurnRequest, "turnId" | "workspace"> & { readonly envelope: Envelope };

export function compareFiles({ turnId, workspace, envelope: initial }: Turn, limits = LIMITS): ComparedFiles {
  let skipped = skippedIn(workspace, initial);
  let before: Promise<FileList> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const list = async (skip: ReadonlySet<string>): Promise<FileList> =>
    (await import("./file-lists.ts")).listFiles(workspace, skip, limits);
  const begin = async (): Promise<void> => {
    if (skipped !== undefined) await (before ??= list(skipped));
  };
  async function end(): Promise<Compared | undefined> {
    clearTimeout(timer);
    timer = undefined;
    const [first, skip] = [await before, skipped];
    before = undefined;
    if (first === undefined || skip === undefined || !hasActed) return undefined;
    hasActed = false;
    const { difference } = await import("./file-lists.ts");
    return {
      type: "files.compared",
      v: 1,
      turnId,
      folder: workspace,
      ...difference(first, await list(skip)),
    };
  }
  let hasActed = false;
  return {
    watching: (io) => ({
      ...io,
      async record(events, author) {
        if (events.some(({ type }) => type === "tool.intended" || type === "agent.started")) {
          hasActed = true;
          await begin();
        }
        const stored = await io.record(events, author);
        if (skipped !== undefined && before === undefined && events.some(({ type }) => type === "model.requested"))
          // A failure is that of the call that needs the list.
          timer ??= setTimeout(() => void begin().catch(() => undefined), AHEAD_MS).unref();
        return stored;
      },
    }),
    async around(events) {
      const entered = events.find((event) => event.type === "envelope.entered");
      if (entered?.type !== "envelope.entered") return events;
      const compared = await end();
      skipped = skippedIn(workspace, entered.envelope);
      return compared === undefined ? events : [compared, ...events];
    },
    end,
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/**
 * Folders that are left out: what may be written there, and what does not exist for the agent. undefined: all may be written, or
 * the envelope compares more itself.
 */
function skippedIn(
  workspace: string,
  { sandbox, writeRoots, masked, manifest }: Envelope,
): ReadonlySet<string> | undefined {
  const isOpen = manifest === true || sandbox === "off" || writeRoots.some((root) => isBelow(workspace, root));
  return isOpen ? undefined : new Set([...writeRoots, ...masked]);
}

function isBelow(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder.endsWith(path.sep) ? folder : `${folder}${path.sep}`);
}
