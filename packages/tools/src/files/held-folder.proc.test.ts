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

const PROGRAM = `
  const { holdFile } = await import(${JSON.stringify(join(import.meta.dirname, "held-file.ts"))});
  const [file, root, how] = process.argv.slice(1);
  try {
    using held = holdFile(file, { roots: [root] });
    if (how === "now") held.writeNow("answer");
    else await held.write("answer");
  } catch (error) {
    console.log(error.message);
  }
`;
const NODE = `"${process.execPath}" --conditions=heddle-source --input-type=module -e "$PROGRAM"`;

/** In a new folder of its own, which has the folder `ws` for agents. */
function said(script: string): string {
  const whole = `set -e; here="$(mktemp -d)"; trap 'rm -r "$here"' EXIT; cd "$here"; mkdir ws; ${script}`;
  return spawnSync("bash", ["-c", whole], { env: { ...process.env, PROGRAM }, encoding: "utf8", timeout: 60_000 })
    .stdout;
}

// A link of its own leads to standard output: as root, a defect would replace the one of the machine.
const OUT = "ln -s /proc/self/fd/1 out";

test.runIf(process.platform === "linux")(
  "12.1: pipes and standard output of the user are written into (needs /proc)",
  () => {
    expect(said(`${OUT}; ${NODE} "$PWD/out" ws | cat; test -L out && echo kept`)).toBe("answerkept\n");
    expect(said(`${OUT}; ${NODE} "$PWD/out" ws now | cat; test -L out && echo kept`)).toBe("answerkept\n");
    expect(said(`${NODE} >(tr a-z A-Z) ws now | cat`)).toBe("ANSWER");
    for (const how of ["later", "now"])
      expect(said(`mkfifo p; timeout 20 cat p & ${NODE} "$PWD/p" ws ${how}; wait; test -p p && echo kept`)).toBe(
        "answerkept\n",
      );
  },
);

test.runIf(process.platform === "linux")(
  "12.1: a descriptor is written to as it is, so that what comes before and after stays (needs /proc)",
  () => {
    expect(said(`${OUT}; { echo first; ${NODE} "$PWD/out" ws; echo; echo last; } > f; cat f`)).toBe(
      "first\nanswer\nlast\n",
    );
    expect(said(`{ ${NODE} /dev/fd/7 ws; echo last >&7; } 7> f; cat f`)).toBe("answerlast\n");
    expect(said(`${NODE} /dev/fd/0 ws < /dev/null`)).toContain("not open for writing");
    expect(said(`${NODE} /dev/fd/777 ws`)).toContain("is not open in this process");
  },
);

test.runIf(process.platform === "linux")(
  "12.1: a pipe or a device where agents may write is refused, and one without a reader is not waited for (needs /proc)",
  () => {
    expect(said(`mkfifo ws/pipe; ${NODE} "$PWD/ws/pipe" ws`)).toContain("ws/pipe is a pipe or a device in a folder");
    expect(said(`mkfifo pipe; ${NODE} "$PWD/pipe" ws now; test -p pipe`)).toMatch(
      /nothing has read from .*pipe for 2 s/,
    );
    expect(said(`${OUT}; mv out ws; ${NODE} "$PWD/ws/out" ws; test -L ws/out && echo kept`)).toMatch(
      /ws\/out is a link .* name \/proc\/self\/fd\/1 instead\nkept/,
    );
  },
);
