/**
 * Work done ahead of need, in time that nobody waits for. Nothing depends on it: without it a turn does the same, later.
 * An answer most often calls a tool, so what runs calls is made ready while the model is awaited.
 */
import type { RequestProgress } from "@heddle/models";
import { warmTools, type Sandbox } from "@heddle/tools";

/** An answer that comes sooner leaves no time to spare. */
const AFTER_MS = 40;

/** For one request to a model; disposed when its answer is there. */
export type Ahead = RequestProgress & Disposable;

export function workAhead(sandbox: Pick<Sandbox, "standBy">): Ahead {
  let timer: NodeJS.Timeout | undefined;
  const work = (): void => {
    sandbox.standBy("pause");
    // Whoever calls a tool meets the failure.
    warmTools().catch(() => undefined);
  };
  return {
    sent: () => void (timer ??= setTimeout(work, AFTER_MS).unref()),
    calling: () => sandbox.standBy(),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
