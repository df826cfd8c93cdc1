import { spawn } from "node:child_process";
import { once } from "node:events";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { exportBundle } from "@heddle/agent";
import { openJournal, type Journal } from "@heddle/journal";
import { canonical, type Author, type Envelope, type EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { LAUNCHER, openWorld, run, type World } from "../../test/heddle-process.ts";

const EXAMPLES = path.join(import.meta.dirname, "../../../../examples");
const TINY = path.join(EXAMPLES, "verify-bundle.mjs");
const CODES = { clean: 0, violation: 1, tampered: 2, cannotVerify: 3 } as const;

/** By whom, and what; without an author by the agent. As a dispatch would write them, right or wrong. */
type Step = readonly [event: Record<string, unknown>, author?: string];

const hashOf = (envelope: unknown): string => createHash("sha256").update(canonical(envelope)).digest("hex");
const EXPLORE: Envelope = {
  id: "explore",
  tools: ["read", "bash", "mcp.notes.*"],
  effects: ["read", "exec"],
  writeRoots: [],
  masked: ["/secret"],
  network: ["example.com", "*.pkg.dev:8443"],
  sandbox: "required",
  approval: "never",
  exits: [{ to: "edit", by: ["model"], approval: "auto", guards: [{ kind: "outcome" }] }],
};
const EDIT: Envelope = {
  ...EXPLORE,
  id: "edit",
  tools: [...EXPLORE.tools, "write", "apply_patch"],
  effects: ["read", "write", "exec"],
  writeRoots: ["/w"],
  exits: [],
};

const turn = { v: 1, turnId: "t1" };
const settings = {
  provider: "scripted",
  model: "m",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "p" };
const usage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 0,
  reasoningOutputTokens: 0,
};
const end: Step = [{ type: "turn.completed", ...turn, status: "completed", usage, durationMs: 1 }];

function turnIn(envelope: Envelope, ...steps: readonly Step[]): readonly Step[] {
  const started = { type: "turn.started", ...turn, runner: "embedded", sandboxLevel: "none", envelope };
  return [
    [{ type: "thread.created", v: 1, workspace: "/w", origin: "exec" }, "user:owner"],
    [{ type: "turn.admitted", ...turn, input: [{ type: "text", text: "é 漢 😀" }], settings, holder }, "user:owner"],
    [{ ...started, envelopeHash: hashOf(envelope) }, "system"],
    ...steps,
    end,
  ];
}

function ran(tool: string, args: unknown, outcome = "ok"): readonly Step[] {
  const call = { ...turn, callId: "c1", itemId: "i1", tool };
  return [
    [{ type: "tool.intended", ...call, arguments: args, isReadOnly: false }],
    [{ type: "tool.settled", ...call, outcome, output: [] }],
  ];
}

const used = (host: string, port = 443): Step => [{ type: "network.used", ...turn, host, port }, "system"];
const at = (file_path: string) => ({ file_path });
const entering = { v: 1, duringTurn: "t1", sandboxLevel: "none", depth: 0 };
const enter = (envelope: Envelope, more: object = {}): Step => [
  { type: "envelope.entered", ...entering, cause: "start", envelope, envelopeHash: hashOf(envelope), ...more },
  "system",
];
function hop(
  from: Envelope,
  to: Envelope,
  { channel = "model", isMet = true, author = "agent:embedded", more = {} } = {},
): Step[] {
  const facts = { to: to.id, channel, reason: "ready", guards: [{ kind: "outcome", isMet, found: "x", ...more }] };
  const [entered] = enter(to, { cause: "hop", hop: facts });
  const left = { type: "envelope.left", v: 1, duringTurn: "t1", cause: "hop", envelopeHash: hashOf(from), calls: 0 };
  return [
    [left, author],
    [entered, author],
  ];
}

const GATE = { name: "ready", guards: [{ kind: "outcome" as const }] };
const GATED: Envelope = {
  ...EXPLORE,
  exits: [{ to: "edit", by: ["model"], approval: "auto", guards: [{ kind: "gate", ...GATE }] }],
};
const THROUGH = { more: { kind: "gate", gateId: "gate_1" } };
const passed = (): Step => [
  {
    type: "gate.passed",
    v: 1,
    gateId: "gate_1",
    gate: GATE,
    gateHash: hash(canonical(GATE)),
    path: [{ kind: "outcome", isMet: true, found: "x" }],
    envelopeHash: hashOf(GATED),
  },
];

async function bundleOf(home: string, steps: readonly Step[]): Promise<readonly string[]> {
  await using journal = await openJournal({ home });
  await put(journal, "thr", steps);
  const lines: string[] = [];
  for await (const line of exportBundle(journal, ["thr"])) lines.push(line.trimEnd());
  return lines;
}

async function put(journal: Journal, stream: string, steps: readonly Step[]): Promise<void> {
  for (const [event, author = "agent:embedded"] of steps)
    await journal.append({ stream, author: author as Author, events: [event as EventBody] });
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A bundle of events that no store of today would take, in the format and signed as its description says. */
function written(steps: readonly Step[], blobs: readonly Row[] = []): readonly string[] {
  const { publicKey: open, privateKey } = generateKeyPairSync("ed25519");
  const publicKey = open.export({ type: "spki", format: "pem" }).toString();
  const signed = (value: object): string =>
    sign(undefined, Buffer.from(canonical(value)), privateKey).toString("base64");
  const stream = "thr";
  let prevHash = hash(`heddle/1|${stream}`);
  const events = steps.map(([{ ...event }, author = "agent:embedded"], index) => {
    const body = canonical(event);
    const { type, v } = event;
    const row = { stream, version: index + 1, id: `e${index}`, at: 1000 + index, author, type, v };
    const before = prevHash;
    prevHash = hash(canonical({ chain: 1, ...row, bodyHash: hash(body), prevHash }));
    return {
      kind: "event",
      position: index + 1,
      ...row,
      body,
      body_hash: hash(body),
      prev_hash: before,
      hash: prevHash,
    };
  });
  const head = { stream, version: events.length, hash: prevHash, at: 1, keyId: hash(publicKey).slice(0, 16) };
  const lines = [
    {
      kind: "header",
      format: "heddle-export",
      v: blobs.length === 0 ? 2 : 3,
      thread: stream,
      subjects: [stream],
      publicKey,
    },
    { kind: "stream", stream, lastVersion: events.length },
    { kind: "checkpoint", ...head, signature: signed({ checkpoint: 1, ...head }) },
    ...events,
    ...blobs,
  ].map((line) => JSON.stringify(line));
  const sha256 = hash(lines.map((line) => `${line}\n`).join(""));
  const end = { kind: "end", events: events.length, checkpoints: 1, sha256, signature: signed({ seal: 1, sha256 }) };
  return [...lines, JSON.stringify(end)];
}

/** What both say about the same bytes. */
async function verdicts(world: World, lines: readonly string[]): Promise<readonly (number | null)[]> {
  const file = await world.file("bundle.jsonl", `${lines.join("\n")}\n`);
  const tiny = spawn(process.execPath, [TINY, file], { stdio: "ignore" });
  const [first, [code]] = await Promise.all([run(["verify", file], { world }), once(tiny, "exit")]);
  return [first.code, code as number | null];
}

type Row = Record<string, unknown>;
const parse = (line: string): Row => JSON.parse(line);
const kindAt = (lines: readonly string[], kind: string, nth = 0): number =>
  lines.map((line, index) => [parse(line)["kind"], index] as const).filter(([one]) => one === kind)[nth]?.[1] ?? -1;
const edited = (lines: readonly string[], index: number, change: Row): readonly string[] =>
  lines.with(index, JSON.stringify({ ...parse(lines[index] ?? ""), ...change }));

/** With an end that fits: everything that a forger can make without the key. */
function sealed(lines: readonly string[]): readonly string[] {
  const rest = lines.slice(0, -1);
  const of = (kind: string): number => rest.filter((line) => parse(line)["kind"] === kind).length;
  const sha256 = createHash("sha256")
    .update(rest.map((line) => `${line}\n`).join(""))
    .digest("hex");
  return edited([...rest, lines.at(-1) ?? ""], rest.length, {
    events: of("event"),
    checkpoints: of("checkpoint"),
    sha256,
  });
}

function asFirstVersion(lines: readonly string[]): readonly string[] {
  const { subjects: _subjects, ...header } = parse(lines[0] ?? "");
  const { sha256: _sha256, signature: _signature, ...last } = parse(lines.at(-1) ?? "");
  return [JSON.stringify({ ...header, v: 1 }), ...lines.slice(1, -1), JSON.stringify(last)];
}

test("two verifiers without common code come to the same verdict about tampered bundles", async () => {
  await using world = await openWorld();
  const lines = await bundleOf(world.home, turnIn(EXPLORE, ...ran("read", at("a"))));
  const event = kindAt(lines, "event", 3);
  const cases: readonly (readonly [string, keyof typeof CODES, readonly string[]])[] = [
    ["as it was exported", "clean", lines],
    [
      "a body",
      "tampered",
      edited(lines, event, { body: String(parse(lines[event] ?? "")["body"]).replace("read", "rare") }),
    ],
    ["a body taken out", "tampered", sealed(edited(lines, event, { body: null }))],
    ["an author", "tampered", sealed(edited(lines, event, { author: "system" }))],
    ["a time", "tampered", sealed(edited(lines, event, { at: 1 }))],
    ["an event left out", "tampered", sealed(lines.toSpliced(event, 1))],
    [
      "two events in another order",
      "tampered",
      sealed(lines.with(event, lines[event + 1] ?? "").with(event + 1, lines[event] ?? "")),
    ],
    ["a checkpoint", "tampered", sealed(edited(lines, kindAt(lines, "checkpoint"), { version: 2 }))],
    ["no checkpoints", "tampered", sealed(lines.filter((line) => parse(line)["kind"] !== "checkpoint"))],
    ["another position, which nothing but the end covers", "tampered", edited(lines, event, { position: 99 })],
    ["the same with an end that fits", "tampered", sealed(edited(lines, event, { position: 99 }))],
    ["no signature over all lines", "cannotVerify", edited(lines, lines.length - 1, { signature: null })],
    ["called one of the first version, which has none", "cannotVerify", asFirstVersion(lines)],
    ["no end", "tampered", lines.slice(0, -1)],
    ["half a line", "tampered", lines.with(event, (lines[event] ?? "").slice(0, 50))],
    ["lines after the end", "tampered", [...lines, lines[event] ?? ""]],
    ["a subject that is not there", "tampered", sealed(edited(lines, 0, { subjects: ["thr", "other"] }))],
    ["no key", "tampered", sealed(edited(lines, 0, { publicKey: null }))],
    ["no bundle", "cannotVerify", ["hello"]],
  ];
  for (const [what, verdict, changed] of cases)
    expect(await verdicts(world, changed), what).toEqual([CODES[verdict], CODES[verdict]]);
});

test("two verifiers without common code come to the same verdict about what a bundle says", async () => {
  await using world = await openWorld();
  const cases: readonly (readonly [string, keyof typeof CODES, readonly Step[]])[] = [
    [
      "a hop by its edge",
      "clean",
      turnIn(EXPLORE, enter(EXPLORE), ...hop(EXPLORE, EDIT), ...ran("write", at("a/../b"))),
    ],
    ["a listed server and host", "clean", turnIn(EXPLORE, ...ran("mcp.notes.find", {}), used("a.pkg.dev", 8443))],
    ["a denied call", "clean", turnIn(EXPLORE, ...ran("write", at("/etc/x"), "denied"))],
    ["a running turn", "clean", turnIn(EXPLORE).slice(0, -1)],
    ["a tool that a broken dispatch let through", "violation", turnIn(EXPLORE, ...ran("write", at("/w/a")))],
    ["a path that climbs out", "violation", turnIn(EDIT, ...ran("write", at("src/../../etc/x")))],
    ["a masked path", "violation", turnIn(EXPLORE, ...ran("read", at("/secret/key")))],
    [
      "a patch outside",
      "violation",
      turnIn(EDIT, ...ran("apply_patch", "*** Begin Patch\n*** Delete File: /x\n*** End Patch")),
    ],
    ["a host that is not listed", "violation", turnIn(EXPLORE, used("www.example.com"))],
    ["a hop without an edge", "violation", turnIn(EDIT, enter(EDIT), ...hop(EDIT, EXPLORE))],
    [
      "a hop with the authority of another",
      "violation",
      turnIn(EXPLORE, enter(EXPLORE), ...hop(EXPLORE, EDIT, { channel: "user" })),
    ],
    ["a hop past its guard", "violation", turnIn(EXPLORE, enter(EXPLORE), ...hop(EXPLORE, EDIT, { isMet: false }))],
    ["a hop through a gate", "clean", turnIn(GATED, enter(GATED), passed(), ...hop(GATED, EDIT, THROUGH))],
    ["a call without an outcome", "violation", turnIn(EXPLORE, ...ran("read", at("a")).slice(0, 1))],
    ["an outcome without a call", "violation", turnIn(EXPLORE, ...ran("read", at("a")).slice(1))],
    ["a turn that ends twice", "violation", [...turnIn(EXPLORE), end]],
    ["an envelope that was not left", "violation", turnIn(EXPLORE, enter(EXPLORE), enter(EDIT))],
    [
      "a protected path",
      "violation",
      turnIn(EDIT, [{ type: "path.violated", ...turn, path: "/w/.git/hooks/x" }, "system"]),
    ],
    [
      "a spec that its hash does not name",
      "cannotVerify",
      turnIn(EXPLORE).map((step) =>
        step[0]["type"] === "turn.started" ? [{ ...step[0], envelope: EDIT }, "system"] : step,
      ),
    ],
  ];
  for (const [what, verdict, steps] of cases)
    expect(await verdicts(world, written(steps)), what).toEqual([CODES[verdict], CODES[verdict]]);
});

test("Verify: blob_altered: two verifiers come to the same verdict about the whole outputs in a bundle", async () => {
  await using world = await openWorld();
  const piece = (text: string, more: Row = {}): Row => ({
    kind: "blob",
    sha256: hash("all of it"),
    data: Buffer.from(text).toString("base64"),
    ...more,
  });
  const last = { isLast: true };
  const cases: readonly (readonly [string, keyof typeof CODES, readonly Row[]])[] = [
    ["in one piece", "clean", [piece("all of it", last)]],
    ["in three", "clean", [piece("all "), piece("of it"), piece("", last)]],
    ["another content", "violation", [piece("all of IT", last)]],
    ["without its end", "tampered", [piece("all of it")]],
    [
      "two that are mixed",
      "tampered",
      [piece("all "), piece("x", { sha256: hash("x"), ...last }), piece("of it", last)],
    ],
  ];
  for (const [what, verdict, blobs] of cases)
    expect(await verdicts(world, written(turnIn(EXPLORE), blobs)), what).toEqual([CODES[verdict], CODES[verdict]]);
});

test("Verify: wrong_key: a bundle verifies offline with the public key alone, and not with another one", async () => {
  await using world = await openWorld();
  const lines = await bundleOf(world.home, turnIn(EXPLORE, ...ran("read", at("a"))));
  const other = await bundleOf(path.join(world.root, "other"), turnIn(EXPLORE));
  const file = await world.file("bundle.jsonl", `${lines.join("\n")}\n`);
  const key = await world.file("key.pem", String(parse(lines[0] ?? "")["publicKey"]));
  const wrong = await world.file("wrong.pem", String(parse(other[0] ?? "")["publicKey"]));
  await using elsewhere = await openWorld();
  const good = await run(["verify", file, "--key", key, "--json"], { world: elsewhere });
  expect(good).toMatchObject({ code: 0 });
  expect(JSON.parse(good.stdout)).toMatchObject({
    result: "clean",
    levels: [{ level: 1, examined: 6 }, { level: 2 }, { level: 3, examined: 6 }, { level: 4, examined: 2 }],
    findings: [],
  });
  expect((await run(["verify", file, "--key", wrong], { world: elsewhere })).code).toBe(2);
  expect(await run(["verify", file, "--level", "5"], { world: elsewhere })).toMatchObject({
    code: 3,
    stdout: expect.stringContaining("nothing_to_verify"),
  });
});

test("examples/tampered-bundle catches every forgery, and the tiny verifier imports nothing of Heddle", async () => {
  await using world = await openWorld();
  const example = spawn(process.execPath, [path.join(EXAMPLES, "tampered-bundle/run.mjs")], {
    env: { ...world.env, HEDDLE: LAUNCHER },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  example.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(example, "close");
  expect(said).toContain("every forgery was caught by both");
  expect(code).toBe(0);
  const source = await readFile(TINY, "utf8");
  expect([...source.matchAll(/ from "([^"]+)"/g)].map(([, from]) => from)).toEqual([
    "node:crypto",
    "node:fs",
    "node:path",
  ]);
  expect(source.trimEnd().split("\n").length).toBeLessThanOrEqual(250);
});
