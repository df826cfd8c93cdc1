/** What a child thread runs with: its parent's settings, without what belongs to the parent's turn alone. Pure. */
import { defined, type Envelope, type SandboxMode, type TurnSettings } from "@heddle/protocol";
import { sandboxModeOf, type ChildRequest } from "@heddle/tools";

/** From the narrowest. */
const MODES: readonly SandboxMode[] = ["read-only", "workspace-write", "danger-full-access"];

export interface ChildSettings {
  readonly settings: TurnSettings;
  /** What was asked for and is more than the parent has, in words. */
  readonly narrowed?: string | undefined;
}

/** An envelope that was asked for by its name, beside the one that the parent is in. */
export interface NamedEnvelope {
  readonly envelope: Envelope;
  /** What of it is more than the parent has, in words. */
  readonly excess: string | undefined;
}

/** Limits stay with the parent: its meter counts what its children use. */
export function childSettings(parent: TurnSettings, asked: ChildRequest, named?: NamedEnvelope): ChildSettings {
  const {
    outputSchema: _schema,
    isAnswerUnchecked: _unchecked,
    limits: _limits,
    isForTask: _task,
    hasClientTools: _tools,
    asksUser: _asks,
    envelope: _envelope,
    ...kept
  } = parent;
  const { model, effort } = asked;
  const { narrowed, ...walls } = named === undefined ? byMode(parent, asked.sandboxMode) : byName(parent, named);
  const settings: TurnSettings = {
    ...kept,
    ...defined(walls),
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
  };
  return narrowed === undefined ? { settings } : { settings, narrowed };
}

type Walls = Pick<TurnSettings, "sandboxMode" | "envelope"> & Pick<ChildSettings, "narrowed">;

/** A sandbox mode that was asked for counts more than the name of the parent's envelope. */
function byMode({ sandboxMode, envelope }: TurnSettings, asked: SandboxMode = sandboxMode): Walls {
  if (isWider(asked, sandboxMode)) {
    return { sandboxMode, envelope, narrowed: `${asked} is more than its parent has; it runs with ${sandboxMode}` };
  }
  return { sandboxMode: asked, envelope: asked === sandboxMode ? envelope : undefined };
}

/** The intersection with what the parent has is made where the child's sandbox is entered. */
function byName({ sandboxMode }: TurnSettings, { envelope, excess }: NamedEnvelope): Walls {
  const mode = sandboxModeOf({ sandbox: envelope.sandbox, write: envelope.writeRoots });
  return {
    sandboxMode: isWider(mode, sandboxMode) ? sandboxMode : mode,
    envelope: envelope.id,
    ...(excess === undefined ? {} : { narrowed: `${excess} is more than its parent has; it runs without` }),
  };
}

function isWider(mode: SandboxMode, than: SandboxMode): boolean {
  return MODES.indexOf(mode) > MODES.indexOf(than);
}
