/** What a session can be set to: modes, which are envelopes, and options; and sessions in a list. */
import type { ClientContext } from "@heddle/protocol";

export interface AcpMode {
  readonly id: string;
  readonly description: string;
}

export interface AcpChoices {
  readonly modes: readonly AcpMode[];
  readonly mode: string;
  readonly models: readonly string[];
  readonly model: string;
  readonly effort: string | undefined;
}

/** The key of an option without a value of the thread's own. */
export const UNSET = "default";
const EFFORTS = ["low", "medium", "high"];

/** In both forms of the protocol: modes, and options that newer clients show in their place. */
export function sessionState(choices: AcpChoices): Readonly<Record<string, unknown>> {
  const { modes, mode, models, model } = choices;
  return {
    modes: {
      currentModeId: mode,
      availableModes: modes.map(({ id, description }) => ({ id, name: id, description })),
    },
    // Clients of earlier versions choose a model so.
    models: { currentModelId: model, availableModels: models.map((modelId) => ({ modelId, name: modelId })) },
    configOptions: configOptions(choices),
  };
}

export function configOptions({ modes, mode, models, model, effort }: AcpChoices): readonly object[] {
  const named = (values: readonly string[]) => values.map((value) => ({ value, name: value }));
  const efforts = [UNSET, ...EFFORTS, ...(effort === undefined || EFFORTS.includes(effort) ? [] : [effort])];
  return [
    {
      id: "mode",
      name: "Envelope",
      description: "What the agent may do",
      category: "mode",
      type: "select",
      currentValue: mode,
      options: modes.map(({ id, description }) => ({ value: id, name: id, description })),
    },
    { id: "model", name: "Model", category: "model", type: "select", currentValue: model, options: named(models) },
    {
      id: "effort",
      name: "Reasoning effort",
      category: "thought_level",
      type: "select",
      currentValue: effort ?? UNSET,
      options: named(efforts),
    },
  ];
}

export interface AcpThreadFacts {
  readonly id: string;
  readonly workspace: string;
  readonly name: string | undefined;
  readonly title: string | undefined;
  readonly preview: string | undefined;
  readonly updatedAt: number;
}

export function sessionInfo({ id, workspace, name, title, preview, updatedAt }: AcpThreadFacts): object {
  return {
    sessionId: id,
    cwd: workspace,
    title: name ?? title ?? preview ?? null,
    updatedAt: new Date(updatedAt).toISOString(),
  };
}

export interface AcpCommand {
  readonly name: string;
  readonly description: string;
  readonly hint?: string;
}

export function commandsUpdate(commands: readonly AcpCommand[]) {
  const availableCommands = commands.map(({ name, description, hint }) => ({
    name,
    description,
    input: hint === undefined ? null : { hint },
  }));
  return { sessionUpdate: "available_commands_update", availableCommands };
}

const DOOR = "acp:";

/** What is stored as the origin of a thread that a client of this door has made. */
export function acpOrigin(clientName: string): string {
  return `${DOOR}${clientName}`;
}

/** More than this is no input of a person. */
export const MAX_INPUT_CHARS = 1024 * 1024;

export function charsOf(context: readonly ClientContext[]): number {
  return context.reduce((sum, { text }) => sum + text.length, 0);
}
