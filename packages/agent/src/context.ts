/**
 * What the model sees: the thread's events folded into one conversation. Pure, so that a resumed thread sends the model
 * exactly what it had sent before. Every tool call the model made has a result here, whatever happened to it.
 */
import type { EventBody, EventOf, InputPart, ModelOutputPart, ModelToolCall } from "@heddle/protocol";
import type { ModelInput } from "@heddle/models";

export function buildContext(history: readonly EventBody[]): ModelInput[] {
  const input: ModelInput[] = [];
  const greeted = new Set<string>();
  let turnBegins = 0;
  /** Call id → the call and the place of its result; a later response may use an id again. */
  const open = new Map<string, { readonly call: ModelToolCall; readonly place: number }>();
  for (const body of history) {
    switch (body.type) {
      case "context.loaded":
        // Stored after the admission it belongs to, told before it.
        input.splice(turnBegins, 0, { kind: "user", parts: [{ type: "text", text: body.text }] });
        break;
      case "turn.admitted":
        turnBegins = input.length;
        input.push({ kind: "user", parts: body.input });
        break;
      case "item.completed":
        if (body.item.type !== "userMessage") break;
        // The first one repeats the admitted input; the later ones are steering, placed where the model was told.
        if (greeted.has(body.turnId)) input.push({ kind: "user", parts: body.item.content });
        greeted.add(body.turnId);
        break;
      case "model.responded":
        if (body.output.length > 0) input.push({ kind: "assistant", parts: body.output });
        for (const call of toolCalls(body.output)) {
          open.set(call.callId, { call, place: input.push(toolResult(call, undefined)) - 1 });
        }
        break;
      case "tool.settled": {
        const waiting = open.get(body.callId);
        if (waiting !== undefined) input[waiting.place] = toolResult(waiting.call, body);
        break;
      }
      default:
        break;
    }
  }
  return input;
}

export function toolCalls(output: readonly ModelOutputPart[]): ModelToolCall[] {
  return output.filter((part) => part.kind === "toolCall");
}

export function toolResult(
  call: ModelToolCall,
  settled: Pick<EventOf<"tool.settled">, "outcome" | "output"> | undefined,
): ModelInput {
  const parts: readonly InputPart[] = settled?.output ?? [{ type: "text", text: NOT_RUN }];
  return {
    kind: "toolResult",
    callId: call.callId,
    name: call.name,
    shape: call.shape,
    isError: settled?.outcome !== "ok",
    parts,
  };
}

const NOT_RUN = "This call was not run: the turn ended before it could start.";

/** What a model is told of a call that was under way when Heddle died. */
export const OUTCOME_UNKNOWN =
  "The outcome of this call is unknown: the harness stopped while it ran. It may have run fully, partly or not at all, " +
  "and it was not run again. Look at the current state before you decide what to do.";
