import { copyFileSync, lstatSync, lutimesSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeRooms, readsOf, runIn } from "../../test/room-fixture.ts";
import { findHostTool } from "../sandbox/host-tools.ts";
import { findOverlay } from "./probe.ts";

const found = await findOverlay();
const areKnown = found.ok && found.areReadsKnown;
const where = areKnown ? "" : " (this host does not tell)";
const python = findHostTool("python3");

test.runIf(areKnown)(`13: each way to read a file of the layer is seen, and only that file${where}`, async () => {
  const names = [
    "cat",
    "sourced",
    "copied",
    "sent",
    "linked",
    "moved",
    "listed",
    "untouched",
    "appended",
    "import.mjs",
  ];
  const layer = Object.fromEntries(names.map((name) => [name, `# ${name}\n`]));
  await using rooms = await makeRooms({
    base: { "in-base": "x\n", "kept/a": "a\n" },
    layer: { ...layer, "import.mjs": "export default 1;\n", empty: "", "folder/inside": "x\n", "kept/b": "b\n" },
  });
  writeFileSync(join(rooms.layer, "x.sh"), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  copyFileSync("/bin/true", join(rooms.layer, "program"));
  symlinkSync("in-base", join(rooms.layer, "link"));
  symlinkSync("in-base", join(rooms.layer, "link-unused"));
  await using room = await rooms.open({ kind: "overlay" });
  const read = async (command: string): Promise<unknown> => {
    const { code, text } = await runIn(room, command);
    return code === 0 ? await readsOf(room) : text;
  };
  expect(await readsOf(room)).toEqual([]);
  expect(await read("true")).toEqual([]);
  expect(await read("cat in-base kept/a >/dev/null; ls -a . >/dev/null; test -f untouched; stat listed")).toEqual([]);
  expect(await read("cat cat")).toEqual(["cat"]);
  // Asked again, it is about what came after.
  expect(await read("true")).toEqual([]);
  expect(await read("cat cat; cat cat")).toEqual(["cat"]);
  expect(await read(". ./sourced")).toEqual(["sourced"]);
  expect(await read("cp copied copied.new; rm copied.new")).toEqual(["copied"]);
  expect(await read("cat empty")).toEqual(["empty"]);
  expect(await read("./x.sh")).toEqual(["x.sh"]);
  expect(await read("./program")).toEqual(["program"]);
  expect(await read("cat link")).toEqual(["link"]);
  expect(await read("readlink link")).toEqual(["link"]);
  expect(await read("ls kept folder")).toEqual(["folder", "kept"]);
  expect(await read("cat folder/inside kept/b")).toEqual(["folder/inside", "kept/b"]);
  expect(await read("ln linked other; cat other")).toEqual(["linked"]);
  expect(await read("echo more >> appended")).toEqual(["appended"]);
  expect(await read(`'${process.execPath}' -e 'import("./import.mjs")'`)).toEqual(["import.mjs"]);
  const send = `const fs = require("fs"); fs.copyFileSync("sent", "sent.new")`;
  expect(await read(`'${process.execPath}' -e '${send}'`)).toEqual(["sent"]);
  expect(await read("rm cat")).toEqual(["cat"]);
  // Nothing comes back as it was.
  expect(await read("echo '# cat' > cat; touch -d @0 cat")).toEqual(["cat"]);
  // Under another name it is out of sight: from then on it counts.
  expect(await read("mv moved other2; cat other2")).toEqual(["moved"]);
  expect(await read("cat other2")).toEqual(["moved"]);
});

test.runIf(areKnown && python !== undefined)(
  `13: mapping a file, sending it and asking that nothing be noted are seen too${python === undefined ? " (no python3)" : where}`,
  async () => {
    const names = ["mapped", "sent", "spliced", "noatime", "set-noatime", "range", "cloned", "other"];
    await using rooms = await makeRooms({
      base: {},
      layer: Object.fromEntries(names.map((name) => [name, "0123456789"])),
    });
    await using room = await rooms.open({ kind: "overlay" });
    const ask = async (lines: readonly string[]): Promise<{ said: string; reads: unknown }> => {
      const script = ["import os, fcntl, mmap", "out = os.open('out', os.O_RDWR | os.O_CREAT)", ...lines].join("\n");
      const { text } = await runIn(room, [python ?? "", "-I", "-S", "-c", script]);
      return { said: text.trim().split("\n").at(-1) ?? "", reads: await readsOf(room) };
    };
    const open = (name: string): string => `fd = os.open(${JSON.stringify(name)}, os.O_RDONLY)`;
    expect(await ask([open("mapped"), "print(mmap.mmap(fd, 10, prot=mmap.PROT_READ)[:2])"])).toEqual({
      said: "b'01'",
      reads: ["mapped"],
    });
    expect(await ask([open("sent"), "print(os.sendfile(out, fd, 0, 10))"])).toEqual({ said: "10", reads: ["sent"] });
    expect(await ask(["r, w = os.pipe()", open("spliced"), "print(os.splice(fd, w, 10))"])).toEqual({
      said: "10",
      reads: ["spliced"],
    });
    expect(await ask(["os.open('noatime', os.O_RDONLY | os.O_NOATIME)"])).toEqual({
      said: "PermissionError: [Errno 1] Operation not permitted: 'noatime'",
      reads: [],
    });
    expect(await ask([open("set-noatime"), "fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NOATIME)"])).toEqual({
      said: "PermissionError: [Errno 1] Operation not permitted",
      reads: [],
    });
    expect(await ask([open("range"), "os.copy_file_range(fd, out, 10)"])).toEqual({
      said: "OSError: [Errno 38] Function not implemented",
      reads: [],
    });
    expect(await ask([open("cloned"), "fcntl.ioctl(out, 0x40049409, fd)"])).toEqual({
      said: "OSError: [Errno 95] Operation not supported",
      reads: [],
    });
  },
);

test.runIf(areKnown)(`13: a check that sets access times back is seen all the same${where}`, async () => {
  await using rooms = await makeRooms({ base: {}, layer: { a: "a\n", b: "b\n", "d/x": "x\n", c: "c\n" } });
  for (const name of ["a", "b", "d", "c"]) lutimesSync(join(rooms.layer, name), 1000, 1000);
  await using room = await rooms.open({ kind: "overlay" });
  await runIn(room, "cat a; touch -a -d @0 a; ls d; touch -a -d @0 d; cp -p b b2; mv b2 b; touch -a -d @0 b");
  expect(await readsOf(room)).toEqual(["a", "b", "d"]);
});

test.runIf(areKnown)(`13: links that a check leaves lead the next look nowhere else${where}`, async () => {
  await using rooms = await makeRooms({ base: {}, layer: { "d/passwd": "x\n", f: "f\n" } });
  const outside = join(rooms.folder, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "passwd"), "host\n");
  lutimesSync(join(outside, "passwd"), 2000, 1000);
  await using room = await rooms.open({ kind: "overlay" });
  await runIn(room, `rm -r d; ln -s ${outside} d; rm f; ln -s ${outside}/passwd f`);
  expect(await readsOf(room)).toEqual(["d", "d/passwd", "f"]);
  await readsOf(room);
  const { atimeMs, mtimeMs } = lstatSync(join(outside, "passwd"));
  expect({ atimeMs, mtimeMs }).toEqual({ atimeMs: 2_000_000, mtimeMs: 1_000_000 });
});
