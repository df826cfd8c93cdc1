/** What a client wishes for its turns, and who decides what that comes to. */
import type { ApprovalPolicy, SandboxMode, TurnSettings } from "@heddle/protocol";

export interface Wishes {
  /** Where the turns work; whether its owner trusts it decides what may be written when nobody says. */
  readonly workspace?: string | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly effort?: string | undefined;
  readonly sandboxMode?: SandboxMode | undefined;
  readonly approvalPolicy?: ApprovalPolicy | undefined;
  /** `plan`: find out and propose, and ask the user where that helps. */
  readonly mode?: "plan" | undefined;
  /** Nobody minds a provider without a key until a turn needs it. */
  readonly mayLackKey?: boolean | undefined;
  /** Keys of the configuration, dotted or nested, as a client sends them. */
  readonly config?: Readonly<Record<string, unknown>> | undefined;
  /** What the thread ran with before; taken on where nothing else is wished. */
  readonly inherited?: TurnSettings | undefined;
}

/** Configuration belongs to whoever starts the server. Failures are typed. */
export interface SettingsSource {
  resolve(wishes: Wishes): Promise<TurnSettings>;
}
