/** What must be true of other streams for an append; looked at where nothing can come in between. */
import { HeddleError } from "@heddle/protocol";

/** No other task that excludes it is held in this folder. */
export interface AppendGuard {
  readonly kind: "folder-free";
  readonly folder: string;
  /** False: only a task that works alone is in the way. */
  readonly isExclusive: boolean;
}

export function refuseBusyFolder({ folder }: AppendGuard, by: string): never {
  throw new HeddleError("task.folder-busy", `${by} works in ${folder}`, { details: { folder, by } });
}
