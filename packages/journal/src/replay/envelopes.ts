/**
 * Judges every call of a thread that ran by the envelope that was in force: the one its turn started in, entered since, or
 * widened by a hop. Only what is recorded counts; today's configuration is not looked at. What a command did, and where a
 * symbolic link led, is in no record: the kernel bounds the one, level 5 shows the other.
 */
import { EFFECTS, pathsOfCall } from "./call-paths.ts";
import { factsIn, isFacts, listIn, numberIn, textIn, textsIn, type Entry, type Facts } from "./facts.ts";
import type { Code, Report } from "./findings.ts";
import { GateProofs } from "./gates.ts";
import { MessageReplay } from "./messages.ts";
import { exceeds, hasHost, hasTool, isBelow, refusesPath, specOf, type Spec } from "./spec.ts";

interface Turn {
  /** Absent: it has not started, or its spec cannot be read. */
  now: Spec | undefined;
  /** Every envelope that was in force at some time in it. */
  readonly all: Spec[];
  readonly forCall: Map<string, Spec>;
  readonly accepted: Set<string>;
  readonly ceiling: ((inner: Spec) => string | undefined) | undefined;
  readonly held: Map<string, Held>;
  /** Of a turn that messages started. */
  readonly bound: Spec | undefined;
  modelHops: number;
}

/** What is wrong with a call that is under way; nothing is, when it turns out not to have run. */
interface Held {
  readonly problems: readonly { readonly code: Code; readonly message: string }[];
  readonly entry: Entry;
}

export interface Examined {
  readonly calls: number;
  readonly hops: number;
  readonly hosts: number;
}

/** The state of one stream, from event to event. */
export class EnvelopeReplay {
  readonly #report: Report;
  readonly #messages: MessageReplay;
  readonly #turns = new Map<string, Turn>();
  readonly #questions = new Map<string, string>();
  readonly #count = { calls: 0, hops: 0, hosts: 0 };
  #workspace = "/";
  #isFork = false;
  /** Somebody accepted an act for the whole thread; which one is covered is not judged again. */
  #hasRemembered = false;
  #entered: { readonly spec: Spec; calls: number } | undefined;
  #left: Spec | undefined;
  #ceiling: Spec | undefined;
  /** Of a child thread: what its parent had when it started it. */
  #parent: Spec | undefined;
  /** Envelopes that hops have left, and by which channel. */
  readonly #stack: { readonly spec: Spec; readonly channel: string }[] = [];
  /** Of a turn that just started: where it also enters an envelope, that one and its ceiling count. */
  #unjudged: { readonly entry: Entry; readonly spec: Spec; readonly turn: Turn } | undefined;
  #isPartial = false;
  readonly #gates: GateProofs;

  constructor(report: Report) {
    this.#report = report;
    this.#gates = new GateProofs(report);
    this.#messages = new MessageReplay(report);
  }

  /** The spec under a key, when it is the one that its hash names. */
  #read(entry: Entry, body: Facts, keys: { readonly spec: string; readonly hash: string }): Spec | undefined {
    const spec = specOf(body[keys.spec]);
    if (spec === undefined) this.#report("spec_unknown", `${entry.type} has no envelope that can be read`, entry);
    else if (spec.hash !== textIn(body, keys.hash))
      this.#report("spec_unknown", `the envelope in ${entry.type} is not the one that its hash names`, entry);
    else return spec;
    return undefined;
  }

  #admitted(entry: Entry, body: Facts): void {
    const settings = factsIn(body, "settings");
    this.#turns.set(textIn(body, "turnId") ?? "", {
      now: undefined,
      all: [],
      forCall: new Map(),
      accepted: new Set(),
      ceiling: modeCeiling(settings, this.#workspace),
      held: new Map(),
      bound: this.#messages.bound(entry, body, { isPartial: this.#isPartial }),
      modelHops: 0,
    });
  }

  #started(entry: Entry, { turn, body }: InTurn): void {
    const spec = this.#read(entry, body, { spec: "envelope", hash: "envelopeHash" });
    if (spec === undefined) return;
    turn.now = spec;
    turn.all.push(spec);
    this.#unjudged = { entry, spec, turn };
  }

  #judgeStart(): void {
    const start = this.#unjudged;
    this.#unjudged = undefined;
    if (start !== undefined) this.#within(start.entry, start);
  }

  #within(entry: Entry, { spec, turn }: { readonly spec: Spec; readonly turn: Turn | undefined }): void {
    const above = (this.#ceiling === undefined ? undefined : exceeds(spec, this.#ceiling)) ?? turn?.ceiling?.(spec);
    if (above !== undefined) this.#report("above_ceiling", `${above} is above the ceiling of the thread`, entry);
    const beyond = turn?.bound === undefined ? undefined : exceeds(spec, turn.bound);
    if (beyond !== undefined) this.#report("beyond_message", `${beyond} is more than a message may cause`, entry);
    const more = above !== undefined || this.#parent === undefined ? undefined : exceeds(spec, this.#parent);
    if (more !== undefined) this.#report("above_ceiling", `${more} is more than the parent of the thread had`, entry);
  }

  #intended(entry: Entry, { turn, body }: InTurn<Turn | undefined>): void {
    // A command that a user runs is nobody's call.
    if (entry.author.startsWith("user")) return;
    this.#count.calls += 1;
    const [callId = "", itemId = "", tool = ""] = ["callId", "itemId", "tool"].map((key) => textIn(body, key));
    const spec = turn?.forCall.get(callId) ?? turn?.now;
    if (spec === undefined || turn === undefined) {
      if (!this.#isPartial)
        this.#report("spec_unknown", `no envelope is on record for the call ${callId} of ${tool}`, entry);
      return;
    }
    if (this.#entered !== undefined) this.#entered.calls += 1;
    const problems = [...this.#judge({ tool, body, spec }), ...this.#unasked({ callId, tool, body }, { spec, turn })];
    turn.held.set(itemId, { problems, entry });
  }

  #judge({ tool, body, spec }: { readonly tool: string; readonly body: Facts; readonly spec: Spec }) {
    const problems: { code: Code; message: string }[] = [];
    const say = (code: Code, message: string): void => void problems.push({ code, message });
    if (!hasTool(spec, tool)) say("tool_outside_envelope", `${tool} ran, and is not in the envelope "${spec.id}"`);
    const effect = EFFECTS[tool]?.find((one) => !spec.effects.includes(one));
    if (effect !== undefined)
      say("tool_outside_envelope", `${tool} ran, and the envelope "${spec.id}" does not allow the effect ${effect}`);
    for (const { path, access } of pathsOfCall(tool, body["arguments"], this.#workspace) ?? []) {
      const why = refusesPath(spec, path, access);
      if (why !== undefined) say("path_outside_envelope", `${tool} was let to ${access} ${path}: ${why}`);
    }
    const limit = spec.limits["calls"];
    if (limit !== undefined && this.#entered?.spec.hash === spec.hash && this.#entered.calls > limit)
      say(
        "limit_exceeded",
        `it is call ${this.#entered.calls} since the envelope was entered, and ${limit} are allowed`,
      );
    return problems;
  }

  /** `untrusted`: everything that is not known to change nothing needs an answer. */
  #unasked(
    { callId, tool, body }: { readonly callId: string; readonly tool: string; readonly body: Facts },
    { spec, turn }: { readonly spec: Spec; readonly turn: Turn },
  ): readonly { readonly code: Code; readonly message: string }[] {
    const effects = EFFECTS[tool];
    const isHarmless = body["isReadOnly"] === true || effects?.every((one) => one === "read") === true;
    if (spec.approval !== "untrusted" || isHarmless || tool.startsWith("client.")) return [];
    if (turn.accepted.has(callId) || this.#hasRemembered || this.#isFork || turn.forCall.has(callId)) return [];
    return [{ code: "approval_missing", message: `${tool} ran, and nobody was asked for the call ${callId}` }];
  }

  #settled({ turn, body }: InTurn): void {
    const itemId = textIn(body, "itemId") ?? "";
    const held = turn.held.get(itemId);
    turn.held.delete(itemId);
    if (held !== undefined && textIn(body, "outcome") !== "denied") this.#tell(held);
  }

  #tell({ problems, entry }: Held): void {
    for (const { code, message } of problems) this.#report(code, message, entry);
  }

  /** A wider envelope that somebody granted. */
  #taken(entry: Entry, { turn, body }: InTurn): void {
    this.#count.hops += 1;
    const to = this.#read(entry, body, { spec: "to", hash: "toHash" });
    if (to === undefined) return;
    const callId = textIn(body, "callId") ?? "";
    if (turn.now !== undefined && textIn(body, "from") !== turn.now.hash)
      this.#report("hop_without_edge", `the hop for ${callId} begins in an envelope that the turn is not in`, entry);
    const isRemembered = entry.author === "policy:remembered" && (this.#hasRemembered || this.#isFork);
    if (!turn.accepted.has(callId) && !isRemembered)
      this.#report("hop_without_authority", `nobody allowed the hop for ${callId}`, entry);
    this.#within(entry, { spec: to, turn });
    turn.all.push(to);
    if (textIn(body, "scope") === "call") turn.forCall.set(callId, to);
    else turn.now = to;
  }

  #enter(entry: Entry, body: Facts): void {
    const spec = this.#read(entry, body, { spec: "envelope", hash: "envelopeHash" });
    this.#ceiling = specOf(body["ceiling"]) ?? this.#ceiling;
    const turn = this.#turns.get(textIn(body, "duringTurn") ?? "");
    if (this.#unjudged?.spec.hash === spec?.hash) this.#unjudged = undefined;
    this.#judgeStart();
    if (spec === undefined) return;
    const cause = textIn(body, "cause");
    if (cause === "hop" || cause === "back") this.#hopped(entry, { spec, cause, turn, body });
    else if (this.#entered?.spec.id !== spec.id) this.#stack.length = 0;
    this.#within(entry, { spec, turn });
    this.#entered = { spec, calls: 0 };
    this.#left = undefined;
    this.#gates.forget();
    if (turn === undefined) return;
    turn.now = spec;
    turn.all.push(spec);
  }

  #hopped(
    entry: Entry,
    { spec, cause, turn, body }: { spec: Spec; cause: "hop" | "back"; turn: Turn | undefined; body: Facts },
  ): void {
    this.#count.hops += 1;
    const from = this.#left ?? this.#entered?.spec;
    if (from === undefined) {
      if (!this.#isPartial) this.#report("hop_without_edge", "a hop from no envelope", entry);
      return;
    }
    const hop = factsIn(body, "hop");
    const channel = textIn(hop, "channel") ?? "";
    this.#countHop(entry, { channel, from, turn });
    if (cause === "back") {
      this.#wentBack(entry, { spec, channel, from });
      return;
    }
    this.#stack.push({ spec: from, channel });
    const edges = from.exits.filter(({ to }) => to === spec.id);
    const edge = edges.find(({ by }) => by.includes(channel)) ?? edges[0];
    if (edge === undefined || textIn(hop, "to") !== spec.id) {
      this.#report("hop_without_edge", `the envelope "${from.id}" has no edge to "${spec.id}"`, entry);
      return;
    }
    if (!edge.by.includes(channel) || !isChannelOf(channel, entry.author))
      this.#report(
        "hop_without_authority",
        `the edge to "${spec.id}" is not open to ${channel} (${entry.author})`,
        entry,
      );
    const approvalId = textIn(hop, "approvalId") ?? "";
    if (edge.asks && channel !== "user" && !turn?.accepted.has(approvalId))
      this.#report("hop_without_authority", `the edge to "${spec.id}" asks a user, and nobody accepted`, entry);
    const met = listIn(hop, "guards").filter((guard) => guard["isMet"] === true).length;
    if (met < edge.guards)
      this.#report("guard_unmet", `${edge.guards - met} of ${edge.guards} guards to "${spec.id}" were not met`, entry);
    if (!this.#isPartial) this.#gates.require(entry, { edge, from, hop });
  }

  #countHop(entry: Entry, { channel, from, turn }: { channel: string; from: Spec; turn: Turn | undefined }): void {
    if (turn === undefined || channel !== "model") return;
    turn.modelHops += 1;
    const limit = from.limits["hopsPerTurn"];
    if (limit !== undefined && turn.modelHops > limit)
      this.#report("limit_exceeded", `hop ${turn.modelHops} of the turn, and ${limit} are allowed`, entry);
  }

  /** What one channel has left, a lower one enters again only where it is narrower. */
  #wentBack(entry: Entry, { spec, channel, from }: { spec: Spec; channel: string; from: Spec }): void {
    const before = this.#stack.pop();
    if (before?.spec.id !== spec.id) {
      if (!this.#isPartial)
        this.#report("hop_without_edge", `back to "${spec.id}", which is not where the thread came from`, entry);
      return;
    }
    const isLower = CHANNELS.indexOf(channel) < CHANNELS.indexOf(before.channel);
    if ((isLower && exceeds(spec, from) !== undefined) || !isChannelOf(channel, entry.author))
      this.#report(
        "hop_without_authority",
        `back to "${spec.id}" by ${channel}, and ${before.channel} had left it`,
        entry,
      );
  }

  #reached(entry: Entry, { turn, body }: InTurn): void {
    this.#count.hosts += 1;
    const [host, port] = [textIn(body, "host") ?? "", numberIn(body, "port") ?? 0];
    if (turn.all.length === 0 || turn.all.some(({ network }) => hasHost(network, host, port))) return;
    this.#report("host_outside_envelope", `${host}:${port} was reached, and no envelope of the turn allows it`, entry);
  }

  #resolved(turn: Turn | undefined, body: Facts): void {
    const approvalId = textIn(body, "approvalId") ?? "";
    const decision = textIn(body, "decision");
    const callId = this.#questions.get(approvalId);
    this.#questions.delete(approvalId);
    if (decision !== "accept" && decision !== "acceptForThread") return;
    this.#hasRemembered ||= decision === "acceptForThread";
    turn?.accepted.add(approvalId);
    if (callId !== undefined) turn?.accepted.add(callId);
  }

  #inTurn(entry: Entry, body: Facts): void {
    const turn = this.#turns.get(textIn(body, "turnId") ?? "");
    if (entry.type === "approval.requested")
      this.#questions.set(textIn(body, "approvalId") ?? "", textIn(factsIn(body, "question"), "callId") ?? "");
    else if (entry.type === "approval.resolved") this.#resolved(turn, body);
    else if (entry.type === "tool.intended") this.#intended(entry, { turn, body });
    if (turn === undefined) return;
    if (entry.type === "turn.started") this.#started(entry, { turn, body });
    else if (entry.type === "tool.settled") this.#settled({ turn, body });
    else if (entry.type === "hop.taken") this.#taken(entry, { turn, body });
    else if (entry.type === "network.used") this.#reached(entry, { turn, body });
    else if (entry.type === "turn.completed") {
      for (const held of turn.held.values()) this.#tell(held);
      this.#turns.delete(textIn(body, "turnId") ?? "");
    }
  }

  take(entry: Entry): void {
    const { type, body } = entry;
    this.#isPartial ||= entry.isUnread === true;
    if (type !== "envelope.left" && type !== "envelope.entered") this.#judgeStart();
    if (body === undefined) return;
    if (type === "thread.created" || type === "thread.moved")
      this.#workspace = textIn(body, "workspace") ?? this.#workspace;
    if (type === "thread.created") {
      this.#isFork = isFacts(body["forkedFrom"]);
      this.#parent = specOf(factsIn(body, "parent")["envelope"]);
      this.#messages.created(body);
    } else if (type === "message.received") this.#messages.received(entry, body);
    else if (type === "turn.admitted") this.#admitted(entry, body);
    else if (type === "envelope.entered") this.#enter(entry, body);
    else if (type === "envelope.left") this.#left = this.#entered?.spec;
    else if (type === "gate.passed" || type === "gate.refused") this.#gates.take(entry, body);
    else if (type === "path.violated")
      this.#report("protected_path", `protected path written: ${textIn(body, "path") ?? ""}`, entry);
    else this.#inTurn(entry, body);
  }

  end(): Examined {
    this.#judgeStart();
    // Calls that are still under way have begun.
    for (const { held } of this.#turns.values()) for (const one of held.values()) this.#tell(one);
    return this.#count;
  }
}

interface InTurn<T = Turn> {
  readonly turn: T;
  readonly body: Facts;
}

/** The higher ones later. */
const CHANNELS = ["model", "task", "user"];

/** Who may speak through a channel: the author is taken from the connection, the channel from the request. */
function isChannelOf(channel: string, author: string): boolean {
  if (channel === "user") return author.startsWith("user");
  return channel !== "task" || !author.startsWith("agent:");
}

/** The ceiling that the settings of a turn name by a sandbox mode; other names are on record as envelopes. */
function modeCeiling(settings: Facts, workspace: string): Turn["ceiling"] {
  const mode = textIn(settings, "ceiling");
  if (mode !== "read-only" && mode !== "workspace-write") return undefined;
  const roots = mode === "read-only" ? [] : [workspace, ...(textsIn(settings, "writableRoots") ?? [])];
  return (inner) => {
    if (!inner.hasSandbox) return "running outside the sandbox";
    if (inner.network !== "none" && settings["networkAccess"] !== true) return "the network";
    const far = inner.writeRoots.find((path) => !roots.some((root) => isBelow(path, root)));
    return far === undefined ? undefined : `writing to ${far}`;
  };
}
