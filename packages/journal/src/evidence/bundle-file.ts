/** A bundle on its way in: a private copy in the home, so that what is verified is what is taken over, and its lines. */
import { mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { HeddleError } from "@heddle/protocol";

export interface ReceivedBundle extends AsyncDisposable {
  /** Throws `door.too-large` when it becomes larger than it may be. */
  write(piece: string | Uint8Array): Promise<void>;
  /** Of what was written so far, as often as it is asked for. */
  lines(): AsyncIterable<string>;
}

export async function receiveBundle(
  home: string,
  { maxBytes }: { readonly maxBytes: number },
): Promise<ReceivedBundle> {
  const folder = await mkdtemp(join(home, "import-"));
  const forget = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    const copy = await open(join(folder, "bundle"), "wx+", 0o600);
    // Without a name it ends with this process, however that ends. Where an open file cannot lose its name it loses it at the end.
    await forget().catch(() => undefined);
    let bytes = 0;
    return {
      async write(piece) {
        const written = Buffer.from(piece);
        bytes += written.length;
        if (bytes > maxBytes) {
          const message = `a bundle has at most ${maxBytes} bytes here`;
          throw new HeddleError("door.too-large", message, { details: { maxBytes } });
        }
        await copy.writeFile(written);
      },
      lines: () => linesOf(copy.createReadStream({ start: 0, autoClose: false })),
      async [Symbol.asyncDispose]() {
        await copy.close();
        await forget();
      },
    };
  } catch (error) {
    await forget();
    throw error;
  }
}

const MAX_LINE_CHARS = 256 * 1024 * 1024;

/** What was read of an open line is not looked at again, however long it grows. */
export async function* linesOf(stream: Readable): AsyncGenerator<string, void, void> {
  const open: string[] = [];
  let chars = 0;
  for await (const chunk of stream.setEncoding("utf8")) {
    const [first = "", ...more] = String(chunk).split("\n");
    open.push(first);
    chars += first.length;
    const last = more.pop();
    if (last !== undefined) {
      yield open.splice(0).join("");
      yield* more;
      open.push(last);
      chars = last.length;
    }
    if (chars > MAX_LINE_CHARS) throw new HeddleError("usage.invalid", "this is not an export: a line is too long");
  }
  const rest = open.join("");
  if (rest !== "") yield rest;
}
