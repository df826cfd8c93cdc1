/**
 * What checks are run on: the beginning with what was picked of the work. Files are read from the two in Heddle's own
 * process; every check that runs commands gets a throw-away room at the path of the workspace, above what `setup` left.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HeddleError, type TaskBaseline } from "@heddle/protocol";
import type { RawPath } from "@heddle/tools/raw-path";
import type { RoomLayer } from "@heddle/tools/room";
import type { CheckPlace, RoomContents } from "../checks/check.ts";
import { isBroken, openRoomCommands, type RoomCommands, type RoomWish } from "../checks/commands.ts";
import type { CheckRoom } from "../checks/run-check.ts";
import type { FrozenWork, KeptTree } from "../tree/manifest.ts";
import { openRoomFiles, type RoomFiles } from "../tree/room-files.ts";
import { admit } from "./admit.ts";
import { isRepository, layerOf, pickAll } from "./pick.ts";
import { openRoomAhead } from "./room-ahead.ts";
import { openScratch, type Scratch } from "./scratch.ts";
import { timeOfWork } from "../tree/time-of-work.ts";

export interface OpenCheckRoom extends CheckRoom, AsyncDisposable {
  /** How the rooms of commands were made so far. */
  readonly kind: RoomCommands["kind"];
}

export function openCheckRoom(
  place: CheckPlace,
  { baseline, room }: { readonly baseline: TaskBaseline; readonly room: RoomContents },
): OpenCheckRoom {
  const frozen = room.frozen ?? nothing(room.base);
  const { picked, workspace: root } = room;
  const files = openRoomFiles(room.base, { frozen, picked }, { root, signal: place.signal });
  let prepared: Promise<Prepared> | undefined;
  let kind: RoomCommands["kind"];
  const changedAt = timeOfWork(room.base.manifest);
  const layer = { ...layerOf(frozen, picked), changedAt };
  let lower: RoomWish["lower"] = [];
  const ahead = openRoomAhead(place.spec, picked, () => openRoomCommands(place, files, { lower, layer }));
  return {
    files,
    room,
    baseline,
    signal: place.signal,
    get kind() {
      return kind;
    },
    openCommands: (of) => {
      // A git check is about the repository that the agent left, whatever else is picked.
      const own = of === "git" ? { ...withRepository(room, frozen), changedAt } : layer;
      let inner: RoomCommands | undefined;
      const enter = async (): Promise<RoomCommands> => {
        prepared ??= setUp(place, files, { lower: [room.base.folder], layer });
        ({ lower } = await prepared);
        inner ??= own === layer ? ahead.take() : openRoomCommands(place, files, { lower, layer: own });
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

/** No work at all. */
function nothing({ folder }: KeptTree): FrozenWork {
  return { folder, changes: [], sha256: "" };
}

function withRepository({ base, picked, workspace }: RoomContents, frozen: FrozenWork): RoomLayer {
  const repository = pickAll(frozen.changes).filter(isRepository);
  return layerOf(frozen, admit({ spec: {}, folder: workspace, base, frozen }, [...picked, ...repository]).picked);
}

interface Prepared extends Pick<RoomWish, "lower"> {
  readonly reads: ReadonlySet<RawPath> | undefined;
  /** To be removed at the end. */
  readonly scratch?: Scratch;
}

/** What the setup reads counts for every check that runs after it. */
async function setUp(place: CheckPlace, files: RoomFiles, wish: RoomWish): Promise<Prepared> {
  const { setup } = place.spec;
  if (setup === undefined) return { lower: wish.lower, reads: new Set() };
  await place.onCheck?.("setup", "work");
  const scratch = await openScratch(place.home, "setup");
  try {
    const upper = join(scratch.folder, "upper");
    await mkdir(upper, { mode: 0o755 });
    await using commands = openRoomCommands(place, files, { ...wish, keepUpper: upper });
    const end = await commands.run({ ...setup, cwd: "." });
    if (isBroken(end) || end.exitCode !== 0) {
      const why = isBroken(end) ? end.message : `it ended with ${end.exitCode}`;
      throw new HeddleError("task.setup-failed", `the setup of the clean room failed: ${why}\n${end.output}`.trim());
    }
    return { lower: [upper, ...wish.lower], reads: await commands.reads(), scratch };
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

function joined(
  a: ReadonlySet<RawPath> | undefined,
  b: ReadonlySet<RawPath> | undefined,
): ReadonlySet<RawPath> | undefined {
  return a === undefined || b === undefined ? undefined : new Set([...a, ...b]);
}
