/**
 * Which events are entries of the evidence, and what each says: acts, questions, answers, verdicts, ends and notes. What
 * only leads up to them (deltas, requests, context, leases) is not.
 */
import {
  isTaskEvent,
  type EventBody,
  type EventOf,
  type EvidenceRef,
  type NamedInput,
  type StoredEvent,
  type TaskEventBody,
} from "@heddle/protocol";
import { bounded, excerpt, failureText, inputText, of, plain } from "./entry-text.ts";
import {
  doneFacts,
  importedFacts,
  itemFacts,
  MAX_REFS,
  NO_REFS,
  NO_TAGS,
  uniqueRefs,
  type EntryFacts,
  type Said,
} from "./item-entry.ts";

/** The author may be of another home. */
type Told = Pick<StoredEvent, "stream" | "body"> & { readonly author: string };

/** undefined: the event is no entry. */
export function entryFacts(event: Told): EntryFacts | undefined {
  const { stream, body } = event;
  const said = isTaskEvent(body) ? taskFacts(stream, body) : (threadFacts(stream, body) ?? outsideFacts(event));
  if (said === undefined) return undefined;
  const turn = "turnId" in body ? body.turnId : undefined;
  return {
    refs: NO_REFS,
    tags: NO_TAGS,
    turn,
    replyTo: undefined,
    ...said,
    subject: bounded(said.subject),
    // A note is found by every word of it, and what was imported is an excerpt already.
    text: body.type === "evidence.noted" || body.type === "evidence.imported" ? said.text : excerpt(said.text),
  };
}

/** What an agent and those around it did and said. */
function threadFacts(stream: string, body: Exclude<EventBody, TaskEventBody>): Said | undefined {
  switch (body.type) {
    case "turn.admitted":
      return { claim: "goal", subject: of("turn", body.turnId), text: inputText(body.input) };
    case "turn.completed":
      return {
        claim: "conclusion",
        subject: of("turn", body.turnId),
        text: `${body.status}${failureText(body.failure)}`,
        tags: body.failure === undefined ? NO_TAGS : ["failed"],
      };
    case "thread.goal-changed":
      return { claim: "goal", subject: of("thread", stream), text: body.goal?.objective ?? "no goal" };
    case "tool.intended":
      return { claim: "step", subject: of("tool", body.tool), text: `${body.callId} ${plain(body.arguments)}` };
    case "tool.settled":
      return {
        claim: "step",
        subject: of("tool", body.tool),
        text: `${body.callId} ${body.outcome}${failureText(body.failure)}\n${inputText(body.output)}`,
        tags: body.outcome === "ok" ? NO_TAGS : [body.outcome],
      };
    case "item.completed":
      return itemFacts(body.turnId, body.item);
    case "hook.ran": {
      const text = [body.command, body.outcome, body.reason ?? "", failureText(body.failure), body.output].join(" ");
      return {
        claim: "step",
        subject: of("hook", body.event),
        text,
        tags: body.outcome === "ok" ? NO_TAGS : [body.outcome],
      };
    }
    case "client.intended":
      return { claim: "step", subject: of("client", body.client), text: `${body.actId} ${plain(body.act)}` };
    case "client.settled":
      return {
        claim: "step",
        subject: of("act", body.actId),
        text: `${body.outcome}${failureText(body.failure)} ${body.output ?? ""}`,
        tags: body.outcome === "ok" ? NO_TAGS : [body.outcome],
      };
    case "evidence.noted":
      return {
        claim: body.claim,
        subject: body.subject ?? of("thread", stream),
        text: body.text,
        refs: body.refs,
        tags: body.tags,
        turn: body.duringTurn,
        replyTo: body.replyTo,
      };
    case "evidence.imported":
    case "item.imported":
    case "thread.imported":
      return importedFacts(stream, body);
    case "evidence.collected":
      return {
        claim: "step",
        subject: of("thread", stream),
        text: body.blobs
          .map(({ sha256, bytes, why }) => `removed the whole output ${sha256}, ${bytes} bytes, by ${why}`)
          .join("\n"),
        refs: uniqueRefs(body.blobs.map(({ sha256 }) => of("blob", sha256))),
        tags: ["collected"],
      };
    case "message.sent":
    case "message.received":
    case "message.settled":
      return messageFacts(body);
    default:
      return boundsFacts(body);
  }
}

/** What one agent told or asked another, and what came of it; each replies to the one before. */
function messageFacts(body: EventOf<"message.sent" | "message.received" | "message.settled">): Said {
  if (body.type === "message.settled") {
    const { messageId, outcome, text = "", failure, duringTurn: turn, replyTo } = body;
    return {
      claim: "conclusion",
      subject: of("message", messageId),
      text: `${outcome} ${text}${failureText(failure)}`,
      tags: outcome === "answered" ? NO_TAGS : [outcome === "refused" ? "denied" : outcome],
      turn,
      replyTo,
    };
  }
  const { kind, role, text, inputs, replyTo, from } = body;
  const subject = body.type === "message.sent" ? of("thread", body.to) : of("message", body.messageId);
  const files = inputs.flatMap((input) => (input.type === "file" ? [of("file", input.path)] : []));
  const entries = inputs.flatMap((input) => (input.type === "entry" ? [of("evidence", input.id)] : []));
  const sender = from === undefined ? [] : [of("thread", from.threadId)];
  return {
    claim: kind === "ask" ? "question" : "step",
    subject,
    text: [text, ...inputs.map(inputWords)].join("\n"),
    refs: uniqueRefs([...sender, ...files, ...entries]),
    tags: [role],
    turn: body.type === "message.sent" ? from?.turnId : undefined,
    replyTo,
  };
}

function inputWords(input: NamedInput): string {
  switch (input.type) {
    case "file":
      return `${input.path} ${input.sha256}`;
    case "entry":
      return input.id;
    case "text":
      return `${input.name}\n${input.text}`;
  }
}

/** Their calls go through dispatch, which says of each what was intended and what came of it. */
const DISPATCHED: ReadonlySet<string> = new Set(["agent:embedded", "agent:outside"]);

function outsideFacts({ author, body }: Told): Said | undefined {
  if (body.type === "agent.started")
    return { claim: "step", subject: of("runner", body.runner), text: body.command.join(" ") };
  if (body.type === "agent.connected")
    return { claim: "step", subject: of("runner", body.runner), text: `${body.origin} ${body.handle}` };
  if (body.type !== "item.completed" || !author.startsWith("agent:") || DISPATCHED.has(author)) return undefined;
  return doneFacts(body.item);
}

/** What was asked, allowed, refused, entered and left. */
function boundsFacts(body: EventBody): Said | undefined {
  switch (body.type) {
    case "approval.requested":
      return { claim: "question", subject: of("approval", body.approvalId), text: plain(body.question) };
    case "approval.resolved":
      return {
        claim: "conclusion",
        subject: of("approval", body.approvalId),
        text: `${body.decision} ${body.reason ?? ""}`,
        tags: body.decision === "decline" || body.decision === "cancel" ? ["denied"] : NO_TAGS,
      };
    case "hop.taken":
      return {
        claim: "step",
        subject: of("envelope", body.to.id),
        text: `${body.scope} ${body.callId} ${plain(body.permissions)}`,
        refs: [of("envelope", body.toHash)],
      };
    case "hop.refused":
      return refused(of("call", body.callId), `${plain(body.wish)}${failureText(body.failure)}`);
    case "envelope.entered":
      return {
        claim: "step",
        subject: of("envelope", body.envelope.id),
        text: `entered by ${body.cause} ${body.hop?.reason ?? ""}`,
        refs: [of("envelope", body.envelopeHash)],
        turn: body.duringTurn,
      };
    case "envelope.left":
      return {
        claim: "step",
        subject: of("envelope", body.envelopeHash),
        text: `left by ${body.cause} after ${body.calls} calls ${plain(body.outcome)}`,
        turn: body.duringTurn,
      };
    case "envelope.hop-refused":
      return {
        ...refused(of("envelope", body.hop.to), `from ${body.from} ${body.hop.reason}${failureText(body.failure)}`),
        turn: body.duringTurn,
      };
    case "gate.passed":
    case "gate.refused":
      return gateFacts(body);
    case "files.compared":
      return body.changed.length === 0 ? undefined : comparedFacts(body);
    case "path.violated":
      return { ...refused(of("file", body.path), body.path), refs: [of("file", body.path)] };
    default:
      return networkFacts(body);
  }
}

/** So that a later guard can ask for the way through it. */
function gateFacts(body: EventOf<"gate.passed" | "gate.refused">): Said {
  const isPassed = body.type === "gate.passed";
  const entries = body.path.flatMap(({ entries: seen = [] }) => seen);
  return {
    claim: "conclusion",
    subject: of("gate", body.gate.name),
    text: [isPassed ? "passed" : "refused", ...body.path.map(({ kind, found }) => `${kind}: ${found}`)].join("\n"),
    refs: uniqueRefs([
      of("envelope", body.envelopeHash),
      of("gate", body.gateHash),
      ...entries.slice(0, MAX_REFS).map((id) => of("evidence", id)),
    ]),
    tags: [isPassed ? "passed" : "failed"],
    turn: body.duringTurn,
  };
}

/** What changed where the envelope writes nothing. */
function comparedFacts({ turnId, changed }: EventOf<"files.compared">): Said {
  return {
    claim: "step",
    subject: of("turn", turnId),
    text: changed.map(({ path, change }) => `${change} meanwhile ${path}`).join("\n"),
    refs: uniqueRefs(changed.slice(0, MAX_REFS).map(({ path }) => of("file", path))),
    tags: ["meanwhile"],
  };
}

/** Hosts that were reached, and those that were not. */
function networkFacts(body: EventBody): Said | undefined {
  if (!body.type.startsWith("network.") || !("host" in body) || typeof body.host !== "string") return undefined;
  const host = of("host", body.host);
  return body.type.endsWith(".refused")
    ? refused(host, plain(body))
    : { claim: "step", subject: host, text: plain(body) };
}

function refused(subject: EvidenceRef, text: string): Said {
  return { claim: "step", subject, text, tags: ["denied"] };
}

function taskFacts(stream: string, body: TaskEventBody): Said | undefined {
  const subject = of("task", stream);
  switch (body.type) {
    case "task.created":
      return { claim: "goal", subject, text: `${body.spec.name}\n${plain(body.spec)}` };
    case "task.prepared":
      return { claim: "step", subject, text: body.folder, refs: [of("thread", body.threadId)] };
    case "task.claimed":
      return { claim: "conclusion", subject, text: `${body.by} ${body.summary}` };
    case "task.checked":
      return {
        claim: "conclusion",
        subject,
        text: plain([body.results, body.violations]),
        refs: uniqueRefs(body.results.slice(0, MAX_REFS).map(({ name }) => of("check", name))),
        tags: [body.passed ? "passed" : "failed"],
      };
    case "task.verified":
      return { claim: "conclusion", subject, text: "verified", tags: ["passed"] };
    case "task.rejected":
      return { claim: "conclusion", subject, text: body.failing.join("\n"), tags: ["failed"] };
    case "task.hop-due":
      return { claim: "conclusion", subject, text: body.summary, refs: [of("envelope", body.to)] };
    case "task.hopped":
      return { claim: "step", subject, text: `in the envelope ${body.to}`, refs: [of("envelope", body.to)] };
    case "task.hop-refused":
      return { ...refused(subject, failureText(body.failure)), refs: [of("envelope", body.to)] };
    case "task.contest-picked":
    case "task.contest-ended":
      return {
        claim: "conclusion",
        subject,
        text: [body.reason, ...body.rows.map(({ number, name, why }) => `${number} ${name}: ${why}`)].join("\n"),
        refs: body.rows.map(({ taskId }) => of("task", taskId)),
      };
    case "task.merged":
      return { claim: "conclusion", subject, text: `${body.how} ${body.ref}`, refs: [of("commit", body.ref)] };
    case "task.paused":
      return { claim: "question", subject, text: `${body.cause} ${body.message}` };
    case "task.failed":
      return { claim: "conclusion", subject, text: failureText(body.failure), tags: ["failed"] };
    case "task.cancelled":
      return { claim: "conclusion", subject, text: body.reason, tags: ["cancelled"] };
    case "task.undone":
      return { claim: "conclusion", subject, text: `undone: ${body.files} files`, tags: ["undone"] };
    default:
      return undefined;
  }
}
