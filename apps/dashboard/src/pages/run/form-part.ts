/** What every form of an act has. */
import type { FormEvent } from "react";
import type { Act } from "../../parts/act.tsx";

export interface FormPart {
  readonly act: Act;
  /** Closes the form when the call has succeeded. */
  readonly send: (call: () => Promise<unknown>) => void;
}

export function submitted(run: () => void): (event: FormEvent) => void {
  return (event) => {
    event.preventDefault();
    run();
  };
}
