/** 13: a check whose room has no space left is an error with that reason, and the next one has a room of its own. */
import { expect, test } from "vitest";
import { openTaskFixture } from "../../test/task-fixture.ts";
import { readBase } from "../judge/freeze-claim.ts";
import { layerOf } from "../judge/pick.ts";
import { openRoomFiles } from "../tree/room-files.ts";
import type { Command, Ended, Broken, RoomCommands } from "./commands.ts";
import { openRoomCommands } from "./commands.ts";

test("13: a room that a check has filled is the reason of its error; a failure beside it is none", async ({ skip }) => {
  await using fixture = await openTaskFixture({ files: { "a.txt": "a\n" } });
  const { checkOptions, workspace: root } = fixture;
  const base = await readBase(checkOptions.home, { id: "task_1" }, await fixture.takeBaseline());
  const frozen = { folder: base.folder, changes: [], sha256: "" };
  const { signal } = checkOptions;
  const files = openRoomFiles(base, { frozen, picked: [] }, { root, watched: new Set(), signal });
  const open = (): RoomCommands =>
    openRoomCommands(checkOptions, files, {
      lower: [base.folder],
      layer: layerOf(frozen, []),
      maxBytes: 4 * 1024 ** 2,
    });
  const ask = async (commands: RoomCommands, run: string): Promise<Ended | Broken> => {
    const command: Command = { run, cwd: ".", timeoutMs: 30_000, network: false };
    return await commands.run(command);
  };
  await using full = open();
  const end = await ask(full, "head -c 100000000 /dev/zero > big");
  if (full.kind !== "overlay") skip("rooms are copies on this host");
  expect(end).toMatchObject({ message: "the room of the check has no space left" });
  await using other = open();
  expect(await ask(other, "test ! -e big && cat a.txt")).toMatchObject({ exitCode: 0, text: "a\n" });
  expect(await ask(other, "exit 3")).toMatchObject({ exitCode: 3 });
});
