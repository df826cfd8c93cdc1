/**
 * The file of `-o`: held from before the turn, and written in any case, for the text of an earlier run must not pass for
 * this one's. An agent can neither plant a link for it to be written through nor lead it elsewhere.
 */
import { HeddleError } from "@heddle/protocol";
import type { HeldFile } from "@heddle/tools/held-file";
import { asFailure } from "../batch/artifacts.ts";

export async function writeLastMessage(file: HeldFile, text: string): Promise<void> {
  try {
    await file.write(text);
  } catch (error) {
    const { code, message } = asFailure(error, `-o ${file.path}`);
    const isSaid = message.startsWith("-o ");
    throw new HeddleError(code, isSaid ? message : `-o ${file.path} could not be written: ${message}`, {
      cause: error,
    });
  }
}
