/**
 * The beginning of a turn: hooks that may add to the prompt or refuse it, the environment when it has changed, the
 * user's message, and the skills it names. All recorded before the first request, once per turn.
 */
import {
  HeddleError,
  inputItemId,
  type ClientContext,
  type EventBody,
  type EventOf,
  type InputPart,
  type StandingGoal,
} from "@heddle/protocol";
import type { ChildToolset, EvidencePort, GoalEndStatus, MessageToolEntry, Skill } from "@heddle/tools";
import { clientContextText } from "../context/client-context.ts";
import { ADMITTED, STEERING } from "../context/context.ts";
import { textOf } from "../context/compacted-context.ts";
import { admissionOf } from "../turns/outcome.ts";
import { goalText } from "../context/goal.ts";
import type { RunnerEvent, SteeringInput, TurnIo, TurnRequest } from "./runner.ts";
import { mentionedSkills, skillEvent, type SkillChoices } from "../context/skills.ts";
import { loadSurroundings, type Surroundings } from "../context/surroundings.ts";
import { hookNotes, saidOf, userMessage, warning } from "./notes.ts";

export interface RunContext {
  readonly turn: TurnRequest;
  readonly io: TurnIo;
  readonly home: string;
  readonly codexHome: string | undefined;
  readonly userHome: string | undefined;
  readonly skills: SkillChoices | undefined;
  readonly skillFolder: string | undefined;
  readonly clientToolMs: number;
  readonly goal: () => Promise<StandingGoal | undefined>;
  readonly endGoal: (status: GoalEndStatus) => Promise<void>;
  readonly evidence: EvidencePort;
  readonly children: ChildToolset | undefined;
  readonly messages: readonly MessageToolEntry[] | undefined;
  /** Messages that no agent was told of yet, or those with these ids, as events of this turn; once they are recorded, they are told. */
  readonly giveMessages: (ids?: readonly string[]) => Promise<readonly EventOf<"context.added">[]>;
}

/** Throws `policy.denied` when a hook refuses the prompt. Returns the skills of the turn. */
export async function recordPrompt(run: RunContext): Promise<readonly Skill[]> {
  const { turn, io, home, codexHome, userHome } = run;
  const { hooks, sessionSource } = io.policy;
  const { turnId, workspace } = turn;
  const admitted = admissionOf(turn);
  const loaded = await loadSurroundings({
    workspace,
    envelope: turn.sandboxContext.envelope,
    settings: turn.settings,
    home,
    codexHome,
    userHome,
    skills: run.skills,
    signal: io.signal,
  });
  if (turn.history.some(({ body }) => isPrompted(body, turnId))) return loaded.skills;

  const notes: RunnerEvent[] = [];
  if (sessionSource !== undefined) {
    const payload = { source: sessionSource };
    const verdict = await hooks.run("SessionStart", { subject: sessionSource, payload });
    notes.push(...hookNotes(turnId, "SessionStart", verdict.notes));
  }
  if (admitted.task === "shell") {
    const news = [...newsOf(turn, loaded), ...notes];
    if (news.length > 0) await io.record(news, admitted.by);
    return loaded.skills;
  }
  const given = await run.giveMessages(admitted.messages);
  const isOfMessages = admitted.task === "message";
  const verdict = await hooks.run("UserPromptSubmit", {
    subject: ADMITTED,
    names: [],
    payload: { prompt: isOfMessages ? given.map(({ text }) => text).join("\n") : textOf(admitted.input) },
  });
  const message =
    admitted.task === "goal" || isOfMessages
      ? [...(isOfMessages ? startedBy(given) : await goalNote(run))]
      : userMessage(turnId, admitted.input, { ...saidOf(admitted), id: inputItemId(turnId) });
  if (verdict.isBlocked) {
    // Messages that were refused wait on, and are not begun again by themselves.
    if (!isOfMessages) await io.record(message, admitted.by);
    throw new HeddleError("policy.denied", `a UserPromptSubmit hook refused the prompt: ${verdict.reason}`);
  }
  notes.push(...hookNotes(turnId, "UserPromptSubmit", verdict.notes));
  const called = await calledSkills(run, admitted.input, loaded.skills);
  const told = isOfMessages ? [] : given;
  await io.record([...newsOf(turn, loaded), ...message, ...called, ...told, ...notes], admitted.by);
  return loaded.skills;
}

/** Their sender may have taken them back since the turn was admitted. */
function startedBy(given: readonly EventOf<"context.added">[]): readonly EventOf<"context.added">[] {
  if (given.length > 0) return given;
  throw new HeddleError("message.not-found", "the messages that started this turn were answered or taken back already");
}

/** Commands of the user come without a prompt, or before it. */
function isPrompted(body: EventBody, turnId: string): boolean {
  if (body.type === "context.added" && body.turnId === turnId) return body.source === "message";
  if (body.type !== "item.completed" || body.turnId !== turnId) return false;
  return body.item.type !== "commandExecution" || body.item.source !== "user";
}

async function goalNote({ turn: { turnId }, goal: read }: RunContext): Promise<RunnerEvent[]> {
  const goal = await read();
  if (goal === undefined) return [];
  return [{ type: "context.added", v: 1, turnId, source: "goal", name: "goal", text: goalText(goal) }];
}

/** Records input that came while the turn ran; returns how much of it hooks accepted. */
export async function recordSteering(
  run: RunContext,
  steering: readonly SteeringInput[],
  skills: readonly Skill[],
): Promise<number> {
  const { turn, io } = run;
  let count = 0;
  for (const { input, context = [], by, ...said } of steering) {
    const payload = { prompt: textOf(input) };
    const verdict = await io.policy.hooks.run("UserPromptSubmit", { subject: STEERING, names: [], payload });
    if (verdict.isBlocked) {
      const message = `a UserPromptSubmit hook refused input that was added to this turn: ${verdict.reason}`;
      await io.record(warning(turn.turnId, "policy.denied", message), "system");
      continue;
    }
    const called = await calledSkills(run, input, skills);
    const notes = hookNotes(turn.turnId, "UserPromptSubmit", verdict.notes);
    const added = context.map((given) => clientNote(turn.turnId, given));
    await io.record([...added, ...userMessage(turn.turnId, input, saidOf(said)), ...called, ...notes], by);
    count += 1;
  }
  return count;
}

function clientNote(turnId: string, given: ClientContext): RunnerEvent {
  const { name, kind } = given;
  return { type: "context.added", v: 1, turnId, source: "client", name, kind, text: clientContextText(given) };
}

function newsOf({ history, turnId }: TurnRequest, { text, sources, skipped }: Surroundings): RunnerEvent[] {
  const before = history.findLast(({ body }) => body.type === "context.loaded")?.body;
  if (before?.type === "context.loaded" && before.text === text) return [];
  const problems = skipped.slice(0, MAX_NAMED).map(({ path, reason }) => `${path}: ${reason}`);
  const more = skipped.length > problems.length ? [`and ${skipped.length - problems.length} more`] : [];
  return [
    { type: "context.loaded", v: 1, turnId, text, sources: [...sources] },
    ...(problems.length === 0
      ? []
      : warning(turnId, "config.invalid", `skills that cannot be used: ${[...problems, ...more].join("; ")}`)),
  ];
}

const MAX_NAMED = 5;

async function calledSkills(
  { turn, io, home }: RunContext,
  input: readonly InputPart[],
  skills: readonly Skill[],
): Promise<RunnerEvent[]> {
  const options = { home, masked: turn.sandboxContext.envelope.masked, signal: io.signal };
  return Promise.all(mentionedSkills(input, skills).map((skill) => skillEvent(skill, turn.turnId, options)));
}
