import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { holdFile } from "./held-file.ts";

/** Turns the folder into a link that leads out and back, as fast as it can. */
const SWAPPER = `
  const { renameSync, symlinkSync } = require("node:fs");
  const [folder, outside] = process.argv.slice(1);
  symlinkSync(outside, folder + "-link");
  process.stdout.write("ready");
  for (;;) {
    renameSync(folder, folder + "-real");
    renameSync(folder + "-link", folder);
    renameSync(folder, folder + "-link");
    renameSync(folder + "-real", folder);
  }
`;

test.runIf(process.platform === "linux")(
  "12.1: a folder that is swapped for a link without pause is never written through (needs /proc)",
  async () => {
    const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-swap-")));
    const [workspace, outside] = [join(root, "workspace"), join(root, "outside")];
    await mkdir(join(workspace, "out"), { recursive: true });
    await mkdir(outside);
    const swapper = spawn(process.execPath, ["-e", SWAPPER, join(workspace, "out"), outside]);
    try {
      await once(swapper.stdout, "data");
      const ends = { written: 0, refused: 0 };
      for (const until = performance.now() + 1000; performance.now() < until;) {
        try {
          using held = holdFile(join(workspace, "out", "answer.txt"), { roots: [workspace] });
          await held.write("answer");
          ends.written += 1;
        } catch {
          ends.refused += 1;
        }
      }
      expect(await readdir(outside)).toEqual([]);
      expect(ends.written + ends.refused).toBeGreaterThan(10);
    } finally {
      swapper.kill("SIGKILL");
      await once(swapper, "close");
      await rm(root, { recursive: true });
    }
  },
);

test.runIf(process.platform === "linux")(
  "12.1: pipes and standard output of the user are written into (needs /proc)",
  () => {
    const program = `
    const { holdFile } = await import(${JSON.stringify(join(import.meta.dirname, "held-file.ts"))});
    using held = holdFile(process.argv[1], { roots: [process.cwd()] });
    await held.write("answer");
  `;
    const node = `"${process.execPath}" --conditions=heddle-source --input-type=module -e "$PROGRAM"`;
    const said = (script: string): string =>
      spawnSync("bash", ["-c", script], { env: { ...process.env, PROGRAM: program }, encoding: "utf8" }).stdout;
    expect(said(`${node} /dev/stdout | cat`)).toBe("answer");
    expect(said(`${node} >(tr a-z A-Z) | cat`)).toBe("ANSWER");
    expect(said(`cd "$(mktemp -d)"; mkfifo pipe; cat pipe & ${node} "$PWD/pipe"; wait`)).toBe("answer");
    expect(said(`cd "$(mktemp -d)"; { echo first; ${node} /dev/stdout; } > file; cat file`)).toBe("first\nanswer");
  },
);
