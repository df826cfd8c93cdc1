import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Envelope } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { admitted, completed } from "../suite/journal.samples.ts";
import {
  codeIn,
  codes,
  EDIT,
  EXPLORE,
  hashOf,
  intended,
  ran,
  replayed,
  settled,
  started,
  thread,
  turnIn,
  type Step,
} from "../suite/envelope.samples.ts";

const at = (file_path: string) => ({ file_path });
const patch = (path: string): string =>
  `*** Begin Patch\n*** Add File: ${path}\n+*** Add File: /not/a/header\n*** End Patch`;
const WITH_HOSTS: Envelope = { ...EXPLORE, network: ["example.com", "*.pkg.dev:8443", "[::1]:5432"] };
const used = (host: string, port: number): Step => ["system", { type: "network.used", v: 1, turnId: "t1", host, port }];
const asked = (callId: string): Step => [
  "system",
  {
    type: "approval.requested",
    v: 1,
    turnId: "t1",
    approvalId: `a ${callId}`,
    question: { kind: "command", callId, itemId: "i", command: "x", cwd: "/w" },
  },
];
const answered = (callId: string, decision: string): Step => [
  "user:owner",
  { type: "approval.resolved", v: 1, turnId: "t1", approvalId: `a ${callId}`, decision },
];
const taken = (from: Envelope, to: Envelope, more: object = {}): Step => [
  "user:owner",
  {
    type: "hop.taken",
    v: 1,
    turnId: "t1",
    callId: "c1",
    scope: "call",
    from: hashOf(from),
    to,
    toHash: hashOf(to),
    sandboxLevel: "none",
    ...more,
  },
];
const WIDER: Envelope = { ...EDIT, writeRoots: ["/w", "/other"] };
const UNTRUSTED: Envelope = { ...EDIT, approval: "untrusted" };

describe("level 4: calls", () => {
  test.each<readonly [name: string, what: string, envelope: Envelope, steps: readonly Step[]]>([
    ["Verify: tool_outside_envelope", "a tool that is not listed", EXPLORE, ran({ tool: "edit", args: at("a") })],
    ["Verify: tool_outside_envelope", "a tool of another server", EXPLORE, ran({ tool: "mcp.other.x" })],
    [
      "Verify: tool_outside_envelope",
      "a listed tool with an effect that is not allowed",
      { ...EXPLORE, effects: ["read"] },
      ran({ tool: "bash", args: { command: "ls" } }),
    ],
    [
      "Verify: tool_outside_envelope",
      "a call that failed had run",
      EXPLORE,
      ran({ tool: "write", args: at("/w/a"), outcome: "failed" }),
    ],
    [
      "Verify: tool_outside_envelope",
      "a call that a crash cut off may have run",
      EXPLORE,
      ran({ tool: "write", args: at("/w/a"), outcome: "unknown" }),
    ],
    ["Verify: path_outside_envelope", "an absolute path", EDIT, ran({ tool: "write", args: at("/etc/passwd") })],
    [
      "Verify: path_outside_envelope",
      "a path that climbs out",
      EDIT,
      ran({ tool: "write", args: at("src/../../etc/passwd") }),
    ],
    [
      "Verify: path_outside_envelope",
      "a neighbour with the same beginning",
      EDIT,
      ran({ tool: "edit", args: at("/wx/a") }),
    ],
    [
      "Verify: path_outside_envelope",
      "a masked path",
      EDIT,
      ran({ tool: "read", args: at("/home/me/.heddle/keys/journal.key") }),
    ],
    ["Verify: path_outside_envelope", "a file of the kernel", EDIT, ran({ tool: "read", args: at("/proc/1/environ") })],
    ["Verify: path_outside_envelope", "a path in a patch", EDIT, ran({ tool: "apply_patch", args: patch("../x") })],
    [
      "Verify: path_outside_envelope",
      "a patch in a folder",
      EDIT,
      ran({ tool: "apply_patch", args: { patch: patch("x"), folders: ["/tmp"] } }),
    ],
    [
      "Verify: path_outside_envelope",
      "a path beyond the read roots",
      { ...EDIT, readRoots: ["/usr"] },
      ran({ tool: "read", args: at("/srv/a") }),
    ],
    [
      "Verify: path_outside_envelope",
      "a folder of a command",
      { ...EDIT, readRoots: ["/usr"] },
      ran({ tool: "bash", args: { workdir: "/srv" } }),
    ],
    ["Verify: host_outside_envelope", "a host that is not listed", WITH_HOSTS, [used("evil.example", 443)]],
    ["Verify: host_outside_envelope", "a host below an exact name", WITH_HOSTS, [used("www.example.com", 443)]],
    ["Verify: host_outside_envelope", "another port", WITH_HOSTS, [used("example.com", 22)]],
    ["Verify: host_outside_envelope", "the name above a suffix", WITH_HOSTS, [used("pkg.dev", 8443)]],
    ["Verify: host_outside_envelope", "any host without a network", EXPLORE, [used("example.com", 443)]],
    [
      "Verify: approval_missing",
      "a call that nobody was asked for",
      UNTRUSTED,
      ran({ tool: "bash", args: { command: "rm x" } }),
    ],
    [
      "Verify: approval_missing",
      "a call that was declined and ran",
      UNTRUSTED,
      [asked("c1"), answered("c1", "decline"), ...ran({ tool: "bash" })],
    ],
    [
      "Verify: protected_path",
      "a protected path",
      EDIT,
      [["system", { type: "path.violated", v: 1, turnId: "t1", path: "/w/.git/hooks/x" }]],
    ],
  ])("%s: %s", (name, _what, envelope, steps) => {
    expect(codes(replayed(turnIn(envelope, ...steps))).map(([found]) => found)).toContain(codeIn(name));
  });

  test.each<readonly [what: string, envelope: Envelope, steps: readonly Step[]]>([
    [
      "a denied call, with or without an intent",
      EXPLORE,
      [
        ...ran({ tool: "write", args: at("/etc/x"), outcome: "denied" }),
        settled({ tool: "edit", callId: "c2", outcome: "denied" }),
      ],
    ],
    [
      "relative and dotted paths inside",
      EDIT,
      [
        ...ran({ tool: "write", args: at("./src/a") }),
        ...ran({ tool: "write", args: at("src/../b"), callId: "c2" }),
        ...ran({ tool: "apply_patch", args: patch("a/b"), callId: "c3" }),
        ...ran({ tool: "list", callId: "c4" }),
      ],
    ],
    ["a tool of a listed server", EXPLORE, ran({ tool: "mcp.notes.find" })],
    ["reading anywhere without read roots", EXPLORE, ran({ tool: "read", args: at("/usr/share/x") })],
    [
      "a writable folder inside a masked one",
      { ...EDIT, masked: ["/"], writeRoots: ["/w"] },
      ran({ tool: "write", args: at("/w/a") }),
    ],
    [
      "listed hosts, suffixes, ports and addresses",
      WITH_HOSTS,
      [used("Example.com.", 443), used("example.com", 80), used("a.b.pkg.dev", 8443), used("::1", 5432)],
    ],
    ["a call that a user accepted", UNTRUSTED, [asked("c1"), answered("c1", "accept"), ...ran({ tool: "bash" })]],
    ["a call that changes nothing", UNTRUSTED, ran({ tool: "bash", isReadOnly: true })],
    [
      "a command that a user runs",
      EXPLORE,
      [
        ["user:owner", { ...intended({ tool: "shell" }) }],
        ["user:owner", { ...settled({ tool: "shell" }) }],
      ],
    ],
  ])("%s is no violation", (_what, envelope, steps) => {
    expect(codes(replayed(turnIn(envelope, ...steps)))).toEqual([]);
  });

  test("Verify: spec_unknown: a call without an envelope on record cannot be judged", () => {
    const steps = [thread, admitted("t1"), ...ran({ tool: "read", args: at("a") }), completed("t1")];
    expect(replayed(steps).findings).toMatchObject([{ code: "spec_unknown", weight: "unproven", version: 3 }]);
  });

  test("an envelope that is not the one its hash names is not believed", () => {
    const other = { ...started("t1", EXPLORE), envelope: EDIT };
    const steps: Step[] = [
      thread,
      admitted("t1"),
      ["system", other],
      ...ran({ tool: "edit", args: at("a") }),
      completed("t1"),
    ];
    expect(codes(replayed(steps))).toEqual([
      ["spec_unknown", 3],
      ["spec_unknown", 4],
    ]);
    const broken: Step = ["system", { ...started("t1", EXPLORE), envelope: { id: "x" } }];
    expect(codes(replayed([thread, admitted("t1"), broken, completed("t1")]))).toEqual([["spec_unknown", 3]]);
  });

  test("Verify: limit_exceeded: more calls than the envelope allows are found", () => {
    const short: Envelope = { ...EXPLORE, limits: { calls: 1 } };
    const enter: Step = [
      "system",
      {
        type: "envelope.entered",
        v: 1,
        duringTurn: "t1",
        cause: "start",
        envelope: short,
        envelopeHash: hashOf(short),
        sandboxLevel: "none",
        depth: 0,
      },
    ];
    const calls = ["c1", "c2"].flatMap((callId) => ran({ tool: "bash", callId }));
    expect(codes(replayed(turnIn(short, enter, ...calls)))).toEqual([["limit_exceeded", 7]]);
  });
});

describe("level 4: wider envelopes that were granted", () => {
  const write = ran({ tool: "write", args: at("/other/a") });
  const allowed = [asked("c1"), answered("c1", "accept")];

  test("a call runs in the envelope of its own hop, and the next one does not", () => {
    expect(codes(replayed(turnIn(EDIT, ...allowed, taken(EDIT, WIDER), ...write)))).toEqual([]);
    const again = ran({ tool: "write", args: at("/other/a"), callId: "c2" });
    expect(codes(replayed(turnIn(EDIT, ...allowed, taken(EDIT, WIDER), ...write, ...again)))).toEqual([
      ["path_outside_envelope", 9],
    ]);
    expect(
      codes(replayed(turnIn(EDIT, ...allowed, taken(EDIT, WIDER, { scope: "turn" }), ...write, ...again))),
    ).toEqual([]);
  });

  test("Verify: hop_without_authority, hop_without_edge: a hop that nobody allowed, or that begins elsewhere, is found", () => {
    expect(codes(replayed(turnIn(EDIT, taken(EDIT, WIDER), ...write)))).toEqual([["hop_without_authority", 4]]);
    expect(codes(replayed(turnIn(EDIT, ...allowed, taken(EXPLORE, WIDER))))).toEqual([["hop_without_edge", 6]]);
  });

  test("Verify: above_ceiling: a hop above the ceiling of the settings is found", () => {
    const below = { ...admitted("t1") };
    const steps = (ceiling: "read-only" | "workspace-write", to: Envelope): readonly Step[] => [
      thread,
      { ...below, settings: { ...below.settings, ceiling } },
      ["system", started("t1", EDIT)],
      ...allowed,
      taken(EDIT, to),
      completed("t1"),
    ];
    expect(codes(replayed(steps("workspace-write", WIDER)))).toEqual([["above_ceiling", 6]]);
    expect(codes(replayed(steps("workspace-write", { ...EDIT, network: "all" })))).toEqual([["above_ceiling", 6]]);
    expect(codes(replayed(steps("workspace-write", { ...EDIT, sandbox: "off" })))).toEqual([["above_ceiling", 6]]);
    expect(codes(replayed(steps("read-only", EDIT)))[0]).toEqual(["above_ceiling", 3]);
  });

  test("S7: a turn and a hop of a child thread beyond what its parent had are found", () => {
    const parent = { threadId: "p", turnId: "pt", itemId: "pi", depth: 1, envelope: EDIT };
    const child: Step = ["agent:embedded", { type: "thread.created", v: 1, workspace: "/w", origin: "agent", parent }];
    const steps = (envelope: Envelope, ...more: readonly Step[]): readonly Step[] => [
      child,
      ...turnIn(envelope, ...more).slice(1),
    ];
    expect(codes(replayed(steps(EXPLORE)))).toEqual([]);
    expect(codes(replayed(steps(WIDER)))).toEqual([["above_ceiling", 3]]);
    expect(codes(replayed(steps(EDIT, ...allowed, taken(EDIT, WIDER))))).toEqual([["above_ceiling", 6]]);
  });
});

test("the evaluator imports nothing but the words of the protocol, Node and itself", () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  expect(files.length).toBeGreaterThan(5);
  const imported = files.flatMap((name) =>
    [...readFileSync(join(import.meta.dirname, name), "utf8").matchAll(/ from "([^"]+)"/g)].map(([, from]) => from),
  );
  const foreign = imported.filter(
    (from) => from !== "@heddle/protocol" && !/^(?:node:(?:crypto|path)|\.\/[\w-]+\.ts)$/.test(from ?? ""),
  );
  expect(foreign).toEqual([]);
});
