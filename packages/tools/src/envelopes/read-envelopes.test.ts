import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { isBelow, isWithin } from "../sandbox/mountinfo.ts";
import { envelopeHash } from "../calls/envelopes.ts";
import { checkEnvelopeFile, envelopeFolders, readEnvelopes } from "./read-envelopes.ts";
import type { Envelopes } from "./registry.ts";
import type { Surroundings } from "./resolve.ts";
import { systemFolders } from "./system-folders.ts";

interface Fixture extends AsyncDisposable {
  readonly workspace: string;
  readonly given: Surroundings;
  user(name: string, text: string): Promise<string>;
  project(name: string, text: string): Promise<string>;
  read(): Envelopes;
  check(file: string): unknown;
}

async function openFixture(): Promise<Fixture> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-envelopes-")));
  const workspace = join(root, "workspace");
  await mkdir(workspace);
  const folders = envelopeFolders(join(root, "home"), workspace);
  const put = async (file: string, text: string): Promise<string> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  };
  return {
    workspace,
    given: { workspace, writableRoots: [], networkAccess: false, approval: "on-request", masked: [] },
    user: (name, text) => put(join(folders.user, name), text),
    project: (name, text) => put(join(folders.project ?? "", name), text),
    read: () => readEnvelopes(folders),
    check: (file) => checkEnvelopeFile(file, folders),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  };
}

test("an envelope of the user is read from its file and resolved in the workspace", async () => {
  await using fixture = await openFixture();
  await fixture.user(
    "docs.yaml",
    [
      "description: Write documents",
      "extends: edit",
      "tools: [read, edit, mcp.wiki.*]",
      "write: [docs]",
      "masked: [private, ~/notes]",
      "network: [a.test, '*.b.test:8443']",
      "approval: untrusted",
      "limits: { calls: 20 }",
      "exits:",
      "  - { to: explore, by: [model], approval: auto }",
    ].join("\n"),
  );
  const known = fixture.read();
  expect(known.entry("docs")).toMatchObject({ source: "user", spec: { id: "docs", description: "Write documents" } });
  expect(known.resolve("docs", fixture.given)).toMatchObject({
    id: "docs",
    tools: ["read", "edit"],
    effects: ["read", "write", "exec", "net"],
    writeRoots: [join(fixture.workspace, "docs")],
    masked: [join(fixture.workspace, "private"), expect.stringMatching(/\/notes$/)],
    network: ["a.test", "*.b.test:8443"],
    sandbox: "required",
    approval: "untrusted",
    limits: { calls: 20 },
    exits: [{ to: "explore", by: ["model"], approval: "auto" }],
  });
});

test.each([
  [
    "E1: an unknown key, with its line",
    "extends: edit\ntoools: [read]\n",
    ':2: unknown key "toools"; did you mean "tools"?',
  ],
  ["E1: an unknown key inside", "extends: edit\nlimits:\n  calls: 1\n  cals: 2\n", ':4: unknown key "cals"'],
  ["E1: a wrong value", "extends: edit\nsandbox: maybe\n", ":2: sandbox must be one of required, off"],
  ["E1: a wrong value in a list", "extends: edit\neffects:\n  - read\n  - fly\n", ":4: effects.1 must be one of"],
  ["E1: what is not YAML", "extends: [edit\n", "this is not YAML"],
  [
    "E1: an alias",
    "extends: edit\nwrite: &a [x]\nmasked: *a\n",
    ":2: anchors and aliases are not supported; write the value out",
  ],
  ["E1: a host that is none", "extends: edit\nnetwork: ['http://a']\n", ":2: network"],
  ["E1: a folder above the workspace", "extends: edit\nwrite: [../x]\n", ":2: write.0 must be a folder without .."],
  ["E1: read roots without what programs need", "extends: edit\nread: [src]\n", ':2: no program runs without "system"'],
  [
    "E1: read roots without a sandbox",
    "extends: full\nread: [system]\n",
    ":2: without a sandbox nothing limits what programs read",
  ],
  ["E1: tools that are missing", "effects: [read]\n", ':1: "tools" is missing'],
  [
    "E2: an unknown tool",
    "extends: edit\ntools:\n  - read\n  - reed\n",
    ':4: there is no tool "reed"; did you mean "read"?',
  ],
  ["E3: a tool beyond its effects", "tools: [read, bash]\neffects: [read]\n", ':1: bash has the effect "exec"'],
  ["E3: fewer effects than inherited tools", "extends: edit\neffects: [read]\n", 'has the effect "exec"'],
  ["E4: nothing to extend", "extends: nobody\n", ':1: there is no envelope "nobody" to begin with'],
  [
    "E5: an edge to nowhere",
    "extends: edit\nexits:\n  - {to: moon, by: [user], approval: ask}\n",
    ':3: there is no envelope "moon"',
  ],
  ["E5: an edge to itself", "extends: edit\nexits: [{to: bad, by: [user], approval: ask}]\n", ":2: an edge leads back"],
  ["another id than its name", "id: good\nextends: edit\n", ':1: the id is the file\'s name, "bad"'],
])("%s is an error", async (_name, text, message) => {
  await using fixture = await openFixture();
  const file = await fixture.user("bad.yaml", text);
  const error = expect.objectContaining({ code: "envelope.invalid", message: expect.stringContaining(message) });
  expect(() => fixture.read()).toThrow(error);
  expect(() => fixture.check(file)).toThrow(error);
});

test("read roots are inherited, resolved with where their links lead, and narrowed by a project only", async () => {
  await using fixture = await openFixture();
  const { workspace } = fixture;
  await mkdir(join(workspace, "docs"));
  await mkdir(join(workspace, "..", "elsewhere"));
  await symlink("elsewhere", join(workspace, "..", "known"));
  await fixture.user("a.yaml", `extends: explore\nread: [system, docs, "gone?", ${join(workspace, "../known")}]\n`);
  await fixture.user("b.yaml", "extends: a\nlimits: {calls: 3}\n");
  const { readRoots = [], masked, writeRoots } = fixture.read().resolve("b", fixture.given);
  const system = systemFolders();
  const own = readRoots.filter((path) => isBelow(path, join(workspace, "..")));
  expect(own).toEqual([join(workspace, "docs"), ...["known", "elsewhere"].map((name) => join(workspace, "..", name))]);
  expect(readRoots).toContain("/usr");
  expect(system.folders.filter((path) => !readRoots.some((root) => isWithin(path, root)))).toEqual([]);
  expect([masked, writeRoots]).toEqual([system.closed, []]);
  expect(fixture.read().resolve("explore", fixture.given).readRoots).toBeUndefined();
  await fixture.project("a.yaml", "extends: a\nread: [system]\n");
  expect(fixture.read().resolve("a", fixture.given).readRoots).not.toContain(join(workspace, "docs"));
  for (const wide of ["[system, .]", `[system, docs, ${workspace}]`]) {
    await fixture.project("a.yaml", `extends: a\nread: ${wide}\n`);
    expect(() => fixture.read().resolve("a", fixture.given)).toThrow(`reading ${workspace} is more than "a" allows`);
  }
  await fixture.project("a.yaml", "read: [system]\nextends: a\nmasked: [docs]\n");
  expect(fixture.read().resolve("a", fixture.given).masked).toContain(join(workspace, "docs"));
});

test("E4: extends merges key by key through several files, adds masks, and a circle is an error that shows it", async () => {
  await using fixture = await openFixture();
  await fixture.user("a.yaml", "extends: explore\nmasked: [one]\nlimits: {calls: 5, wallMs: 1000}\n");
  await fixture.user("b.yaml", "extends: a\nmasked: [two]\nlimits: {calls: 3}\nexits: []\n");
  const { masked, limits, exits, tools } = fixture.read().resolve("b", fixture.given);
  expect(masked).toEqual(["one", "two"].map((name) => join(fixture.workspace, name)));
  expect([limits, exits]).toEqual([{ calls: 3, wallMs: 1000 }, undefined]);
  expect(tools).toEqual(fixture.read().resolve("explore", fixture.given).tools);
  await fixture.user("a.yaml", "extends: c\n");
  await fixture.user("c.yaml", "extends: b\n");
  expect(() => fixture.read()).toThrow("in a circle: a → c → b → a");
});

test("E6: the order of keys in a file does not change the hash", async () => {
  await using fixture = await openFixture();
  await fixture.user("a.yaml", "extends: edit\nnetwork: none\nlimits: {calls: 5, wallMs: 9}\n");
  const hash = (): string => envelopeHash(fixture.read().resolve("a", fixture.given));
  const before = hash();
  await fixture.user("a.yaml", "limits: {wallMs: 9, calls: 5}\nnetwork: none\nextends: edit\n");
  expect(hash()).toBe(before);
});

test("a file with a name that is known narrows it, whoever wrote it, and cannot widen it", async () => {
  await using fixture = await openFixture();
  await fixture.user("edit.yaml", "extends: edit\nwrite: [src]\n");
  const src = join(fixture.workspace, "src");
  expect(fixture.read().resolve("edit", fixture.given).writeRoots).toEqual([src]);
  await fixture.project("edit.yaml", "extends: edit\nlimits: {calls: 9}\n");
  expect(fixture.read().resolve("edit", fixture.given)).toMatchObject({ writeRoots: [src], limits: { calls: 9 } });
  await fixture.project("edit.yaml", "extends: edit\nwrite: [.]\n");
  expect(() => fixture.read().resolve("edit", fixture.given)).toThrow(
    `writing to ${fixture.workspace} is more than "edit" allows; the project's envelope "edit" can only narrow it`,
  );
  // A ceiling is the owner's word.
  expect(fixture.read().resolveOwn("edit", fixture.given).writeRoots).toEqual([src]);
  await fixture.user("explore.yaml", "extends: edit\n");
  expect(() => fixture.read().resolve("explore", fixture.given)).toThrow('your envelope "explore" can only narrow it');
});

test.each([
  ["the sandbox", "extends: full\n", "running outside the sandbox"],
  ["the network", "extends: explore\nnetwork: all\n", "the network"],
  ["a folder", "extends: explore\nwrite: [/etc]\n", "writing to /etc"],
  [
    "an edge",
    "extends: explore\nexits: [{to: full, by: [model], approval: auto}]\n",
    'the edge to "full" without a question',
  ],
])("a project's own envelope is held to the user's edit: %s", async (_name, text, message) => {
  await using fixture = await openFixture();
  await fixture.project("mine.yaml", text);
  const known = fixture.read();
  expect(() => known.resolve("mine", fixture.given)).toThrow(message);
  expect(() => known.resolveOwn("mine", fixture.given)).toThrow("a ceiling is one of your own");
});

test("a project cannot add an edge to an envelope that is known, nor take a condition from one", async () => {
  await using fixture = await openFixture();
  const edges = (list: string): Promise<string> => fixture.project("test.yaml", `extends: test\nexits: ${list}\n`);
  const resolve = (): unknown => fixture.read().resolve("test", fixture.given).exits;
  await edges("[{to: edit, by: [user], approval: auto}, {to: edit, by: [model], approval: ask}]");
  expect(resolve()).toHaveLength(2);
  for (const edge of [
    "{to: edit, by: [model], approval: auto}",
    "{to: deploy, by: [user], approval: ask}",
    "{to: full, by: [model], approval: ask}",
  ]) {
    await edges(`[${edge}]`);
    expect(resolve).toThrow("can only narrow it");
  }
});

test("a project's own envelope is held to the ceiling of the thread where there is one", async () => {
  await using fixture = await openFixture();
  await fixture.project("mine.yaml", "extends: edit\nexits: []\n");
  const known = fixture.read();
  const explore = known.resolveOwn("explore", fixture.given);
  expect(known.resolve("mine", fixture.given).writeRoots).toEqual([fixture.workspace]);
  expect(() => known.resolve("mine", fixture.given, explore)).toThrow('is more than "explore" allows');
});

test("a link in the workspace does not lead a folder of an envelope out of it", async () => {
  await using fixture = await openFixture();
  await symlink("/etc", join(fixture.workspace, "dist"));
  await mkdir(join(fixture.workspace, "build"));
  expect(fixture.read().resolve("test", fixture.given).writeRoots).toEqual([join(fixture.workspace, "build")]);
  await fixture.user("docs.yaml", "extends: edit\nwrite: [dist]\n");
  expect(() => fixture.read().resolve("docs", fixture.given)).toThrow("leads out of");
});

test("files that are links, too large, badly named or twice there are refused by name", async () => {
  await using fixture = await openFixture();
  const file = await fixture.user("Big One.yaml", "extends: edit\n");
  expect(() => fixture.read()).toThrow("the name of an envelope");
  await rm(file);
  const large = await fixture.user("large.yaml", `# ${"x".repeat(70_000)}\n`);
  expect(() => fixture.read()).toThrow("larger than 65536 bytes");
  await rm(large);
  const link = join(dirname(large), "link.yaml");
  await symlink("/etc/passwd", link);
  expect(() => fixture.read()).toThrow("is not a plain file");
  await rm(link);
  await fixture.user("a.yaml", "extends: edit\n");
  await fixture.user("a.yml", "extends: edit\n");
  expect(() => fixture.read()).toThrow('"a" is also in');
});
