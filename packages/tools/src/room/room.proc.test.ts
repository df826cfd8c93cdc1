import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { entriesOf, makeRooms, readsOf, runIn } from "../../test/room-fixture.ts";
import { findHostTool } from "../sandbox/host-tools.ts";
import { toRaw } from "../sandbox/raw-path.ts";
import { findOverlay, probeOverlay } from "./probe.ts";

const CHILD = fileURLToPath(new URL("../../test/room-in-child.ts", import.meta.url));
const found = await findOverlay();
const isRoot = process.getuid?.() === 0;
const kinds = [
  { kind: "overlay", isThere: found.ok },
  { kind: "copy", isThere: true },
] as const;

/** Everything in the room, as a check sees it: kind, mode, name, content. */
const LIST = `find . -mindepth 1 -printf '%y %m %p %l\\n' | sort; cat $(find . -type f | sort)`;

for (const { kind, isThere } of kinds) {
  describe.runIf(isThere)(`${kind}${isThere ? "" : " (not on this host)"}`, () => {
    test("13: a room is the base with the layer over it, and what was removed is not there", async () => {
      await using rooms = await makeRooms({
        base: {
          same: "base",
          changed: "base",
          gone: "x",
          "gone-too/deep/x": "x",
          "was-folder/x": "x",
          "was-file": "x",
        },
        layer: { changed: "layer", "was-folder": "file", "was-file/x": "in folder", "new/deep/file": "new" },
      });
      symlinkSync("same", join(rooms.base, "was-link"));
      symlinkSync("/nowhere", join(rooms.base, "kept-link"));
      mkdirSync(join(rooms.layer, "was-link"));
      symlinkSync("same", join(rooms.layer, "new-link"));
      chmodSync(join(rooms.layer, "changed"), 0o640);
      chmodSync(join(rooms.layer, "new/deep"), 0o555);
      utimesSync(join(rooms.base, "same"), 5, 1_234_567_892);
      await using room = await rooms.open({ kind, removed: ["gone", "gone-too", "gone-too/deep", "never/was"] });
      expect({ kind: room.kind, root: room.root }).toEqual({ kind, root: rooms.workspace });
      const { text: listed } = await runIn(room, LIST);
      expect(listed.split("\n")).toEqual([
        "d 555 ./new/deep ",
        "d 755 ./new ",
        "d 755 ./was-file ",
        "d 755 ./was-link ",
        "f 640 ./changed ",
        "f 644 ./new/deep/file ",
        "f 644 ./same ",
        "f 644 ./was-file/x ",
        "f 644 ./was-folder ",
        "l 777 ./kept-link /nowhere",
        "l 777 ./new-link same",
        "layernewbasein folderfile",
      ]);
      expect((await runIn(room, "stat -c %Y same")).text).toBe("1234567892\n");
      chmodSync(join(rooms.layer, "new/deep"), 0o755);
    });

    test("13: everything of the layer has one time, whatever its maker set, and keeps it in a room below another", async () => {
      await using rooms = await makeRooms({ base: { old: "x" }, layer: { changed: "layer", "new/file": "new" } });
      symlinkSync("changed", join(rooms.layer, "link"));
      utimesSync(join(rooms.layer, "changed"), 5, 1_000_000_000);
      utimesSync(join(rooms.layer, "new"), 5, 4_000_000_000);
      const times = "stat -c %.1Y changed new new/file link";
      const same = (at: string): string => `${at}\n`.repeat(4);
      const { layer: folder } = rooms;
      const layer = { folder, paths: entriesOf(toRaw(folder)), removed: [], changedAt: 1_700_000_000_500 };
      const kept = join(rooms.folder, "kept");
      mkdirSync(kept);
      {
        await using room = await rooms.open({ kind, layer, keepUpper: kept });
        expect((await runIn(room, times)).text).toBe(same("1700000000.5"));
      }
      await using later = await rooms.open({ kind, lower: [kept, rooms.base], layer: { ...layer, paths: [] } });
      expect((await runIn(later, times)).text).toBe(same("1700000000.5"));
      await using now = await rooms.open({ kind });
      const [first = "", ...others] = (await runIn(now, times)).text.trim().split("\n");
      expect(Math.abs(Number(first) - Date.now() / 1000)).toBeLessThan(60);
      expect(new Set(others)).toEqual(new Set([first]));
    });

    test("13: a command begins in the folder of the room, wherever the workspace has a link by that name", async () => {
      await using rooms = await makeRooms({ base: { "tools/x": "", "old/x": "" }, layer: {} });
      mkdirSync(join(rooms.workspace, "old"), { recursive: true });
      symlinkSync("old", join(rooms.workspace, "tools"));
      symlinkSync("tools", join(rooms.layer, "link"));
      await using room = await rooms.open({ kind });
      const tools = join(rooms.workspace, "tools");
      for (const folder of ["tools", "link"]) {
        expect((await runIn(room, 'pwd -P; echo "$PWD"', folder)).text).toBe(`${tools}\n${tools}\n`);
      }
      if (kind === "overlay") expect(await readsOf(room)).toEqual([toRaw("link")]);
    });

    test("13: a file gets the mode that the layer says, not the one in its folder", async () => {
      await using rooms = await makeRooms({ base: {}, layer: { a: "a", b: "b" } });
      const { layer: folder } = rooms;
      const layer = { folder, paths: ["a", "b"], removed: [], modes: new Map([["a", 0o755]]) };
      await using room = await rooms.open({ kind, layer });
      expect((await runIn(room, "stat -c %a a b")).text).toBe("755\n644\n");
    });

    test("13: nothing done in a room reaches the base, the layer or the workspace", async () => {
      await using rooms = await makeRooms({
        base: { a: "a", b: "b", c: "c", "d/x": "x", "e/y": "y" },
        layer: { l: "l" },
      });
      writeFileSync(join(rooms.workspace, "own"), "own");
      const [before, layerBefore] = [rooms.baseState(), readFileSync(join(rooms.layer, "l"), "utf8")];
      {
        await using room = await rooms.open({ kind });
        const attempts = [
          "echo more >> a; truncate -s 0 b; chmod 777 c; touch -d @1 c",
          "mv d/x d/z; mv d d2 || true; ln a hard; echo x >> hard; ln -s a soft; rm -r e; mkdir e; echo new > e/new",
          "setfattr -n user.x -v 1 c 2>/dev/null; rm -rf .heddle; echo x > l; : > new",
          `python3 -c 'import os; os.setxattr("c", "user.x", b"1")' 2>/dev/null`,
          "rm -rf ./* && ls -A",
        ];
        for (const attempt of attempts) await runIn(room, attempt);
        expect((await runIn(room, "ls -A")).text).toBe("");
        // The trees it is made of are not to be seen, and cannot be written.
        for (const path of [rooms.base, rooms.layer]) {
          expect((await runIn(room, `ls -A ${path}; echo x > ${path}/x`)).code).not.toBe(0);
        }
        expect(readdirSync(rooms.workspace)).toEqual(["own"]);
      }
      expect(rooms.baseState()).toBe(before);
      expect(readFileSync(join(rooms.layer, "l"), "utf8")).toBe(layerBefore);
      expect(readdirSync(rooms.workspace)).toEqual(["own"]);
    });

    test("13: two rooms on one base do not see each other", async () => {
      await using rooms = await makeRooms({ base: { a: "base\n" }, layer: { l: "layer\n" } });
      const [one, two] = await Promise.all([rooms.open({ kind }), rooms.open({ kind })]);
      await using _one = one;
      await using _two = two;
      await runIn(one, "echo one > a; echo one > new; rm l; echo one > /tmp/shared");
      expect(await runIn(two, "cat a l; ls /tmp/shared new 2>/dev/null")).toMatchObject({ text: "base\nlayer\n" });
      expect(await runIn(one, "cat a new")).toMatchObject({ text: "one\none\n" });
    });

    test("13: names are bytes", async () => {
      await using rooms = await makeRooms({ base: { "a b": "1" }, name: "w,o:r\\k s\n'\"$(x)ü" });
      const names = ["new\nline", "-rf", "sp ace", "quo'te", 'dou"ble', "com,ma", "col:on", "back\\slash", "ü"].map(
        toRaw,
      );
      // No UTF-8.
      names.push("bad\xff\xfe", "bad\xff\xfe/x");
      for (const name of names) {
        const at = Buffer.from(`${rooms.layer}/${name}`, "latin1");
        if (name === "bad\xff\xfe") mkdirSync(at);
        else writeFileSync(at, name);
      }
      await using room = await rooms.open({ kind, removed: ["a b"] });
      const { code, text: listed } = await runIn(room, "cat -- -rf ./bad*/x; ls -A | wc -l; pwd");
      expect({ code, listed }).toEqual({ code: 0, listed: expect.stringContaining("x11\n") });
      expect(await readsOf(room)).toEqual(kind === "copy" ? undefined : ["-rf", "bad\xff\xfe/x"]);
    });

    test("13: what is masked in the workspace is not in the room", async () => {
      await using rooms = await makeRooms({
        base: { "secret/key": "k", "file.key": "k", other: "o" },
        layer: { "secret/new": "n" },
      });
      const { workspace } = rooms;
      mkdirSync(join(workspace, "secret"));
      const masked = [join(workspace, "secret"), join(workspace, "file.key"), join(workspace, "absent")];
      await using room = await rooms.open({ kind, policy: { workspace, writeRoots: [], masked, network: "none" } });
      expect(await runIn(room, "ls -AR")).toEqual({ code: 0, text: ".:\nother\n" });
    });

    test("13: what was written can be kept, and lies below a later room", async () => {
      await using rooms = await makeRooms({ base: { a: "base", gone: "x", "d/old": "x" }, layer: { l: "layer" } });
      const kept = join(rooms.folder, "kept");
      mkdirSync(kept);
      {
        await using room = await rooms.open({ kind, keepUpper: kept });
        expect((await runIn(room, "rm gone; rm -r d; mkdir d; echo new > d/new; echo setup > installed")).code).toBe(0);
      }
      await using later = await rooms.open({ kind, lower: [kept, rooms.base] });
      expect((await runIn(later, "ls -AR; cat a l installed d/new; echo changed > installed")).text).toBe(
        ".:\na\nd\ninstalled\nl\n\n./d:\nnew\nbaselayersetup\nnew\n",
      );
      expect(readFileSync(join(kept, "installed"), "utf8")).toBe("setup\n");
    });

    test("13: the private folder of a room may lie in a folder that is shown, such as the home", async () => {
      await using rooms = await makeRooms({ base: { a: "base" }, layer: { l: "layer" } });
      const { workspace, folder } = rooms;
      const policy = { workspace, writeRoots: [], masked: [], visible: [folder], network: "none" } as const;
      await using room = await rooms.open({ kind, policy, tmpDir: join(folder, "tmp") });
      expect((await runIn(room, "cat a l")).text).toBe("baselayer");
      expect((await runIn(room, `find ${folder} -name upper -o -name l`)).text).toBe(`${workspace}/l\n`);
    });

    test("13: a room keeps all that the sandbox holds, with the network and without", async () => {
      await using rooms = await makeRooms({ base: { a: "a" } });
      for (const network of ["none", "all"] as const) {
        const policy = { workspace: rooms.workspace, writeRoots: [rooms.folder], masked: ["/etc/hostname"], network };
        await using room = await rooms.open({ kind, policy });
        const { text: said } = await runIn(
          room,
          "for p in /etc /usr /dev; do touch $p/x 2>/dev/null && echo wrote $p; done; cat /etc/hostname; grep -c : /proc/net/dev; " +
            "mknod dev b 8 0 2>/dev/null && echo made; mknod null c 1 3 2>/dev/null && cat null; mount -t tmpfs x . 2>/dev/null && echo mounted; " +
            "cp /bin/id id; chmod u+s id; ./id -u; unshare -Um true 2>/dev/null && echo unshared; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status",
        );
        const [interfaces, uid, ...rest] = said.trim().split(/\s*\n\s*/);
        expect({ uid, rest }).toEqual({
          uid: String(process.getuid?.()),
          rest: [expect.stringMatching(/^CapEff:\s0+$/), expect.stringMatching(/1$/), expect.stringMatching(/2$/)],
        });
        if (network === "none") expect(interfaces).toBe("1");
        expect(existsSync(join(rooms.folder, "x"))).toBe(false);
      }
    });
  });
}

test("13: a layer that leads out of the tree is refused", async () => {
  await using rooms = await makeRooms({ base: {}, layer: { "a/b": "x" } });
  const outside = join(rooms.folder, "outside");
  mkdirSync(outside);
  symlinkSync(outside, join(rooms.base, "a"));
  const open = async (paths: readonly string[], removed: readonly string[] = []): Promise<string> => {
    try {
      await using room = await rooms.open({ layer: { folder: rooms.layer, paths, removed } });
      return `${(await runIn(room, "ls -A")).text}`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  expect(await open(["a/b"])).toBe("a/b, which the room should hold, is in no folder of the tree");
  for (const path of ["../x", "/etc/x", "a//b", "./a", "", "a/../../x"]) {
    expect(await open([path]), path).toContain("is not a path below the workspace");
    expect(await open([], [path]), path).toContain("is not a path below the workspace");
  }
  // Below a link nothing is removed.
  writeFileSync(join(outside, "b"), "mine");
  expect(await open([], ["a/b"])).toBe("a\n");
  expect(await open(["a", "a/b"])).toBe("a\n");
  expect(readdirSync(outside)).toEqual(["b"]);
});

test.runIf(found.ok)("13: a full room refuses to be written, says so, and leaves the host alone", async () => {
  await using rooms = await makeRooms({ base: { a: "x".repeat(4096) }, layer: { l: "l" } });
  await using room = await rooms.open({ kind: "overlay", maxBytes: 1024 * 1024 });
  expect(await room.freeBytes()).toBeGreaterThan(900_000);
  expect((await runIn(room, "head -c 4000000 /dev/zero > big")).text).toContain("No space left on device");
  expect(await room.freeBytes()).toBe(0);
  // Not even the copy of a file that is to be changed has room.
  expect((await runIn(room, "echo more >> a")).text).toContain("No space left on device");
  expect((await runIn(room, "rm big; cat a | wc -c")).text).toBe("4096\n");
  expect(await room.freeBytes()).toBeGreaterThan(900_000);
  writeFileSync(join(rooms.layer, "large"), Buffer.alloc(2_000_000));
  const opening = rooms.open({ kind: "overlay", maxBytes: 1024 * 1024 });
  await expect(opening).rejects.toMatchObject({ code: "limit.reached" });
});

test.runIf(found.ok)("13: an upper layer on disk does all that one in memory does", async () => {
  expect(await probeOverlay("disk")).toEqual({ ok: true, upper: "disk", areReadsKnown: true });
});

test("13: a Heddle that is killed while it looks for layers leaves nothing that the next one does not remove", async () => {
  await using rooms = await makeRooms({ base: {} });
  const tmp = join(rooms.folder, "tmp");
  const child = async (then: string): Promise<unknown> => {
    const source = `
      const { probeOverlay } = await import(${JSON.stringify(new URL("probe.ts", import.meta.url).href)});
      const probing = probeOverlay("disk");
      ${then}`;
    const args = ["--conditions=heddle-source", "--input-type=module", "-e", source];
    const [code, signal] = await once(
      spawn(process.execPath, args, { env: { ...process.env, TMPDIR: tmp }, stdio: "ignore" }),
      "close",
    );
    return code ?? signal;
  };
  const left = (): string[] => readdirSync(tmp, { recursive: true, encoding: "utf8" });
  expect(await child(`process.kill(process.pid, "SIGKILL")`)).toBe("SIGKILL");
  expect(left().some((name) => name.endsWith("room/base/one/old"))).toBe(true);
  expect(await child("await probing")).toBe(0);
  // The folder that only this user can write stays, empty.
  expect(left()).toEqual([`heddle-${process.getuid?.()}`]);
});

test("13: a host that gives no sandbox refuses, unless the owner chose to do without", async () => {
  await using rooms = await makeRooms({ base: { a: "base" }, layer: { l: "layer" } });
  const child = async (more: readonly string[]): Promise<ChildRoom> =>
    await inChild([process.execPath], [rooms.folder, "cat a l; pwd; echo x > a", "no-sandbox", ...more]);
  expect(await child([])).toMatchObject({ error: "sandbox.unavailable" });
  const { kind, root, said, reads, left } = await child(["unconfined"]);
  expect({ kind, said, reads, left }).toEqual({ kind: "none", said: `baselayer${root}\n`, reads: undefined, left: [] });
  expect(readFileSync(join(rooms.base, "a"), "utf8")).toBe("base");
});

interface ChildRoom {
  readonly error?: string;
  readonly kind?: string;
  readonly root?: string;
  readonly said?: string;
  readonly reads?: readonly string[];
  /** Private folders that are still there. */
  readonly left?: readonly string[];
}

async function inChild([file = "", ...before]: readonly string[], args: readonly string[]): Promise<ChildRoom> {
  const child = spawn(file, [...before, "--conditions=heddle-source", CHILD, ...args]);
  const [[code], out, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(out);
}

test.runIf(isRoot && found.ok && findHostTool("setpriv") !== undefined)(
  `13: an ordinary user gets the same rooms${isRoot ? "" : " (only root can become one)"}`,
  async () => {
    await using rooms = await makeRooms({ base: { a: "base", "d/x": "x" }, layer: { l: "layer", m: "not read" } });
    chmodSync(rooms.folder, 0o777);
    const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", process.execPath];
    const command = "cat a l; rm -r d; mkdir d; ls d; touch new; chmod 600 new";
    // The base has to be the user's own, as it is where Heddle makes it.
    await runAs(asNobody, rooms.folder);
    expect(await inChild(asNobody, [rooms.folder, command])).toEqual({
      kind: "overlay",
      root: rooms.workspace,
      said: "baselayer",
      reads: ["l"],
      left: [],
    });
  },
);

async function runAs(command: readonly string[], folder: string): Promise<void> {
  const [file = "", ...args] = command.slice(0, -1);
  for (const name of ["base", "layer"]) {
    const child = spawn(file, [...args, "cp", "-r", join(folder, name), join(folder, `${name}.own`)]);
    await once(child, "close");
    renameSync(join(folder, name), join(folder, `${name}.old`));
    renameSync(join(folder, `${name}.own`), join(folder, name));
  }
}

test.each(kinds.filter(({ isThere }) => isThere))(
  "13: $kind: a killed Heddle leaves nothing that the next one does not remove",
  async ({ kind }) => {
    await using rooms = await makeRooms({ base: { a: "base" }, layer: { l: "layer" } });
    const tmpDir = join(rooms.folder, "tmp");
    const child = spawn(process.execPath, [
      "--conditions=heddle-source",
      CHILD,
      rooms.folder,
      "",
      "wait",
      kind,
      tmpDir,
    ]);
    await once(child.stdout, "data");
    expect(readdirSync(tmpDir)).toHaveLength(1);
    child.kill("SIGKILL");
    await once(child, "close");
    {
      await using room = await rooms.open({ kind, tmpDir });
      expect((await runIn(room, "cat a l")).text).toBe("baselayer");
    }
    expect(readdirSync(tmpDir)).toEqual([]);
    expect(statSync(rooms.base).isDirectory() && entriesOf(toRaw(rooms.base))).toEqual(["a"]);
  },
);
