/**
 * What checks are run on: the beginning with what was picked of the work. Files are read from the two in Heddle's own
 * process; every check that runs commands gets a throw-away room at the path of the workspace, above what `setup` left.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, type TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { RawPath } from "@heddle/tools/raw-path";
import type { RoomLayer } from "@heddle/tools/room";
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { isBroken, openRoomCommands, type Command, type RoomCommands, type RoomOptions } from "../checks/commands.ts";
import { leavesOf } from "../checks/names.ts";
import type { CheckRoom } from "../checks/run-check.ts";
import type { Change, FrozenWork, KeptTree } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { openRoomFiles, type RoomFiles } from "../tree/room-files.ts";
import { admit } from "./admit.ts";
import { runsCommands, seesOutside } from "./named-work.ts";
import { isRepository, layerOf, pickAll, timeOf } from "./pick.ts";
import { watchedLeft } from "./rests-on-left.ts";
import { openScratch, type Scratch } from "./scratch.ts";
import { addedBeside, setupChanges, type SetupChanges } from "./setup-changes.ts";
import { timeOfWork } from "../tree/time-of-work.ts";

export interface OpenCheckRoom extends CheckRoom, AsyncDisposable {
  /** How the rooms of commands were made so far. */
  readonly kind: RoomCommands["kind"];
  /** What the setup made of the tree that is none of its business; nothing before it has run. */
  readonly setup: SetupChanges;
}

export function openCheckRoom(
  checkOptions: CheckOptions,
  { baseline, room }: { readonly baseline: TaskBaseline; readonly room: RoomContents },
): OpenCheckRoom {
  const frozen = room.frozen ?? nothing(room.base);
  const { picked, back = [], workspace: root } = room;
  const whole = back.length === 0 ? picked : completePicks(room.base.manifest, frozen.changes, [...picked, ...back]);
  const watched = watchedLeft(baseline, room.base, whole);
  const files = openRoomFiles(room.base, { frozen, picked: whole }, { root, watched, signal: checkOptions.signal });
  let prepared: Promise<Prepared> | undefined;
  let kind: RoomCommands["kind"];
  let setup: SetupChanges = { changed: [], added: [] };
  const changedAt = timeOfWork(room.base.manifest);
  const watching = watchedLayer({ ...layerOf(frozen, whole), changedAt }, watched, room.base);
  // What a setup made of a file is not to be covered by it again; whatever it left counts as read then.
  const layer = checkOptions.spec.setup === undefined ? watching : { ...layerOf(frozen, picked), changedAt };
  let lower: RoomOptions["lower"] = [];
  let dropped: readonly RawPath[] = [];
  const openWith = (own: RoomLayer): RoomCommands =>
    openRoomCommands(checkOptions, files, { lower, layer: { ...own, removed: [...own.removed, ...dropped] } });
  const ahead = openRoomAhead(checkOptions.spec, picked, () => openWith(layer));
  return {
    files,
    room,
    baseline,
    signal: checkOptions.signal,
    get kind() {
      return kind;
    },
    get setup() {
      return setup;
    },
    openCommands: (of) => {
      // A git check is about the repository that the agent left, whatever else is picked.
      const own = of === "git" ? { ...withRepository(room, frozen), changedAt } : layer;
      let inner: RoomCommands | undefined;
      const enter = async (): Promise<RoomCommands> => {
        prepared ??= setUp(checkOptions, files, {
          roomOptions: { lower: [room.base.folder], layer: watching },
          watched,
          room,
        });
        ({ lower, setup, dropped } = await prepared);
        inner ??= own === layer ? ahead.take() : openWith(own);
        return inner;
      };
      return {
        get kind() {
          return inner?.kind;
        },
        async open(command) {
          await (await enter()).open(command);
        },
        async run(command) {
          const commands = await enter();
          const end = await ahead.run(command, commands);
          kind = commands.kind ?? kind;
          return end;
        },
        async tree() {
          return await inner?.tree();
        },
        async reads() {
          if (inner === undefined) return new Set();
          return joined(await inner.reads(), (await prepared)?.reads);
        },
        async [Symbol.asyncDispose]() {
          await inner?.[Symbol.asyncDispose]();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await ahead[Symbol.asyncDispose]();
      const { scratch } = (await prepared?.catch(() => undefined)) ?? {};
      await scratch?.[Symbol.asyncDispose]();
    },
  };
}

/** With files of the beginning as they were, where reads are seen. */
function watchedLayer(layer: RoomLayer, watched: ReadonlySet<RawPath>, { folder, manifest }: KeptTree): RoomLayer {
  const from = new Map(layer.from);
  const times = new Map(layer.times);
  for (const path of watched) {
    from.set(path, folder);
    const entry = manifest.get(path);
    if (entry !== undefined) times.set(path, timeOf(entry));
  }
  return { ...layer, paths: [...layer.paths, ...watched], from, times };
}

/** No work at all. */
function nothing({ folder }: KeptTree): FrozenWork {
  return { folder, changes: [], sha256: "" };
}

function withRepository({ base, picked, workspace }: RoomContents, frozen: FrozenWork): RoomLayer {
  const repository = pickAll(frozen.changes).filter(isRepository);
  return layerOf(frozen, admit({ spec: {}, folder: workspace, base, frozen }, [...picked, ...repository]).picked);
}

interface Prepared extends Pick<RoomOptions, "lower"> {
  readonly reads: ReadonlySet<RawPath> | undefined;
  readonly setup: SetupChanges;
  /** What it added and the checks are not to see. */
  readonly dropped: readonly RawPath[];
  /** To be removed at the end. */
  readonly scratch?: Scratch;
}

/** What the setup reads counts for every check that runs after it. */
async function setUp(
  checkOptions: CheckOptions,
  files: RoomFiles,
  {
    roomOptions,
    watched,
    room,
  }: { readonly roomOptions: RoomOptions; readonly watched: ReadonlySet<RawPath>; readonly room: RoomContents },
): Promise<Prepared> {
  const { setup } = checkOptions.spec;
  if (setup === undefined)
    return { lower: roomOptions.lower, reads: new Set(), setup: { changed: [], added: [] }, dropped: [] };
  await checkOptions.onCheck?.("setup", "work");
  const scratch = await openScratch(checkOptions.home, "setup");
  try {
    const upper = join(scratch.folder, "upper");
    await mkdir(upper, { mode: 0o755 });
    await using commands = openRoomCommands(checkOptions, files, { ...roomOptions, keepUpper: upper });
    const end = await commands.run({ ...setup, cwd: "." });
    if (isBroken(end) || end.exitCode !== 0) {
      const why = isBroken(end) ? end.message : `it ended with ${end.exitCode}`;
      throw new HeddleError("task.setup-failed", `the setup of the clean room failed: ${why}\n${end.output}`.trim());
    }
    const reads = joined(await commands.reads(), watched);
    const tree = (await commands.tree()) ?? upper;
    const made = await setupChanges(checkOptions, { tree, room, scratch: scratch.folder });
    const dropped = room.onlyAdded === undefined ? [] : addedBeside(made.added, room.onlyAdded);
    const left = room.onlyAdded === undefined ? made : { ...made, added: [] };
    return { lower: [upper, ...roomOptions.lower], reads, setup: left, dropped, scratch };
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

/** What the setup adds where none of the work is there. */
export async function addedAtBeginning(
  checkOptions: CheckOptions,
  { baseline, base }: { readonly baseline: TaskBaseline; readonly base: KeptTree },
): Promise<ReadonlySet<RawPath>> {
  const room = { base, frozen: nothing(base), picked: [], workspace: baseline.folder };
  await using open = openCheckRoom(checkOptions, { baseline, room });
  await using commands = open.openCommands("command");
  await commands.open({ network: false });
  return new Set(open.setup.added);
}

function joined(
  a: ReadonlySet<RawPath> | undefined,
  b: ReadonlySet<RawPath> | undefined,
): ReadonlySet<RawPath> | undefined {
  return a === undefined || b === undefined ? undefined : new Set([...a, ...b]);
}

/** Of work; rooms have it in memory. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * The room of the next command, made ready while one runs, so that nobody waits for it. Each is still used once. At most one
 * is ahead, and none where rooms are copies or the work is large: it would be there twice.
 */
interface RoomAhead extends AsyncDisposable {
  /** The one that is ready, or on its way; a new one otherwise. */
  take(): RoomCommands;
  /** Runs it, and makes the next room ready meanwhile if another command is to come. */
  run(command: Command, commands: RoomCommands): ReturnType<RoomCommands["run"]>;
}

function openRoomAhead(
  { checks }: Pick<TaskSpec, "checks">,
  picked: readonly Change[],
  open: () => RoomCommands,
): RoomAhead {
  const isSmall = picked.reduce((bytes, { now }) => bytes + (now?.size ?? 0), 0) <= MAX_BYTES;
  let toCome = leavesOf(checks).filter((leaf) => runsCommands(leaf) && !seesOutside(leaf)).length;
  let next: RoomCommands | undefined;
  return {
    take() {
      const taken = next ?? open();
      next = undefined;
      return taken;
    },
    async run(command, commands) {
      await commands.open(command);
      if (!command.network) toCome -= 1;
      if (next === undefined && toCome > 0 && isSmall && commands.kind === "overlay") {
        next = open();
        // Who runs something in it meets what went wrong.
        next.open({ network: false }).catch(() => undefined);
      }
      return await commands.run(command);
    },
    async [Symbol.asyncDispose]() {
      await next?.[Symbol.asyncDispose]();
    },
  };
}
