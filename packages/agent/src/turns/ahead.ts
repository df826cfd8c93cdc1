/** Work done ahead of need, while the model is awaited: most answers call a tool. Nothing depends on it. */
import type { RequestProgress } from "@heddle/models";
import { warmTools, type Sandbox } from "@heddle/tools";

/** An answer that comes sooner leaves no time for it. */
const AFTER_MS = 40;

export type Ahead = RequestProgress & Disposable;

export function workAhead(sandbox: Pick<Sandbox, "standBy">, received: () => void): Ahead {
  let timer: NodeJS.Timeout | undefined;
  const work = (): void => {
    sandbox.standBy("pause");
    // The call of the tool reports the failure.
    warmTools().catch(() => undefined);
  };
  return {
    sent: () => void (timer ??= setTimeout(work, AFTER_MS).unref()),
    calling: () => sandbox.standBy(),
    received,
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
