/** Reads a file that an option names, whole and within a limit; whatever is wrong with it is told with the option's name. */
import { readFile, stat } from "node:fs/promises";
import { HeddleError, hostFaultOr, reasonOf } from "@heddle/protocol";
import { usage } from "./args.ts";

export async function readInputFile(file: string, flag: string, maxBytes: number): Promise<Buffer> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw usage(`${flag} ${file} does not exist`);
  if (!found.isFile()) throw usage(`${flag} ${file} is not a file`);
  if (found.size > maxBytes) throw usage(`${flag} ${file} is over ${maxBytes / 1024 / 1024} MiB`);
  try {
    return await readFile(file);
  } catch (error) {
    const why = reasonOf(error);
    throw new HeddleError(hostFaultOr(error, "usage.invalid"), `${flag} ${file} cannot be read: ${why}`, {
      cause: error,
    });
  }
}
