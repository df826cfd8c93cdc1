/** The beginning of a turn of an agent program: the owner's hooks that may refuse its prompt, and the user's message. */
import { HeddleError, inputItemId, type ClientContext, type InputPart } from "@heddle/protocol";
import { clientContextText } from "../../context/client-context.ts";
import { textOf } from "../../context/compacted-context.ts";
import { ADMITTED, STEERING } from "../../context/context.ts";
import { markedInput } from "../../context/input-role.ts";
import { admissionOf } from "../../turns/outcome.ts";
import { hookNotes, saidOf, userMessage, warning } from "../notes.ts";
import type { RunnerEvent, SteeringInput, TurnIo, TurnRequest } from "../runner.ts";

export interface Told {
  readonly input: readonly InputPart[];
  /** What hooks and clients add. */
  readonly notes: readonly string[];
}

/** Throws `policy.denied` when a hook refuses the prompt. */
export async function recordPrompt(turn: TurnRequest, io: TurnIo): Promise<Told> {
  const { hooks, sessionSource } = io.policy;
  const { turnId } = turn;
  const { input, context = [], by, ...said } = admissionOf(turn);
  const notes: string[] = context.map(clientContextText);
  const added: RunnerEvent[] = context.map((given) => clientNote(turnId, given));
  if (sessionSource !== undefined) {
    const verdict = await hooks.run("SessionStart", { subject: sessionSource, payload: { source: sessionSource } });
    notes.push(...verdict.notes);
    added.push(...hookNotes(turnId, "SessionStart", verdict.notes));
  }
  const verdict = await askHooks(io, ADMITTED, input);
  const message = userMessage(turnId, input, { ...saidOf(said), id: inputItemId(turnId) });
  if (verdict.isBlocked) {
    await io.record(message, by);
    throw new HeddleError("policy.denied", `a UserPromptSubmit hook refused the prompt: ${verdict.reason}`);
  }
  await io.record([...added, ...message, ...hookNotes(turnId, "UserPromptSubmit", verdict.notes)], by);
  return { input: markedInput(input, said.role), notes: [...notes, ...verdict.notes] };
}

/** Input that was added to a running turn, as far as hooks accept it. */
export async function recordSteering(
  { turnId }: Pick<TurnRequest, "turnId">,
  io: TurnIo,
  steering: readonly SteeringInput[],
): Promise<readonly InputPart[]> {
  const accepted: InputPart[] = [];
  for (const { input, context = [], by, ...said } of steering) {
    const verdict = await askHooks(io, STEERING, input);
    if (verdict.isBlocked) {
      const message = `a UserPromptSubmit hook refused input that was added to this turn: ${verdict.reason}`;
      await io.record(warning(turnId, "policy.denied", message), "system");
      continue;
    }
    const added = context.map((given) => clientNote(turnId, given));
    const notes = hookNotes(turnId, "UserPromptSubmit", verdict.notes);
    await io.record([...added, ...userMessage(turnId, input, saidOf(said)), ...notes], by);
    const texts = [...context.map(clientContextText), ...verdict.notes];
    accepted.push(...texts.map((text): InputPart => ({ type: "text", text })), ...markedInput(input, said.role));
  }
  return accepted;
}

function askHooks({ policy }: TurnIo, subject: string, input: readonly InputPart[]) {
  return policy.hooks.run("UserPromptSubmit", { subject, names: [], payload: { prompt: textOf(input) } });
}

function clientNote(turnId: string, given: ClientContext): RunnerEvent {
  const { name, kind } = given;
  return { type: "context.added", v: 1, turnId, source: "client", name, kind, text: clientContextText(given) };
}
