import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Gate } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFolders, gatesBeside, readEnvelopes, readGates } from "./read-envelopes.ts";

async function openFolders() {
  const root = await mkdtemp(join(tmpdir(), "heddle-gates-"));
  const folders = envelopeFolders(join(root, "home"), join(root, "workspace"));
  const put = async (file: string, text: string): Promise<void> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  };
  return {
    own: (name: string, text: string) => put(join(root, "home", name), text),
    project: (name: string, text: string) => put(join(root, "workspace", ".heddle", name), text),
    gates: () => readGates(gatesBeside(folders)),
    envelopes: () => readEnvelopes(folders),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  };
}

const CLEAN = `
description: Nothing is left to commit.
guards:
  - { kind: command, command: [git, diff, --quiet] }
  - { kind: files, exist: [README.md] }
`;
const EDGE = (guards: string): string =>
  `extends: explore\nexits:\n  - { to: edit, by: [model], approval: auto, guards: [${guards}] }\n`;
const clean: Gate = {
  name: "clean",
  guards: [
    { kind: "command", command: ["git", "diff", "--quiet"] },
    { kind: "files", exist: ["README.md"] },
  ],
};

test("a gate of the user is read from its file, and an edge that names it holds its guards", async () => {
  await using t = await openFolders();
  await t.own("gates/clean.yaml", CLEAN);
  await t.own("envelopes/look.yaml", EDGE("{ kind: gate, name: clean }"));
  await t.own("envelopes/look-more.yaml", "extends: look\n");
  expect(t.gates().named("clean")).toMatchObject({
    gate: clean,
    source: "user",
    description: "Nothing is left to commit.",
  });
  for (const id of ["look", "look-more"])
    expect(t.envelopes().entry(id).spec.exits[0]?.guards).toEqual([{ kind: "gate", ...clean }]);
});

test("a project adds gates of its own names, and neither replaces nor weakens one of the user's", async () => {
  await using t = await openFolders();
  await t.own("gates/clean.yaml", CLEAN);
  await t.project("gates/built.yaml", "guards: [{ kind: files, exist: [out] }]\n");
  expect([...t.gates().known.keys()]).toEqual(["clean", "built"]);
  await t.project("gates/clean.yaml", "guards: [{ kind: files, absent: [nothing] }]\n");
  expect(() => t.gates()).toThrow(/clean\.yaml:1: the gate "clean" is .*home\/gates\/clean\.yaml; choose another name/);
  await t.project("envelopes/look.yaml", EDGE("{ kind: gate, name: clean }"));
  expect(() => t.envelopes()).toThrow(/choose another name/);
});

test("a project's envelope that narrows the user's keeps the gate on its way out", async () => {
  await using t = await openFolders();
  await t.own("gates/clean.yaml", CLEAN);
  await t.own("envelopes/look.yaml", EDGE("{ kind: gate, name: clean }"));
  await t.project("envelopes/look.yaml", "extends: look\nnetwork: none\n");
  const given = { workspace: "/w", writableRoots: [], networkAccess: false, approval: "never", masked: [] } as const;
  expect(t.envelopes().resolve("look", given).exits?.[0]?.guards).toEqual([{ kind: "gate", ...clean }]);
  await t.project("envelopes/look.yaml", EDGE("{ kind: files, absent: [nothing] }"));
  expect(() => t.envelopes().resolve("look", given)).toThrow(/the edge to "edit" is more than "look" allows/);
});

test.each([
  [
    "an edge to a gate that is not there",
    "envelopes/look.yaml",
    EDGE("{ kind: gate, name: claen }"),
    /look\.yaml:3: there is no gate "claen"; did you mean "clean"\?/,
  ],
  [
    "guards beside the name",
    "envelopes/look.yaml",
    EDGE("{ kind: gate, name: clean, guards: [{ kind: outcome }] }"),
    /look\.yaml:3: the guards of a gate are in its own file/,
  ],
  ["a gate in a gate", "gates/twice.yaml", "guards:\n  - { kind: gate, name: clean }\n", /twice\.yaml:2: guards\.0/],
  ["no guard", "gates/none.yaml", "guards: []\n", /none\.yaml:1: guards/],
  [
    "an unknown key",
    "gates/odd.yaml",
    "guards: [{ kind: outcome }]\nguard: []\n",
    /odd\.yaml:2: unknown key "guard"; did you mean "guards"\?/,
  ],
  ["a name in capitals", "gates/Odd.yaml", CLEAN, /Odd\.yaml: the name of a gate is of lower-case letters/],
])("%s is a problem with its line", async (_what, file, text, message) => {
  await using t = await openFolders();
  await t.own("gates/clean.yaml", CLEAN);
  await t.own(file, text);
  expect(() => t.envelopes()).toThrow(message);
});

test("a gate that is asked for by a wrong name is refused with the ones there are", async () => {
  await using t = await openFolders();
  expect(() => t.gates().named("clean")).toThrow(/there is no gate "clean"; there are none yet/);
  await t.own("gates/clean.yaml", CLEAN);
  expect(() => t.gates().named("deploy")).toThrow(/there are: clean/);
});
