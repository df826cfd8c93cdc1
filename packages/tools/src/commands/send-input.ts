/** Text for the standard input of a command. One that does not read leaves it in its pipe, and nobody waits for that. */
import type { OpenCommand } from "./process-table.ts";

const SEND_WAIT_MS = 2000;

/** `waits`: it has not been read yet. Throws `tool.failed` when the command takes no input any more. */
export async function sendInput(
  command: Pick<OpenCommand, "write">,
  text: string,
  signal?: AbortSignal,
): Promise<"sent" | "waits"> {
  const timeout = AbortSignal.timeout(SEND_WAIT_MS);
  const limit = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  const late = Promise.withResolvers<"waits">();
  const onLimit = (): void => late.resolve("waits");
  limit.addEventListener("abort", onLimit, { once: true });
  try {
    return await Promise.race([command.write(text).then(() => "sent" as const), late.promise]);
  } finally {
    limit.removeEventListener("abort", onLimit);
  }
}
