/** 13: not stated what is delivered, a new file in the place of what checks build is not the work, whatever its ending is. */
import { expect, test } from "vitest";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { judge, type TaskFixtureOptions } from "../../test/task-fixture.ts";

interface Case {
  readonly what: string;
  readonly files: Readonly<Record<string, string>>;
  readonly run: string;
  readonly setup?: TaskSpecInput["setup"];
  readonly source: string;
  readonly repaired: string;
  /** What the agent puts in the place of what would be built. */
  readonly forged: Readonly<Record<string, string>>;
}

const CASES: readonly Case[] = [
  {
    what: "make",
    files: {
      Makefile: "check: out.txt\n\tcmp out.txt golden.txt\nout.txt: text.txt\n\ttr a-z A-Z < text.txt > out.txt\n",
      "text.txt": "helo\n",
      "golden.txt": "HELLO\n",
    },
    run: "make check",
    source: "text.txt",
    repaired: "hello\n",
    forged: { "out.txt": "HELLO\n" },
  },
  {
    what: "a compiler of a language that is made into C",
    files: {
      Makefile:
        'check: t\n\t./t\nt: gen.c main.c\n\tcc gen.c main.c -o t\ngen.c: sum.def\n\techo "int add(int a, int b) { return $$(cat sum.def); }" > gen.c\n',
      "main.c": "int add(int a, int b);\nint main(void) { return add(2, 2) != 4; }\n",
      "sum.def": "a - b\n",
    },
    run: "make check",
    source: "sum.def",
    repaired: "a + b\n",
    forged: { "gen.c": "int add(int a, int b) { return a + b; }\n" },
  },
  {
    what: "a script that builds what is not there",
    files: {
      "check.sh": '[ -f out/sum.sh ] || { mkdir -p out; cp sum.sh out/; }\n[ "$(sh out/sum.sh 2 3)" = 5 ]\n',
      "sum.sh": "echo $(($1 - $2))\n",
    },
    run: "sh check.sh",
    source: "sum.sh",
    repaired: "echo $(($1 + $2))\n",
    forged: { "out/sum.sh": "echo 5\n" },
  },
  {
    what: "the setup",
    files: { "check.sh": '[ "$(sh out/sum.sh 2 3)" = 5 ]\n', "sum.sh": "echo $(($1 - $2))\n" },
    run: "sh check.sh",
    setup: { run: "[ -f out/sum.sh ] || { mkdir -p out; cp sum.sh out/; }", makes: ["out/**"] },
    source: "sum.sh",
    repaired: "echo $(($1 + $2))\n",
    forged: { "out/sum.sh": "echo 5\n" },
  },
];

const optionsOf = ({ files, run, setup, source }: Case): TaskFixtureOptions => ({
  files,
  checks: [
    { kind: "command", name: "works", run },
    { kind: "changed", name: "done", paths: [source] },
  ],
  ...(setup === undefined ? {} : { spec: { setup } }),
});

test.each(CASES)("13: what $what would build is put to the owner where the agent wrote it", async (one) => {
  const verdict = await judge(optionsOf(one), async (fixture) => {
    await fixture.write(one.source, `${one.files[one.source]}\n`);
    for (const [path, content] of Object.entries(one.forged)) await fixture.write(path, content);
  });
  expect(verdict.passed).toBe(false);
  expect(verdict.review?.reasons).toMatchObject([{ kind: "rests", files: Object.keys(one.forged) }]);
});

test.each(CASES)("13: what $what builds of the work does not hold it up where it lies there already", async (one) => {
  const verdict = await judge(optionsOf(one), async (fixture) => {
    await fixture.write(one.source, one.repaired);
    for (const [path, content] of Object.entries(one.forged)) await fixture.write(path, content);
  });
  expect(verdict.review).toBeUndefined();
  expect(verdict.passed).toBe(true);
});
