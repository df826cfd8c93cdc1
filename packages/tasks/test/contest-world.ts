/** Contestants of the scripted model, one provider each, for tests here and in processes of their own. */
import type { ProviderConfig } from "@heddle/models";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { shell } from "./test-harness.ts";

type Script = NonNullable<ProviderConfig["script"]>;

export const DONE = { text: "Done.\nTASK COMPLETE" };
/** Claims, and does nothing. */
export const LIES: Script = Array.from({ length: 8 }, () => DONE);

export const answers = (command: string, delayMs = 0): Script => [{ calls: [shell(command)], delayMs }, DONE];

export function contestants(scripts: Readonly<Record<string, Script>>): readonly ProviderConfig[] {
  return Object.entries(scripts).map(([id, script]) => ({ id, family: "openai", wire: "scripted", script }));
}

/** The answer has to be 42, whatever is written to the file that says so. */
export function contest(names: readonly string[], more: Partial<TaskSpecInput> = {}): Partial<TaskSpecInput> {
  return {
    agents: names.map((name) => ({ name, provider: name })),
    checks: [{ kind: "command", name: "sum", run: 'test "$(head -n 1 answer.txt)" = 42' }],
    deliver: ["answer.txt"],
    maxNudges: 1,
    ...more,
  };
}

/** Who died before its command did anything does it again when the checks say so. */
const again = (command: string): Script => [1, 2, 3].flatMap(() => answers(command));

/** Of contests that are killed: a liar, and two that are right. */
export const KILLED = contestants({
  liar: LIES,
  one: again("echo 42 > answer.txt"),
  two: again("printf '42\\n2\\n' > answer.txt"),
});
