/** What one run has come to so far: a fold over its stored events, so that a result can be written at any moment. */
import {
  addUsage,
  NO_USAGE,
  shownAnswer,
  type EventBody,
  type EventOf,
  type Failure,
  type ItemOf,
  type NoticeText,
  type Usage,
} from "@heddle/protocol";

export interface Denial {
  readonly tool: string;
  readonly callId: string;
  readonly code: string;
  readonly message: string;
}

export interface RunSummary {
  readonly usage: Usage;
  /** undefined: at least one answer had no known price. */
  readonly costUsd: number | undefined;
  /** Questions put to a model; tries of the same one counted once. */
  readonly requests: number;
  readonly denials: readonly Denial[];
  readonly notices: readonly NoticeText[];
  /** The last thing the agent said. */
  readonly response: string | undefined;
  readonly provider: string | undefined;
  readonly model: string | undefined;
  readonly sandboxLevel: string | undefined;
  /** Of the attempt that runs or ran last. */
  readonly hasSideEffects: boolean;
  readonly terminal: EventOf<"turn.completed"> | undefined;
}

export interface Summing {
  readonly now: RunSummary;
  add(body: EventBody): void;
}

export function sumUp(): Summing {
  const requests = new Set<string>();
  const denials: Denial[] = [];
  const notices: NoticeText[] = [];
  let usage: Usage = NO_USAGE;
  let costUsd: number | undefined = 0;
  let response: string | undefined;
  let provider: string | undefined;
  let model: string | undefined;
  let sandboxLevel: string | undefined;
  let hasSideEffects = false;
  let admitted: EventOf<"turn.admitted"> | undefined;
  let terminal: EventOf<"turn.completed"> | undefined;

  return {
    get now() {
      const known = { usage, costUsd, requests: requests.size, denials, notices, response, hasSideEffects, terminal };
      return { ...known, provider, model, sandboxLevel };
    },
    add(body) {
      switch (body.type) {
        case "turn.admitted":
          admitted = body;
          ({ provider, model } = body.settings);
          hasSideEffects = false;
          terminal = undefined;
          break;
        case "turn.started":
          ({ sandboxLevel } = body);
          break;
        case "model.requested":
          requests.add(body.requestId);
          break;
        case "model.responded":
          usage = addUsage(usage, body.usage);
          costUsd = costUsd === undefined || body.costUsd === undefined ? undefined : costUsd + body.costUsd;
          break;
        case "item.completed":
          if (body.item.type === "agentMessage" && body.item.text !== "")
            response = shownAnswer(admitted, body.item.text);
          if (body.item.type === "notice") notices.push(noticeText(body.item));
          break;
        case "tool.intended":
          hasSideEffects ||= !body.isReadOnly;
          break;
        case "tool.settled":
          if (body.outcome === "denied") denials.push(denial(body, body.failure));
          break;
        case "turn.completed":
          terminal = body;
          break;
        default:
          break;
      }
    },
  };
}

function noticeText({ level, code, message }: ItemOf<"notice">): NoticeText {
  return { level, code, message };
}

function denial({ tool, callId }: EventOf<"tool.settled">, failure: Failure | undefined): Denial {
  return { tool, callId, code: failure?.code ?? "policy.denied", message: failure?.message ?? "" };
}
