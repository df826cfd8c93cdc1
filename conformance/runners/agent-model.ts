/**
 * The model of an agent program: the scripted server in the wire that the program speaks. Each request of a turn takes the next
 * step; after the last it says that it is done. A fault stays until other steps are played: programs ask again.
 */
import { startModelServer, type Fault, type ModelServer, type RecordedRequest } from "@heddle/models/testing";
import type { Step } from "../exec-case.ts";
import type { AgentStep, Subject } from "./subject.ts";

export type ModelStep =
  | AgentStep
  /** A command whose call is cut in the middle of its JSON. */
  | { readonly garbles: string }
  /** Answered so far, and then struck. */
  | { readonly fault: Fault; readonly before?: AgentStep };

export interface AgentModel extends AsyncDisposable {
  readonly url: string;
  /** Requests of turns since the last `play`. */
  readonly requests: readonly RecordedRequest[];
  /** Steps of the requests that come from now on. */
  play(...steps: readonly ModelStep[]): void;
  /** Resolves when so many requests of turns have come since the last `play`. */
  asked(count: number): Promise<void>;
}

const SAID_AT_THE_END = "done";

/** As the answer is, whatever was asked: with a fault of its own nothing is looked at. */
const WHOLE: Fault = { kind: "pieces", bytes: 1024 * 1024 };

export async function startAgentModel(subject: Subject): Promise<AgentModel> {
  let steps: readonly ModelStep[] = [];
  let requests: RecordedRequest[] = [];
  let taken = 0;
  let waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const faults = new Map<number, Fault>();

  function next(request: RecordedRequest): Step {
    if (!subject.isOfTurn(request)) return { text: "A title" };
    requests.push(request);
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    const step = steps[taken] ?? { says: SAID_AT_THE_END };
    if (!("fault" in step)) {
      taken += 1;
      return "garbles" in step ? garbled(subject.step({ runs: step.garbles }, request)) : subject.step(step, request);
    }
    faults.set(request.number, step.fault);
    return step.before === undefined ? { text: "half of what it says" } : subject.step(step.before, request);
  }

  const server: ModelServer = await startModelServer({
    respond: next,
    faults: ({ number }) => faults.get(number) ?? (subject.isUncheckedWire === true ? WHOLE : undefined),
  });
  return {
    url: server.url,
    get requests() {
      return requests;
    },
    play(...played) {
      steps = played;
      requests = [];
      taken = 0;
      waiting = [];
    },
    async asked(count) {
      if (requests.length >= count) return;
      await new Promise<void>((resolve) => void waiting.push({ count, resolve }));
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function garbled({ calls = [], ...step }: Step): Step {
  const cut = (args: unknown): string => JSON.stringify(args).slice(0, -2);
  return { ...step, calls: calls.map((call) => ({ ...call, args: cut(call.args) })) };
}
