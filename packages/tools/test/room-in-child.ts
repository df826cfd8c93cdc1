/**
 * Opens a room in a process of its own, runs a command there and says what came of it as JSON:
 * node --conditions=heddle-source room-in-child.ts <folder of makeRooms> <command> [wait|no-sandbox] [<kind>|unconfined] [<folder for private files>]
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isHeddleError } from "@heddle/protocol";
import { openRoom } from "../src/room/open-room.ts";
import { toRaw } from "../src/sandbox/raw-path.ts";
import { entriesOf, readsOf, runIn } from "./room-fixture.ts";

const [, , folder = "", command = "", mode = "", kind = "", given] = process.argv;
const tmpDir = given ?? join(folder, "tmp-of-child");
const layer = join(folder, "layer");

// As on a system Heddle has no sandbox for.
if (mode === "no-sandbox") Object.defineProperty(process, "platform", { value: "sunos" });
try {
  const workspace = join(folder, "workspace");
  const room = await openRoom({
    policy: { workspace, writeRoots: [], masked: [], network: "none" },
    lower: [join(folder, "base")],
    layer: { folder: layer, paths: entriesOf(toRaw(layer)), removed: [] },
    kind: kind === "overlay" || kind === "copy" ? kind : "auto",
    mayBeUnconfined: kind === "unconfined",
    tmpDir,
  });
  if (mode === "wait") {
    process.stdout.write("open\n");
    setInterval(() => undefined, 60_000);
  } else {
    const { text } = await runIn(room, command);
    const reads = await readsOf(room);
    await room[Symbol.asyncDispose]();
    const said = { kind: room.kind, root: room.root, said: text, reads, left: readdirSync(tmpDir) };
    process.stdout.write(JSON.stringify(said));
  }
} catch (error) {
  if (!isHeddleError(error)) throw error;
  process.stdout.write(JSON.stringify({ error: error.code, message: error.message }));
}
