/** What the host gives and who is logged in: known to whoever starts the server, told by every door alike. */
import type { AccountStatus, ModelListing } from "@heddle/models/accounts";

export interface SandboxFacts {
  /** What holds the wall of a turn that begins now; `none`: such a turn is refused. */
  readonly level: "namespaces" | "bwrap" | "seatbelt" | "none";
  readonly backends: readonly { readonly name: string; readonly isUsable: boolean; readonly problem?: string }[];
}

export interface HostFacts {
  sandbox(): Promise<SandboxFacts>;
  /** Statuses only: no secret is in them. */
  accounts(): Promise<readonly AccountStatus[]>;
  models(provider: string | undefined): Promise<readonly ModelListing[]>;
}
