/**
 * What checks are run on: the beginning with what was picked of the work. Files are read from the two in Heddle's own
 * process; every check that runs commands gets a throw-away room at the path of the workspace, above what `setup` left.
 */
import type { TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { RawPath } from "@heddle/tools/raw-path";
import type { RoomLayer } from "@heddle/tools/room";
import type { CheckOptions, RoomContents } from "../checks/check.ts";
import { openRoomCommands, type Command, type RoomCommands, type RoomOptions } from "../checks/commands.ts";
import { leavesOf } from "../checks/names.ts";
import type { CheckRoom } from "../checks/run-check.ts";
import { byPath, type Change, type FrozenWork, type KeptTree } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { openRoomFiles } from "../tree/room-files.ts";
import { admit } from "./admit.ts";
import { runsCommands, seesOutside } from "./named-work.ts";
import { isRepository, layerOf, pickAll, timeOf } from "./pick.ts";
import { watchedLeft } from "./rests-on-left.ts";
import {
  compareSetups,
  keepMade,
  NO_DIFFERENCE,
  openBeginningSetups,
  runSetup,
  type BeginningSetups,
  type SetUp,
  type SetupDifference,
  type SetupRoom,
} from "./set-up.ts";
import { timeOfWork } from "../tree/time-of-work.ts";

export interface OpenCheckRoom extends CheckRoom, AsyncDisposable {
  /** How the rooms of commands were made so far. */
  readonly kind: RoomCommands["kind"];
  /** What the work made of the setup; nothing before it has run. */
  readonly setup: SetupDifference;
}

export function openCheckRoom(
  checkOptions: CheckOptions,
  { baseline, room }: { readonly baseline: TaskBaseline; readonly room: RoomContents },
): OpenCheckRoom {
  const frozen = room.frozen ?? nothing(room.base);
  const { picked, back = [], workspace: root } = room;
  const whole = back.length === 0 ? picked : completePicks(room.base.manifest, frozen.changes, [...picked, ...back]);
  const watched = new Set([...watchedLeft(baseline, room.base, whole), ...(room.watched ?? [])]);
  const files = openRoomFiles(room.base, { frozen, picked: whole }, { root, watched, signal: checkOptions.signal });
  const watching = watchedLayer(layerOf(frozen, whole), watched, room.base);
  // What a setup made of a file is not to be covered by it again; whatever it left counts as read then.
  const own = (): RoomLayer =>
    checkOptions.spec.setup === undefined ? watching : layerOf(frozen, uncovered(picked, prepared));
  const setups = room.setups ?? openSetups(checkOptions, room);
  let preparing: Promise<Prepared> | undefined;
  let prepared: Prepared | undefined;
  let kind: RoomCommands["kind"];
  const openWith = (layer: RoomLayer): RoomCommands => {
    const { lower = [], changedAt = 0 } = prepared ?? {};
    return openRoomCommands(checkOptions, files, { lower, layer: { ...layer, changedAt } });
  };
  const ahead = openRoomAhead(checkOptions.spec, picked, () => openWith(own()));
  return {
    files,
    room,
    baseline,
    signal: checkOptions.signal,
    get kind() {
      return kind;
    },
    get setup() {
      return prepared?.difference ?? NO_DIFFERENCE;
    },
    openCommands: (of) => {
      let inner: RoomCommands | undefined;
      const enter = async (): Promise<RoomCommands> => {
        preparing ??= prepare(checkOptions, { room, files, layer: watching, watched, setups });
        prepared = await preparing;
        // A git check is about the repository that the agent left, whatever else is picked.
        inner ??= of === "git" ? openWith(withRepository(room, frozen, prepared)) : ahead.take();
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
          return joined(await inner.reads(), prepared?.reads);
        },
        async [Symbol.asyncDispose]() {
          await inner?.[Symbol.asyncDispose]();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await ahead[Symbol.asyncDispose]();
      const { work } = (await preparing?.catch(() => undefined)) ?? {};
      await work?.[Symbol.asyncDispose]();
      if (room.setups === undefined) await setups[Symbol.asyncDispose]();
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

function withRepository(
  { base, picked, workspace }: RoomContents,
  frozen: FrozenWork,
  prepared: Pick<Prepared, "covered">,
): RoomLayer {
  const repository = pickAll(frozen.changes).filter(isRepository);
  const own = admit({ spec: {}, folder: workspace, base, frozen }, [...picked, ...repository]).picked;
  return layerOf(
    frozen,
    [
      ...uncovered(
        own.filter((change) => !isRepository(change)),
        prepared,
      ),
      ...own.filter(isRepository),
    ].toSorted(byPath),
  );
}

/** Work that the setup did not make again. */
function uncovered(picked: readonly Change[], prepared: Pick<Prepared, "covered"> | undefined): readonly Change[] {
  return picked.filter(({ path }) => prepared?.covered.has(path) !== true);
}

interface Prepared extends Pick<RoomOptions, "lower"> {
  /** Of the work. */
  readonly changedAt: number;
  readonly reads: ReadonlySet<RawPath> | undefined;
  readonly difference: SetupDifference;
  /** Of the work: what is in `lower` as the setup made it. */
  readonly covered: ReadonlySet<RawPath>;
  /** To be removed at the end. */
  readonly work?: SetUp;
}

const UNPREPARED = { reads: new Set<RawPath>(), difference: NO_DIFFERENCE, covered: new Set<RawPath>() };

interface ToPrepare extends Pick<SetupRoom, "files" | "layer"> {
  readonly room: RoomContents;
  readonly watched: ReadonlySet<RawPath>;
  readonly setups: BeginningSetups;
}

/** What the setup reads counts for every check that runs after it. */
async function prepare(
  checkOptions: CheckOptions,
  { room, files, layer, watched, setups }: ToPrepare,
): Promise<Prepared> {
  const { base, picked, back = [] } = room;
  const { setup } = checkOptions.spec;
  const time = timeOfWork(base.manifest.values());
  if (setup === undefined) return { ...UNPREPARED, lower: [base.folder], changedAt: time };
  await checkOptions.onCheck?.("setup", "baseline");
  const beginning = await setups.of(setup, back);
  const lower = [beginning.upper, base.folder];
  const changedAt = timeOfWork(
    beginning.changes.flatMap(({ now }) => now ?? []),
    time,
  );
  if (picked.length === 0) {
    if (beginning.failure !== undefined) throw beginning.failure;
    return { ...UNPREPARED, lower, changedAt, reads: joined(beginning.reads, watched) };
  }
  await checkOptions.onCheck?.("setup", "work");
  const work = await runSetup(checkOptions, { setup, base, files, layer: { ...layer, changedAt } });
  try {
    if (work.failure !== undefined) throw work.failure;
    const compared = compareSetups(checkOptions.spec, room, [beginning, work]);
    const { made, doubted, remade } = compared;
    const difference = { ...compared, isFailing: beginning.failure !== undefined };
    // What the setup wrote counts as read.
    const reads = joined(joined(work.reads, watched), remade);
    const all = { changedAt, reads, difference, covered: remade, work };
    if (doubted.length > 0 && room.hasDoubted === true) return { ...all, lower: [work.upper, base.folder] };
    const without = new Set(doubted.map(({ path }) => path));
    const prepared = { ...all, covered: new Set([...remade].filter((path) => !without.has(path))) };
    if (made.length === 0) return { ...prepared, lower };
    return {
      ...prepared,
      lower: [await keepMade(checkOptions, { files, upper: work.upper, made, changedAt }, lower), ...lower],
    };
  } catch (error) {
    await work[Symbol.asyncDispose]();
    throw error;
  }
}

/** To be shared by the rooms of one verdict. */
export function openSetups(
  checkOptions: CheckOptions,
  { base, workspace }: Pick<RoomContents, "base" | "workspace">,
): BeginningSetups {
  return openBeginningSetups((setup, back) => {
    const frozen = nothing(base);
    const picked = completePicks(base.manifest, [], back);
    const files = openRoomFiles(
      base,
      { frozen, picked },
      { root: workspace, watched: new Set(), signal: checkOptions.signal },
    );
    const layer = { ...layerOf(frozen, picked), changedAt: timeOfWork(base.manifest.values()) };
    return runSetup(checkOptions, { setup, base, files, layer });
  });
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
